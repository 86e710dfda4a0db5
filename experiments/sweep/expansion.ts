/**
 * From a specification to its points, in one defined order: explicit points outermost, then the grid of the axes with
 * the last one fastest, or the sample. Each has its order, or the reason why it is impossible, and a hash that
 * identifies its result wherever it was computed.
 */
import { ConfigurationError, sha256Hex } from '../../base/index.ts';
import { effectiveOf } from '../../machine/index.ts';
import { canonicalJson, configHashOf } from '../../machine/profile/index.ts';
import { parsedTopology, racksOf } from '../../machine/topology/index.ts';
import { fabricDefaults } from '../workloads/index.ts';
import { type Axis, type AxisValue, isMachineAxis, profileAxis, topologyAxis } from './axis.ts';
import { latinHypercube } from './latin-hypercube.ts';
import { packageVersion } from './package-version.ts';
import type { SweepHeader } from './row.ts';
import type { SweepMachine, SweepSpec } from './spec.ts';
import {
  argsOfDraft,
  isFabricDraft,
  isWorkloadField,
  type PointArgs,
  type WorkloadDraft,
  workloadTextOfDraft,
} from './workload-field.ts';

/** The run of a point, with the canonical text of its workload. */
export interface SweepOrder {
  readonly machine: SweepMachine;
  readonly args: PointArgs;
  readonly workload: string;
}

export interface SweepPoint {
  readonly index: number;
  readonly hash: string;
  readonly axes: Readonly<Record<string, AxisValue | null>>;
  /** Order of the point; left out for a refused point. */
  readonly order?: SweepOrder;
  /** Why the machine or the workload is impossible. */
  readonly refusal?: string;
}

/** The paths of all axes: those of the explicit points in order of appearance, then those of `vary`. */
function axisPathsOf({ points, vary }: SweepSpec): string[] {
  return [...new Set([...points.flatMap((point) => Object.keys(point)), ...vary.map(({ path }) => path)])];
}

/** @throws ConfigurationError if no point at all is possible */
export function pointsOf(spec: SweepSpec): SweepPoint[] {
  const paths = axisPathsOf(spec);
  const combinations = spec.sample === undefined ? grid(spec.vary) : latinHypercube(spec.vary, spec.sample);
  const byHand = spec.points.length === 0 ? [{}] : spec.points;
  const points = byHand.flatMap((point) =>
    combinations.map((values) => {
      const varied = spec.vary.map(({ path }, at) => [path, values[at]!] as const);
      return new Map<string, AxisValue>([...Object.entries(point), ...varied]);
    }),
  );
  const hashes = new Map<string, string>();
  /** Points of the same machine share its hash. */
  const hashOf = (machine: SweepMachine): string => {
    const key = canonicalJson(machine);
    const hash = hashes.get(key) ?? hcaHashOf(machine);
    hashes.set(key, hash);
    return hash;
  };
  const all = points.map((values, index) => pointOf(spec, paths, values, index, hashOf));
  const [first] = all;
  if (first?.refusal !== undefined && all.every(({ refusal }) => refusal !== undefined))
    throw new ConfigurationError(
      'sweep',
      'refused at every point',
      `points that can run; the first: ${first.refusal}`,
    );
  return all;
}

/** All combinations, the last axis fastest. */
function grid(axes: readonly Axis[]): AxisValue[][] {
  let combinations: AxisValue[][] = [[]];
  for (const axis of axes) {
    const values = 'values' in axis ? axis.values : [];
    combinations = combinations.flatMap((before) => values.map((value) => [...before, value]));
  }
  return combinations;
}

function pointOf(
  spec: SweepSpec,
  paths: readonly string[],
  values: ReadonlyMap<string, AxisValue>,
  index: number,
  hashOf: typeof hcaHashOf,
): SweepPoint {
  const axes = Object.fromEntries(paths.map((path) => [path, values.get(path) ?? null]));
  const workload = workloadAt(spec.workload, values);
  const machine = machineAt(spec.machine, values);
  try {
    return { index, axes, ...orderAndHashOf(machine, workload, hashOf) };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const hash = sha256Hex(canonicalJson({ version: packageVersion(), machine, workload }));
    return { index, hash, axes, refusal: error.message };
  }
}

/**
 * The order of a machine and a workload, and the hash of both and the version.
 * @throws ConfigurationError if the machine or the workload is impossible
 */
export function orderAndHashOf(
  given: SweepMachine,
  draft: WorkloadDraft,
  hashOf = hcaHashOf,
): { readonly order: SweepOrder; readonly hash: string } {
  const machine = isFabricDraft(draft) ? onFabric(given) : given;
  const args = argsOfDraft(draft, machine.topology === undefined ? [[0, 1]] : racksOf(machine.topology));
  const configHash = hashOf(machine);
  const workloadText = workloadTextOfDraft(draft);
  const hash = sha256Hex(canonicalJson({ version: packageVersion(), configHash, workloadText }));
  return { order: { machine, args, workload: workloadText }, hash };
}

/** The machine with the fabric of `hca fabric`, if it names no topology. */
const onFabric = (machine: SweepMachine): SweepMachine =>
  machine.topology === undefined
    ? { ...machine, topology: parsedTopology(fabricDefaults.topology) }
    : machine;

function workloadAt(base: WorkloadDraft, values: ReadonlyMap<string, AxisValue>): WorkloadDraft {
  return { ...base, ...Object.fromEntries([...values].filter(([path]) => isWorkloadField(path))) };
}

/** The seed is a parameter, too; an explicit seed takes precedence over the parameters. */
const seedPath = 'machine.seed';

function machineAt({ seed, ...base }: SweepMachine, values: ReadonlyMap<string, AxisValue>): SweepMachine {
  const profile = values.get(profileAxis);
  const topology = values.get(topologyAxis);
  const set = [...values].filter(([path]) => !isMachineAxis(path) && !isWorkloadField(path));
  return {
    ...base,
    ...(seed === undefined || values.has(seedPath) ? {} : { seed }),
    ...(profile === undefined ? {} : { profile: String(profile) }),
    ...(topology === undefined ? {} : { topology: parsedTopology(String(topology)) }),
    ...(set.length === 0 ? {} : { set: { ...base.set, ...Object.fromEntries(set) } }),
  };
}

/** The hash of a machine whose programs can use verbs. */
function hcaHashOf(machine: SweepMachine): string {
  const { config, faults, topology } = effectiveOf(machine);
  const { adapter } = config.machine;
  if (adapter !== 'hca') throw new ConfigurationError('machine.adapter', adapter, 'hca for a sweep');
  return configHashOf(config, faults, topology);
}

/** First line of the results of these points. */
export function headerOf(spec: SweepSpec, points: readonly SweepPoint[]): SweepHeader {
  const axes = axisPathsOf(spec);
  const version = packageVersion();
  const hashes = points.map(({ hash }) => hash);
  return {
    schema: 'hca-sweep/1',
    version,
    sweep: sha256Hex(canonicalJson({ version, axes, hashes })),
    pointCount: points.length,
    axes,
    spec,
  };
}
