/**
 * Expected instants are computed by hand: at 10 Gb/s a byte takes 800 ps, at 40 Gb/s 200; a frame of n bytes has a
 * preamble of 8, n, an FCS of 4 and a gap of 12; the default cable takes 2 × 150 ns and 2 m of 4.8 ns; the switch 300
 * ns.
 */

import { describe, expect, it } from 'vitest';
import { DamagePlace } from '../../wire/index.ts';
import {
  broadcastMac,
  EthernetSwitchBench,
  type FrameSeen,
  frameOf,
  framesOf,
} from './testing/ethernet-switch-bench.ts';
import { sameInAnyOrder } from './testing/same-in-any-order.ts';

const usPs = 1_000_000;
/** The links are up by then. */
const startPs = 50 * usPs;
const cablePs = 309_600;
const switchPs = 300_000;
/** Until the last bit of a frame has left at 10 Gb/s, at 40 Gb/s, and until the next may begin. */
const framePs = (frameBytes: number): number => (8 + frameBytes + 4) * 800;
const fastPs = (frameBytes: number): number => (8 + frameBytes + 4) * 200;
const slotPs = (frameBytes: number): number => framePs(frameBytes) + 12 * 800;
/** From its first bit at the sender until its last at the receiver. */
const cutPs = (frameBytes: number): number => 2 * cablePs + switchPs + framePs(frameBytes);
const storedPs = (frameBytes: number): number => 2 * cablePs + switchPs + 2 * framePs(frameBytes);

const cutThrough = { forwarding: 'cut-through' } as const;
const timesOf = (seen: readonly FrameSeen[]): number[] => seen.map(({ timePs }) => timePs - startPs);
const marksOf = (seen: readonly FrameSeen[]): number[] => seen.map(({ bytes }) => bytes.at(-1)!);

/** Frames that each port of a bench had cut through before a test began. */
const cutBefore = new WeakMap<EthernetSwitchBench, readonly number[]>();
const allCuts = ({ ends, device }: EthernetSwitchBench): number[] =>
  ends.map((_, index) => device.statisticsOf(index + 1).cutFrames ?? 0);
const cutsOf = (bench: EthernetSwitchBench): number[] =>
  allCuts(bench).map((count, index) => count - cutBefore.get(bench)![index]!);

/** Every end has sent a broadcast, so that the switch knows them. */
async function benchOf(
  endCount: number,
  { switch: own, ...changes }: NonNullable<ConstructorParameters<typeof EthernetSwitchBench>[1]> = {},
  shuffle?: () => number,
): Promise<EthernetSwitchBench> {
  const bench = new EthernetSwitchBench(endCount, { ...changes, switch: { ...cutThrough, ...own } }, shuffle);
  for (const [from, end] of bench.ends.entries())
    end.sendAt(startPs - (10 - from) * usPs, frameOf({ mac: broadcastMac, from, frameBytes: 60 }));
  await bench.runTo(startPs - usPs);
  for (const end of bench.ends) end.seen.length = 0;
  cutBefore.set(bench, allCuts(bench));
  return bench;
}

