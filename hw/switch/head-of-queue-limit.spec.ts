/**
 * Instants are computed by hand. A packet of 4096 bytes takes 4132 x 250 ps, a cable 89.6 ns, the switch 120 ns; end 3
 * has room for three of them. A packet waits from its readiness on, if it is the first of its input by then. A limit
 * ends at the next picosecond, and a packet that becomes the first of a stalled lane is dropped after two, or two after
 * the drop that stalled the lane.
 */

import { describe, expect, it } from 'vitest';
import { lanesDefaults } from '../../wire/index.ts';
import { HeadOfQueueLimit } from './head-of-queue-limit.ts';
import { infoOf, ManagedBench, portInfo, startPs, switchInfo, usPs } from './testing/managed-bench.ts';
import { sameInAnyOrder } from './testing/same-in-any-order.ts';
import { noSwitchDrops, SwitchBench } from './testing/switch-bench.ts';

const packetPs = 4132 * 250;
/** A packet of 256 bytes, and a cable. */
const shortPs = 292 * 250;
const cablePs = 89_600;
/** When the first byte of the first packet, sent at `startPs`, is in the switch; and when that packet may leave. */
const cameAtPs = startPs + 89_600;
const readyPs = cameAtPs + 120_000;
/** 4.096 us times two to the power of 4. */
const code4Ps = 65_536_000;

type Changes = ConstructorParameters<typeof SwitchBench>[1];

/**
 * A switch whose end 3 receives `count` packets from end 0, and consumes none. @returns the bench, and the drops as
 * they occur
 */
function congested(count: number, changes: Changes = {}, shuffle?: () => number) {
  const bench = new SwitchBench(4, changes, shuffle);
  const drops: { readonly atPs: number; readonly reason: string; readonly output: number }[] = [];
  bench.device.tap = {
    ...{ arrived() {}, stores() {}, waits() {}, leaves() {}, released() {}, stops() {}, settled() {} },
    dropped: (_, reason, output = 0) => drops.push({ atPs: bench.lp.nowPs, reason, output }),
  };
  bench.ends[3]!.consumesAtOnce = false;
  bench.ends[0]!.sendAt(startPs, 4, 4096, 0, count);
  return { bench, drops };
}

const psnsAt = (bench: SwitchBench, end: number): number[] => bench.ends[end]!.arrivals.map(({ psn }) => psn);

