/**
 * Expected instants are computed by hand: at 10 Gb/s a byte takes 800 ps; a frame of n bytes has a preamble of 8, n, an FCS of 4 and a gap of
 * 12; the default cable takes 2 × 150 ns and 2 m of 4.8 ns; the switch 300 ns. Thresholds follow from the closed form of Choudhury and
 * Hahne.
 */

import { describe, expect, it } from 'vitest';
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
const bytePs = 800;
const cablePs = 309_600;
const switchPs = 300_000;
/** Until the last bit of a frame has left, and until the next may begin. */
const framePs = (frameBytes: number): number => (8 + frameBytes + 4) * bytePs;
const slotPs = (frameBytes: number): number => framePs(frameBytes) + 12 * bytePs;
const throughPs = (frameBytes: number): number => 2 * (framePs(frameBytes) + cablePs) + switchPs;

const marksOf = (seen: readonly FrameSeen[]): number[] => seen.map(({ bytes }) => bytes.at(-1)!);
const timesOf = (seen: readonly FrameSeen[]): number[] => seen.map(({ timePs }) => timePs - startPs);
const dropsOf = (bench: EthernetSwitchBench): number =>
  bench.ends.reduce((sum, _, index) => {
    const { drops, queueDrops } = bench.device.statisticsOf(index + 1);
    return sum + queueDrops + Object.values(drops).reduce((total, count) => total + count, 0);
  }, 0);

/** Every end has sent a broadcast, so that the switch knows them; they have arrived before `startPs`. */
async function benchOf(
  ...options: ConstructorParameters<typeof EthernetSwitchBench>
): Promise<EthernetSwitchBench> {
  const bench = new EthernetSwitchBench(...options);
  for (const [from, end] of bench.ends.entries())
    end.sendAt(startPs - 10 * usPs, frameOf({ mac: broadcastMac, from, frameBytes: 60 }));
  await bench.runTo(startPs - usPs);
  for (const end of bench.ends) end.seen.length = 0;
  return bench;
}