describe('a switch that cuts through', () => {
  it.each([60, 1000, 1514])(
    'sends a frame of %i bytes its latency after the first bit',
    async (frameBytes) => {
      const bench = await benchOf(3);
      const frame = frameOf({ from: 0, to: 1, frameBytes, mark: 7 });
      bench.ends[0]!.sendAt(startPs, frame);
      await bench.runTo(startPs + 20 * usPs);
      expect(bench.ends[1]!.seen).toEqual([{ timePs: startPs + cutPs(frameBytes), bytes: [...frame] }]);
      expect(cutsOf(bench)[0]).toBe(1);
    },
  );

  it('sends no frame before 64 bytes of it have come', async () => {
    const bench = await benchOf(2, { switch: { latencyNs: 1 } });
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(timesOf(bench.ends[1]!.seen)).toEqual([2 * cablePs + (8 + 64) * 800 + framePs(1000)]);
  });

  it('cuts through every frame of a stream that fills the cable', async () => {
    const bench = await benchOf(2);
    bench.ends[0]!.sendAt(startPs, ...framesOf(5, { from: 0, to: 1, frameBytes: 800 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(timesOf(bench.ends[1]!.seen)).toEqual([0, 1, 2, 3, 4].map((at) => cutPs(800) + at * slotPs(800)));
    expect(cutsOf(bench)[0]).toBe(5);
  });

  it('Microchip, Cut-Through: stores a frame whose output is faster than its input', async () => {
    const bench = await benchOf(2, { rates: [10, 40] });
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(timesOf(bench.ends[1]!.seen)).toEqual([2 * cablePs + framePs(1000) + switchPs + fastPs(1000)]);
    expect(cutsOf(bench)[0]).toBe(0);
  });

  it('Microchip, Cut-Through: cuts through to a slower output', async () => {
    const bench = await benchOf(2, { rates: [40, 10] });
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(timesOf(bench.ends[1]!.seen)).toEqual([cutPs(1000)]);
  });

  it('Microchip, Cut-Through: stores a frame whose output sends another one', async () => {
    const bench = await benchOf(3);
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 2, frameBytes: 1000, mark: 1 }));
    // Its first bit comes 5 ns later: its last does before the output is free.
    bench.ends[1]!.sendAt(startPs + 5000, frameOf({ from: 1, to: 2, frameBytes: 1000, mark: 2 }));
    await bench.runTo(startPs + 20 * usPs);
    const { seen } = bench.ends[2]!;
    expect(marksOf(seen)).toEqual([1, 2]);
    // The latency after its last bit is 5 ns less 12 bytes of gap later than the end of the first frame's slot.
    expect(timesOf(seen)).toEqual([cutPs(1000), Math.max(storedPs(1000) + 5000, cutPs(1000) + slotPs(1000))]);
    expect(cutsOf(bench)).toEqual([1, 0, 0]);
  });

  it('stores a frame whose output is paused', async () => {
    const bench = await benchOf(2);
    const [from, to] = bench.ends;
    to!.at(startPs, () => to!.port.flowControl.stop(true));
    from!.sendAt(startPs + usPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    to!.at(startPs + 20 * usPs, () => to!.port.flowControl.stop(false));
    await bench.runTo(startPs + 60 * usPs);
    // The PAUSE frame of 60 bytes leaves an instant later, takes effect when all of it has come, and counts an instant
    // after that.
    const endsPs = 20 * usPs + 1 + framePs(60) + cablePs + 1;
    expect(timesOf(to!.seen)).toEqual([endsPs + framePs(1000) + cablePs]);
    expect(cutsOf(bench)[0]).toBe(0);
  });

  it('floods a frame at once if all its outputs are idle, and stores it if one is not', async () => {
    const bench = await benchOf(3);
    const group = (mark: number): Uint8Array =>
      frameOf({ mac: broadcastMac, from: 0, frameBytes: 1000, mark });
    bench.ends[0]!.sendAt(startPs, group(1));
    bench.ends[2]!.sendAt(startPs + 10 * usPs, frameOf({ from: 2, to: 1, frameBytes: 1000, mark: 9 }));
    bench.ends[0]!.sendAt(startPs + 10 * usPs + 5000, group(2));
    await bench.runTo(startPs + 30 * usPs);
    expect(timesOf(bench.ends[2]!.seen)).toEqual([cutPs(1000), 10 * usPs + 5000 + storedPs(1000)]);
    expect(cutsOf(bench)[0]).toBe(1);
  });

  it('counts no frame for which the queue of its output has no room', async () => {
    const bench = await benchOf(2, { switch: { flowControl: 'none', bufferKib: 64, alpha: '1/128' } });
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(bench.ends[1]!.seen).toEqual([]);
    expect(bench.device.statisticsOf(2).queueDrops).toBe(1);
    expect(cutsOf(bench)).toEqual([0, 0]);
  });

  it('holds the bytes of a frame from when it begins to leave until its last has left', async () => {
    const bench = await benchOf(2);
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + cablePs + switchPs);
    expect([bench.device.buffer.usedBytes, bench.device.countQueuedBytes()]).toEqual([0, 0]);
    await bench.runTo(startPs + cablePs + switchPs + 1);
    expect([bench.device.buffer.usedBytes, bench.device.countQueuedBytes()]).toEqual([1004, 1004]);
    await bench.runTo(startPs + cablePs + switchPs + slotPs(1000));
    expect(bench.device.buffer.usedBytes).toBe(1004);
    await bench.runTo(startPs + cablePs + switchPs + slotPs(1000) + 1);
    expect(bench.device.buffer.usedBytes).toBe(0);
  });
});

