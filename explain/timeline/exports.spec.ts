import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { beforeAll, describe, expect, it } from 'vitest';
import { programUrl } from '../../experiments/runs/program-url.ts';
import { Machine } from '../../machine/machine.ts';
import { Timeline, type TimelineRecord, timelineKinds } from '../../machine/timeline/index.ts';
import { pairsOf } from '../../machine/topology/index.ts';
import { operationFlows } from './flows.ts';
import { perfettoChunks } from './perfetto/export.ts';
import { vcdOf } from './vcd.ts';

/** A message of the wire format, decoded by another library: the values of each field number. */
type Message = Map<number, (number | string | Uint8Array | bigint)[]>;

function decoded(bytes: Uint8Array): Message {
  const reader = new BinaryReader(bytes);
  const message: Message = new Map();
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    const value =
      type === WireType.Varint
        ? Number(reader.int64())
        : type === WireType.Bit64
          ? BigInt(reader.fixed64())
          : type === WireType.LengthDelimited
            ? reader.bytes()
            : reader.fixed32();
    message.set(field, [...(message.get(field) ?? []), value]);
  }
  return message;
}

const textOf = (value: unknown): string => new TextDecoder().decode(value as Uint8Array);
const numberOf = (message: Message, field: number): number => Number(message.get(field)?.[0] ?? 0);
const messagesOf = (message: Message, field: number): Message[] =>
  (message.get(field) ?? []).map((bytes) => decoded(bytes as Uint8Array));

interface Event {
  readonly timestamp: number;
  readonly type: number;
  readonly track: number;
  readonly name: string;
  readonly counter: number | undefined;
  readonly flows: readonly bigint[];
  readonly ends: readonly bigint[];
  readonly facts: Readonly<Record<string, string | number>>;
}

interface Track {
  readonly name: string;
  readonly parent: number;
  readonly isCounter: boolean;
}

/** The trace by Perfetto's field numbers: trace_packet.proto, track_event.proto, track_descriptor.proto. */
function readTrace(bytes: Uint8Array): { events: Event[]; tracks: Map<number, Track> } {
  const names = new Map<number, string>();
  const tracks = new Map<number, Track>();
  const events: Event[] = [];
  const odd: string[] = [];
  messagesOf(decoded(bytes), 1).forEach((packet, index) => {
    if (numberOf(packet, 10) !== 1) odd.push(`sequence of packet ${index}`);
    if (numberOf(packet, 13) !== (index === 0 ? 3 : 2)) odd.push(`flags of packet ${index}`);
    for (const interned of messagesOf(packet, 12))
      for (const field of [1, 2, 3])
        for (const row of messagesOf(interned, field)) names.set(numberOf(row, 1), textOf(row.get(2)![0]));
    for (const descriptor of messagesOf(packet, 60))
      tracks.set(numberOf(descriptor, 1), {
        name: textOf(descriptor.get(2)![0]),
        parent: numberOf(descriptor, 5),
        isCounter: descriptor.has(8),
      });
    for (const event of messagesOf(packet, 11)) {
      const facts: Record<string, string | number> = {};
      for (const fact of messagesOf(event, 4)) {
        const name = names.get(numberOf(fact, 1))!;
        // One of both values is present, even if it is 0.
        if (fact.has(4) === fact.has(6)) odd.push(`value of ${name}`);
        facts[name] = fact.has(4) ? numberOf(fact, 4) : textOf(fact.get(6)![0]);
      }
      events.push({
        timestamp: numberOf(packet, 8),
        type: numberOf(event, 9),
        track: numberOf(event, 11),
        name: names.get(numberOf(event, 10)) ?? '',
        counter: event.has(30) ? numberOf(event, 30) : undefined,
        flows: (event.get(47) ?? []) as bigint[],
        ends: (event.get(48) ?? []) as bigint[],
        facts,
      });
    }
  });
  expect(odd).toEqual([]);
  return { events, tracks };
}

const [SLICE_BEGIN, SLICE_END, INSTANT, COUNTER] = [1, 2, 3, 4];

let timeline: Timeline;
let trace: ReturnType<typeof readTrace>;
beforeAll(async () => {
  await using machine = await Machine.create({ analysis: { timeline: {} } });
  const args = {
    ...{ verb: 'write', isLatency: false, sizeBytes: 5000, iterations: 12, qpCount: 2, txDepth: 4 },
    ...{ rxDepth: 4, inlineBytes: 0, usesEvents: false, cqModeration: 2, mtuBytes: 2048 },
  };
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const run = { url: programUrl('perf-bandwidth'), exportName: `bandwidth${role}` };
    await machine.load({ node, name: role, run, args });
  }
  await machine.run();
  const whole = await machine.timeline();
  const firstPs = BigInt([...whole.records()].find(({ kind }) => kind === 'posted')!.atPs);
  timeline = whole.between(firstPs, firstPs + 60_000_000n);
  trace = readTrace(Buffer.concat(perfettoChunks(timeline)));
}, 120_000);

