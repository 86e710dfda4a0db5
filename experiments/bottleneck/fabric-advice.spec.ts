/**
 * The bottleneck of a test over switches: names of cables and buffers, their shares, and parameters of switches. A change that is advised
 * is applied, and its effect compared with a calculation.
 */
import { describe, expect, it, vi } from 'vitest';
import '../../runtime/node.ts';
import { parsedFault } from '../../machine/faults/index.ts';
import type { MachineOptions } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import { type LinkCable, parsedTopology, type Topology } from '../../machine/topology/index.ts';
import runCompare from '../runs/compare-run.ts';
import runPerf, { type PerfRow } from '../runs/perf-run.ts';
import { type BandwidthResult, type LatencyResult, parsedWorkload, perfArgsOf } from '../workloads/index.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Hosts 0 to 2 at switch 3, by its ports 1 to 3. */
const star = parsedTopology('star:3');
const withCable = (at: number, cable: LinkCable): Topology => ({
  ...star,
  links: star.links.map((link, index) => (index === at ? { ...link, ...cable } : link)),
});

const run = (workload: string, topology: Topology, set: ParameterValues = {}): Promise<PerfRow> =>
  runPerf({ machine: { topology, set }, args: perfArgsOf(parsedWorkload(workload)) });

const roce: ParameterValues = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };

describe('a bandwidth test whose packets are marked', () => {
  const marked = async (qps: number, algorithm: string): Promise<PerfRow> =>
    runPerf({
      machine: {
        set: { ...roce, 'hca.congestion.algorithm': algorithm },
        faults: [parsedFault('packet=congested,node=0,chance=20%')],
      },
      args: perfArgsOf(parsedWorkload(`write-bw,size=4096,iters=300,qps=${qps}`)),
    });

  it('is bound by the rate of its QPs, and more of them have more', async () => {
    const [one, four] = [await marked(1, 'dcqcn'), await marked(4, 'dcqcn')];
    for (const { bottleneck } of [one, four])
      expect(bottleneck!.binds).toMatchObject({
        name: 'rate of QPs of host 0 by congestion control',
        kind: 'server',
        turn: [{ what: '--qps', towards: 'more' }],
      });
    // Marks are per packet, so each QP has about the rate of one alone.
    const rateOf = ({ result }: PerfRow): number => (result as BandwidthResult).averageBytesPerSecond;
    expect(rateOf(four) / rateOf(one)).toBeGreaterThan(2);
    const { bottleneck } = await marked(1, 'none');
    expect(JSON.stringify(bottleneck)).not.toContain('congestion control');
  });
});

