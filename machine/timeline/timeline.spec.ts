import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ObjectImage } from '../../base/object-image.ts';
import { programUrl } from '../../experiments/runs/program-url.ts';
import { Machine, type MachineOptions } from '../machine.ts';
import type { JsonValue } from '../program.ts';
import type { Report } from '../report/schema.ts';
import {
  interruptSteps,
  stageNames,
  type Timeline,
  type TimelineKindName,
  type TimelineOptions,
  type TimelineRecord,
  timelineCategories,
  timelineKinds,
} from './index.ts';

interface Run {
  readonly timeline: Timeline;
  readonly report: Report;
}

/** Ten messages between two hosts, with events. */
async function run(
  timeline: TimelineOptions | undefined,
  options: MachineOptions = {},
  verb = 'send',
): Promise<Run> {
  const analysis = timeline === undefined ? {} : { analysis: { timeline } };
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': 64 }, ...analysis, ...options });
  const args = {
    verb,
    isLatency: true,
    sizeBytes: 300,
    iterations: 10,
    qpCount: 1,
    txDepth: 16,
    rxDepth: 16,
    inlineBytes: 0,
    usesEvents: verb === 'send',
    cqModeration: 1,
    mtuBytes: 0,
  };
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const program = { url: programUrl('perf-latency'), exportName: `latency${role}` };
    await machine.load({ node, name: role, run: program, args });
  }
  await machine.run();
  return { timeline: await machine.timeline(), report: await machine.report() };
}

const textOf = ({ atPs, durationPs, kind, track, values }: TimelineRecord): string =>
  `${atPs} +${durationPs} ${track.process} ${track.group} ${track.name} ${kind} ${values.join(' ')}`;
const textsOf = (timeline: Timeline): string[] => [...timeline.records()].map(textOf);

let all: Run;
let plain: Run;
let records: readonly TimelineRecord[];
beforeAll(async () => {
  plain = await run(undefined);
  all = await run({});
  records = [...all.timeline.records()];
}, 60_000);

const recordsOf = (kind: TimelineKindName, process?: string): TimelineRecord[] =>
  records.filter(
    (record) => record.kind === kind && (process === undefined || record.track.process === process),
  );
const sumBy = (records: readonly TimelineRecord[], keyOf: (record: TimelineRecord) => string) => {
  const sums: Record<string, number> = {};
  for (const record of records) sums[keyOf(record)] = (sums[keyOf(record)] ?? 0) + 1;
  return sums;
};

/** Methods of a machine's objects that were wrapped, as `class.method`: own properties that hide the class's. */
async function listenedTo(timeline: TimelineOptions | undefined): Promise<string[]> {
  const analysis = timeline === undefined ? {} : { analysis: { timeline } };
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': 64 }, ...analysis });
  await machine.runToBoot();
  const found = new Set<string>();
  for (const object of new ObjectImage([machine]).objects) {
    // Large buffers, which contain no methods.
    if (ArrayBuffer.isView(object) || Array.isArray(object)) continue;
    for (const [name, value] of Object.entries(object)) {
      const inherited: unknown = Reflect.get(Object.getPrototypeOf(object) ?? {}, name, object);
      if (typeof value === 'function' && typeof inherited === 'function')
        found.add(`${object.constructor.name}.${name}`);
    }
  }
  return [...found].toSorted();
}

describe('a machine without a timeline', () => {
  it('has no listeners: all of its objects have the methods of their classes, which contain no timeline code', async () => {
    expect(await listenedTo(undefined)).toEqual([]);
    expect((await listenedTo({})).length).toBeGreaterThan(30);
    const root = join(import.meta.dirname, '../..');
    const models = ['sim', 'wire', 'hw', 'host', 'driver', 'userlib', 'net'];
    const knowing = models
      .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
      .filter((file) =>
        /ObservationLog|system\/machine\/timeline/.test(readFileSync(join(root, file), 'utf8')),
      );
    // The stream is created here, and exported to the timeline.
    expect(knowing.toSorted()).toEqual(['sim/index.ts', 'sim/observation.spec.ts', 'sim/observation.ts']);
  });
});

