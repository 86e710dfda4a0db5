/**
 * A topology other than adjacent pairs: host 0 is cabled to host 2, host 1 to host 3. Traffic, balances, timelines, captures
 * and causes follow the cables in every partition, and declared pairs equal the default machine byte for byte.
 */
import { describe, expect, it, vi } from 'vitest';
import { packetsIn, readCapture } from '../analyser/capture/index.ts';
import { failuresOf, operationFlows } from '../explain/timeline/index.ts';
import { type Cause, causesOf } from '../explain/why/index.ts';
import type { Machine, MachineOptions } from '../machine/machine.ts';
import { partitions } from '../machine/partition/placement.ts';
import type { JsonValue, ProgramOptions } from '../machine/program.ts';
import { checksOf } from '../machine/report/checks.ts';
import { pairsOf, parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, programOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

const crossed = parsedTopology('0-2,1-3');
const directions = [
  { from: 0, to: 2 },
  { from: 1, to: 3 },
  { from: 2, to: 0 },
  { from: 3, to: 1 },
];

/** Both cables carry packets of the same QP numbers and PSNs: programs use these under separate names. */
const mixtures = (hosts: readonly number[]): ProgramOptions[] =>
  hosts.map((node, at) =>
    programOf('mixture', 'polling', node, {
      name: at < hosts.length / 2 ? 'left' : 'right',
      args: { qps: 2, rounds: 3 },
    }),
  );

/**
 * Programs: on each cable one host whose requests are refused by its peer, and a pair of processes whose requests are
 * not.
 */
const refusals = (cables: readonly (readonly [requester: number, responder: number])[]): ProgramOptions[] =>
  cables.flatMap(([requester, responder]) => [
    programOf('protection', 'requester', requester, { name: 'requester' }),
    programOf('protection', 'responder', responder, { name: 'responder' }),
    programOf('bystander', 'client', requester, { name: 'client' }),
    programOf('bystander', 'server', responder, { name: 'server' }),
  ]);

/** All results of a run, in comparable form. */
interface Seen {
  readonly report: string;
  readonly results: readonly (JsonValue | undefined)[];
  readonly packets: readonly string[];
  readonly flows: readonly string[];
  readonly failures: readonly string[];
  readonly causes: readonly Cause[];
}

async function seenOf(programs: readonly ProgramOptions[], options: MachineOptions): Promise<Seen> {
  await using machine = await smallMachine({
    ...options,
    analysis: {
      timeline: { categories: ['operations', 'packets', 'checks'] },
      evidence: {},
      capture: { ends: [{ node: 0, direction: 'outbound' }, { node: 3 }], sizeBytes: 1 << 20 },
    },
  });
  for (const program of programs) await machine.load(program);
  await machine.run();
  return await seenIn(machine);
}

async function seenIn(machine: Machine): Promise<Seen> {
  const timeline = await machine.timeline();
  const { packets } = packetsIn(readCapture(await machine.capture()));
  const report = await machine.report();
  expectBalanced(report);
  return {
    report: bytesOf(report),
    results: await machine.results(),
    packets: packets.map(({ from, packet }) => `${from} ${packet.bth.opcode} ${packet.bth.psn}`),
    flows: operationFlows(timeline).map(({ node, qpn, records }) => {
      const arrivals = records.map((at) => timeline.record(at)).filter(({ kind }) => kind === 'packet');
      return `${node} ${qpn}: ${[...new Set(arrivals.map(({ track }) => track.process))].toSorted()}`;
    }),
    failures: failuresOf(timeline, () => undefined).map((failure) => JSON.stringify(failure)),
    causes: await causesOf(machine, undefined, () => undefined),
  };
}

describe('two cables between hosts that are not adjacent', () => {
  let reference: Promise<Seen> | undefined;
  const programs = (): ProgramOptions[] => mixtures([0, 1, 2, 3]);
  const single = (): Promise<Seen> => (reference ??= seenOf(programs(), { topology: crossed }));

  it('carry every byte that both pairs of hosts send, and are balanced', async () => {
    const { report, results } = await runPrograms(programs(), { topology: crossed });
    expect(results.map((result) => (result as { mistakes: unknown }).mistakes)).toEqual([[], [], [], []]);
    expect(report.checks).toMatchObject({ balanced: true });
    expect(report.topology).toEqual(crossed);
    expect(report.wire).toMatchObject(directions);
    for (const { packets } of report.wire) expect(packets).toBeGreaterThan(50);
  });

  it('show in the timeline, whose packets arrive at either end of the cable of their request', async () => {
    const { flows } = await single();
    // Only the far end receives packets for some requests, because one acknowledgement may cover several.
    const endsOf = {
      0: ['hca0,hca2', 'hca2'],
      1: ['hca1,hca3', 'hca3'],
      2: ['hca0', 'hca0,hca2'],
      3: ['hca1', 'hca1,hca3'],
    };
    expect(flows.length).toBeGreaterThan(80);
    for (const [node, ends] of Object.entries(endsOf)) {
      const own = flows.filter((flow) => flow.startsWith(`${node} `));
      expect([...new Set(own.map((flow) => flow.split(': ')[1]))].toSorted()).toEqual(ends);
    }
  });

  it('show in a capture: an end has packets of its own host and of its peer', async () => {
    const { packets } = await single();
    const senders = new Set(packets.map((packet) => packet.split(' ').slice(0, 2).join(' ')));
    // The embedded subnet manager gives host n LID n + 1; end 0 is captured outbound, end 3 both ways.
    expect(senders).toEqual(new Set(['LID 1', 'LID 2', 'LID 4']));
  });

  it.each(partitions)('are the same in partition %s', async (partition) => {
    const seen = await seenOf(programs(), { topology: crossed, partition });
    expect(seen).toEqual(await single());
  });

  it('do not balance when ends of different cables are compared', async () => {
    await using machine = await smallMachine({ topology: crossed });
    for (const program of mixtures([0, 2])) await machine.load(program);
    await machine.run();
    const { hosts, hcas } = await machine.ledgers();
    expect(checksOf(crossed, hosts, hcas).wire).toEqual({ holds: true, failures: [] });
    const { failures } = checksOf(pairsOf(4), hosts, hcas).wire;
    expect(failures.join('\n')).toMatch(/cable 0 to 1, packets/);
  });
});

describe('a refused request over such a cable', () => {
  const programs = (): ProgramOptions[] =>
    refusals([
      [0, 2],
      [1, 3],
    ]);
  let reference: Promise<Seen> | undefined;
  const single = (): Promise<Seen> => (reference ??= seenOf(programs(), { topology: crossed }));

  it('has the same reasons as over the cable of a pair, at the hosts of its own cable', async () => {
    const pair = await seenOf(refusals([[0, 1]]), { nodes: 4 });
    const both = await single();
    expect(pair.failures.length).toBeGreaterThan(20);
    const renamed = (hosts: readonly [string, string], text: string): string =>
      text
        .replace(/"node":(\d)/g, (_, node: string) => `"node":${hosts[Number(node)]}`)
        .replace(/\b(hca|host |host)([01])\b/g, (_, word: string, node: string) => word + hosts[Number(node)])
        .replace(/"atPs":\d+/g, '');
    const of = (hosts: readonly [string, string]): string[] =>
      both.failures
        .filter((text) => hosts.some((host) => text.startsWith(`{"node":${host}`)))
        .map((text) => text.replace(/"atPs":\d+/g, ''));
    for (const hosts of [['0', '2'] as const, ['1', '3'] as const])
      expect(of(hosts)).toEqual(pair.failures.map((text) => renamed(hosts, text)));
    expect(both.causes).toHaveLength(2 * pair.causes.length);
  });

  it('has the same reasons and causes in partition per-device', async () => {
    expect(await seenOf(programs(), { topology: crossed, partition: 'per-device' })).toEqual(await single());
  });
});

describe('frames of conventional NICs', () => {
  it('reach the host at the other end of the cable, whose MAC the kernel has', async () => {
    const set = { 'machine.adapter': 'nic' };
    const stream = (port: number, from: number) => ({
      port,
      from,
      bytes: 40_000,
      callBytes: 5_000,
      seed: port,
    });
    const programs = [0, 1, 2, 3].map((node) =>
      programOf('traditional', 'stream', node, { args: stream(5_000 + (node % 2), node % 2) }),
    );
    const { report, results } = await runPrograms(programs, { topology: crossed, set });
    const hashes = results.map((result) => (result as { hash: string }).hash);
    expect(hashes.slice(2)).toEqual(hashes.slice(0, 2));
    expect(report.wire).toMatchObject(directions);
    expectBalanced(report);
  });

  it('take the length of a cable from its link, as from the configuration', async () => {
    const args = { port: 5_000, from: 0, bytes: 40_000, callBytes: 5_000, seed: 1 };
    const programs = [0, 1].map((node) => programOf('traditional', 'stream', node, { args }));
    const run = (metres: number | undefined, more: Readonly<Record<string, number>> = {}) => {
      const { nodes, links } = pairsOf(2);
      const topology = { nodes, links: metres === undefined ? links : [{ ...links[0]!, metres }] };
      return runPrograms(programs, { topology, set: { 'machine.adapter': 'nic', ...more } });
    };
    const [own, near, far] = [
      await run(2000),
      await run(undefined),
      await run(undefined, { 'ethernet.cableMetres': 2000 }),
    ];
    expect(own.report.nodes).toEqual(far.report.nodes);
    expect(own.report.nodes).not.toEqual(near.report.nodes);
  });
});

describe('declared pairs', () => {
  it('are the default machine: report, hash and results are equal byte for byte', async () => {
    const declared = await runPrograms(mixtures([0, 1, 2, 3]), { topology: parsedTopology('3-2,0-1') });
    const preset = await runPrograms(mixtures([0, 1, 2, 3]), { nodes: 4 });
    expect(bytesOf(declared.report)).toBe(bytesOf(preset.report));
    expect(declared.report).not.toHaveProperty('topology');
    expect(declared.results).toEqual(preset.results);
  });
});

describe('the exchange', () => {
  it('reaches the peers of a host, and others by their numbers', async () => {
    await using machine = await smallMachine({ topology: crossed });
    for (const node of [0, 1, 2, 3])
      await machine.load({
        node,
        run: async ({ exchange, peers }) => {
          await exchange.put('to peers', node);
          await exchange.put(
            'to all',
            node,
            [0, 1, 2, 3].filter((other) => other !== node),
          );
          const own = await exchange.take('to peers');
          const others = [0, 1, 2].map(() => exchange.take('to all'));
          return { peers: [...peers], own, others: (await Promise.all(others)).toSorted() };
        },
      });
    await machine.run();
    expect(await machine.results()).toEqual([
      { peers: [2], own: 2, others: [1, 2, 3] },
      { peers: [3], own: 3, others: [0, 2, 3] },
      { peers: [0], own: 0, others: [0, 1, 3].toSorted() },
      { peers: [1], own: 1, others: [0, 1, 2] },
    ]);
  });

  it('rejects receivers that are not a list, or that are named twice', async () => {
    for (const to of [[1, 1], JSON.parse('2') as number[]]) {
      await using machine = await smallMachine({ topology: crossed });
      await machine.load({ node: 0, run: ({ exchange }) => exchange.put('x', 1, to) });
      await expect(machine.run()).rejects.toThrow('receivers of exchange x is');
    }
  });

  it('rejects a host that does not exist, and the own one', async () => {
    for (const to of [0, 4]) {
      await using machine = await smallMachine({ topology: crossed });
      await machine.load({ node: 0, run: ({ exchange }) => exchange.put('x', 1, [to]) });
      await expect(machine.run()).rejects.toThrow(
        `receiver of exchange x is ${to}, expected another host: 1, 2, 3`,
      );
    }
  });
});