describe('an Ethernet switch', () => {
  it.each([60, 1000, 1514])(
    'stores a frame of %i bytes and adds its latency and a cable',
    async (frameBytes) => {
      const bench = await benchOf(3);
      const frame = frameOf({ from: 0, to: 1, frameBytes, udpPort: 0xc123, mark: 7 });
      bench.ends[0]!.sendAt(startPs, frame);
      await bench.runTo(startPs + 20 * usPs);
      expect(bench.ends.map(({ seen }) => seen)).toEqual([
        [],
        [{ timePs: startPs + throughPs(frameBytes), bytes: [...frame] }],
        [],
      ]);
    },
  );

  it('carries frames that follow each other without more than their gap', async () => {
    const bench = await benchOf(2);
    bench.ends[0]!.sendAt(startPs, ...framesOf(5, { from: 0, to: 1, frameBytes: 800 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(timesOf(bench.ends[1]!.seen)).toEqual(
      [0, 1, 2, 3, 4].map((at) => throughPs(800) + at * slotPs(800)),
    );
  });
});

describe('forwarding', () => {
  it('IEEE 802.1Q 8.7: floods frames to stations that have not sent, and learns each by VLAN', async () => {
    const bench = new EthernetSwitchBench(3);
    const [a, b, c] = bench.ends;
    a!.sendAt(startPs, frameOf({ from: 0, to: 1, mark: 1 }));
    b!.sendAt(startPs + 5 * usPs, frameOf({ from: 1, to: 0, mark: 2 }));
    a!.sendAt(startPs + 10 * usPs, frameOf({ from: 0, to: 1, mark: 3 }));
    // Neither is known in VLAN 5.
    a!.sendAt(startPs + 15 * usPs, frameOf({ from: 0, to: 1, vlan: 5, mark: 4 }));
    await bench.runTo(startPs + 30 * usPs);
    expect([a, b, c].map((end) => marksOf(end!.seen))).toEqual([[2], [1, 3, 4], [1, 4]]);
    expect(bench.device.copyCount).toBe(2);
  });

  it('IEEE 802.1Q table 8-1: forwards groups to all others, and none of those of a single cable', async () => {
    const bench = await benchOf(3);
    const group = frameOf({ mac: 0x0100_5e00_0001, from: 0, mark: 1 });
    const local = frameOf({ mac: 0x0180_c200_000e, from: 0, mark: 2 });
    bench.ends[0]!.sendAt(startPs, group, local);
    await bench.runTo(startPs + 20 * usPs);
    expect(bench.ends.map(({ seen }) => marksOf(seen))).toEqual([[], [1], [1]]);
    expect(bench.device.statisticsOf(1).drops).toEqual({ noRoute: 0, ownPort: 0, linkLocal: 1, noRoom: 0 });
  });

  it('returns no frame by the port by which it came', async () => {
    const bench = await benchOf(2);
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 0 }));
    await bench.runTo(startPs + 20 * usPs);
    expect(bench.ends.map(({ seen }) => seen)).toEqual([[], []]);
    expect(bench.device.statisticsOf(1).drops.ownPort).toBe(1);
  });

  it('RFC 2992: spreads flows over the ports of a route, each flow by one port', async () => {
    const flowCount = 128;
    const portsOf = async (hashSeed: number): Promise<number[]> => {
      const bench = await benchOf(4, { switch: { hashSeed } });
      bench.device.routes.setRoute(0x0200_0000_2000, [2, 3, 4]);
      for (const round of [0, 1])
        bench.ends[0]!.sendAt(
          startPs + round * 100 * usPs,
          ...Array.from({ length: flowCount }, (_, flow) =>
            frameOf({ mac: 0x0200_0000_2000, from: 0, udpPort: 0xc000 + flow, frameBytes: 60, mark: flow }),
          ),
        );
      await bench.runTo(startPs + 300 * usPs);
      return Array.from({ length: flowCount }, (_, flow) => {
        const ports = bench.ends.flatMap(({ seen }, port) =>
          marksOf(seen).flatMap((mark) => (mark === flow ? [port] : [])),
        );
        expect(ports).toHaveLength(2);
        expect(ports[0]).toBe(ports[1]);
        return ports[0]!;
      });
    };
    const first = await portsOf(1);
    // A third of 128, less and more four standard deviations of 5.3.
    for (const port of [1, 2, 3]) {
      const count = first.filter((other) => other === port).length;
      expect(count).toBeGreaterThan(21);
      expect(count).toBeLessThan(64);
    }
    expect(await portsOf(2)).not.toEqual(first);
  });
});

describe('the shared buffer', () => {
  const bufferBytes = 65_536;
  const lossy = { bufferKib: 64, flowControl: 'none' } as const;
  const frameBytes = 1000;

  it.each([
    ['1', 1],
    ['1/2', 0.5],
    ['4', 4],
  ] as const)('lets n queues grow to alpha B / (1 + n alpha) for alpha %s', async (alpha, ratio) => {
    const bench = await benchOf(6, { switch: { ...lossy, alpha } });
    for (const from of [0, 1, 2, 3])
      bench.ends[from]!.sendAt(startPs, ...framesOf(400, { from, to: from < 2 ? 4 : 5, frameBytes }));
    // Alone, then with a second queue.
    await bench.runTo(startPs + 300 * usPs);
    const lengths = [4, 5].map((index) => bench.device.statisticsOf(index + 1).queuedBytes);
    for (const length of lengths) {
      const settled = (ratio * bufferBytes) / (1 + 2 * ratio);
      expect(length).toBeGreaterThan(settled - 3 * (frameBytes + 4));
      expect(length).toBeLessThan(settled + 3 * (frameBytes + 4));
    }
    await bench.runTo(startPs + 2000 * usPs);
    expect(bench.device.buffer.usedBytes).toBe(0);
    expect(dropsOf(bench)).toBe(4 * 400 - bench.ends[4]!.seen.length - bench.ends[5]!.seen.length);
  });

  it('drops frames of an incast without flow control', async () => {
    const bench = await benchOf(4, { switch: lossy });
    for (const from of [0, 1, 2])
      bench.ends[from]!.sendAt(startPs, ...framesOf(100, { from, to: 3, frameBytes }));
    await bench.runTo(startPs + 500 * usPs);
    const { queueDrops } = bench.device.statisticsOf(4);
    expect(queueDrops).toBeGreaterThan(50);
    expect(bench.ends[3]!.seen).toHaveLength(300 - queueDrops);
  });

  it('discards frames at an output whose link is down', async () => {
    const bench = await benchOf(2);
    bench.ends[1]!.port.setEnabled(false);
    bench.ends[0]!.sendAt(startPs, ...framesOf(3, { from: 0, to: 1 }));
    await bench.runTo(startPs + 30 * usPs);
    expect(bench.device.ports[1]!.transmitted.discardedFrames).toBe(3);
    expect(bench.device.buffer.usedBytes).toBe(0);
  });
});

