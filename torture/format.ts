/** Formats of plain data: the check of a value from a file, tied to the type of a value that passes. */
import { ConfigurationError } from '../base/index.ts';

/** Throws unless a value is valid; `path` names its place. */
export interface Format<T> {
  (path: string, value: unknown): void;
  /** Never there: it ties the type to the check. */
  readonly type?: T;
}

type Of<F> = F extends Format<infer T> ? T : never;

type Fields = Readonly<Record<string, Format<unknown>>>;
type Flat<T> = { readonly [Name in keyof T]: T[Name] };
type ObjectOf<F extends Fields, O extends Fields> = Flat<
  { [Name in keyof F]: Of<F[Name]> } & { [Name in keyof O]?: Of<O[Name]> }
>;

/** @throws ConfigurationError for a value that is not right */
export const value =
  <T>(expected: string, isRight: (value: unknown) => boolean): Format<T> =>
  (path, given) => {
    if (!isRight(given)) throw new ConfigurationError(path, given, expected);
  };

export const whole = (least: number, most: number): Format<number> =>
  value(
    `a whole number from ${least} to ${most}`,
    (given) => Number.isSafeInteger(given) && Number(given) >= least && Number(given) <= most,
  );

export const oneOf = <const T>(...values: readonly T[]): Format<T> =>
  value(`one of ${values.join(', ')}`, (given) => values.includes(given as T));

export const flag: Format<boolean> = oneOf<boolean>(true, false);

/** A field that may be absent, and is undefined then. */
export const orNothing =
  <T>(format: Format<T>): Format<T | undefined> =>
  (path, given) => {
    if (given !== undefined) format(path, given);
  };

export const list =
  <T>(item: Format<T>): Format<readonly T[]> =>
  (path, given) => {
    if (!Array.isArray(given)) throw new ConfigurationError(path, given, 'a list');
    for (const [at, one] of given.entries()) item(`${path}.${at}`, one);
  };

export const pair =
  <T>(item: Format<T>): Format<readonly [T, T]> =>
  (path, given) => {
    list(item)(path, given);
    whole(2, 2)(`${path}.length`, (given as readonly unknown[]).length);
  };

/** The fields of an object; undefined of anything else. */
export const fieldsOf = (given: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof given === 'object' && given !== null && !Array.isArray(given) ? { ...given } : undefined;

/** @param optional fields that may be absent */
export const object =
  <F extends Fields, O extends Fields = NoFields>(fields: F, optional?: O): Format<ObjectOf<F, O>> =>
  (path, given) => {
    const own = fieldsOf(given);
    if (own === undefined) throw new ConfigurationError(path, given, 'an object');
    const all: Fields = { ...fields, ...optional };
    for (const name of Object.keys(own))
      if (!Object.hasOwn(all, name)) oneOf(...Object.keys(all))(`${path} has a field that`, name);
    for (const [name, format] of Object.entries(all))
      if (name in fields || name in own) format(`${path}.${name}`, own[name]);
  };

type Steps = Readonly<Record<string, readonly [fields: Fields, optional?: Fields]>>;
type NoFields = Record<never, never>;
type StepOf<S extends Steps> = {
  [Kind in keyof S]: Flat<
    { readonly do: Kind } & (S[Kind] extends readonly [infer F extends Fields, infer O extends Fields]
      ? ObjectOf<F, O>
      : ObjectOf<S[Kind][0], NoFields>)
  >;
}[keyof S];

/** Format of several kinds of objects, distinguished by their field `do`. */
export const steps =
  <const S extends Steps>(kinds: S): Format<StepOf<S>> =>
  (path, given) => {
    const kind = fieldsOf(given)?.['do'];
    oneOf(...Object.keys(kinds))(`${path}.do`, kind);
    const [fields, optional] = kinds[String(kind)]!;
    object({ do: oneOf(kind), ...fields }, optional)(path, given);
  };
