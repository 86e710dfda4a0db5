/** Packets of several data lanes in one switch. Sizes and times are those of infiniband-switch.spec.ts; half of a buffer is that of a lane. */
import { describe, expect, it } from 'vitest';
import { lanesDefaults } from '../../wire/index.ts';
import { noSwitchDrops, type SwitchArrival, SwitchBench } from './testing/switch-bench.ts';

const usPs = 1_000_000;
const startPs = 50 * usPs;
const cablePs = 89_600;
const switchPs = 120_000;
const packetPs = (payloadBytes: number): number => (payloadBytes + 34 + 2) * 250;
const psnsOf = (arrivals: readonly SwitchArrival[]): number[] => arrivals.map(({ psn }) => psn);
const twoLanes = { dataVls: '2', receiveBufferBytes: 65_536 } as const;

describe('a lane without credits', () => {
  it('does not block packets of another lane, from the same input or to the same output', async () => {
    const bench = new SwitchBench(4, { wire: twoLanes });
    const [sender, other, free, stalled] = bench.ends;
    // 32,768 bytes of a lane hold seven packets of 4130 bytes: 65 blocks each, of 512.
    stalled!.heldLanes = 0b01;
    sender!.sendAt(startPs, 4, 4096, 0, 20, 0);
    sender!.sendAt(startPs + 40 * usPs, 3, 256, 50, 1, 1);
    sender!.sendAt(startPs + 40 * usPs, 4, 256, 60, 1, 1);
    other!.sendAt(startPs + 60 * usPs, 4, 256, 70, 1, 1);
    await bench.runTo(startPs + 80 * usPs);
    const alone = packetPs(256) + 2 * cablePs + switchPs;
    expect(free!.arrivals.map(({ psn, lane, timePs }) => [psn, lane, timePs - startPs - 40 * usPs])).toEqual([
      [50, 1, alone],
    ]);
    expect(psnsOf(stalled!.arrivals)).toEqual([0, 1, 2, 3, 4, 5, 6, 60, 70]);
    const [lane0, lane1] = bench.device.ports[3]!.laneFigures;
    // No packet of lane 0 leaves any more: its wait has not ended.
    expect([lane0!.sent.packets, lane1!.sent.packets, lane1!.creditWaitPs]).toEqual([7, 2, 0]);
    stalled!.at(startPs + 80 * usPs, () => {
      stalled!.heldLanes = 0;
      stalled!.consumeAll();
    });
    await bench.runTo(startPs + 200 * usPs);
    expect(stalled!.arrivals).toHaveLength(22);
    expect(bench.device.ports[3]!.laneFigures[0]!.creditWaitPs).toBeGreaterThan(60 * usPs);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });
});

describe('the SL-to-VL table', () => {
  it('IBTA 7.6.6: of input and output gives the lane, and lane 15 discards', async () => {
    const bench = new SwitchBench(3, { wire: twoLanes });
    const { slToVl } = bench.device;
    slToVl.of(1, 2).setLane(2, 1);
    slToVl.of(1, 3).setLane(2, 0);
    slToVl.of(1, 3).setLane(3, 15);
    bench.ends[0]!.sendAt(startPs, 2, 256, 1, 1, 2);
    bench.ends[0]!.sendAt(startPs, 3, 256, 2, 1, 2);
    bench.ends[0]!.sendAt(startPs, 3, 256, 3, 1, 3);
    bench.ends[1]!.sendAt(startPs, 3, 256, 4, 1, 3);
    await bench.runTo(startPs + 20 * usPs);
    expect(bench.ends[1]!.arrivals.map(({ psn, lane }) => [psn, lane])).toEqual([[1, 1]]);
    const third = bench.ends[2]!.arrivals.map(({ psn, lane }) => [psn, lane]);
    expect(third.toSorted(([left], [right]) => left! - right!)).toEqual([
      [2, 0],
      [4, 1],
    ]);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, noLane: 1 });
    expect(bench.device.dropsOf(2).noLane).toBe(0);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });

  it('counts from the instant after the one at which a subnet manager sets it', async () => {
    const bench = new SwitchBench(3, { wire: twoLanes });
    const { slToVl } = bench.device;
    // Service level 1 in [3:0] of the first byte (14.2.5.8).
    slToVl.setBlock(1, 2, Uint8Array.of(0x00), 1000);
    expect([slToVl.laneOf(1, 2, 1, 1000), slToVl.laneOf(1, 2, 1, 1001)]).toEqual([1, 0]);
    slToVl.setBlock(1, 2, Uint8Array.of(0x01), 2000);
    slToVl.setBlock(1, 2, Uint8Array.of(0x0f), 2000);
    expect([slToVl.laneOf(1, 2, 1, 2000), slToVl.laneOf(1, 2, 1, 2001)]).toEqual([0, 15]);
  });

  it('discards a copy for a group where it has no lane, and sends the others', async () => {
    const bench = new SwitchBench(3, { wire: twoLanes });
    bench.device.tables.groupPorts = [1, 2, 3];
    bench.device.slToVl.of(1, 3).setLane(1, 15);
    bench.ends[0]!.sendAt(startPs, 0xc001, 256, 5, 1, 1);
    await bench.runTo(startPs + 20 * usPs);
    expect([psnsOf(bench.ends[1]!.arrivals), bench.ends[2]!.arrivals]).toEqual([[5], []]);
    // One came and one was added: one has left, one was dropped.
    expect([bench.device.copyCount, bench.device.dropsOf(1).noLane]).toEqual([1, 1]);
  });
});