describe('a Perfetto trace', () => {
  it('has a track for each process, group and track, nested', () => {
    const { tracks } = trace;
    const pathOf = (uuid: number): string => {
      const { name, parent } = tracks.get(uuid)!;
      return parent === 0 ? name : `${pathOf(parent)}/${name}`;
    };
    const paths = new Set([...tracks.keys()].map(pathOf));
    for (const path of [
      'hca0/blocks/requester',
      'hca0/pcie/to device',
      'hca0/pcie/to device, arriving',
      'hca1/cable/in',
      'hca1/cable/in, arriving',
      'host0/cores/core 0',
      'hca0/caches/MTT',
      'hca0/levels/tags in use',
    ])
      expect(paths, path).toContain(path);
    expect([...paths].some((path) => /^hca0\/queue pairs\/QP 0x\w+$/.test(path))).toBe(true);
  });

  it('nests its slices: each end closes the last slice opened on its track, and none stays open', () => {
    const open = new Map<number, number[]>();
    const last = new Map<number, number>();
    const odd: string[] = [];
    let depth = 0;
    for (const { type, track, timestamp, name } of trace.events) {
      if (timestamp < (last.get(track) ?? 0)) odd.push(`${name} at ${timestamp} goes back`);
      last.set(track, timestamp);
      const stack = open.get(track) ?? [];
      open.set(track, stack);
      if (type === SLICE_BEGIN) stack.push(timestamp);
      if (type === SLICE_END && !(stack.pop()! <= timestamp)) odd.push(`end at ${timestamp} without a begin`);
      depth = Math.max(depth, stack.length);
    }
    expect(odd).toEqual([]);
    expect([...open.values()].flat()).toEqual([]);
    // A stage nests in its operation; nothing nests deeper.
    expect(depth).toBe(2);
  });

  it('shows each record once, links at both ends, with its picosecond', () => {
    const count = (shape: string): number =>
      [...timeline.records()].filter(({ kind }) => timelineKinds[kind].shape === shape).length;
    const atLinks = [...timeline.records()].filter(({ track }) => track.latencyPs !== undefined).length;
    const ofType = (type: number): Event[] => trace.events.filter((event) => event.type === type);
    expect(ofType(SLICE_BEGIN!).length).toBe(count('interval') + atLinks);
    expect(ofType(INSTANT!).length).toBe(count('instant'));
    expect(ofType(COUNTER!).length).toBe(count('level'));
    expect(ofType(COUNTER!).every(({ counter }) => counter !== undefined)).toBe(true);
    const odd = ofType(SLICE_BEGIN!).filter(
      ({ timestamp, facts }) => timestamp !== Math.floor(Number(facts['ps']) / 1000),
    );
    expect(odd).toEqual([]);
  });

  it('leads a flow from the post of each operation to the end of it', () => {
    const flows = operationFlows(timeline);
    expect(flows.length).toBe(24);
    for (const [index, { records }] of flows.entries()) {
      const id = BigInt(index + 1);
      const passed = trace.events
        .filter(({ flows: ids, ends }) => ids.includes(id) || ends.includes(id))
        .toSorted((left, right) => left.timestamp - right.timestamp);
      // A packet is shown at both ends; the flow passes the sending end.
      expect(passed.length).toBe(records.length);
      const posted = passed.find(({ name }) => name === 'posted WRITE')!;
      expect(posted.timestamp).toBe(passed[0]!.timestamp);
      expect(passed.filter(({ ends }) => ends.includes(id)).length).toBe(1);
      const names = passed.map(({ name }) => name);
      expect(names).toContain('WRITE');
      // 5000 bytes at an MTU of 2048 are three packets.
      expect(names.filter((name) => name.startsWith('RC_RDMA_WRITE')).length).toBe(3);
      expect(names.some((name) => name === 'send doorbell' || name === 'BlueFlame post')).toBe(true);
    }
  });
});

