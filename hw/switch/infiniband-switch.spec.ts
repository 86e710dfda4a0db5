/**
 * Expected instants are computed by hand: a UD SEND of n bytes has 8 (LRH) + 12 (BTH) + 8 (DETH) + n + 4 (ICRC) + 2 (VCRC) bytes and 2 of
 * framing; at 4X QDR a byte takes 250 ps; the default cable takes 89.6 ns; the switch 120 ns.
 */

import { describe, expect, it } from 'vitest';
import { DamagePlace, lanesDefaults, type WireTap } from '../../wire/index.ts';
import { sameInAnyOrder } from './testing/same-in-any-order.ts';
import { benchSwitchLid, type SwitchArrival, SwitchBench } from './testing/switch-bench.ts';

const usPs = 1_000_000;
/** The links are up by then. */
const startPs = 50 * usPs;
const cablePs = 89_600;
const switchPs = 120_000;
const packetPs = (payloadBytes: number): number => (payloadBytes + 34 + 2) * 250;

const psnsOf = (arrivals: readonly SwitchArrival[]): number[] => arrivals.map(({ psn }) => psn);
const timesOf = (arrivals: readonly SwitchArrival[]): number[] =>
  arrivals.map(({ timePs }) => timePs - startPs);

describe('a switch that cuts through', () => {
  it('adds its latency and a cable to a packet, whatever the size, and keeps every byte', async () => {
    const bench = new SwitchBench(2);
    bench.ends[0]!.sendAt(startPs, 2, 2048, 7);
    await bench.runTo(startPs + 10 * usPs);
    const [arrival] = bench.ends[1]!.arrivals;
    expect(arrival!.timePs - startPs).toBe(packetPs(2048) + 2 * cablePs + switchPs);
    expect(arrival!.payload).toEqual(Array.from({ length: 2048 }, (_, index) => (7 + index) & 0xff));
  });

  it('carries packets that follow each other without a gap', async () => {
    const bench = new SwitchBench(2);
    bench.ends[0]!.sendAt(startPs, 2, 1024, 0, 5);
    await bench.runTo(startPs + 10 * usPs);
    const first = packetPs(1024) + 2 * cablePs + switchPs;
    expect(timesOf(bench.ends[1]!.arrivals)).toEqual(
      [0, 1, 2, 3, 4].map((at) => first + at * packetPs(1024)),
    );
  });

  it('lets the packet go first whose first byte came first, even if a shorter one has ended before', async () => {
    const bench = new SwitchBench(3);
    bench.ends[0]!.sendAt(startPs, 3, 4096, 1);
    bench.ends[1]!.sendAt(startPs + 500_000, 3, 0, 2);
    await bench.runTo(startPs + 10 * usPs);
    const long = packetPs(4096) + 2 * cablePs + switchPs;
    expect(psnsOf(bench.ends[2]!.arrivals)).toEqual([1, 2]);
    expect(timesOf(bench.ends[2]!.arrivals)).toEqual([long, long + packetPs(0)]);
  });
});

describe('a switch between cables of unlike rates', () => {
  it('has a packet wait until it cannot leave faster than it comes', async () => {
    // 1X SDR: 4 ns a byte.
    const bench = new SwitchBench(2, { wireOfEnd: { 0: { speed: 'SDR', lanes: '1' } } });
    bench.ends[0]!.sendAt(startPs, 2, 2048);
    await bench.runTo(startPs + 50 * usPs);
    expect(timesOf(bench.ends[1]!.arrivals)).toEqual([16 * packetPs(2048) + 2 * cablePs + switchPs]);
  });
});

describe('a switch that stores and forwards', () => {
  it('adds the time of the packet on the cable', async () => {
    const bench = new SwitchBench(2, { switch: { forwarding: 'store-and-forward' } });
    bench.ends[0]!.sendAt(startPs, 2, 2048);
    await bench.runTo(startPs + 10 * usPs);
    expect(timesOf(bench.ends[1]!.arrivals)).toEqual([2 * packetPs(2048) + 2 * cablePs + switchPs]);
  });
});