describe('a machine with a timeline', () => {
  it('shows keys that the receiver checks alone, where pages of READs are looked up ahead', async () => {
    const set = { 'host.memory.sizeMib': 64, 'hca.readTranslationsAhead': 1 };
    const { timeline, report } = await run({}, { set }, 'read');
    expect(report).toEqual((await run(undefined, { set }, 'read')).report);
    const keys = [...timeline.records()].filter(
      ({ kind, track }) => kind === 'cacheHit' && track.process === 'hca1' && track.name.startsWith('MPT'),
    );
    // Ten READs, each checked by the receiver and read by the response engine.
    expect(keys.length).toBeGreaterThanOrEqual(20 - 2);
  });

  it('has the same report as one without', () => {
    expect(JSON.stringify(all.report)).toBe(JSON.stringify(plain.report));
    expect([plain.timeline.count, plain.timeline.processes]).toEqual([0, []]);
  });

  it('records the same in threads, for every cut', async () => {
    const { timeline, report } = await run({}, { partition: 'per-device' });
    expect(JSON.stringify(report)).toBe(JSON.stringify(plain.report));
    expect(textsOf(timeline)).toEqual(textsOf(all.timeline));
  });

  it('records the same in epochs of 100 microseconds', async () => {
    const { timeline } = await run({}, { epochPs: 100_000_000 });
    expect(textsOf(timeline)).toEqual(textsOf(all.timeline));
  });

  it('has its records in the order of time', () => {
    const instants = records.map(({ atPs }) => Number(atPs));
    expect(instants).toEqual(instants.toSorted((left, right) => left - right));
  });

  it('records something of every category except checks, which refuse nothing here, and switches', () => {
    const seen = new Set(records.map(({ kind }) => timelineKinds[kind].category));
    expect([...seen].toSorted()).toEqual(
      timelineCategories.filter((category) => category !== 'checks' && category !== 'switches').toSorted(),
    );
  });

  it('records only the requested categories, within the time range', async () => {
    const packets = recordsOf('packet');
    const [third, fifth] = [packets[2]!, packets[4]!];
    const { timeline } = await run({
      categories: ['packets'],
      fromPs: Number(third.atPs),
      toPs: Number(fifth.atPs),
    });
    const within = (record: TimelineRecord): boolean =>
      timelineKinds[record.kind].category === 'packets' &&
      Number(record.atPs) + record.durationPs >= Number(third.atPs) &&
      Number(record.atPs) < Number(fifth.atPs);
    expect(textsOf(timeline)).toEqual(records.filter(within).map(textOf));
    expect(timeline.count).toBeGreaterThanOrEqual(2);
    const later = all.timeline.between(third.atPs, fifth.atPs);
    expect(later.record(later.count - 1).atPs).toBeLessThan(Number(fifth.atPs));
  });

  it('reports how many records found its stream full', async () => {
    const { timeline } = await run({ recordsMax: 100 });
    expect(timeline.count).toBe(400);
    const whole = all.timeline.dropped;
    expect(timeline.dropped).toEqual(
      whole.map(({ process, kept }) => ({ process, kept: 100, dropped: kept - 100 })),
    );
  });

  it('passes its records to a sink in batches, and keeps only open ones', async () => {
    const counts: Record<string, number> = {};
    const sink: TimelineOptions['sink'] = ({ process, columns }) => {
      counts[process] = (counts[process] ?? 0) + columns.count;
    };
    const { timeline } = await run({ sink, recordsMax: 1000 });
    expect(timeline.count).toBeLessThan(20);
    const kept = Object.fromEntries(all.timeline.dropped.map((part) => [part.process, part.kept]));
    for (const { process, kept: open } of timeline.dropped)
      expect(counts[process]! + open, process).toBe(kept[process]);
  });

  it('rejects a sink if its processes run in separate threads', async () => {
    const refused = run({ sink: () => undefined }, { partition: 'per-node' });
    await expect(refused).rejects.toThrow('analysis.timeline.sink is');
  });
});

