/**
 * The specification of a sweep, from a YAML or JSON file or from command line options:
 *
 *     workload: write-bw,size=64,region=64Mi,pattern=random     # or its fields: { test: write-bw, size: 64 }
 *     machine: { profile: connectx3-fdr, set: { hca.contextsPerFetch: 1 }, seed: 7 }
 *     vary:
 *       hca.mttCacheLines: 16..4096*2
 *       pcie.link.generation: [3, 4, 5]
 *       size: [64, 4096]
 *     points: [{ pcie.link.lanes: 8, wire.speed: QDR }, { pcie.link.lanes: 16, wire.speed: EDR }]
 *     sample: lhs:200
 *
 * An invalid value is rejected here, before anything runs. A conflict at some points becomes a row of the results.
 */
import { parse } from 'yaml';
import { ConfigurationError, codeOf, shortJson } from '../../base/index.ts';
import { checkedFaults, type FaultPlan } from '../../machine/faults/index.ts';
import { checkedValue, configurationOf, hintFor, type ParameterValues } from '../../machine/profile/index.ts';
import { checkedTopology, parsedTopology, type Topology } from '../../machine/topology/index.ts';
import { readSmallFile } from '../../runtime/files.ts';
import { type Axis, type AxisValue, checkAxisPath, checkedAxis, checkedAxisValue } from './axis.ts';
import type { Sample } from './latin-hypercube.ts';
import { pointsMax, seedMax, specSchema } from './spec-schema.ts';
import { checkedDraft, type WorkloadDraft } from './workload-field.ts';

/** The machine of a point: everything that its figures depend on. The engine decides how it runs (partition, shortcuts). */
export interface SweepMachine {
  readonly profile?: string;
  readonly set?: ParameterValues;
  readonly seed?: number;
  readonly faults?: FaultPlan;
  readonly topology?: Topology;
}

export interface SweepSpec {
  readonly workload: WorkloadDraft;
  readonly machine: SweepMachine;
  readonly vary: readonly Axis[];
  readonly points: readonly Readonly<Record<string, AxisValue>>[];
  readonly sample?: Sample;
}

/**
 * Reads a specification from a file.
 * @throws ConfigurationError naming the error
 */
export function readSpec(file: string): SweepSpec {
  let text: string;
  try {
    text = readSmallFile(file);
  } catch (error) {
    throw new ConfigurationError('specification', file, `a readable file (${codeOf(error)})`);
  }
  return parsedSpec(text, file);
}

/** @param name of the text, for messages */
export function parsedSpec(text: string, name: string): SweepSpec {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw new ConfigurationError(
      'specification',
      name,
      `YAML or JSON (${(error as Error).message.split('\n')[0]})`,
    );
  }
  return checkedSpec(value);
}

/** @throws ConfigurationError naming field, value and the accepted values */
export function checkedSpec(value: unknown): SweepSpec {
  const {
    workload,
    machine = {},
    vary = {},
    points = [],
    sample,
  } = fieldsOf('specification', value, specSchema);
  if (workload === undefined)
    throw new ConfigurationError(
      'workload',
      'left out',
      'the workload of every point, such as write-bw,size=64',
    );
  const drawn = sample === undefined ? undefined : checkedSample(sample);
  const axes = Object.entries(objectOf('vary', vary)).map(([path, values]) =>
    checkedAxis(path, values, drawn !== undefined),
  );
  const byHand = checkedPoints(points);
  if (points !== undefined && Array.isArray(points) && axes.length + byHand.length === 0)
    throw new ConfigurationError('vary', 'left out', 'at least one axis, or points');
  for (const { path } of axes)
    if (byHand.some((point) => Object.hasOwn(point, path)))
      throw new ConfigurationError('points', path, 'axes that vary does not have as well');
  if (drawn !== undefined && axes.length === 0)
    throw new ConfigurationError('sample', shortJson(sample), 'left out without axes to draw from');
  checkCount(axes, byHand.length, drawn);
  const base = checkedMachine(machine);
  checkOneSeed(base);
  return {
    workload: checkedDraft(workload),
    machine: base,
    vary: axes,
    points: byHand,
    ...(drawn === undefined ? {} : { sample: drawn }),
  };
}

/** Rejects two different seeds: the one outside the parameters would silently take precedence. */
function checkOneSeed({ seed, set = {} }: SweepMachine): void {
  const other = set['machine.seed'];
  if (seed !== undefined && other !== undefined && other !== seed)
    throw new ConfigurationError('seed', seed, `left out with machine.seed ${other} in set`);
}