describe('HOQLife', () => {
  it('IBTA 14.2.5.6: drops a packet after 4.096 us x 2^code as the first of its queue, and frees a victim', async () => {
    const { bench, drops } = congested(4, { switch: { hoqLife: 4 } });
    bench.ends[0]!.sendAt(startPs, 3, 256, 50);
    await bench.runTo(startPs + 200 * usPs);
    const droppedPs = readyPs + 3 * packetPs + code4Ps + 1;
    expect(drops).toEqual([{ atPs: droppedPs, reason: 'hoqLife', output: 4 }]);
    // The victim leaves at the same instant: 292 bytes, and a cable.
    expect(bench.ends[2]!.arrivals.map(({ timePs }) => timePs)).toEqual([droppedPs + 292 * 250 + 89_600]);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, hoqLife: 1 });
    expect(await new ManagedBench(bench).discards(4)).toBe(1);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });

  it.each([20, 31])('IBTA 14.2.5.6: code %i means no limit', async (hoqLife) => {
    const { bench, drops } = congested(4, { switch: { hoqLife } });
    await bench.runTo(startPs + 5_000_000 * usPs);
    expect(drops).toEqual([]);
    bench.ends[3]!.at(bench.nowPs, () => bench.ends[3]!.consumeAll());
    await bench.runTo(bench.nowPs + 10 * usPs);
    expect(psnsAt(bench, 3)).toEqual([0, 1, 2, 3]);
  });

  it('code 19 is 2.147483648 s', async () => {
    const { bench, drops } = congested(4, { switch: { hoqLife: 19 } });
    await bench.runTo(startPs + 3_000_000 * usPs);
    expect(drops.map(({ atPs }) => atPs)).toEqual([readyPs + 3 * packetPs + 2_147_483_648_000 + 1]);
  });

  it('is that of the output, not of the input, and of the cable where the plan has one', async () => {
    const { bench, drops } = congested(4, {
      switch: { hoqLife: 18 },
      headOfQueues: { 1: { hoqLife: 0 }, 4: { hoqLife: 4 } },
    });
    await bench.runTo(startPs + 200 * usPs);
    expect(drops.map(({ atPs }) => atPs)).toEqual([readyPs + 3 * packetPs + code4Ps + 1]);
  });

  it('of a packet that may not leave yet has not begun', async () => {
    // A packet of 292 bytes comes at 1X SDR in 1.168 us, is stored, and ready after 30 us: longer than 4.096 us after
    // the one before.
    const slow = { speed: 'SDR', lanes: '1' } as const;
    const switchOf = { hoqLife: 0, latencyNs: 30_000 };
    const bench = new SwitchBench(2, { switch: switchOf, wireOfEnd: { 0: slow } });
    bench.ends[0]!.sendAt(startPs, 2, 256, 0);
    bench.ends[0]!.sendAt(startPs + 10 * usPs, 2, 256, 1);
    await bench.runTo(startPs + 100 * usPs);
    expect(psnsAt(bench, 1)).toEqual([0, 1]);
    expect(bench.device.dropsOf(1)).toEqual(noSwitchDrops);
  });

  it('drops the copy of a group at the output that is congested alone, each at its own time', async () => {
    const { bench, drops } = congested(3, { headOfQueues: { 2: { hoqLife: 3 }, 4: { hoqLife: 4 } } });
    bench.device.tables.groupPorts = [1, 2, 3, 4];
    bench.ends[1]!.consumesAtOnce = false;
    bench.ends[2]!.sendAt(startPs, 2, 4096, 10, 3);
    bench.ends[0]!.sendAt(startPs + 20 * usPs, 0xc001, 4096, 50);
    await bench.runTo(startPs + 200 * usPs);
    expect(psnsAt(bench, 2)).toEqual([50]);
    // The copy for end 2 leaves first, and the packet waits from then on as before.
    expect(drops).toEqual([
      { atPs: readyPs + 20 * usPs + code4Ps / 2 + 1, reason: 'hoqLife', output: 2 },
      { atPs: readyPs + 20 * usPs + code4Ps + 1, reason: 'hoqLife', output: 4 },
    ]);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, hoqLife: 2 });
    // Two copies were added; one of the three left.
    expect(bench.device.copyCount).toBe(2);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });

  it('IBTA 14.2.5.6: is read and written by PortInfo with VLStallCount, and counts for packets that wait already', async () => {
    const { bench, drops } = congested(4);
    await bench.runTo(startPs + 20 * usPs);
    const managed = new ManagedBench(bench);
    // VLStallCount in bits 7 to 5 of byte 42, HOQLife in bits 4 to 0.
    expect((await managed.send(1, portInfo, 4))[42]).toBe(18);
    expect((await managed.send(1, portInfo, 0))[42]).toBe(0);
    expect(drops).toEqual([]);
    // The request has 292 bytes, and is carried out after a cable and 10 us.
    const setPs = bench.nowPs + 292 * 250 + 89_600 + 10 * usPs;
    const answer = await managed.send(2, portInfo, 4, infoOf({ 42: (3 << 5) | 4 }));
    expect(answer[42]).toBe((3 << 5) | 4);
    expect(drops).toEqual([{ atPs: setPs, reason: 'hoqLife', output: 4 }]);
    expect((await managed.send(1, portInfo, 3))[42]).toBe(18);
  });

  it('ends at its new instant if it is set while a packet waits', async () => {
    const { bench, drops } = congested(4);
    await bench.runTo(startPs + 20 * usPs);
    await new ManagedBench(bench).send(2, portInfo, 4, infoOf({ 42: 6 }));
    expect(drops).toEqual([]);
    await bench.runTo(startPs + 400 * usPs);
    const atPs = readyPs + 3 * packetPs + 4 * code4Ps + 1;
    expect(drops).toEqual([{ atPs, reason: 'hoqLife', output: 4 }]);
  });

  it('does not depend on the order of an instant, nor do stalled lanes', async () => {
    const seen = async (shuffle?: () => number): Promise<unknown> => {
      const bench = new SwitchBench(4, { switch: { hoqLife: 0, vlStallCount: 2 } }, shuffle);
      const drops: unknown[] = [];
      bench.device.tap = {
        ...{ arrived() {}, stores() {}, waits() {}, leaves() {}, released() {}, stops() {}, settled() {} },
        dropped: ({ input }, reason) => drops.push([bench.lp.nowPs, input, reason]),
      };
      const to = bench.ends[3]!;
      to.consumesAtOnce = false;
      for (const from of [0, 1, 2]) bench.ends[from]!.sendAt(startPs, 4, 4096, 100 * from, 30);
      for (let round = 1; round < 40; round++) to.at(startPs + round * 4_096_000, () => to.consumeAll());
      await bench.runTo(startPs + 400 * usPs);
      return [drops, to.arrivals, bench.device.inspect()];
    };
    await sameInAnyOrder(seen);
  });
});