describe('an incast with flow control', () => {
  const frameBytes = 1500;
  const tag = { vlan: 1, priority: 3 };
  const settings = [
    ['pause', { flowControl: 'pause' }],
    ['pfc', { flowControl: 'pfc', losslessPriorities: 0x08, trust: 'pcp' }],
  ] as const;

  it.each(settings)('loses nothing with %s, and keeps the output busy', async (_name, changes) => {
    const bench = await benchOf(4, { switch: { bufferKib: 160, ...changes } });
    for (const from of [0, 1, 2])
      bench.ends[from]!.sendAt(
        startPs,
        ...framesOf(60, { from, to: 3, frameBytes, ...tag, mark: 60 * from }),
      );
    await bench.runTo(startPs + 400 * usPs);
    expect(dropsOf(bench)).toBe(0);
    const { seen } = bench.ends[3]!;
    expect(marksOf(seen).toSorted((left, right) => left - right)).toEqual(
      Array.from({ length: 180 }, (_, at) => at),
    );
    expect(timesOf(seen)).toEqual(seen.map((_, at) => throughPs(frameBytes) + at * slotPs(frameBytes)));
    for (const from of [0, 1, 2]) {
      const { flowControl } = bench.ends[from]!.port;
      const pausedPs = flowControl.totals().pausedPs + flowControl.priorities.totals().priorityPausedPs;
      expect(pausedPs).toBeGreaterThan(50 * usPs);
      expect(marksOf(seen).filter((mark) => Math.floor(mark / 60) === from)).toEqual(
        Array.from({ length: 60 }, (_, at) => 60 * from + at),
      );
    }
    expect(bench.device.buffer.usedBytes).toBe(0);
  });

  it.each(settings)('loses nothing with %s where ports of cables take 20 us', async (_name, changes) => {
    const bench = await benchOf(4, {
      switch: { bufferKib: 512, pauseAlpha: '8', ...changes },
      cable: { portLatencyNs: 20_000 },
    });
    // The links of these cables come up later.
    const upPs = startPs + 1000 * usPs;
    for (const [from, end] of bench.ends.entries())
      end.sendAt(upPs - 100 * usPs, frameOf({ mac: broadcastMac, from, frameBytes: 60 }));
    for (const from of [0, 1, 2])
      bench.ends[from]!.sendAt(upPs, ...framesOf(400, { from, to: 3, frameBytes, ...tag }));
    await bench.runTo(upPs + 2500 * usPs);
    expect(dropsOf(bench)).toBe(0);
    expect(bench.ends[3]!.seen.filter(({ bytes }) => bytes.length === frameBytes)).toHaveLength(1200);
  });

  it('loses frames of a priority that PFC does not keep', async () => {
    const changes = { flowControl: 'pfc', losslessPriorities: 0x10, trust: 'pcp' } as const;
    const bench = await benchOf(4, { switch: { bufferKib: 128, ...changes } });
    for (const from of [0, 1, 2])
      bench.ends[from]!.sendAt(startPs, ...framesOf(100, { from, to: 3, frameBytes, ...tag }));
    await bench.runTo(startPs + 500 * usPs);
    expect(dropsOf(bench)).toBeGreaterThan(20);
    expect(bench.ends[0]!.port.flowControl.priorities.totals().receivedPriorityPauses).toBe(0);
  });
});