describe('arbitration of an output', () => {
  it('IBTA 7.6.9: sends lanes by weight, 3 to 1, and each lane its inputs in turn', async () => {
    const defaults = lanesDefaults();
    // 1058 bytes are 17 blocks: weights of 51 and 17 are three packets and one.
    const lanes = { ...defaults, low: { ...defaults.low, vl0: 51, vl1: 17 } };
    const bench = new SwitchBench(4, { wire: twoLanes, lanes });
    bench.ends[0]!.sendAt(startPs, 4, 1024, 0, 12, 0);
    bench.ends[1]!.sendAt(startPs, 4, 1024, 100, 12, 0);
    bench.ends[2]!.sendAt(startPs, 4, 1024, 200, 8, 1);
    await bench.runTo(startPs + 60 * usPs);
    const { arrivals } = bench.ends[3]!;
    expect(arrivals).toHaveLength(32);
    expect(psnsOf(arrivals.slice(0, 16))).toEqual([
      ...[0, 100, 1, 200, 101, 2, 102, 201],
      ...[3, 103, 4, 202, 104, 5, 105, 203],
    ]);
    const first = packetPs(1024) + 2 * cablePs + switchPs;
    expect(arrivals.map(({ timePs }) => timePs - startPs)).toEqual(
      arrivals.map((_, at) => first + at * packetPs(1024)),
    );
  });

  it('IBTA 7.6.9: lets high priority pass, and VLHighLimit says how much', async () => {
    for (const [highLimit, before] of [
      [255, 10],
      [0, 1],
    ] as const) {
      const defaults = lanesDefaults();
      const lanes = {
        ...defaults,
        highLimit,
        high: { ...defaults.high, vl1: 1 },
        low: { ...defaults.low, vl1: 0 },
      };
      const bench = new SwitchBench(3, { wire: twoLanes, lanes });
      bench.ends[0]!.sendAt(startPs, 3, 1024, 0, 10, 0);
      bench.ends[1]!.sendAt(startPs, 3, 1024, 100, 10, 1);
      await bench.runTo(startPs + 30 * usPs);
      const psns = psnsOf(bench.ends[2]!.arrivals);
      expect(psns.filter((psn) => psn >= 100).length).toBe(10);
      const firstHigh = psns.indexOf(100);
      expect(psns.slice(firstHigh).findIndex((psn) => psn < 100)).toBe(before);
    }
  });
});

it('comes to the same whatever the order of events within an instant', async () => {
  const run = async (shuffle?: () => number): Promise<string> => {
    const bench = new SwitchBench(4, { wire: twoLanes }, shuffle);
    for (const from of [0, 1, 2])
      for (const level of [0, 1])
        bench.ends[from]!.sendAt(startPs + level, 4, 1024, 100 * from + 50 * level, 10, level);
    await bench.runTo(startPs + 60 * usPs);
    return JSON.stringify(bench.ends[3]!.arrivals.map(({ psn, timePs }) => [psn, timePs]));
  };
  let seed = 1;
  const shuffle = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  expect(await run(shuffle)).toBe(await run());
});
