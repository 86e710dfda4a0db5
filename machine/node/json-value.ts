/** Values that JSON carries without loss: arguments and results of programs, and the values that they exchange. */
import { ConfigurationError, textOfThrown } from '../../base/index.ts';

/** Values that can be exchanged: anything JSON can carry. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/**
 * A value for transfer as JSON: in addition to {@link JsonValue}, objects of an interface or a class. {@link jsonCopy}
 * checks it when it is copied.
 */
export type JsonLike = JsonValue | object;

const carried = 'a value that JSON carries: null, boolean, finite number, string, array or plain object';
/** JSON.stringify and structured clone both fail at a few thousand levels. */
const depthMax = 500;

/**
 * Returns a checked copy of a value: JSON would silently drop or change some values (NaN, undefined in an array, Map,
 * typed arrays). An undefined property is left out, as in JSON.
 * @param field its name, in the error
 * @throws ConfigurationError naming the place of the first part that JSON does not carry
 */
export function jsonCopy(field: string, value: unknown): JsonValue {
  return copyOf(field, value, []);
}

function copyOf(field: string, value: unknown, above: object[]): JsonValue {
  switch (typeof value) {
    case 'boolean':
    case 'string':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      break;
    case 'object':
      return value === null ? null : compositeOf(field, value, above);
    default:
  }
  throw new ConfigurationError(field, textOf(value), carried);
}

function compositeOf(field: string, value: object, above: object[]): JsonValue {
  if (above.includes(value)) throw new ConfigurationError(field, 'an object that contains itself', carried);
  if (above.length === depthMax)
    throw new ConfigurationError(field.slice(0, 40), `more than ${depthMax} levels deep`, carried);
  above.push(value);
  const copy = Array.isArray(value) ? arrayOf(field, value, above) : objectOf(field, value, above);
  above.pop();
  return copy;
}

function arrayOf(field: string, value: readonly unknown[], above: object[]): JsonValue[] {
  const copy: JsonValue[] = [];
  for (let at = 0; at < value.length; at++) copy.push(copyOf(`${field}[${at}]`, value[at], above));
  return copy;
}

function objectOf(field: string, value: object, above: object[]): JsonValue {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain || Object.getOwnPropertySymbols(value).length > 0)
    throw new ConfigurationError(field, `an object of ${kindOf(value)}`, carried);
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [name, copyOf(`${field}.${name}`, part, above)]));
}

const kindOf = (value: object): string => {
  const { name } = (value as { readonly constructor?: { readonly name?: unknown } }).constructor ?? {};
  return typeof name === 'string' ? name : 'a kind of its own';
};

const textOf = (value: unknown): string =>
  typeof value === 'bigint' ? `${value}n` : typeof value === 'function' ? 'a function' : textOfThrown(value);