describe('a pause without end', () => {
  const msPs = 1000 * usPs;
  const of = (mark: number): Uint8Array => frameOf({ from: 0, to: 1, frameBytes: 1000, mark });

  it('drops what waits after the time of the watchdog, and what joins it, until the pause ends', async () => {
    const bench = await benchOf(2, { switch: { pauseWatchdogMs: 2 } });
    const [near, far] = bench.ends;
    const dropped = (): number => bench.device.statisticsOf(2).watchdogDrops;
    far!.at(startPs, () => far!.port.flowControl.stop(true));
    near!.sendAt(startPs + 5 * usPs, of(1), of(2), of(3));
    // It begins to wait when the first frame has come: 2 ms are not over a frame before, and are a frame later.
    const waitsPs = startPs + 5 * usPs + framePs(1000) + cablePs + switchPs;
    await bench.runTo(waitsPs + 2 * msPs - usPs);
    expect(dropped()).toBe(0);
    await bench.runTo(waitsPs + 2 * msPs + usPs);
    expect([dropped(), bench.device.buffer.usedBytes]).toEqual([3, 0]);
    // Also after the port was woken in between, when 65,535 quanta of a first PAUSE have passed.
    near!.sendAt(waitsPs + 3 * msPs, of(4));
    near!.sendAt(waitsPs + 3.5 * msPs, of(6));
    await bench.runTo(waitsPs + 4 * msPs);
    expect(dropped()).toBe(5);
    far!.at(waitsPs + 5 * msPs, () => far!.port.flowControl.stop(false));
    near!.sendAt(waitsPs + 6 * msPs, of(5));
    await bench.runTo(waitsPs + 7 * msPs);
    expect(marksOf(far!.seen)).toEqual([5]);
    expect(dropped()).toBe(5);
  });

  it.each([
    ['all traffic', {}, 'pauseWaitPs'],
    ['a priority', { flowControl: 'pfc', losslessPriorities: 0x08, trust: 'pcp' }, 'priorityWaitPs'],
  ] as const)(
    'of %s counts as a wait until the watchdog drops what waited',
    async (_what, config, counter) => {
      const bench = await benchOf(2, { switch: { ...config, pauseWatchdogMs: 2 } });
      const [near, far] = bench.ends;
      const isByPriority = counter === 'priorityWaitPs';
      const { flowControl } = far!.port;
      far!.at(startPs, () => (isByPriority ? flowControl.priorities.stop(3, true) : flowControl.stop(true)));
      near!.sendAt(startPs + 5 * usPs, frameOf({ from: 0, to: 1, frameBytes: 1000, vlan: 0, priority: 3 }));
      await bench.runTo(startPs + 9 * msPs);
      // Another frame is dropped at once, and waits for nothing.
      near!.sendAt(startPs + 10 * msPs, frameOf({ from: 0, to: 1, frameBytes: 1000, vlan: 0, priority: 3 }));
      await bench.runTo(startPs + 20 * msPs);
      expect(bench.device.statisticsOf(2).watchdogDrops).toBe(2);
      const output = bench.device.ports[1]!.flowControl;
      const waited = isByPriority ? output.priorities.totals().priorityWaitPs : output.totals().pauseWaitPs;
      expect(waited).toBe(2 * msPs);
    },
  );

  it('holds frames for good without a watchdog', async () => {
    const bench = await benchOf(2, { switch: { pauseWatchdogMs: 0 } });
    const [near, far] = bench.ends;
    far!.at(startPs, () => far!.port.flowControl.stop(true));
    near!.sendAt(startPs + 5 * usPs, of(1));
    await bench.runTo(startPs + 300 * msPs);
    expect([bench.device.statisticsOf(2).watchdogDrops, bench.device.statisticsOf(2).queued]).toEqual([0, 1]);
  });
});

