/** The closed form compared with the simulation: sizes at boundaries, and machines that differ in the inputs of each term. */
import { describe, expect, it, vi } from 'vitest';
import { BootedMachines } from '../../machine/index.ts';
import { configurationOf, type ParameterValues } from '../../machine/profile/index.ts';
import { rowsOf } from '../../test/extent.ts';
import runCutoff, { messagingOf } from '../runs/cutoff-run.ts';
import runPerf from '../runs/perf-run.ts';
import type { LatencyResult } from '../workloads/perf-result.ts';
import { cutoffOf } from './cutoff.ts';
import {
  crossingOf,
  formulaOf,
  messagingConfigOf,
  Path,
  readLatency,
  sendLatency,
  totalPs,
  type WaitingBy,
  type Way,
  writeLatency,
} from './index.ts';

vi.setConfig({ testTimeout: 120_000 });

type Verb = 'send' | 'write' | 'read';

/** perftest's inline sizes. */
const inlineBytesOf = { send: 236, write: 220, read: 0 } as const;

/** Runs of one set differ only in their programs. */
const booted = new BootedMachines({ imageOf: 1 });

/** Mean of a run without its first message, which finds all caches empty. */
async function simulatedPs(verb: Verb, sizeBytes: number, set: ParameterValues, mtuBytes: number) {
  const args = {
    verb,
    isLatency: true,
    sizeBytes,
    iterations: 30,
    qpCount: 1,
    txDepth: 128,
    rxDepth: 512,
    inlineBytes: inlineBytesOf[verb],
    usesEvents: false,
    cqModeration: 100,
    mtuBytes,
  };
  const row = await runPerf({ machine: { set, partition: 'single' }, args }, undefined, booted);
  const { averagePs, maxPs, iterations } = row.result as LatencyResult;
  return (averagePs * iterations - maxPs) / (iterations - 1);
}

function estimatedPs(verb: Verb, lengthBytes: number, set: ParameterValues, mtuBytes: number): number {
  const path = new Path(configurationOf({ set }), mtuBytes);
  if (verb === 'read') return totalPs(readLatency(path, lengthBytes));
  const qpInlineBytes = inlineBytesOf[verb];
  const post = { verb, lengthBytes, isInline: lengthBytes <= qpInlineBytes, qpInlineBytes };
  return totalPs(verb === 'send' ? sendLatency(path, post) : writeLatency(path, post));
}

