/** Marks of congestion of an InfiniBand switch with ports of 32 Gb/s (IBTA volume 1, annex A10). */
import { describe, expect, it } from 'vitest';
import type { SwitchCongestionConfig } from './parameters.ts';
import { type SwitchArrival, SwitchBench } from './testing/switch-bench.ts';

const usPs = 1_000_000;
const startPs = 50 * usPs;

const marksOf = (arrivals: readonly SwitchArrival[]): boolean[] => arrivals.map(({ isMarked }) => isMarked);
const countOf = (arrivals: readonly SwitchArrival[]): number => marksOf(arrivals).filter(Boolean).length;

/** Two inputs that send to port 3 at line rate. */
async function contention(
  congestion: Partial<SwitchCongestionConfig>,
  { payloadBytes = 2048, count = 20, victimPorts = [] as readonly number[] } = {},
  prepare: (bench: SwitchBench) => void = () => undefined,
): Promise<SwitchBench> {
  const bench = new SwitchBench(4, {
    congestion: { packetSize: 0, markingRate: 0, ...congestion },
    victimPorts,
  });
  prepare(bench);
  bench.ends[0]!.sendAt(startPs, 3, payloadBytes, 0, count);
  bench.ends[1]!.sendAt(startPs, 3, payloadBytes, 100, count);
  await bench.runTo(startPs + 200 * usPs);
  return bench;
}

describe('the root of a congestion', () => {
  it('annex A10: marks packets that leave while more than the level of the threshold waits', async () => {
    const { ends, device } = await contention({ threshold: 8 });
    const { arrivals } = ends[2]!;
    expect(arrivals).toHaveLength(40);
    // When packet n leaves, from 0, 2 (n + 1) have come until the 20th of each input: n + 1, later 39 - n, still wait. Eight
    // packets of 2082 bytes exceed 16,384.
    expect(marksOf(arrivals)).toEqual(arrivals.map((_, left) => left >= 7 && left <= 31));
    expect(device.markedAt(3)).toBe(25);
    expect(device.markedAt(1)).toBe(0);
  });

  it('annex A10: marks earlier with a greater threshold, and never with 0', async () => {
    const marked = async (threshold: number) => countOf((await contention({ threshold })).ends[2]!.arrivals);
    const [latest, middle, earliest] = [await marked(2), await marked(8), await marked(15)];
    expect(latest).toBeLessThan(middle);
    expect(middle).toBeLessThan(earliest);
    const { ends, device } = await contention({ threshold: 0 });
    expect([countOf(ends[2]!.arrivals), device.markedAt(3)]).toEqual([0, undefined]);
  });

  it('annex A10: leaves Marking_Rate packets between two that it marks', async () => {
    const { ends } = await contention({ threshold: 15, markingRate: 3 });
    const marks = marksOf(ends[2]!.arrivals);
    const first = marks.indexOf(true);
    expect(marks.slice(first, first + 9)).toEqual([
      true,
      ...[false, false, false, true],
      ...[false, false, false, true],
    ]);
  });

  it('annex A10: does not mark packets below Packet_Size', async () => {
    // 2048 bytes of payload are 2082 with their headers: 33 times 64 bytes would be more.
    const [small, large] = [
      { threshold: 15, packetSize: 33 },
      { threshold: 15, packetSize: 32 },
    ];
    expect(countOf((await contention(small)).ends[2]!.arrivals)).toBe(0);
    expect(countOf((await contention(large)).ends[2]!.arrivals)).toBeGreaterThan(10);
  });

  it('does not mark packets of one input alone, and of one that waits after others', async () => {
    const bench = new SwitchBench(4, { congestion: { threshold: 15, packetSize: 0, markingRate: 0 } });
    // Input 1 sends to port 4, too, whose packets wait after those for port 3.
    bench.ends[0]!.sendAt(startPs, 3, 2048, 0, 4);
    bench.ends[0]!.sendAt(startPs, 4, 2048, 50, 4);
    bench.ends[0]!.sendAt(startPs, 3, 2048, 4, 8);
    bench.ends[1]!.sendAt(startPs, 3, 2048, 100, 16);
    await bench.runTo(startPs + 200 * usPs);
    expect([bench.ends[3]!.arrivals.length, countOf(bench.ends[3]!.arrivals)]).toEqual([4, 0]);
    expect(countOf(bench.ends[2]!.arrivals)).toBeGreaterThan(5);
  });
});

describe('a victim of congestion', () => {
  /** Returns the far end's buffers one packet at a time, so that the output never has credits for two. */
  const slowEnd = (bench: SwitchBench): void => {
    const far = bench.ends[2]!;
    far.consumesAtOnce = false;
    for (let step = 1; step < 60; step++)
      far.at(startPs + step * 3 * usPs, () => {
        const [oldest] = far.held.splice(0, 1);
        if (oldest !== undefined) far.port.consume(oldest);
      });
  };

  it('annex A10: is not marked at an output without credits, but at a port of Victim_Mask', async () => {
    const [victim, masked] = [
      await contention({ threshold: 15 }, {}, slowEnd),
      await contention({ threshold: 15 }, { victimPorts: [3] }, slowEnd),
    ];
    const arrivals = victim.ends[2]!.arrivals;
    const late = (packets: readonly SwitchArrival[]) => packets.slice(20, 36);
    expect([arrivals.length, countOf(late(arrivals))]).toEqual([40, 0]);
    expect(countOf(late(masked.ends[2]!.arrivals))).toBe(16);
  });
});

it('marks the same packets whatever the order of events within an instant', async () => {
  const run = async (shuffle?: () => number): Promise<string> => {
    const congestion = { threshold: 12, packetSize: 0, markingRate: 2 };
    const bench = new SwitchBench(
      4,
      { wire: { dataVls: '2', receiveBufferBytes: 65_536 }, congestion },
      shuffle,
    );
    for (const from of [0, 1, 2])
      for (const level of [0, 1])
        bench.ends[from]!.sendAt(startPs + level, 4, 1024, 100 * from + 50 * level, 20, level);
    await bench.runTo(startPs + 100 * usPs);
    const { arrivals } = bench.ends[3]!;
    expect(countOf(arrivals)).toBeGreaterThan(5);
    return JSON.stringify(arrivals.map(({ psn, isMarked }) => [psn, isMarked]));
  };
  let seed = 1;
  const shuffle = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  expect(await run(shuffle)).toBe(await run());
});