describe('priorities', () => {
  const pfc = { flowControl: 'pfc', losslessPriorities: 0x08, trust: 'pcp' } as const;
  const of = (priority: number, mark: number): Uint8Array =>
    frameOf({ from: 0, to: 1, frameBytes: 1000, vlan: 0, priority, mark });

  it('IEEE 802.3 31D: holds a paused priority, sends the others, and goes on when the pause ends', async () => {
    const bench = await benchOf(2, { switch: pfc });
    const [near, far] = bench.ends;
    far!.at(startPs, () => far!.port.flowControl.priorities.stop(3, true));
    near!.sendAt(startPs + 5 * usPs, of(3, 1), of(0, 2), of(7, 3), of(3, 4));
    far!.at(startPs + 40 * usPs, () => far!.port.flowControl.priorities.stop(3, false));
    await bench.runTo(startPs + 80 * usPs);
    expect(marksOf(far!.seen)).toEqual([2, 3, 1, 4]);
    // The request counts a picosecond later; its frame has 60 bytes; the pause is over a picosecond after it has come.
    const resumedPs = 40 * usPs + 1 + framePs(60) + cablePs + 1;
    expect(timesOf(far!.seen)[2]).toBe(resumedPs + framePs(1000) + cablePs);
  });

  it('IEEE 802.1Q 8.6.8.1: leave by strict priority, or in turn', async () => {
    const orderOf = async (scheduling: 'strict' | 'round-robin'): Promise<number[]> => {
      const bench = await benchOf(3, { switch: { flowControl: 'none', trust: 'pcp', scheduling } });
      const both = (from: number): Uint8Array[] =>
        [0, 0, 0, 5, 5, 5].map((priority, at) =>
          frameOf({
            from,
            to: 2,
            frameBytes: 1000,
            vlan: 0,
            priority,
            mark: 10 * priority + (from === 0 ? at % 3 : 3 + (at % 3)),
          }),
        );
      bench.ends[0]!.sendAt(startPs, ...both(0));
      bench.ends[1]!.sendAt(startPs, ...both(1));
      await bench.runTo(startPs + 60 * usPs);
      return marksOf(bench.ends[2]!.seen).map((mark) => Math.floor(mark / 10));
    };
    // Two frames come in each slot, one leaves: three of priority 0 have left when the first of 5 come.
    expect(await orderOf('strict')).toEqual([0, 0, 0, 5, 5, 5, 5, 5, 5, 0, 0, 0]);
    expect(await orderOf('round-robin')).toEqual([0, 0, 0, 5, 0, 5, 0, 5, 0, 5, 5, 5]);
  });

  it('RFC 2474 4.2.2: are the upper three bits of the DSCP, which are trusted before the tag', async () => {
    const bench = await benchOf(2, { switch: { ...pfc, trust: 'dscp' } });
    const [near, far] = bench.ends;
    far!.at(startPs, () => far!.port.flowControl.priorities.stop(3, true));
    // DSCP 26 of RoCE and 48 of CNPs: priorities 3 and 6.
    const packet = (dscp: number, priority: number, mark: number): Uint8Array =>
      frameOf({ from: 0, to: 1, dscp, vlan: 0, priority, mark });
    near!.sendAt(startPs + 5 * usPs, packet(26, 0, 1), packet(48, 3, 2), of(3, 3));
    await bench.runTo(startPs + 80 * usPs);
    expect(marksOf(far!.seen)).toEqual([2]);
  });
});