describe('an output that several inputs want', () => {
  it('takes them in turn, and never stands idle', async () => {
    const bench = new SwitchBench(4);
    for (const from of [0, 1, 2]) bench.ends[from]!.sendAt(startPs, 4, 1024, 100 * from, 4);
    await bench.runTo(startPs + 20 * usPs);
    const { arrivals } = bench.ends[3]!;
    expect(psnsOf(arrivals)).toEqual([0, 100, 200, 1, 101, 201, 2, 102, 202, 3, 103, 203]);
    const first = packetPs(1024) + 2 * cablePs + switchPs;
    expect(timesOf(arrivals)).toEqual(arrivals.map((_, at) => first + at * packetPs(1024)));
  });

  it('holds back its senders by credits, and drops nothing', async () => {
    const bench = new SwitchBench(4, { switch: { inputBufferBytes: 8448 }, wire: { creditReturnBytes: 64 } });
    for (const from of [0, 1, 2]) bench.ends[from]!.sendAt(startPs, 4, 4096, 100 * from, 20);
    await bench.runTo(startPs + 100 * usPs);
    expect(bench.ends[3]!.arrivals).toHaveLength(60);
    for (const from of [0, 1, 2]) {
      const port = bench.device.ports[from]!;
      expect(port.receiveBufferHighWaterBytes).toBeLessThanOrEqual(8448);
      expect(port.receiveBufferedBytes).toBe(0);
      expect(port.received.overruns).toBe(0);
      expect(bench.ends[from]!.port.transmitted.creditWaitPs).toBeGreaterThan(20 * usPs);
    }
  });
});

describe('head-of-line blocking', () => {
  it('delays a packet to a free output after one whose output is taken', async () => {
    // End 3 consumes nothing: its 16,384 bytes of buffer hold three packets of 4096 bytes, then its output stands.
    const bench = new SwitchBench(4);
    bench.ends[3]!.consumesAtOnce = false;
    bench.ends[0]!.sendAt(startPs, 4, 4096, 0, 4);
    bench.ends[0]!.sendAt(startPs, 3, 256, 50);
    bench.ends[1]!.sendAt(startPs, 3, 256, 60);
    bench.ends[3]!.at(startPs + 30 * usPs, () => bench.ends[3]!.consumeAll());
    await bench.runTo(startPs + 60 * usPs);
    const [free, blocked] = bench.ends[2]!.arrivals;
    expect([free!.psn, blocked!.psn]).toEqual([60, 50]);
    expect(free!.timePs - startPs).toBe(packetPs(256) + 2 * cablePs + switchPs);
    expect(blocked!.timePs - startPs).toBeGreaterThan(30 * usPs);
  });
});

describe('an input', () => {
  it('is read by one output at a time: its next packet leaves when the last byte of the one before has left', async () => {
    const bench = new SwitchBench(4);
    bench.ends[1]!.sendAt(startPs, 3, 4096, 1);
    // The first waits for the end of the long one; the second has a free output, and waits for the first.
    bench.ends[0]!.sendAt(startPs + 200_000, 3, 256, 2);
    bench.ends[0]!.sendAt(startPs + 200_000, 4, 256, 3);
    await bench.runTo(startPs + 10 * usPs);
    const firstPs = packetPs(4096) + 2 * cablePs + switchPs + packetPs(256);
    expect(timesOf(bench.ends[2]!.arrivals)).toEqual([firstPs - packetPs(256), firstPs]);
    expect(timesOf(bench.ends[3]!.arrivals)).toEqual([firstPs + packetPs(256)]);
  });
});

describe('packets that are not forwarded', () => {
  it('have no route, or their output has no cable; their buffers are free again', async () => {
    const bench = new SwitchBench(2);
    bench.device.tables.setPort(9, 9);
    for (const lid of [7, 9]) bench.ends[0]!.sendAt(startPs, lid, 256);
    bench.ends[0]!.sendAt(startPs, 2, 256, 5);
    await bench.runTo(startPs + 10 * usPs);
    expect(bench.device.dropsOf(1)).toMatchObject({ noRoute: 2, ownPort: 0, noLane: 0, hoqLife: 0 });
    expect(psnsOf(bench.ends[1]!.arrivals)).toEqual([5]);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });

  it('are discarded at an output whose link is down', async () => {
    const bench = new SwitchBench(2);
    bench.ends[1]!.port.setEnabled(false);
    bench.ends[0]!.sendAt(startPs, 2, 256, 0, 3);
    await bench.runTo(startPs + 10 * usPs);
    expect(bench.ends[1]!.arrivals).toEqual([]);
    expect(bench.device.ports[1]!.discardedCount).toBe(3);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });
});

