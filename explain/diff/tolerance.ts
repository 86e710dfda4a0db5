/**
 * Tolerances of figures: `1%` for all, `pcie.*=5%` for those whose path contains such a part. A pattern begins at any
 * name of the path, or at the figure's group, and ends where the path ends; `*` matches anything, including dots.
 */
import { ConfigurationError } from '../../base/index.ts';
import { groupOf } from './groups.ts';

export interface Tolerance {
  /** `*` matches every figure. */
  readonly pattern: string;
  readonly percent: number;
}

/**
 * Parses `1%` or `PATTERN=5%`.
 * @throws ConfigurationError
 */
export function parsedTolerance(text: string): Tolerance {
  const at = text.lastIndexOf('=');
  const pattern = at < 0 ? '*' : text.slice(0, at).trim();
  const percent = /^\s*(\d{1,6}(?:\.\d{1,6})?)\s*%\s*$/.exec(text.slice(at + 1))?.[1];
  if (percent === undefined || pattern === '')
    throw new ConfigurationError('--tolerance', text, 'a share such as 1% or pcie.*=5%');
  return { pattern, percent: Number(percent) };
}

/** Returns the tolerance of a figure in percent: the last matching pattern; `*` applies only if no other matches. */
export function toleranceBy(tolerances: readonly Tolerance[]): (path: string) => number {
  const general = tolerances.findLast(({ pattern }) => pattern === '*')?.percent ?? 0;
  const special = tolerances
    .filter(({ pattern }) => pattern !== '*')
    .map(({ pattern, percent }) => ({ expression: expressionOf(pattern), percent }));
  return (path) => {
    const name = `${groupOf(path)}.${path}`;
    return special.findLast(({ expression }) => expression.test(name))?.percent ?? general;
  };
}

const expressionOf = (pattern: string): RegExp =>
  new RegExp(
    `(^|\\.)${pattern
      .split(/\*+/)
      .map((part) => part.replace(/[^\w]/g, '\\$&'))
      .join('.*')}$`,
  );