describe('the drawn records agree with the report', () => {
  it('of busy and stalled cycles of each block', () => {
    for (const node of [0, 1]) {
      const { blocks } = all.report.nodes[node]!.hca;
      for (const [name, { busyCycles, stalledCycles }] of Object.entries(blocks)) {
        const of = (kind: TimelineKindName): TimelineRecord[] =>
          recordsOf(kind, `hca${node}`).filter(({ track }) => track.name === name);
        // A cycle of 427 MHz is 2341.9 ps: for n intervals the rounding is at most n ps.
        const cyclesOf = (records: TimelineRecord[]): number =>
          Math.round(records.reduce((sum, { durationPs }) => sum + durationPs, 0) / (1e6 / 427));
        expect(cyclesOf(of('blockBusy')), `busy ${name}`).toBe(busyCycles);
        for (const [reason, cycles] of Object.entries(stalledCycles)) {
          const stalled = of('blockStalled').filter(
            ({ track, values }) => track.names![values[0]!] === reason,
          );
          expect(cyclesOf(stalled), `${name} stalled for ${reason}`).toBe(cycles);
        }
      }
    }
  });

  it('of cycles of each core by cause, none of which overlap', () => {
    for (const node of [0, 1])
      for (const [core, { cycles }] of all.report.nodes[node]!.cpu.cores.entries()) {
        const own = recordsOf('core', `host${node}`).filter(({ track }) => track.name === `core ${core}`);
        let freePs = 0;
        for (const { atPs, durationPs } of own) {
          expect(Number(atPs)).toBeGreaterThanOrEqual(freePs);
          freePs = Number(atPs) + durationPs;
        }
        const sums: Record<string, number> = {};
        for (const { track, values, durationPs } of own) {
          const cause = track.names![values[0]!]!;
          sums[cause] = (sums[cause] ?? 0) + durationPs / 400;
        }
        const { total, ahead, idle, ...causes } = cycles;
        for (const [cause, count] of Object.entries(causes)) expect(sums[cause] ?? 0, cause).toBe(count);
      }
  });

  it('of TLPs by class, on both directions of the link', () => {
    for (const node of [0, 1])
      for (const [direction, process, name] of [
        ['toDevice', `hca${node}`, 'to device'],
        ['toHost', `host${node}`, 'to host'],
      ] as const) {
        const own = recordsOf('tlp', process).filter(({ track }) => track.name === name);
        const { total } = all.report.nodes[node]!.pcie[direction];
        expect(own.length).toBe(total.tlps);
        // No two are on the lanes at once.
        let freePs = 0;
        for (const { atPs, durationPs } of own) {
          expect(Number(atPs)).toBeGreaterThanOrEqual(freePs);
          freePs = Number(atPs) + durationPs;
        }
      }
  });

  it('of packets on the cable, and of doorbells', () => {
    for (const { to, packets } of all.report.wire)
      expect(recordsOf('packet', `hca${to}`).length).toBe(packets);
    for (const node of [0, 1]) {
      const { send, blueFlame, arm, eventQueue } = all.report.nodes[node]!.hca.doorbells;
      const count = (kind: TimelineKindName): number => recordsOf(kind, `hca${node}`).length;
      expect([count('doorbell'), count('blueFlame'), count('cqArm'), count('eqDoorbell')]).toEqual([
        send,
        blueFlame,
        arm,
        eventQueue,
      ]);
    }
  });

  it('of interrupts, step by step', () => {
    for (const node of [0, 1]) {
      const rows = all.report.nodes[node]!.interrupts;
      const steps = sumBy(
        [...recordsOf('interrupt', `hca${node}`), ...recordsOf('interrupt', `host${node}`)],
        ({ values }) => interruptSteps[values[0]!]!,
      );
      const sum = (step: 'requested' | 'moderated' | 'sent' | 'delivered' | 'handled'): number =>
        rows.reduce((total, row) => total + row[step], 0);
      expect(steps['requested']).toBe(sum('requested'));
      expect(steps['moderated'] ?? 0).toBe(sum('moderated'));
      expect(steps['sent']).toBe(sum('sent'));
      expect(steps['delivered']).toBe(sum('delivered'));
      expect(recordsOf('interruptServed', `host${node}`).length).toBe(sum('handled'));
    }
  });

  it('of operations and their stages, which tile them', () => {
    const { SEND } = all.report.operations;
    const lives = recordsOf('operation');
    expect(lives.length).toBe(SEND!.count);
    const stages = recordsOf('stage');
    for (const stage of stageNames) {
      const own = stages.filter(({ values }) => stageNames[values[0]!] === stage);
      const sumPs = own.reduce((sum, { durationPs }) => sum + durationPs, 0);
      expect(sumPs, stage).toBe(SEND!.milestonesPs[stage] ?? 0);
    }
    for (const life of lives) {
      const own = stages.filter(
        ({ track, values, atPs }) =>
          track === life.track &&
          values[2] === life.values[1] &&
          Number(atPs) >= Number(life.atPs) &&
          Number(atPs) <= Number(life.atPs) + life.durationPs,
      );
      let atPs = Number(life.atPs);
      for (const stage of own) {
        expect(Number(stage.atPs)).toBe(atPs);
        atPs += stage.durationPs;
      }
      expect(atPs).toBe(Number(life.atPs) + life.durationPs);
    }
    expect(recordsOf('posted').length).toBe(20);
    expect(recordsOf('taken').length).toBe(SEND!.count - SEND!.silent);
  });

  it('of misses of each cache', () => {
    for (const node of [0, 1])
      for (const [name, { misses }] of Object.entries(all.report.nodes[node]!.hca.caches)) {
        const own = recordsOf('cacheMiss', `hca${node}`).filter(
          ({ track }) => track.name === name.toUpperCase(),
        );
        expect(own.length, name).toBe(misses);
      }
  });
});