describe('a bandwidth test over a switch', () => {
  const bulk = 'write-bw,size=65536,iters=60';

  it('names the cables of hosts and of the switch, both busy', async () => {
    const { bottleneck } = await run(bulk, star);
    expect(JSON.stringify(bottleneck)).not.toContain('undefined');
    const cables = [bottleneck!.binds, ...bottleneck!.next].filter(({ name }) => name.startsWith('cable'));
    expect(cables.map(({ name }) => name).toSorted()).toEqual([
      'cable from host 0 to switch 3',
      'cable from switch 3 port 2 to host 1',
    ]);
    for (const { share } of cables) expect(share).toBeGreaterThan(0.95);
  });

  it('names the switch at both ends of a cable between switches', async () => {
    const bell = parsedTopology('dumbbell:2');
    const { bottleneck } = await run(bulk, bell);
    const names = [bottleneck!.binds, ...bottleneck!.next].map(({ name }) => name);
    expect(names).toContainEqual(expect.stringMatching(/^cable from switch 2 port \d+ to switch 3$/));
  });

  it('may be no faster than the slowest cable on its way', async () => {
    const whole = await run(bulk, star);
    const half = await run(bulk, withCable(1, { speed: 'DDR' }));
    expect(half.linkBytesPerSecond! / whole.linkBytesPerSecond!).toBeCloseTo(0.5, 9);
    // Host 2 takes no part.
    const other = await run(bulk, withCable(2, { speed: 'DDR' }));
    expect(other.linkBytesPerSecond).toBe(whole.linkBytesPerSecond);
  });

  it('is bound by the slower of two cables, and the other one waits for half of the time', async () => {
    // DDR has half of the rate of QDR, the default of the configuration.
    const { bottleneck } = await run(bulk, withCable(1, { speed: 'DDR' }));
    expect(bottleneck!.binds).toMatchObject({ name: 'cable from switch 3 port 2 to host 1', kind: 'server' });
    expect(bottleneck!.binds.share).toBeGreaterThan(0.95);
    const faster = bottleneck!.next.find(({ name }) => name === 'cable from host 0 to switch 3');
    expect(faster!.share).toBeGreaterThan(0.47);
    expect(faster!.share).toBeLessThan(0.53);
    // The link has a speed of its own, which no parameter changes.
    expect(bottleneck!.binds.turn.map(({ what }) => what)).toEqual([
      'speed of links[1] in the topology',
      'wire.lanes',
    ]);
  });

  it('is bound by a small buffer of the switch at a long cable, and faster with a larger one', async () => {
    const far = withCable(0, { metres: 1000 });
    const small = await run(bulk, far, { 'switch.inputBufferBytes': 8448 });
    expect(small.bottleneck!.binds.name).toBe('receive buffer of switch 3 port 1');
    expect(small.bottleneck!.binds.turn[0]).toMatchObject({
      what: 'switch.inputBufferBytes',
      towards: 'more',
    });
    // Two packets of 4096 bytes fill 8448 bytes well; three would leave a quarter of a host's 16,384.
    const advice = small.bottleneck!.binds.turn.map(({ what }) => what);
    expect(advice).not.toContain('--mtu');
    expect(advice).toContain('metres of links[0] in the topology');
    expect(advice).not.toContain('wire.cableMetres');
    const large = await run(bulk, far, { 'switch.inputBufferBytes': 16_896 });
    const rateOf = ({ result }: PerfRow): number =>
      (result as { averageBytesPerSecond: number }).averageBytesPerSecond;
    expect(rateOf(large) / rateOf(small)).toBeGreaterThan(1.7);
  });
});

describe('a latency test over a switch', () => {
  const turnsOf = ({ stages }: PerfRow): string[] =>
    stages!.find(({ name }) => name === 'remote')!.turn.map(({ what }) => what);
  const typicalPs = ({ result }: PerfRow): number => (result as LatencyResult).typicalPs;

  it.each([
    ['switch.latencyNs', 120, {}],
    ['switch.ethernet.latencyNs', 300, roce],
  ])('advises less %s, and with 1 ns instead of %i is that much shorter', async (parameter, ns, set) => {
    const workload = 'write-lat,size=64,iters=30';
    const row = await run(workload, star, set);
    expect(turnsOf(row)).toContain(parameter);
    const shortest = await run(workload, star, { ...set, [parameter]: 1 });
    expect(turnsOf(shortest)).not.toContain(parameter);
    // A program sees the payload when it next polls memory.
    expect(Math.abs(typicalPs(row) - typicalPs(shortest) - (ns - 1) * 1000)).toBeLessThan(10_000);
    expect(turnsOf(await run(workload, parsedTopology('0-1,2-3'), set))).not.toContain(parameter);
  });
});

it('counts READs in flight by the round trip over switches', async () => {
  // One QP has 16 READs in flight, and each takes at least the 2 × 5 us of a slow switch.
  const { bottleneck } = await run('read-bw,size=8,iters=300', star, { 'switch.latencyNs': 5000 });
  expect(bottleneck!.binds).toMatchObject({ name: 'READs in flight of a QP', kind: 'window' });
  expect(bottleneck!.binds.share).toBeGreaterThan(0.9);
});

it('a comparison counts what a host sends to its switch', async () => {
  const args = {
    path: 'write',
    sizeBytes: 4096,
    totalBytes: 65_536,
    latencyRounds: 1,
    file: null,
    countsCable: true,
  } as const;
  const sentIn = async (machine: MachineOptions) => (await runCompare({ machine, args })).cable!.sent;
  const [pair, switched] = [await sentIn({}), await sentIn({ topology: star })];
  expect(switched[0].packets).toBe(pair[0].packets);
  // 16 messages of one packet each.
  expect(switched[0].packets).toBe(16);
  expect(switched[1].packets).toBe(pair[1].packets);
});