describe('a value change dump', () => {
  /** The part of the grammar of IEEE 1364-2005, 18.2, that is used: anything else is an error. */
  function readVcd(text: string): Map<string, { atPs: bigint; value: string }[]> {
    const names = new Map<string, string>();
    const changes = new Map<string, { atPs: bigint; value: string }[]>();
    const scopes: string[] = [];
    const words = text.split(/\s+/).filter((word) => word !== '');
    let atPs = -1n;
    let at = 0;
    const until = (end: string): string[] => {
      const from = at;
      while (words[at] !== end) if (++at > words.length) throw new Error(`no ${end}`);
      return words.slice(from, at++);
    };
    while (at < words.length) {
      const word = words[at++]!;
      if (word === '$scope') scopes.push(until('$end')[1]!);
      else if (word === '$upscope') {
        scopes.pop();
        expect(until('$end')).toEqual([]);
      } else if (word === '$var') {
        const [type, bits, code, name, ...rest] = until('$end');
        expect([['wire', 'reg'].includes(type!), Number(bits) >= 1, rest]).toEqual([true, true, []]);
        expect(names.has(code!)).toBe(false);
        names.set(code!, `${scopes.slice(1).join('.')}.${name}`);
      } else if (['$version', '$timescale', '$comment', '$enddefinitions'].includes(word)) until('$end');
      else if (word === '$dumpvars' || word === '$end') continue;
      else if (word.startsWith('#')) {
        const nextPs = BigInt(word.slice(1));
        if (nextPs <= atPs) throw new Error(`time goes back at ${word}`);
        atPs = nextPs;
      } else {
        const isVector = /^b[01x]+$/.test(word);
        if (!isVector && !/^[01x]./.test(word)) throw new Error(`not a value: ${word}`);
        const code = isVector ? words[at++]! : word.slice(1);
        const value = isVector ? word.slice(1) : word[0]!;
        if (!names.has(code)) throw new Error(`unknown identifier ${code}`);
        const name = names.get(code)!;
        const own = changes.get(name) ?? [];
        own.push({ atPs, value });
        changes.set(name, own);
      }
    }
    expect(scopes).toEqual([]);
    return changes;
  }

  const first = (): bigint => BigInt([...timeline.records()].find(({ kind }) => kind === 'posted')!.atPs);
  const clocks = [{ process: 'hca0', name: 'core', frequencyMHz: 427 }];

  it('contains states, levels, links, registers and clocks of the time range', () => {
    const shown = timeline.between(first(), first() + 20_000_000n);
    const { text, hasClocks, signalCount } = vcdOf(shown, clocks);
    expect(hasClocks).toBe(true);
    const signals = readVcd(text);
    expect(signals.size).toBe(signalCount);
    // Two edges per cycle of 427 MHz, from the first change to the last.
    const instants = [...signals.values()].flat().map(({ atPs }) => Number(atPs));
    const firstPs = instants.reduce((least, atPs) => Math.min(least, atPs), Number.POSITIVE_INFINITY);
    const spanPs = instants.reduce((most, atPs) => Math.max(most, atPs), 0) - firstPs;
    const edges = signals.get('hca0.clock_core')!.length;
    expect(edges).toBeGreaterThan(17_000);
    expect(Math.abs(edges - (2 * spanPs * 427) / 1e6)).toBeLessThan(4);
    const busy = [...shown.records()].filter(
      ({ kind, track }) => kind === 'blockBusy' && track.name === 'requester' && track.process === 'hca0',
    );
    const atBusy = signals.get('hca0.block_requester')!.filter(({ value }) => value === '1');
    expect(atBusy.length).toBeGreaterThan(0);
    for (const { atPs } of atBusy) expect(busy.map((record) => BigInt(record.atPs))).toContain(atPs);
    for (const [name, values] of signals) {
      const same = values.filter(({ value }, place) => value === values[place - 1]?.value);
      expect(same, name).toEqual([]);
    }
  });

  it('contains the last value of a level that changes several times at one instant, even if it is the smallest', () => {
    const level = (atPs: number, value: number): TimelineRecord =>
      ({
        ...{ kind: 'level', atPs, durationPs: 0, values: [value], trackNumber: 0 },
        track: { process: 'host0', group: 'levels', name: 'taken' },
      }) as TimelineRecord;
    const records = [level(5, 1), level(5, 2), level(5, 3), level(9, 2), level(9, 1), level(9, 0)];
    const shown = { records: () => records.values() } as unknown as Timeline;
    const changes = readVcd(vcdOf(shown, []).text).get('host0.taken')!;
    expect(changes.slice(1)).toEqual([
      { atPs: 5n, value: '11' },
      { atPs: 9n, value: '0' },
    ]);
  });

  it('omits clocks with more edges than the limit, and reports it', () => {
    const fast = [...clocks, { process: 'host0', name: 'cores', frequencyMHz: 2500 }];
    const { hasClocks, text } = vcdOf(timeline, fast);
    expect(hasClocks).toBe(false);
    expect(text).not.toContain('clock_core');
  });

  it('of nothing has no signal', () => {
    const { signalCount, changeCount } = vcdOf(new Timeline([], pairsOf(2)), clocks);
    expect([signalCount, changeCount]).toEqual([0, 0]);
  });
});