describe('VLStallCount', () => {
  it('IBTA 18.2.5.4: stalls a lane after that many drops in sequence, for 8 x HOQLife', async () => {
    const { bench, drops } = congested(7, { switch: { hoqLife: 4, vlStallCount: 2 } });
    const to = bench.ends[3]!;
    const first = readyPs + 3 * packetPs + code4Ps + 1;
    const second = first + code4Ps + 1;
    const untilPs = second + 8 * code4Ps;
    // There are credits again, but the lane is stalled until then.
    to.at(second + 20 * usPs, () => to.consumeAll());
    to.consumesAtOnce = false;
    const aheadPs = readyPs - startPs;
    bench.ends[2]!.sendAt(untilPs - aheadPs + 1, 4, 256, 30);
    bench.ends[0]!.sendAt(second + 40 * usPs - aheadPs, 4, 256, 10);
    await bench.runTo(untilPs + 100 * usPs);
    expect(drops).toEqual([
      { atPs: first, reason: 'hoqLife', output: 4 },
      { atPs: second, reason: 'hoqLife', output: 4 },
      { atPs: second + 2, reason: 'vlStalled', output: 4 },
      { atPs: second + 4, reason: 'vlStalled', output: 4 },
      { atPs: second + 40 * usPs + 2, reason: 'vlStalled', output: 4 },
    ]);
    expect(psnsAt(bench, 3)).toEqual([0, 1, 2, 30]);
    expect(to.arrivals.at(-1)!.timePs).toBe(untilPs + 1 + shortPs + cablePs);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, hoqLife: 2, vlStalled: 3 });
    expect(bench.device.dropsOf(2)).toEqual(noSwitchDrops);
    expect(await new ManagedBench(bench).discards(4)).toBe(5);
    for (const port of bench.device.ports) expect(port!.receiveBufferedBytes).toBe(0);
  });

  it.each(['1', '2'] as const)(
    'holds a packet that comes at its last instant until its end: %s lanes',
    async (dataVls) => {
      const { bench, drops } = congested(5, {
        ...(dataVls === '2' ? { lanes: lanesDefaults(), wire: { dataVls, receiveBufferBytes: 32_768 } } : {}),
        switch: { hoqLife: 4, vlStallCount: 1 },
      });
      const to = bench.ends[3]!;
      const stallPs = readyPs + 3 * packetPs + code4Ps + 1;
      const untilPs = stallPs + 8 * code4Ps;
      to.at(stallPs + 20 * usPs, () => to.consumeAll());
      // Nothing else wakes the switch: the packet leaves one picosecond after it is ready.
      bench.ends[1]!.sendAt(untilPs - (readyPs - startPs), 4, 256, 20);
      await bench.runTo(untilPs + 100 * usPs);
      expect(drops.map(({ reason }) => reason)).toEqual(['hoqLife', 'vlStalled']);
      expect(psnsAt(bench, 3)).toEqual([0, 1, 2, 20]);
      expect(to.arrivals.at(-1)!.timePs).toBe(untilPs + 1 + shortPs + cablePs);
    },
  );

  it.each([0, 1, 2, 3])(
    'drops at the same instants in any order, if another packet becomes ready %i ps after the last of the first one',
    async (afterPs) => {
      const lastPs = readyPs + 3 * packetPs + code4Ps;
      const seen = async (shuffle?: () => number): Promise<unknown> => {
        const { bench, drops } = congested(6, { switch: { hoqLife: 4, vlStallCount: 1 } }, shuffle);
        // To an end that is free; and one of another input that waits in the lane that is stalled.
        bench.ends[1]!.sendAt(lastPs + afterPs - (readyPs - startPs), 3, 256, 20);
        bench.ends[2]!.sendAt(startPs + 20 * usPs, 4, 4096, 30);
        await bench.runTo(startPs + 300 * usPs);
        expect(bench.ends[2]!.arrivals.map(({ timePs }) => timePs)).toEqual([
          lastPs + afterPs + shortPs + cablePs,
        ]);
        return drops;
      };
      expect(await sameInAnyOrder(seen)).toEqual([
        { atPs: lastPs + 1, reason: 'hoqLife', output: 4 },
        { atPs: lastPs + 3, reason: 'vlStalled', output: 4 },
        { atPs: lastPs + 3, reason: 'vlStalled', output: 4 },
        { atPs: lastPs + 5, reason: 'vlStalled', output: 4 },
      ]);
    },
  );

  it('counts no drops of the instant that stalls a lane towards the next stall', () => {
    const limit = new HeadOfQueueLimit(1, { hoqLife: 4, vlStallCount: 2 });
    for (const _ of [1, 2, 3]) limit.expired(0, usPs);
    const endPs = usPs + 8 * code4Ps;
    expect([usPs, usPs + 1, endPs, endPs + 1].map((ps) => limit.isStalled(0, ps))).toEqual([
      ...[false, true],
      ...[true, false],
    ]);
    limit.expired(0, endPs + 10);
    expect(limit.isStalled(0, endPs + 11)).toBe(false);
    limit.expired(0, endPs + 20);
    expect(limit.isStalled(0, endPs + 21)).toBe(true);
  });

  it('begins again with each packet that leaves, and 0 stalls nothing', async () => {
    for (const [vlStallCount, freesBetween] of [
      [2, true],
      [0, false],
    ] as const) {
      const { bench, drops } = congested(7, { switch: { hoqLife: 4, vlStallCount } });
      const to = bench.ends[3]!;
      const first = readyPs + 3 * packetPs + code4Ps + 1;
      // One packet of three leaves the buffer of the end after the first drop, so the last two drops are in sequence:
      // the second of them stalls the lane, and is itself one of HOQLife.
      if (freesBetween) to.at(first + 10 * usPs, () => to.port.consume(to.held.shift()!));
      await bench.runTo(startPs + 400 * usPs);
      const packets = freesBetween ? 3 : 4;
      expect(drops.map(({ reason }) => reason)).toEqual(Array<string>(packets).fill('hoqLife'));
    }
  });

  it('stalls one lane of an output, and no other', async () => {
    const lanes = lanesDefaults();
    const wire = { dataVls: '2', receiveBufferBytes: 32_768 } as const;
    const bench = new SwitchBench(3, {
      ...{ lanes, wire },
      switch: { hoqLife: 0, vlStallCount: 1, inputBufferBytes: 65_536 },
    });
    const to = bench.ends[2]!;
    to.heldLanes = 1;
    // Three packets fill lane 0 of the end; the fourth is dropped, and the lane is stalled for 32.768 us.
    bench.ends[0]!.sendAt(startPs, 3, 4096, 0, 5, 0);
    bench.ends[1]!.sendAt(startPs + 15 * usPs, 3, 256, 50, 3, 1);
    await bench.runTo(startPs + 35 * usPs);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, hoqLife: 1, vlStalled: 1 });
    expect(to.arrivals.map(({ psn, lane }) => [psn, lane])).toEqual([
      ...[0, 1, 2].map((psn) => [psn, 0]),
      ...[50, 51, 52].map((psn) => [psn, 1]),
    ]);
  });
});