describe('a packet damaged on its cable to the switch', () => {
  const damagedOn = async (
    packetForm: 'fields' | 'bytes',
    place: number,
    isInside: boolean,
    more: ConstructorParameters<typeof SwitchBench>[1] = {},
  ) => {
    const bench = new SwitchBench(3, { ...more, wire: { packetForm, ...more.wire } });
    const effect = { kind: 'corrupted', place, isInside } as const;
    const rule = { first: 2, last: 2 };
    bench.ends[0]!.port.faults.addRule(effect, rule, { fired: () => undefined });
    bench.ends[0]!.sendAt(startPs, 2, 256, 0, 3);
    await bench.runTo(startPs + 20 * usPs);
    return bench;
  };
  const places = Object.values(DamagePlace);
  const forms = ['fields', 'bytes'] as const;
  const cases = forms.flatMap((form) => places.map((place) => [form, place] as const));

  it.each(cases)(
    'IBTA 7.8: passes on with a wrong ICRC alone, and its destination drops it (%s, place %i)',
    async (form, place) => {
      const bench = await damagedOn(form, place, true);
      const [first, second] = bench.device.ports;
      expect(first!.received).toMatchObject({ invariantCrcErrors: 0, relayedDamageCount: 1 });
      expect([first!.received.corrupted.packetTotal, first!.received.delivered.packetTotal]).toEqual([0, 3]);
      expect([second!.transmitted.packetCount, second!.transmitted.relayedDamageCount]).toEqual([3, 1]);
      // The fault is of the first cable alone.
      expect([bench.ends[0]!.port.transmitted.corruptedCount, second!.transmitted.corruptedCount]).toEqual([
        1, 0,
      ]);
      const { received } = bench.ends[1]!.port;
      expect([received.invariantCrcErrors, received.corrupted.packetTotal]).toEqual([1, 1]);
      expect(psnsOf(bench.ends[1]!.arrivals)).toEqual([0, 2]);
      expect(first!.receiveBufferedBytes).toBe(0);
    },
  );

  it.each(['cut-through', 'store-and-forward'] as const)(
    'IBTA 7.8: is dropped by the switch for a wrong VCRC (%s)',
    async (forwarding) => {
      const bench = await damagedOn('bytes', DamagePlace.PAYLOAD, false, { switch: { forwarding } });
      const [first, second] = bench.device.ports;
      expect([first!.received.corrupted.packetTotal, first!.received.invariantCrcErrors]).toEqual([1, 0]);
      expect(second!.transmitted.packetCount).toBe(2);
      expect(psnsOf(bench.ends[1]!.arrivals)).toEqual([0, 2]);
    },
  );

  it('has the same wrong bytes on each cable, in another lane too', async () => {
    const lanes = { ...lanesDefaults(), slToVl: { ...lanesDefaults().slToVl, sl0: 1 } };
    const bench = new SwitchBench(2, { wire: { packetForm: 'bytes', dataVls: '2' }, lanes });
    const effect = { kind: 'corrupted', place: DamagePlace.PAYLOAD, isInside: true } as const;
    bench.ends[0]!.port.faults.addRule(effect, { first: 1, last: 1 }, { fired: () => undefined });
    const seen: number[][] = [];
    const tapOf = (wanted: string): WireTap => ({
      packetPassed: (direction, _atPs, bytes, first, lengthBytes) => {
        if (direction === wanted) seen.push([...bytes.subarray(first, first + lengthBytes)]);
      },
    });
    bench.device.ports[0]!.tap = tapOf('inbound');
    bench.device.ports[1]!.tap = tapOf('outbound');
    bench.ends[1]!.port.tap = tapOf('inbound');
    bench.ends[0]!.sendAt(startPs, 2, 256);
    await bench.runTo(startPs + 20 * usPs);
    expect(seen).toHaveLength(3);
    const [came, left, arrived] = seen;
    // LRH VL, bits [7:4] of the first byte, and the VCRC differ (7.7.1, 7.8.2).
    expect([came![0]! >> 4, left![0]! >> 4]).toEqual([0, 1]);
    expect(left!.slice(1, -2)).toEqual(came!.slice(1, -2));
    expect(arrived).toEqual(left);
    // A payload of 0, 1, 2 … of which one bit is wrong, or the ICRC.
    const payload = came!.slice(28, 28 + 256);
    const wrongBits = payload.filter((byte, index) => byte !== (index & 0xff)).length;
    expect(wrongBits).toBeLessThanOrEqual(1);
    expect(bench.ends[1]!.port.received.invariantCrcErrors).toBe(1);
  });

  it('is dropped by port 0, which is a destination', async () => {
    const bench = new SwitchBench(2);
    const effect = { kind: 'corrupted', place: DamagePlace.PAYLOAD, isInside: true } as const;
    bench.ends[0]!.port.faults.addRule(effect, { first: 1, last: 1 }, { fired: () => undefined });
    bench.ends[0]!.sendDatagramAt(startPs, { payload: new Uint8Array(256), destinationLid: benchSwitchLid });
    await bench.runTo(startPs + 50 * usPs);
    expect(bench.device.management.counts).toMatchObject({ taken: 1, damaged: 1, malformed: 0, sent: 0 });
  });
});

