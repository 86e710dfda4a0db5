/**
 * The axes of a sweep: the varied quantities and their values. An axis is a parameter by its path, a workload field by
 * its name, `profile` or `topology`. Each value is checked here by itself; conflicts between values appear at each point.
 */
import { ConfigurationError, shortJson } from '../../base/index.ts';
import {
  checkedValue,
  hintFor,
  parametersByPath,
  parsedAssignment,
  profileValues,
} from '../../machine/profile/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import {
  axisName,
  axisValuesMax,
  itemTextsOf,
  partsOf,
  type Span,
  valueTextsOf,
  wholeNumberOf,
} from './axis-text.ts';
import { checkedFieldValue, isWorkloadField, workloadFieldNames } from './workload-field.ts';

export type AxisValue = number | string | boolean;

export type Axis =
  | { readonly path: string; readonly values: readonly AxisValue[] }
  /** A span of values, for Latin hypercubes only. */
  | { readonly path: string; readonly span: Span };

/** The axes that vary the profile, and the fabric by the name of a ready one: `star:8`. */
export const profileAxis = 'profile';
export const topologyAxis = 'topology';

/** Whether the axis selects a machine by name. */
export const isMachineAxis = (path: string): boolean => path === profileAxis || path === topologyAxis;

/**
 * Builds an axis from values as a user gives them: a text (axis-text.ts), a number, or a list of both.
 * @throws ConfigurationError naming axis, value and range
 */
export function checkedAxis(path: string, given: unknown, isSampled: boolean): Axis {
  checkAxisPath(path);
  // File paths may contain "..", which is not a range.
  const isRanged = !isMachineAxis(path);
  const textsOf = isRanged ? valueTextsOf : partsOf;
  const texts = typeof given === 'string' ? textsOf(path, given) : undefined;
  if (texts !== undefined && 'from' in texts) return spanAxis(path, texts, isSampled);
  const items: readonly unknown[] = texts ?? (Array.isArray(given) ? (given as unknown[]) : [given]);
  const values = items
    .flatMap((item): readonly unknown[] =>
      typeof item === 'string' && isRanged ? itemTextsOf(path, item) : [item],
    )
    .map((each) => checkedAxisValue(path, each));
  if (values.length === 0 || values.length > axisValuesMax)
    throw new ConfigurationError(axisName(path), `${values.length} values`, `1 to ${axisValuesMax}`);
  const twice = values.find((value, at) => values.indexOf(value) !== at);
  if (twice !== undefined && new Set(values).size < values.length)
    throw new ConfigurationError(axisName(path), twice, 'each value once');
  return { path, values };
}

function spanAxis(path: string, span: Span, isSampled: boolean): Axis {
  const { from, to } = span;
  const text = `${from}..${to}`;
  if (!isSampled)
    throw new ConfigurationError(
      axisName(path),
      text,
      `a range with *factor or +step, such as ${text}*2, unless --sample draws points of it`,
    );
  const parameter = parametersByPath.get(path);
  if (parameter?.kind === 'number' && parameter.powerOfTwo === true)
    throw new ConfigurationError(axisName(path), text, `powers of two, such as ${text}*2`);
  checkedAxisValue(path, from);
  checkedAxisValue(path, to);
  return { path, span };
}

/** @throws ConfigurationError that suggests the nearest axis */
export function checkAxisPath(path: string): void {
  if (isMachineAxis(path) || parametersByPath.has(path) || isWorkloadField(path)) return;
  const hint = hintFor(path, [profileAxis, topologyAxis, ...workloadFieldNames, ...parametersByPath.keys()]);
  throw new ConfigurationError(
    'axis',
    path,
    `a parameter (hca profiles), a field of the workload (${workloadFieldNames.join(', ')}), profile or topology${hint}`,
  );
}

/**
 * One value of an axis, with its type.
 * @throws ConfigurationError naming axis, value and range
 */
export function checkedAxisValue(path: string, value: unknown): AxisValue {
  if (isWorkloadField(path)) return checkedFieldValue(path, value);
  if (isMachineAxis(path)) {
    if (typeof value !== 'string') throw new ConfigurationError(path, shortJson(value), 'a name or a file');
    if (path === profileAxis) profileValues(value);
    else parsedTopology(value);
    return value;
  }
  if (typeof value !== 'string') return checkedValue(path, value);
  const isNumber = parametersByPath.get(path)?.kind === 'number';
  const number = isNumber ? wholeNumberOf(path, value) : undefined;
  return number === undefined ? parsedAssignment(`${path}=${value}`)[1] : checkedValue(path, number);
}