describe('a frame that a fault holds back while it is cut through', () => {
  it('is overtaken, and leaves when its delay ends', async () => {
    const bench = await benchOf(2);
    bench.device.ports[1]!.faults.addRule(
      { kind: 'reordered', passes: 9, delayPs: 10 * usPs },
      { shots: 1 },
      { fired: () => {} },
    );
    bench.ends[0]!.sendAt(startPs, ...framesOf(2, { from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 30 * usPs);
    const { seen } = bench.ends[1]!;
    expect(marksOf(seen)).toEqual([1, 0]);
    // The delay begins where the first byte of the frame would leave.
    expect(timesOf(seen)).toEqual([cutPs(1000) + slotPs(1000), cutPs(1000) + 10 * usPs]);
    expect(bench.device.buffer.usedBytes).toBe(0);
  });
});

describe('a frame with a wrong frame check sequence', () => {
  const damaged = (bench: EthernetSwitchBench, end: number): void =>
    bench.ends[end]!.port.faults.addRule(
      { kind: 'corrupted', place: DamagePlace.ANYWHERE, isInside: false },
      { shots: 1 },
      { fired: () => {} },
    );

  it('that was cut through leaves with it, and is dropped and counted by the port that stores it', async () => {
    const bench = await benchOf(2);
    damaged(bench, 0);
    bench.ends[0]!.sendAt(startPs, ...framesOf(2, { from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    const [input, output] = bench.device.ports;
    expect(marksOf(bench.ends[1]!.seen)).toEqual([1]);
    expect([input!.relayed, output!.relayed]).toEqual([
      { received: 1, sent: 0 },
      { received: 0, sent: 1 },
    ]);
    expect([input!.received.corruptedFrames, bench.ends[1]!.port.received.corruptedFrames]).toEqual([0, 1]);
    expect(bench.device.statisticsOf(1).drops.wrongFcs).toBe(0);
  });

  it.each([
    ['duplicated', [{ kind: 'duplicated', passes: 0, delayPs: 0 }], 2, 0],
    ['lost', [{ kind: 'lost' }], 0, 1],
    ['lost and duplicated', [{ kind: 'lost' }, { kind: 'duplicated', passes: 0, delayPs: 0 }], 1, 1],
    ['damaged again', [{ kind: 'corrupted', place: DamagePlace.ANYWHERE, isInside: false }], 0, 0],
  ] as const)('is counted where it leaves as it came: %s', async (_name, effects, sent, lost) => {
    const bench = await benchOf(2);
    damaged(bench, 0);
    const output = bench.device.ports[1]!;
    for (const effect of effects) output.faults.addRule(effect, { shots: 1 }, { fired: () => {} });
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(output.relayed).toEqual({ received: 0, sent });
    expect(output.transmitted.lostFrames).toBe(lost);
    // The far end finds those, and those that this cable damaged.
    const { received } = bench.ends[1]!.port;
    expect(received.corruptedFrames).toBe(sent + output.transmitted.corruptedFrames);
    expect(bench.ends[1]!.seen).toEqual([]);
  });

  it('that was stored is dropped there, with a reason', async () => {
    const bench = await benchOf(3);
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 2, frameBytes: 1500, mark: 1 }));
    damaged(bench, 1);
    bench.ends[1]!.sendAt(startPs + 5000, ...framesOf(1, { from: 1, to: 2, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(marksOf(bench.ends[2]!.seen)).toEqual([1]);
    expect(bench.device.ports[1]!.relayed).toEqual({ received: 1, sent: 0 });
    expect(bench.device.statisticsOf(2).drops).toEqual({
      ...{ noRoute: 0, ownPort: 0, linkLocal: 0, noRoom: 0 },
      wrongFcs: 1,
    });
    expect(bench.device.buffer.usedBytes).toBe(0);
    expect(bench.device.statisticsOf(2).waiting).toBe(0);
  });

  it('is never taken by a switch that stores frames', async () => {
    const bench = await benchOf(2, { switch: { forwarding: 'store-and-forward' } });
    damaged(bench, 0);
    bench.ends[0]!.sendAt(startPs, ...framesOf(2, { from: 0, to: 1, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(timesOf(bench.ends[1]!.seen)).toEqual([storedPs(1000) + slotPs(1000)]);
    expect(bench.device.ports[0]!.received.corruptedFrames).toBe(1);
    expect(bench.device.statisticsOf(1)).not.toHaveProperty('cutFrames');
  });

  it('Linux felix_vsc9959.c: teaches the switch no station', async () => {
    const bench = new EthernetSwitchBench(3, { switch: cutThrough });
    damaged(bench, 0);
    bench.ends[0]!.sendAt(startPs, frameOf({ mac: broadcastMac, from: 0, frameBytes: 60 }));
    bench.ends[1]!.sendAt(startPs + 5 * usPs, frameOf({ from: 1, to: 0, mark: 4 }));
    await bench.runTo(startPs + 20 * usPs);
    // Flooded: end 0 is not known.
    expect(bench.ends.map(({ seen }) => marksOf(seen))).toEqual([[4], [], [4]]);
  });
});

describe('marks of congestion of a switch that cuts through', () => {
  it('RFC 3168: depend on the rest of the queue when a frame leaves', async () => {
    const bench = await benchOf(3, {
      switch: { marksCongestion: true, flowControl: 'none', ecnMinBytes: 10_000, ecnMaxBytes: 10_001 },
    });
    for (const from of [0, 1])
      bench.ends[from]!.sendAt(
        startPs,
        ...framesOf(20, { from, to: 2, frameBytes: 1000, dscp: 0, ecn: 2, udpPort: 0xc000 }),
      );
    await bench.runTo(startPs + 200 * usPs);
    const marked = bench.ends[2]!.seen.map(({ bytes }) => (bytes[15]! & 3) === 3);
    // Two frames come in each slot, and one leaves: the queue grows to 19 frames in 20 slots and then shrinks. When
    // each of the last ten frames leaves, 9 to 0 of 1004 bytes wait.
    expect(marked.slice(0, 10)).toEqual(Array<boolean>(10).fill(false));
    expect(marked.slice(-10)).toEqual(Array<boolean>(10).fill(false));
    expect(marked.slice(12, 30)).toEqual(Array<boolean>(18).fill(true));
  });
});

describe('the order within an instant, and a new epoch, of a switch that cuts through', () => {
  const traffic = async (shuffle?: () => number, epochPs = 0): Promise<unknown> => {
    const bench = new EthernetSwitchBench(
      6,
      { rates: [10, 40, 10, 25, 10, 40], switch: { ...cutThrough, bufferKib: 384, marksCongestion: true } },
      shuffle,
    );
    bench.sendBursts(startPs, 8, () => ({ ecn: 2, udpPort: 9 }));
    if (epochPs > 0) {
      await bench.runTo(epochPs);
      bench.beginEpoch(epochPs);
    }
    await bench.runTo(startPs + 300 * usPs - epochPs);
    return bench.seen();
  };

  it('change nothing', async () => {
    const plain = await sameInAnyOrder(traffic);
    for (const late of [0, 1, 3, 30]) expect(await traffic(undefined, startPs + late * usPs)).toEqual(plain);
  });
});
