import { describe, expect, it } from 'vitest';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { HcaConfig } from '../parameters.ts';
import { type DataPathBench, dataPathBench, oneLineCaches } from '../testing/data-path-bench.ts';
import { connectedPair, Region } from '../testing/data-path-verbs.ts';
import { syndromesOf } from '../testing/scenario.ts';

const QPS = 8;

/** Connected pairs whose contexts have never been used: the first use of each misses. */
async function crowd(hca: Partial<HcaConfig>) {
  const bench = await dataPathBench({ hca });
  const pairs = Array.from({ length: QPS }, () => connectedPair(bench.a, bench.b));
  const local = new Region(bench.a, 4096);
  const remote = new Region(bench.b, 4096);
  local.fill(1);
  await bench.run(5);
  const write = {
    opcode: WqeOpcode.RDMA_WRITE,
    segments: [local.part(0, 8)],
    remote: { address: remote.address, key: remote.key },
  };
  const requester = bench.a.dataPath.parts.qpcCache.port(1);
  return { bench, pairs, write, requester };
}

/** Runs in steps that are shorter than a read. */
async function soon(bench: DataPathBench, isDone: () => boolean): Promise<void> {
  for (let step = 0; step < 400 && !isDone(); step++) await bench.run(0.02);
  expect(isDone()).toBe(true);
}

type Crowd = Awaited<ReturnType<typeof crowd>>;

/** Pair number and arrival time of each packet at b. */
const arrivalsOf = ({ bench, pairs }: Crowd): { pair: number; timePs: number }[] =>
  bench.b.port.packets.map(({ qpn, timePs }) => ({
    pair: pairs.findIndex(({ b }) => b.qpn === qpn),
    timePs,
  }));

async function allSend(made: Crowd, messages: number): Promise<void> {
  const { bench, pairs, write } = made;
  for (const { a } of pairs) {
    for (let count = 0; count < messages; count++) a.post(write);
    a.ring();
  }
  let done = 0;
  await bench.until(() => {
    for (const { aCq } of pairs) {
      const syndromes = syndromesOf(aCq.drain());
      expect(syndromes.filter((syndrome) => syndrome !== 0)).toEqual([]);
      done += syndromes.length;
    }
    return done === messages * QPS;
  }, 2000);
}