function checkCount(axes: readonly Axis[], pointCount: number, sample: Sample | undefined): void {
  const grid = axes.reduce((count, axis) => count * ('values' in axis ? axis.values.length : 1), 1);
  const count = (sample?.count ?? grid) * Math.max(1, pointCount);
  if (count > pointsMax) throw new ConfigurationError('points', count, `at most ${pointsMax}`);
}

function checkedPoints(value: unknown): Readonly<Record<string, AxisValue>>[] {
  if (!Array.isArray(value)) throw new ConfigurationError('points', shortJson(value), 'a list of points');
  return (value as unknown[]).map((point, at) => {
    const entries = Object.entries(objectOf(`point ${at + 1}`, point));
    if (entries.length === 0) throw new ConfigurationError(`point ${at + 1}`, '{}', 'values by axis');
    return Object.fromEntries(
      entries.map(([path, each]) => {
        checkAxisPath(path);
        return [path, checkedAxisValue(path, each)];
      }),
    );
  });
}

/** `lhs:200`, or `{ latinHypercube: 200, seed: 1 }`. */
function checkedSample(value: unknown): Sample {
  const range = `lhs: and the number of points, 1 to ${pointsMax}`;
  if (typeof value === 'string') {
    const count = Number(/^lhs:(\d+)$/.exec(value)?.[1] ?? Number.NaN);
    if (count >= 1 && count <= pointsMax) return { count, seed: 1 };
    throw new ConfigurationError('sample', value, range);
  }
  const given = objectOf('sample', value);
  checkKeys('sample', given, ['latinHypercube', 'seed']);
  return {
    count: wholeIn('latinHypercube of sample', given['latinHypercube'], 1, pointsMax),
    seed: wholeIn('seed of sample', given['seed'] ?? 1, 0, seedMax),
  };
}

const topologyOf = (value: unknown): Topology =>
  typeof value === 'string' ? parsedTopology(value) : checkedTopology(value);

export function checkedMachine(value: unknown): SweepMachine {
  const given = fieldsOf('machine', value, specSchema.properties.machine);
  const { profile, set = {}, seed, faults = [], topology: cabled } = given;
  const topology = cabled === undefined ? undefined : topologyOf(cabled);
  if (profile !== undefined && typeof profile !== 'string')
    throw new ConfigurationError('profile', shortJson(profile), 'a name or a file');
  const parameters = Object.entries(objectOf('set', set)).map(
    ([path, each]) =>
      [
        path,
        typeof each === 'string' ? (checkedAxisValue(path, each) as string) : checkedValue(path, each),
      ] as const,
  );
  const machine: SweepMachine = {
    ...(profile === undefined ? {} : { profile }),
    ...(parameters.length === 0 ? {} : { set: Object.fromEntries(parameters) }),
    ...(seed === undefined ? {} : { seed: wholeIn('seed', seed, 0, seedMax) }),
    ...(topology === undefined ? {} : { topology }),
  };
  const { nodeCount } = configurationOf(profile === undefined ? {} : { profile }).machine;
  checkedFaults(faults, topology?.nodes.length ?? nodeCount, topology);
  return (faults as FaultPlan).length === 0 ? machine : { ...machine, faults: faults as FaultPlan };
}

function wholeIn(field: string, value: unknown, minimum: number, maximum: number): number {
  if (Number.isSafeInteger(value) && Number(value) >= minimum && Number(value) <= maximum)
    return Number(value);
  throw new ConfigurationError(
    field,
    typeof value === 'object' ? shortJson(value) : value,
    `an integer from ${minimum} to ${maximum}`,
  );
}

/** The members of an object whose schema names them all. */
function fieldsOf(
  name: string,
  value: unknown,
  { properties }: { readonly properties: object },
): Readonly<Record<string, unknown>> {
  const given = objectOf(name, value);
  checkKeys(name, given, Object.keys(properties));
  return given;
}

function checkKeys(name: string, given: object, known: readonly string[]): void {
  for (const key of Object.keys(given))
    if (!known.includes(key))
      throw new ConfigurationError(
        `field of ${name}`,
        key,
        `one of ${known.join(', ')}${hintFor(key, known)}`,
      );
}

function objectOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>;
  throw new ConfigurationError(
    name,
    typeof value === 'string' ? value : shortJson(value),
    'fields with values',
  );
}
