/**
 * Coverage of stories: verbs by transport, fault and end, faults, steps, and the range of each parameter.
 */

import type { FaultEntry } from '../machine/faults/index.ts';
import type { ParameterValue } from '../machine/profile/index.ts';
import { wcStatusStr } from '../userlib/index.ts';
import { isOnEthernet } from './ethernet-cable.ts';
import type { Played } from './run-story.ts';
import { isOnDemandArea, type Story, sendsOf } from './story.ts';
import { verbNameOf } from './verbs.ts';

/** Counts by key; plain data that crosses threads. */
export interface Coverage {
  /** `transport verb`, on Ethernet after the version of RoCE, to `end` to count. */
  readonly ends: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** `transport verb, fault` to `end` to count: each request of a story once for each kind of fault in it. */
  readonly endsByFault: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly steps: Readonly<Record<string, number>>;
  /** Objects of programs. */
  readonly objects: Readonly<Record<string, number>>;
  readonly parameters: Readonly<Record<string, ParameterRange>>;
}

/** Values met: the smallest and the largest number, or the count of each word. */
interface ParameterRange {
  readonly count: number;
  readonly least: ParameterValue;
  readonly greatest: ParameterValue;
}

export const noCoverage: Coverage = {
  ends: {},
  endsByFault: {},
  faults: {},
  steps: {},
  objects: {},
  parameters: {},
};

export function coverageOf({ story, seen }: Played): Coverage {
  const faults: Record<string, number> = {};
  for (const fault of story.faults) {
    const name = faultNameOf(fault);
    faults[name] = (faults[name] ?? 0) + 1;
  }
  const ends: Record<string, Record<string, number>> = {};
  const endsByFault: Record<string, Record<string, number>> = {};
  const cable = isOnEthernet(story) ? `RoCE ${story.set['hca.capability.roce']} ` : '';
  const endOfId = seen.map(
    (observations) => new Map(observations?.completions.map(({ id, status }) => [id, wcStatusStr(status)])),
  );
  for (const { program, qp, plan } of sendsOf(story)) {
    const { transport } = story.programs[program]!.qps[qp]!;
    const isByWindow = plan.through !== undefined && plan.remote !== undefined;
    const verb = `${cable}${transport} ${verbNameOf(plan.opcode)}${isByWindow ? ' by a window' : ''}`;
    const end = endOfId[program]?.get(plan.id) ?? 'silent';
    count(ends, verb, end);
    for (const fault of Object.keys(faults)) count(endsByFault, `${verb}, ${fault}`, end);
  }
  const steps: Record<string, number> = {};
  for (const { early, steps: later } of story.programs)
    for (const step of [...early, ...later]) steps[step.do] = (steps[step.do] ?? 0) + 1;
  const parameters = Object.fromEntries(
    Object.entries(story.set).map(([path, value]) => [path, { count: 1, least: value, greatest: value }]),
  );
  return { ends, endsByFault, faults, steps, objects: objectsOf(story), parameters };
}

function count(rows: Record<string, Record<string, number>>, key: string, end: string): void {
  const row = rows[key] ?? {};
  rows[key] = row;
  row[end] = (row[end] ?? 0) + 1;
}

function faultNameOf(fault: FaultEntry): string {
  const [kind, how] = Object.entries(fault)[0]!;
  const rule = ['qpn', 'psn', 'opcode', 'only', 'chance'].filter((field) => fault[field] !== undefined);
  const by = rule.length === 0 ? '' : ` by ${rule.join(' and ')}`;
  return `${typeof how === 'string' ? `${kind}=${how}` : kind}${by}`;
}

function objectsOf(story: Story): Record<string, number> {
  const { programs, scene } = story;
  const where = isOnEthernet(story) ? ' on Ethernet' : '';
  const objects: Record<string, number> = scene === undefined ? {} : { [`scene ${scene.name}${where}`]: 1 };
  const count = (name: string): void => {
    objects[name] = (objects[name] ?? 0) + 1;
  };
  for (const { areas, qps, windows = [] } of programs) {
    for (const { isType2 } of windows) count(isType2 ? 'window of type 2' : 'window of type 1');
    for (const area of areas) count(isOnDemandArea(area) ? `${area.kind} on demand` : `${area.kind} pinned`);
    for (const { transport, renewal } of qps)
      count(renewal === undefined ? `${transport} QP` : `${transport} QP again (${renewal.how})`);
  }
  return objects;
}

export function joinCoverage(left: Coverage, right: Coverage): Coverage {
  return {
    ends: joined(left.ends, right.ends, (one, other) => joined(one, other, sum)),
    endsByFault: joined(left.endsByFault, right.endsByFault, (one, other) => joined(one, other, sum)),
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