describe('LifeTimeValue', () => {
  it('IBTA 14.2.5.4: limits the time from the first byte in the switch on, whatever HOQLife is', async () => {
    const { bench, drops } = congested(5, { switch: { hoqLife: 20, lifetimeValue: 4, vlStallCount: 1 } });
    await bench.runTo(startPs + 200 * usPs);
    expect(drops).toEqual([
      { atPs: cameAtPs + 3 * packetPs + code4Ps + 1, reason: 'switchLifetime', output: 4 },
      { atPs: cameAtPs + 4 * packetPs + code4Ps + 1, reason: 'switchLifetime', output: 4 },
    ]);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, switchLifetime: 2 });
    expect(await new ManagedBench(bench).discards(4)).toBe(2);
  });

  it.each([0, 1])(
    'drops one packet an instant in any order, if credits arrive %i ps after the first drop',
    async (creditsAfterPs) => {
      // A packet leaves by 1X SDR for 4132 x 4 ns. The time of three after it ends meanwhile, after 8.192 us.
      const endPs = readyPs + 4132 * 4000;
      const seen = async (shuffle?: () => number): Promise<unknown> => {
        const slow = { speed: 'SDR', lanes: '1' } as const;
        const changes = { switch: { lifetimeValue: 1 }, wireOfEnd: { 3: slow } };
        const { bench, drops } = congested(1, changes, shuffle);
        const to = bench.ends[2]!;
        to.consumesAtOnce = false;
        bench.ends[1]!.sendAt(startPs - 6 * usPs, 3, 4096, 0, 3);
        bench.ends[0]!.sendAt(startPs + 1, 3, 4096, 20, 3);
        // This one waits for credits when they arrive: 8 bytes and a cable after the instant that follows.
        bench.ends[1]!.sendAt(endPs - 4 * usPs, 3, 4096, 30);
        to.at(endPs + creditsAfterPs - cablePs - 8 * 250 - 1, () => to.consumeAll());
        await bench.runTo(startPs + 100 * usPs);
        const { psn, timePs } = to.arrivals[3]!;
        return { drops, psn, timePs };
      };
      expect(await sameInAnyOrder(seen)).toEqual({
        drops: [0, 1, 2].map((ps) => ({ atPs: endPs + ps, reason: 'switchLifetime', output: 3 })),
        psn: 30,
        timePs: endPs + creditsAfterPs + 1 + packetPs + cablePs,
      });
    },
  );

  it('IBTA 14.2.5.4: lets no packet leave whose time is up, however many wait in a row', async () => {
    const changes = { switch: { lifetimeValue: 1 }, wireOfEnd: { 1: { speed: 'SDR', lanes: '1' } } } as const;
    const bench = new SwitchBench(3, changes);
    // The first leaves in 4132 x 4 ns; eight after it wait for it, though their output is free, at most 8.192 us.
    bench.ends[0]!.sendAt(startPs, 2, 4096, 0);
    bench.ends[0]!.sendAt(startPs + 1, 3, 256, 20, 8);
    await bench.runTo(startPs + 200 * usPs);
    expect([psnsAt(bench, 1), psnsAt(bench, 2)]).toEqual([[0], []]);
    expect(bench.device.dropsOf(1)).toEqual({ ...noSwitchDrops, switchLifetime: 8 });
  });

  it.each([
    ['alone', []],
    ['beside another', [5 * usPs]],
  ])('ends the time of a packet that is not ready yet, %s', async (_, others) => {
    const bench = new SwitchBench(4, { switch: { lifetimeValue: 0, latencyNs: 8192 } });
    const drops: number[] = [];
    bench.device.tap = {
      ...{ arrived() {}, stores() {}, waits() {}, leaves() {}, released() {}, stops() {}, settled() {} },
      dropped: ({ input }) => input === 1 && drops.push(bench.lp.nowPs),
    };
    bench.ends[0]!.sendAt(startPs, 2, 256);
    for (const fromPs of others) bench.ends[2]!.sendAt(startPs + fromPs, 4, 256);
    await bench.runTo(startPs + 100 * usPs);
    expect(drops).toEqual([cameAtPs + 4_096_000 + 1]);
  });

  it('does not depend on the order of the instants at which packets are ready and their time is up', async () => {
    const apartPs = 4_096_001;
    const seen = async (shuffle?: () => number): Promise<unknown> => {
      const bench = new SwitchBench(4, { switch: { lifetimeValue: 0, latencyNs: 4096.001 } }, shuffle);
      for (const psn of [0, 1]) bench.ends[0]!.sendAt(startPs + psn * apartPs, 2, 256, psn);
      await bench.runTo(startPs + 100 * usPs);
      return [psnsAt(bench, 1), bench.device.dropsOf(1)];
    };
    expect(await sameInAnyOrder(seen)).toEqual([[], { ...noSwitchDrops, switchLifetime: 2 }]);
  });

  it('is read and written by SwitchInfo, and the shorter limit ends first', async () => {
    const { bench, drops } = congested(0, { switch: { hoqLife: 3 } });
    const managed = new ManagedBench(bench);
    // Bits 7 to 3 of byte 11; the link has come up (bit 2).
    expect((await managed.send(1, switchInfo, 0))[11]! >> 3).toBe(20);
    const answer = await managed.send(2, switchInfo, 0, infoOf({ 6: 0xbf, 7: 0xff, 11: 4 << 3 }));
    expect(answer[11]! >> 3).toBe(4);
    bench.ends[0]!.sendAt(bench.nowPs, 4, 4096, 0, 6);
    await bench.runTo(bench.nowPs + 400 * usPs);
    // 32.768 us each as the first: the first two; the third has been in the switch for 65.536 us and 2 packets before
    // it do not count.
    expect(drops.map(({ reason }) => reason)).toEqual(['hoqLife', 'hoqLife', 'switchLifetime']);
  });
});
