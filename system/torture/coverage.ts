/**
 * What stories have covered: verbs by transport and end, faults, steps, and how much of each parameter's range.
 */
import { wcStatusStr } from '../../userlib/index.ts';
import type { ParameterValue } from '../machine/profile/parameter-tree.ts';
import { verbNameOf } from './render-story.ts';
import type { Played } from './run-story.ts';
import { isOnDemandArea, type Story, sendsOf } from './story.ts';

/** Counts by key; plain data that crosses threads. */
export interface Coverage {
  /** `transport verb` to `end` to count. */
  readonly ends: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly steps: Readonly<Record<string, number>>;
  /** What programs own, and how. */
  readonly objects: Readonly<Record<string, number>>;
  readonly parameters: Readonly<Record<string, ParameterRange>>;
}

/** Of a number the least and the greatest value met, of a word how many. */
interface ParameterRange {
  readonly count: number;
  readonly least: ParameterValue;
  readonly greatest: ParameterValue;
}

export const noCoverage: Coverage = { ends: {}, faults: {}, steps: {}, objects: {}, parameters: {} };

export function coverageOf({ story, seen }: Played): Coverage {
  const ends: Record<string, Record<string, number>> = {};
  for (const { program, qp, plan } of sendsOf(story)) {
    const { transport } = story.programs[program]!.qps[qp]!;
    const verb = `${transport} ${verbNameOf(plan.opcode)}`;
    const row = ends[verb] ?? {};
    ends[verb] = row;
    const end = seen[program]?.completions.find(({ id }) => id === plan.id);
    const name = end === undefined ? 'silent' : wcStatusStr(end.status);
    row[name] = (row[name] ?? 0) + 1;
  }
  const faults: Record<string, number> = {};
  for (const fault of story.faults) {
    const [kind, how] = Object.entries(fault)[0]!;
    const name = typeof how === 'string' ? `${kind}=${how}` : kind;
    faults[name] = (faults[name] ?? 0) + 1;
  }
  const steps: Record<string, number> = {};
  for (const { early, steps: later } of story.programs)
    for (const step of [...early, ...later]) steps[step.do] = (steps[step.do] ?? 0) + 1;
  const parameters = Object.fromEntries(
    Object.entries(story.set).map(([path, value]) => [path, { count: 1, least: value, greatest: value }]),
  );
  return { ends, faults, steps, objects: objectsOf(story), parameters };
}

function objectsOf({ programs, scene }: Story): Record<string, number> {
  const objects: Record<string, number> = scene === undefined ? {} : { [`scene ${scene.name}`]: 1 };
  const count = (name: string): void => {
    objects[name] = (objects[name] ?? 0) + 1;
  };
  for (const { areas, qps } of programs) {
    for (const area of areas) count(isOnDemandArea(area) ? `${area.kind} on demand` : `${area.kind} pinned`);
    for (const { transport, renewal } of qps)
      count(renewal === undefined ? `${transport} QP` : `${transport} QP again (${renewal.how})`);
  }
  return objects;
}

export function joinCoverage(left: Coverage, right: Coverage): Coverage {
  return {
    ends: joined(left.ends, right.ends, (one, other) => joined(one, other, sum)),
    faults: joined(left.faults, right.faults, sum),
    steps: joined(left.steps, right.steps, sum),
    objects: joined(left.objects, right.objects, sum),
    parameters: joined(left.parameters, right.parameters, (one, other) => ({
      count: one.count + other.count,
      least: one.least < other.least ? one.least : other.least,
      greatest: one.greatest > other.greatest ? one.greatest : other.greatest,
    })),
  };
}

const sum = (left: number, right: number): number => left + right;

function joined<Value>(
  left: Readonly<Record<string, Value>>,
  right: Readonly<Record<string, Value>>,
  join: (left: Value, right: Value) => Value,
): Record<string, Value> {
  const all: Record<string, Value> = { ...left };
  for (const [key, value] of Object.entries(right)) {
    const known = all[key];
    all[key] = known === undefined ? value : join(known, value);
  }
  return all;
}
