/**
 * Values of any axis, as a user writes them:
 *
 *     16..4096*2      16, 32 … 4096       a range by a factor
 *     0..100+25       0, 25, 50, 75, 100  a range by a step
 *     64,4K,1Mi       a list; K, M and G, with or without i, are powers of 1024; of a rate without i, powers of 1000
 *     SDR,QDR,true    words
 *     16..64*2,1000   parts of any of these kinds
 *     1..1000         a span: every whole number is equally likely in a Latin hypercube
 *
 * A range ends at the largest value that does not exceed its end.
 */
import { ConfigurationError } from '../../base/index.ts';
import { isRateField } from './workload-field.ts';

/** Integers from `from` to `to`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** More values than make sense on one axis: probably a mistyped range. */
export const axisValuesMax = 100_000;

const numberPattern = String.raw`(?:0x[0-9a-f]+|\d+(?:_\d+)*)(?:[KMG]i?)?`;
const rangePattern = new RegExp(
  `^(${numberPattern})\\.\\.(${numberPattern})(?:([*+])(${numberPattern}))?$`,
  'i',
);
const wholePattern = new RegExp(`^${numberPattern}$`, 'i');
const units = ['', 'K', 'M', 'G'];

/** The integer that a text means on this axis; undefined for anything else. */
export function wholeNumberOf(path: string, text: string): number | undefined {
  if (!wholePattern.test(text)) return undefined;
  const [, digits, unit = '', binary] = /^(.*?)(?:([KMG])(i)?)?$/i.exec(text)!;
  const isRate = isRateField(path);
  if (isRate && binary !== undefined) return undefined;
  const value =
    Number(digits!.replaceAll('_', '')) * (isRate ? 1000 : 1024) ** units.indexOf(unit.toUpperCase());
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * The values of an axis: texts of a list, expanded ranges, or a span if there is nothing else.
 * @throws ConfigurationError naming axis, text and the form of a range
 */
export function valueTextsOf(path: string, text: string): readonly string[] | Span {
  const only = spanOf(path, text.trim());
  if (only !== undefined) return only;
  const values = partsOf(path, text).flatMap((part) => valuesOfPart(path, part));
  if (values.length > axisValuesMax) throw tooMany(path, text);
  return values;
}

/**
 * The texts of a list.
 * @throws ConfigurationError for an empty one
 */
export function partsOf(path: string, text: string): readonly string[] {
  const parts = text.split(',').map((part) => part.trim());
  if (!parts.includes('')) return parts;
  throw new ConfigurationError(axisName(path), '', 'values with one comma between them');
}

/**
 * The values of one list item: an expanded range, or the text itself, including commas.
 * @throws ConfigurationError as {@link valueTextsOf} does
 */
export function itemTextsOf(path: string, item: string): readonly string[] {
  return item.includes('..') ? valuesOfPart(path, item.trim()) : [item];
}

function spanOf(path: string, text: string): Span | undefined {
  const [, from, to, sign] = rangePattern.exec(text) ?? [];
  if (from === undefined || to === undefined || sign !== undefined) return undefined;
  return { from: endOf(path, from, text), to: risingEnd(path, from, to, text) };
}

function valuesOfPart(path: string, part: string): string[] {
  if (!part.includes('..')) return [part];
  const [, first, last, sign, by] = rangePattern.exec(part) ?? [];
  if (first === undefined || last === undefined || sign === undefined || by === undefined)
    throw new ConfigurationError(axisName(path), part, 'a range such as 16..4096*2 or 0..100+25');
  const from = endOf(path, first, part);
  const to = risingEnd(path, first, last, part);
  const step = endOf(path, by, part);
  if (sign === '+' ? step < 1 : step < 2 || from < 1)
    throw new ConfigurationError(
      axisName(path),
      part,
      'a range that rises: by a factor of at least 2 from at least 1, or a step of at least 1',
    );
  const values: string[] = [];
  for (let value = from; value <= to; value = sign === '+' ? value + step : value * step) {
    if (values.push(String(value)) > axisValuesMax) throw tooMany(path, part);
  }
  return values;
}

function endOf(path: string, text: string, range: string): number {
  const value = wholeNumberOf(path, text);
  if (value !== undefined) return value;
  throw new ConfigurationError(axisName(path), range, 'whole numbers below 2^53');
}

function risingEnd(path: string, from: string, to: string, range: string): number {
  const value = endOf(path, to, range);
  if (value >= endOf(path, from, range)) return value;
  throw new ConfigurationError(axisName(path), range, 'a range whose end is not below its beginning');
}

const tooMany = (path: string, text: string): ConfigurationError =>
  new ConfigurationError(axisName(path), text, `at most ${axisValuesMax} values`);

/** Name of an axis in messages. */
export const axisName = (path: string): string => `values of ${path}`;