describe('the life of a first packet', () => {
  it('ends after 4.096 us times a power of two, and the next packet is the first', async () => {
    const bench = new SwitchBench(4, { switch: { hoqLife: 4 } });
    bench.ends[3]!.consumesAtOnce = false;
    // Three packets fill the buffer of end 3; the fourth waits from its readiness on, at most 65.536 us.
    bench.ends[0]!.sendAt(startPs, 4, 4096, 0, 4);
    bench.ends[0]!.sendAt(startPs, 3, 256, 50);
    await bench.runTo(startPs + 200 * usPs);
    expect(psnsOf(bench.ends[3]!.arrivals)).toEqual([0, 1, 2]);
    expect(bench.device.dropsOf(1)).toMatchObject({ noRoute: 0, ownPort: 0, noLane: 0, hoqLife: 1 });
    const [next] = bench.ends[2]!.arrivals;
    expect(next!.psn).toBe(50);
    // The fourth is the first of its input when the third has left: from the first byte of the first, three packets later.
    const firstPs = cablePs + switchPs + 3 * packetPs(4096) - cablePs;
    const leavesPs = next!.timePs - startPs - packetPs(256) - cablePs;
    expect(leavesPs - firstPs).toBeGreaterThan(65_536_000 - packetPs(4096));
    expect(leavesPs - firstPs).toBeLessThan(65_536_000 + packetPs(4096));
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });
});

describe('a life shorter than a packet', () => {
  it('ends when the packet before it has left, and is not watched every picosecond until then', async () => {
    // At 1X SDR a byte takes 4 ns, so 4096 bytes of payload take 16.5 us: more than the 4.096 us of code 0.
    const slow = { speed: 'SDR', lanes: '1' } as const;
    const bench = new SwitchBench(2, { switch: { hoqLife: 0 }, wireOfEnd: { 1: slow } });
    bench.ends[0]!.sendAt(startPs, 2, 4096, 0, 3);
    await bench.runTo(startPs + 100 * usPs);
    // The second becomes the first of its input as soon as the first begins to leave, and its time is up when that has left.
    expect(psnsOf(bench.ends[1]!.arrivals)).toEqual([0, 2]);
    expect(bench.device.dropsOf(1).hoqLife).toBe(1);
    expect(bench.eventCount).toBeLessThan(100);
  });
});

describe('an output whose waiting packet is dropped', () => {
  it('waits for credits no longer', async () => {
    const bench = new SwitchBench(4, { switch: { hoqLife: 4 } });
    const [from, , , to] = bench.ends;
    to!.consumesAtOnce = false;
    // Three packets fill the buffer of end 3; the fourth waits for at most 65.536 us. Credits come at 150 us, and another packet.
    from!.sendAt(startPs, 4, 4096, 0, 4);
    to!.at(startPs + 150 * usPs, () => to!.consumeAll());
    from!.sendAt(startPs + 200 * usPs, 4, 256, 9);
    await bench.runTo(startPs + 300 * usPs);
    expect(psnsOf(to!.arrivals)).toEqual([0, 1, 2, 9]);
    const { creditWaitPs } = bench.device.ports[3]!.transmitted;
    expect(creditWaitPs).toBeGreaterThan(65_536_000 - 2 * packetPs(4096));
    expect(creditWaitPs).toBeLessThanOrEqual(65_536_001);
  });
});

describe('a multicast group', () => {
  it('leaves by each of its ports but the one by which it came', async () => {
    const bench = new SwitchBench(4);
    bench.device.tables.groupPorts = [1, 2, 4];
    bench.ends[0]!.sendAt(startPs, 0xc001, 512, 3);
    await bench.runTo(startPs + 10 * usPs);
    expect(bench.ends.map(({ arrivals }) => psnsOf(arrivals))).toEqual([[], [3], [], [3]]);
    expect(bench.device.copyCount).toBe(1);
    expect(bench.device.ports[0]!.receiveBufferedBytes).toBe(0);
  });
});

describe('the order within an instant', () => {
  it('changes nothing', async () => {
    const seen = async (shuffle?: () => number): Promise<unknown> => {
      const bench = new SwitchBench(6, { switch: { inputBufferBytes: 8448 } }, shuffle);
      for (let from = 0; from < 6; from++)
        for (let to = 0; to < 6; to++)
          // Ends send at one instant, each to its destinations at instants of its own.
          if (to !== from)
            bench.ends[from]!.sendAt(startPs + to, to + 1, 64 * (1 + ((from * to) % 5)), 100 * from, 6);
      await bench.runTo(startPs + 100 * usPs);
      return [bench.ends.map(({ arrivals }) => arrivals), bench.device.inspect()];
    };
    await sameInAnyOrder(seen);
  });
});