/** Each changes inputs of other terms. */
type Terms = readonly [name: string, set: ParameterValues, mtuBytes: number];
const machines: readonly Terms[] = [
  ['the default', {}, 0],
  ['a slow clock and few lanes', { 'hca.coreClockMHz': 300, 'pcie.link.lanes': 4 }, 4096],
  [
    'long latencies',
    { 'pcie.link.latencyPs': 400_000, 'pcie.rootComplex.readLatencyPs': 500_000, 'wire.portLatencyNs': 300 },
    2048,
  ],
  [
    'RoCE v2 at 40 Gb/s',
    {
      'hca.capability.linkLayer': 'ethernet',
      'hca.capability.roce': 'v2',
      'ethernet.gigabitsPerSecond': 40,
      'ethernet.mtuBytes': 4200,
    },
    0,
  ],
];
const otherMachines: readonly Terms[] = [
  ['one lane of PCIe behind a fast wire', { 'pcie.link.lanes': 1, 'wire.speed': 'EDR' }, 1024],
  [
    'generation 2, one lane of wire, a long cable, no prefetch',
    {
      'pcie.link.generation': 2,
      'wire.lanes': '1',
      'wire.cableMetres': 100,
      'hca.transmitLatencyCycles': 200,
      'hca.wqePrefetchCount': 1,
    },
    256,
  ],
  [
    'RoCE v1 at 10 Gb/s in frames of 1500 bytes',
    { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1', 'ethernet.cableMetres': 50 },
    0,
  ],
];

describe.each(rowsOf(machines, otherMachines))(
  'with %s, the closed form agrees within 1.5 %',
  (_name, set, mtuBytes) => {
    it.each(['send', 'write', 'read'] as const)('for %s', async (verb) => {
      for (const size of [1, 220, 256, 1023, 4096, 4097, 65_536]) {
        const ratio = estimatedPs(verb, size, set, mtuBytes) / (await simulatedPs(verb, size, set, mtuBytes));
        expect(Math.abs(ratio - 1), `${size} bytes: ${ratio}`).toBeLessThan(0.015);
      }
    });
  },
);

describe('the closed form of a message agrees within 3 %', () => {
  const other = {
    'host.core.clockMHz': 3300,
    'host.cost.copyBytesPerCycle': 2,
    'host.cost.contextSwitch': 9000,
    'hca.coreClockMHz': 300,
    'pcie.link.lanes': 4,
  };
  const ways = [
    ['read', 'poll', {}],
    ['write', 'event', {}],
  ] as const;
  const otherWays = [
    ['read', 'event', {}],
    ['write', 'poll', {}],
    ['read', 'poll', other],
    ['write', 'event', other],
  ] as const;
  it.each(rowsOf<(typeof ways | typeof otherWays)[number]>(ways, otherWays))(
    'by %s, waiting by %s',
    async (rendezvousBy, waiting, set) => {
      const config = configurationOf({ set });
      const messaging = { ...config.messaging, rendezvousBy };
      for (const way of ['eager', 'cached', 'onTheFly'] as const)
        for (const size of [64, 1000, 16_384]) await agrees(way, size, { config, messaging, waiting, set });
    },
  );

  async function agrees(
    way: Way,
    size: number,
    run: {
      readonly config: ReturnType<typeof configurationOf>;
      readonly messaging: ReturnType<typeof configurationOf>['messaging'];
      readonly waiting: WaitingBy;
      readonly set: ParameterValues;
    },
  ): Promise<void> {
    const { config, messaging, waiting, set } = run;
    const machine = { set, partition: 'single' } as const;
    const line = await runCutoff({ machine, messaging, waiting, way, sizes: [size] });
    expect([line.wrong, line.isBalanced]).toEqual([0, true]);
    const formula = formulaOf(config, messagingOf(messaging, way, size), waiting, way);
    const ratio = formula(size) / line.latencyPs[0]!;
    expect(Math.abs(ratio - 1), `${way} ${size} bytes: ${ratio}`).toBeLessThan(0.03);
  }
});

describe('a crossing', () => {
  const range = { least: 64, most: 2 ** 20 };

  it('is the first size from which the second way is cheaper to the end', () => {
    // 1000 + 2 n against 5000 + n: even at 4000.
    const found = crossingOf(
      (size) => 1000 + 2 * size,
      (size) => 5000 + size,
      range,
    );
    expect(found).toBe(4001);
  });

  it('is the last one if the lines cross more than once', () => {
    const winsOutside = (size: number): number => (size > 200 && size <= 3000 ? 2 : 0);
    expect(crossingOf(() => 1, winsOutside, range)).toBe(3001);
  });

  it('is undefined if the second way loses at the end, and the smallest size if it always wins', () => {
    expect(
      crossingOf(
        () => 1,
        () => 2,
        range,
      ),
    ).toBeUndefined();
    expect(
      crossingOf(
        () => 2,
        () => 1,
        range,
      ),
    ).toBe(64);
  });
});

describe('the cut-off of a channel', () => {
  const config = configurationOf({});

  it('is the profile’s value, if it has one', () => {
    const set = { 'messaging.cutoffBytes': 1234 };
    expect(messagingConfigOf(configurationOf({ set }), 'poll').cutoffBytes).toBe(1234);
    expect(messagingConfigOf(config, 'poll', { cutoffBytes: 77 }).cutoffBytes).toBe(77);
  });

  it('is otherwise computed: later for programs that sleep, and for fast copies', () => {
    const computed = messagingConfigOf(config, 'poll').cutoffBytes;
    expect(computed).toBeGreaterThan(4096);
    expect(computed).toBeLessThan(8192);
    expect(cutoffOf(config, config.messaging, 'event')).toBeGreaterThan(computed);
    const fast = configurationOf({ set: { 'host.cost.copyBytesPerCycle': 32 } });
    expect(cutoffOf(fast, fast.messaging, 'poll')).toBeGreaterThan(computed);
  });

  it('never exceeds the eager buffers, and equals them if registration never wins', () => {
    expect(messagingConfigOf(config, 'event').cutoffBytes).toBe(16_384);
    expect(messagingConfigOf(config, 'poll', { cachedRegions: 0 }).cutoffBytes).toBe(16_384);
    expect(messagingConfigOf(config, 'poll', { eagerBytes: 1024 }).cutoffBytes).toBe(1024);
  });
});
