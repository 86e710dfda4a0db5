/** Checks options by name and kind, so that JavaScript users get an error for a misspelt or wrong option, as TypeScript users do. */
import { ConfigurationError } from '../base/index.ts';

/** Accepted values of an option, in words for its error, and a test of a value; undefined if the option is omitted. */
export interface OptionKind {
  readonly range: string;
  fits(value: unknown): boolean;
}

const isPlainObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const optionKinds = {
  text: { range: 'a text', fits: (value) => typeof value === 'string' },
  flag: { range: 'true or false', fits: (value) => typeof value === 'boolean' },
  whole: { range: 'a whole number', fits: (value) => Number.isSafeInteger(value) },
  positive: {
    range: 'a number above zero, or Infinity',
    fits: (value) => typeof value === 'number' && value > 0,
  },
  natural: {
    range: 'a whole number of at least 0',
    fits: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  },
  any: { range: 'anything', fits: () => true },
  object: { range: 'an object', fits: isPlainObject },
  list: { range: 'a list', fits: Array.isArray },
  function: { range: 'a function', fits: (value) => typeof value === 'function' },
} as const satisfies Readonly<Record<string, OptionKind>>;

/**
 * Checks the options of an object before any of them is used.
 * @param what owner of the options, such as `machine`
 * @throws ConfigurationError for a value that is not an object, for an unknown option, and for one of the wrong kind;
 * an undefined option counts as omitted
 */
export function checkOptions<Options extends object>(
  what: string,
  options: Options,
  known: Readonly<Record<keyof Options & string, OptionKind>>,
): void {
  if (!isPlainObject(options))
    throw new ConfigurationError(`options of a ${what}`, shown(options), `an object with ${namesOf(known)}`);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(known, name))
      throw new ConfigurationError(`option of a ${what}`, name, `one of ${namesOf(known)}`);
    const kind = known[name as keyof Options & string];
    if (!kind.fits(value)) throw new ConfigurationError(name, shown(value), kind.range);
  }
}

const namesOf = (known: object): string => Object.keys(known).join(', ');

/** A wrong value as its error shows it; for a function without its code. */
const shown = (value: unknown): unknown => (typeof value === 'function' ? 'a function' : value);