describe('a requester whose contexts are not on chip', () => {
  it('serves other QPs while they are read, as many as may be under way at once', async () => {
    const spans: number[] = [];
    for (const contextFetchesInFlight of [1, 2, 4]) {
      const made = await crowd({ sendContextEntries: 4, contextFetchesInFlight, sameQpIntervalCycles: 1 });
      await allSend(made, 24);
      const times = arrivalsOf(made).map(({ timePs }) => timePs);
      expect(times).toHaveLength(24 * QPS);
      expect(made.requester.missCount).toBeGreaterThan(20 * QPS);
      spans.push(Math.max(...times) - Math.min(...times));
    }
    // Each message waits for its read: one at a time, two at a time, four at a time.
    const [one, two, four] = spans as [number, number, number];
    expect(one / two).toBeGreaterThan(1.7);
    expect(one / two).toBeLessThan(2.2);
    expect(one / four).toBeGreaterThan(3);
    expect(one / four).toBeLessThan(4.4);
  });

  it.each([
    { ...oneLineCaches, contextFetchesInFlight: 1 },
    { ...oneLineCaches, contextFetchesInFlight: 16 },
    { sendContextEntries: 1, contextFetchesInFlight: 4 },
    { sendContextEntries: 3, contextFetchesInFlight: 2 },
    { sendContextEntries: 5, contextFetchesInFlight: 16, wqeLineCount: 2, burstPackets: 1 },
  ])('lets QPs that outnumber the lines come through in turn: %o', async (hca) => {
    const made = await crowd(hca);
    await allSend(made, 12);
    const counts = new Array<number>(QPS).fill(0);
    let widest = 0;
    for (const { pair } of arrivalsOf(made)) {
      counts[pair]!++;
      widest = Math.max(widest, Math.max(...counts) - Math.min(...counts));
    }
    expect(counts).toEqual(new Array(QPS).fill(12));
    // QPs whose context is on chip may go first, but no QP falls far back.
    expect(widest).toBeLessThanOrEqual(5);
    // A QP that has sent is served once more.
    await made.bench.run(5);
    const { awaitedCount } = made.requester;
    expect([awaitedCount, made.bench.a.dataPath.parts.qpcCache.heldCount]).toEqual([0, 0]);
  });

  it('loses no doorbell that comes meanwhile', async () => {
    const { bench, pairs, write } = await crowd({ sendContextEntries: 1 });
    const [{ a, aCq }] = pairs as [(typeof pairs)[number]];
    const pair = bench.a.dataPath.parts.qps.rows[a.slot]!;
    for (let count = 0; count < 3; count++) {
      a.post(write);
      a.ring();
      if (count === 0) await soon(bench, () => pair.isFetchingContext === 1);
    }
    expect(pair.isFetchingContext).toBe(1);
    const syndromes: number[] = [];
    await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) === 3, 100);
    expect(syndromes).toEqual([0, 0, 0]);
  });

  it('flushes what was posted to a QP that fails meanwhile, and keeps its number until the read has come', async () => {
    const { bench, pairs, write } = await crowd({});
    const [{ a, aCq }, other] = pairs as [(typeof pairs)[number], (typeof pairs)[number]];
    const { control, parts } = bench.a.dataPath;
    const pair = parts.qps.rows[a.slot]!;
    a.send(write);
    await soon(bench, () => pair.isFetchingContext === 1);
    bench.a.act(() => {
      control.qpToError(a.slot);
    });
    expect(control.qpIsBusy(a.slot)).toBe(true);
    const syndromes: number[] = [];
    await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) === 1, 100);
    expect([syndromes, a.state]).toEqual([[5], QpState.ERR]);
    await bench.until(() => !control.qpIsBusy(a.slot), 100);
    expect(pair.isFetchingContext).toBe(0);
    other.a.send(write);
    await bench.until(() => syndromes.push(...syndromesOf(other.aCq.drain())) === 2, 100);
    expect(syndromes).toEqual([5, 0]);
  });

  it('has them apart from those of the receiver, where it has a part of the cache for itself', async () => {
    const made = await crowd({ sendContextEntries: QPS + 1, qpcCacheEntries: 1, qpcCacheWays: 1 });
    await allSend(made, 3);
    // Each once, though the receiver, which takes the acknowledgements, has a single line for them.
    const receiver = made.bench.a.dataPath.parts.qpcCache.port(2);
    expect(made.requester.missCount).toBe(QPS);
    expect(receiver.missCount).toBeGreaterThan(QPS);
  });

  it('measurements.csv C-137: loads the context of each next QP into its registers, even if all are on chip', async () => {
    const spans: number[] = [];
    for (const sendContextLoadCycles of [0, 400]) {
      const made = await crowd({
        sendContextRegisters: 2,
        sendContextLoadCycles,
        sameQpIntervalCycles: 1,
        burstPackets: 1,
      });
      await allSend(made, 24);
      const times = arrivalsOf(made).map(({ timePs }) => timePs);
      spans.push(Math.max(...times) - Math.min(...times));
    }
    // Eight QPs take turns at two registers: nearly every one of 192 messages loads, 400 cycles of 427 MHz each.
    const [without, loaded] = spans as [number, number];
    const loads = (loaded - without) / ((400 / 427) * 1e6);
    expect(loads).toBeGreaterThan(150);
    expect(loads).toBeLessThan(193);
  });

  it('forgets with a reset of the device what is being read', async () => {
    const { bench, pairs, write, requester } = await crowd({});
    for (const { a } of pairs) a.send(write);
    await soon(bench, () => requester.awaitedCount > 0);
    bench.a.act(() => {
      bench.a.dataPath.reset();
    });
    await bench.run(20);
    expect(requester.awaitedCount).toBe(0);
    expect(bench.a.dataPath.parts.qpcCache.heldCount).toBe(0);
  });
});
