/**
 * Parameter values from text of the command line or JSON of a file. Every error is a ConfigurationError that names the
 * path, the value and the range; for an unknown path it suggests the nearest one.
 */
import { ConfigurationError, type NumberParameter, type Parameter } from '../../base/index.ts';
import { type ParameterValue, parametersByPath, rangeOf } from './parameter-tree.ts';

/**
 * The parameter at `path`.
 * @throws ConfigurationError that suggests the nearest path
 */
function parameterAt(path: string): Parameter {
  const parameter = parametersByPath.get(path);
  if (parameter !== undefined) return parameter;
  const hint = hintFor(path, parametersByPath.keys());
  throw new ConfigurationError('parameter', path, `a known one${hint === '' ? ' (hca profiles)' : hint}`);
}

/** Checks a value from a file or the library, and returns it with its type. */
export function checkedValue(path: string, value: unknown): ParameterValue {
  const parameter = parameterAt(path);
  if (isValueOf(parameter, value)) return value;
  throw new ConfigurationError(path, value, rangeOf(parameter));
}

function isValueOf(parameter: Parameter, value: unknown): value is ParameterValue {
  if (parameter.kind === 'flag') return typeof value === 'boolean';
  if (parameter.kind === 'choice') return parameter.choices.some((choice) => choice === value);
  return typeof value === 'number' && isInRange(parameter, value);
}

function isInRange(parameter: NumberParameter, value: number): boolean {
  if (!Number.isSafeInteger(value) || value < parameter.min || value > parameter.max) return false;
  return parameter.powerOfTwo !== true || Number.isInteger(Math.log2(value));
}

/** Parses `text` from the command line: decimal or 0x numbers, true and false, words. */
function parsedValue(path: string, text: string): ParameterValue {
  const parameter = parameterAt(path);
  if (parameter.kind === 'choice') return checkedValue(path, text);
  if (parameter.kind === 'flag' && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = parameter.kind === 'number' && /^(?:0x[0-9a-f]+|-?\d+(?:_\d+)*)$/i.test(text);
  return checkedValue(path, isNumber ? Number(text.replaceAll('_', '')) : text);
}

/**
 * Splits `path=value` and parses the value.
 * @throws ConfigurationError if path or value is missing
 */
export function parsedAssignment(text: string): readonly [path: string, value: ParameterValue] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new ConfigurationError('--set', text, 'path=value');
  const path = text.slice(0, at).trim();
  return [path, parsedValue(path, text.slice(at + 1).trim())];
}

/** The end of a message about an unknown word: the most similar candidate, or nothing if none is similar. */
export function hintFor(word: string, candidates: Iterable<string>): string {
  let nearest: string | undefined;
  // Greatest number of wrong letters.
  let least = Math.ceil(word.length * 0.4) + 1;
  for (const candidate of candidates) {
    const distance = Math.min(editDistance(word, candidate, least), lastNameDistance(word, candidate, least));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

/** A right last name under a wrong or missing group is closer than its letters suggest. */
function lastNameDistance(word: string, candidate: string, limit: number): number {
  const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);
  return 2 + editDistance(lastOf(word), lastOf(candidate), limit);
}

/** Levenshtein distance: insertions, deletions and replacements of letters; Infinity once their number exceeds the limit. */
function editDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) > limit) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