describe('marks of congestion', () => {
  const frameBytes = 1000;
  const step = {
    marksCongestion: true,
    flowControl: 'none',
    ecnMinBytes: 10_000,
    ecnMaxBytes: 10_001,
  } as const;
  const ecnOf = ({ bytes }: FrameSeen): number => bytes[15]! & 3;

  it('RFC 3168: are set in every frame with ECT that joins a queue beyond the threshold, and in no other', async () => {
    const bench = await benchOf(3, { switch: step });
    for (const from of [0, 1])
      bench.ends[from]!.sendAt(
        startPs,
        ...framesOf(40, { from, to: 2, frameBytes, dscp: 0, ecn: from === 0 ? 2 : 0, udpPort: 0xc000 }),
      );
    await bench.runTo(startPs + 200 * usPs);
    const { seen } = bench.ends[2]!;
    // In slot s, s frames wait, one of them on its way; the frame of the first port joins them before that of the second.
    const ecn = seen.map((frame) => ({
      mark: frame.bytes.at(-1)!,
      from: frame.bytes[11]!,
      ecn: ecnOf(frame),
    }));
    expect(ecn.filter(({ from }) => from === 0)).toEqual(
      Array.from({ length: 40 }, (_, slot) => ({
        mark: slot,
        from: 0,
        ecn: slot * (frameBytes + 4) > 10_000 ? 3 : 2,
      })),
    );
    expect(ecn.filter(({ from }) => from === 1).every((frame) => frame.ecn === 0)).toBe(true);
    expect(bench.device.statisticsOf(3).marked).toBe(30);
  });

  it('are drawn with the probability that rises between Kmin and Kmax', async () => {
    const changes = { ...step, ecnMinBytes: 0, ecnMaxBytes: 200_000, ecnProbabilityPercent: 100 };
    const bench = await benchOf(3, { switch: changes });
    for (const from of [0, 1])
      bench.ends[from]!.sendAt(
        startPs,
        ...framesOf(180, { from, to: 2, frameBytes, dscp: 0, ecn: 1, udpPort: 0xc000 }),
      );
    await bench.runTo(startPs + 600 * usPs);
    const marked = bench.ends[2]!.seen.map((frame) => ecnOf(frame) === 3);
    // Frame j joins floor(j / 2) + j mod 2 frames of 1004 bytes: probability 1004 × that / 200,000.
    const expected = Array.from({ length: 360 }, (_, j) => (1004 * (Math.floor(j / 2) + (j % 2))) / 200_000);
    const mean = expected.reduce((sum, probability) => sum + probability, 0);
    const deviation = Math.sqrt(
      expected.reduce((sum, probability) => sum + probability * (1 - probability), 0),
    );
    const count = marked.filter(Boolean).length;
    expect(Math.abs(count - mean)).toBeLessThan(4 * deviation);
    expect(marked.slice(0, 120).filter(Boolean).length).toBeLessThan(
      marked.slice(240).filter(Boolean).length,
    );
  });
});

describe('the order within an instant, and a new epoch', () => {
  const traffic = async (shuffle?: () => number, epochPs = 0): Promise<unknown> => {
    const changes = {
      bufferKib: 192,
      flowControl: 'pause',
      marksCongestion: true,
      ecnMaxBytes: 20_000,
    } as const;
    const bench = new EthernetSwitchBench(6, { switch: changes }, shuffle);
    bench.sendBursts(startPs, 12, (from, burst) => ({
      dscp: 8 * (burst % 3),
      ecn: 2,
      udpPort: 0xc000 + from,
    }));
    if (epochPs > 0) {
      await bench.runTo(epochPs);
      bench.beginEpoch(epochPs);
    }
    await bench.runTo(startPs + 300 * usPs - epochPs);
    return bench.seen();
  };

  it('change nothing', async () => {
    const plain = await sameInAnyOrder(traffic);
    expect(await traffic(undefined, startPs + 30 * usPs)).toEqual(plain);
  });
});