/** Levels of a machine by process and track, each with its successive values; and the number of records of other kinds. */
async function levelsOf(
  options: MachineOptions,
  categories: NonNullable<TimelineOptions['categories']>,
  workload: string,
  roles: readonly string[],
  args: JsonValue,
): Promise<{
  readonly levels: ReadonlyMap<string, readonly number[]>;
  readonly counts: Readonly<Record<string, number>>;
}> {
  await using machine = await Machine.create({ ...options, analysis: { timeline: { categories } } });
  for (const [node, exportName] of roles.entries())
    await machine.load({ node, name: exportName, run: { url: programUrl(workload), exportName }, args });
  await machine.run();
  const levels = new Map<string, number[]>();
  const own = [...(await machine.timeline()).records()];
  const nameOf = ({ track }: TimelineRecord): string => `${track.process} ${track.name}`;
  for (const record of own.filter(({ kind }) => kind === 'level'))
    levels.set(nameOf(record), [...(levels.get(nameOf(record)) ?? []), record.values[0]!]);
  const others = own.filter(({ kind }) => kind !== 'level');
  return { levels, counts: sumBy(others, nameOf) };
}

describe('a level equals', () => {
  const bandwidth = {
    ...{ verb: 'write', isLatency: false, sizeBytes: 5000, iterations: 24, qpCount: 2, txDepth: 4 },
    ...{ rxDepth: 4, inlineBytes: 0, usesEvents: false, cqModeration: 3, mtuBytes: 2048 },
  };
  const roles = ['bandwidthClient', 'bandwidthServer'];
  const small = { set: { 'host.memory.sizeMib': 64 } };

  it('the PCIe tags in use: allocated and freed one by one, until none is in use', async () => {
    const { levels } = await levelsOf(small, ['levels'], 'perf-bandwidth', roles, bandwidth);
    for (const hca of ['hca0', 'hca1']) {
      const tags = levels.get(`${hca} tags in use`)!;
      expect(tags.map((count, place) => Math.abs(count - (tags[place - 1] ?? 0)))).toEqual(tags.map(() => 1));
      expect(tags.at(-1)).toBe(0);
    }
  });

  it('the uncompleted requests: a completion also covers earlier ones without completions', async () => {
    const { levels } = await levelsOf(small, ['levels'], 'perf-bandwidth', roles, bandwidth);
    const ofQueues = [...levels].filter(([name]) => name.endsWith('requests posted and not taken'));
    expect(ofQueues.length).toBe(2);
    for (const [name, counts] of ofQueues) {
      expect(counts.at(-1), name).toBe(0);
      expect(Math.max(...counts), name).toBeLessThanOrEqual(9);
    }
  });

  it('the descriptors on a NIC’s chip: more after each completed fetch', async () => {
    const set = { 'host.memory.sizeMib': 64, 'machine.adapter': 'nic' };
    const stream = { path: 'sockets', sizeBytes: 3000, totalBytes: 30_000, latencyRounds: 1, file: null };
    const sides = ['compareSender', 'compareReceiver'];
    const { levels, counts } = await levelsOf({ set }, ['levels', 'dma'], 'compare-sides', sides, stream);
    for (const node of [0, 1])
      for (const ring of ['transmit', 'receive']) {
        const onChip = levels.get(`nic${node} ${ring} ring: descriptors on chip`) ?? [];
        const rises = onChip.filter((count, place) => count > (onChip[place - 1] ?? 0));
        expect(rises.length).toBeGreaterThan(0);
        expect(rises.length).toBe(counts[`nic${node} read: ${ring}Descriptors`]);
      }
  });
});
