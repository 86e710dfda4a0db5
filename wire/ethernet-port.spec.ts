import { describe, expect, it } from 'vitest';
import { Random } from '../sim/random.ts';
import { DamagePlace } from './damage.ts';
import { EthernetBench, ethernetImbalance, frameOf } from './ethernet-bench.ts';
import type { PacketSelection } from './packet-rules.ts';
import type { PacketEffect } from './wire-faults.ts';

const US = 1_000_000;
const MS = 1_000_000_000;
/** Two ports of 150 ns and 2 m of 4.8 ns. */
const LATENCY_PS = 309_600;

const unobserved = { fired: () => {} };
const corruption = (isInside: boolean, place: number = DamagePlace.ANYWHERE) =>
  ({ kind: 'corrupted', place, isInside }) as const;

/** Accounts for every sent frame and byte. */
function expectBalance({ a, b }: EthernetBench): void {
  expect(ethernetImbalance(a.port.transmitted, b.port.received)).toEqual({ frames: 0, bytes: 0 });
  expect(ethernetImbalance(b.port.transmitted, a.port.received)).toEqual({ frames: 0, bytes: 0 });
}

describe('a tap of an Ethernet port', () => {
  it('sees each frame that passes, at its last byte, and the fate of those that do not arrive intact', async () => {
    const bench = new EthernetBench({
      receiveFifoFrames: 1,
      lossPerMillion: 300_000,
      corruptionPerMillion: 300_000,
    });
    const seen: string[] = [];
    for (const { lp, port } of [bench.a, bench.b])
      port.tap = {
        packetPassed: (direction, atPs, bytes, first, lengthBytes, note) =>
          seen.push(`${lp.name} ${direction} ${atPs} ${bytes[first]} ${lengthBytes} ${note}`),
      };
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    for (let index = 0; index < 30; index++)
      bench.a.at(upPs + (1 + index) * US, () => bench.a.send(100, index));
    await bench.runTo(upPs + 100 * US);
    // (8 preamble + 100 + 4 FCS) × 0.8 ns
    const leftPs = (index: number): number => upPs + (1 + index) * US + 89_600;
    const sent = seen.filter((line) => line.startsWith('a outbound'));
    expect(sent.map((line) => line.split(' ').slice(2, 5).map(Number))).toEqual(
      Array.from({ length: 30 }, (_, index) => [leftPs(index), index, 100]),
    );
    const { transmitted } = bench.a.port;
    const { received } = bench.b.port;
    const count = (text: string): number => seen.filter((line) => line.endsWith(text)).length;
    expect([count('lost on the cable'), count('corrupted on the cable')]).toEqual([
      transmitted.lostFrames,
      transmitted.corruptedFrames,
    ]);
    expect([count('sequence is wrong'), count('fifo is full')]).toEqual([
      received.corruptedFrames,
      received.fifoDrops,
    ]);
    expect(Math.min(transmitted.lostFrames, received.corruptedFrames, received.fifoDrops)).toBeGreaterThan(1);
    const came = seen
      .filter((line) => line.startsWith('b inbound'))
      .map((line) => line.split(' ').map(Number));
    for (const [, , atPs, first] of came) expect(atPs).toBe(leftPs(first!) + LATENCY_PS);
  });
});

describe('an Ethernet cable', () => {
  it('IEEE 802.3: carries a frame of 1514 bytes at 10 Gb/s in 1220.8 ns and the latency of two ports and the cable', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs + US, () => bench.a.send(1514, 7));
    await bench.runTo(upPs + 10 * US);
    const arrival = bench.b.arrivals[0]!;
    // (8 preamble + 1514 + 4 FCS) × 0.8 ns
    expect(arrival.timePs).toBe(upPs + US + 1_220_800 + LATENCY_PS);
    expect(arrival.bytes).toEqual([...frameOf(1514, 7)]);
    expectBalance(bench);
  });

  it('IEEE 802.3: keeps 14.88 million shortest frames a second apart by 67.2 ns', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs + US, () => bench.a.sendAll(100, 60));
    await bench.runTo(upPs + 100 * US);
    const times = bench.b.arrivals.map(({ timePs }) => timePs);
    expect(times).toHaveLength(100);
    expect(new Set(times.slice(1).map((timePs, index) => timePs - times[index]!))).toEqual(new Set([67_200]));
    expect(bench.a.port.busyPs).toBe(100 * 67_200);
  });

  it('IEEE 802.3: has exact byte times at 40 and 100 Gb/s, and loses no fraction over many frames', async () => {
    for (const [gigabitsPerSecond, durationPs] of [
      [40, 1_000 * 307_600],
      [100, 1_000 * 123_040],
      [3, Math.floor((1_000 * 1538 * 8000) / 3)],
    ] as const) {
      const bench = new EthernetBench({ gigabitsPerSecond });
      const upPs = await bench.bringUp();
      bench.a.at(upPs + US, () => bench.a.sendAll(1000, 1514));
      await bench.runTo(upPs + 10 * MS);
      expect(bench.b.arrivals).toHaveLength(1000);
      expect(Math.abs(bench.a.port.busyPs - durationPs)).toBeLessThanOrEqual(1);
    }
  });

  it('IEEE 802.3: pads short frames with zeros to 60 bytes', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.send(20, 1));
    await bench.runTo(upPs + 10 * US);
    expect(bench.b.arrivals[0]!.bytes).toEqual([...frameOf(20, 1), ...new Array<number>(40).fill(0)]);
    expect(bench.a.port.transmitted).toMatchObject({ frames: 1, bytes: 64, padBytes: 40 });
  });

  it('discards and counts frames while it is down, and carries jumbo frames if allowed', async () => {
    const bench = new EthernetBench({ mtuBytes: 9000 });
    bench.a.at(0, () => bench.a.send(100));
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => {
      bench.a.send(9014);
      bench.a.port.isOpen = false;
      bench.a.send(100);
    });
    await bench.runTo(upPs + 20 * US);
    expect(bench.a.port.transmitted).toMatchObject({ discardedFrames: 2, frames: 1, bytes: 9018 });
    expect(bench.b.arrivals.map(({ bytes }) => bytes.length)).toEqual([9014]);
    expect(() => bench.a.send(9015)).toThrow('9014');
  });

  it('notifies both ends when the link comes up and goes down', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    bench.b.at(upPs + US, () => bench.b.port.setEnabled(false));
    await bench.runTo(upPs + 10 * US);
    expect(bench.a.linkStates.map(({ isUp }) => isUp)).toEqual([true, false]);
    expect(bench.b.linkStates.map(({ isUp }) => isUp)).toEqual([true, false]);
    expect(bench.a.linkStates[1]!.nowPs).toBe(upPs + US + LATENCY_PS);
  });

  it('drops arriving frames while the MAC holds its maximum', async () => {
    const bench = new EthernetBench({ receiveFifoFrames: 4 });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    bench.a.at(upPs, () => bench.a.sendAll(10, 60));
    await bench.runTo(upPs + 10 * US);
    expect(bench.b.held).toHaveLength(4);
    expect(bench.b.port.received.fifoDrops).toBe(6);
    expectBalance(bench);
  });

  it('drops any number of frames after those that the MAC holds for long, which are unchanged', async () => {
    const bench = new EthernetBench({ receiveFifoFrames: 4, mtuBytes: 9000 });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    bench.a.at(upPs, () => bench.a.sendAll(300, 9014));
    await bench.runTo(upPs + 3000 * US);
    expect(bench.b.port.received).toMatchObject({ deliveredFrames: 4, fifoDrops: 296 });
    expect(bench.b.held.map((slot) => bench.b.bytesOf(slot))).toEqual(
      [0, 1, 2, 3].map((first) => [...frameOf(9014, first)]),
    );
    for (const slot of bench.b.held.splice(0)) bench.b.port.consume(slot);
    expect(bench.b.port.heldFrames).toBe(0);
    expectBalance(bench);
  });
});

describe('a bad Ethernet cable', () => {
  it('loses, corrupts and delays the frames of the plan', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    const { faults } = bench.a.port;
    const nth = (frame: number) => ({ first: frame, last: frame });
    faults.addRule({ kind: 'lost' }, nth(2), unobserved);
    faults.addRule(corruption(false), nth(3), unobserved);
    faults.addRule({ kind: 'late', delayPs: 3 * US }, nth(5), unobserved);
    bench.a.at(upPs, () => bench.a.sendAll(6, 60));
    await bench.runTo(upPs + 20 * US);
    expect(bench.b.arrivals.map(({ bytes }) => bytes[0])).toEqual([0, 3, 4, 5]);
    const [, fourth, fifth] = bench.b.arrivals;
    expect(fifth!.timePs - fourth!.timePs).toBeGreaterThanOrEqual(3 * US);
    expect(bench.a.port.transmitted).toMatchObject({
      frames: 6,
      lostFrames: 1,
      corruptedFrames: 1,
      delayedFrames: 1,
    });
    expect(bench.b.port.received).toMatchObject({ deliveredFrames: 4, corruptedFrames: 1 });
    expectBalance(bench);
  });

  /** Sends twenty frames, one in 100 ns, whose first bytes count up. @returns the frames that arrived, and how often the rule's fault occurred */
  async function sentUnder(
    effect: PacketEffect,
    selection: PacketSelection,
    shuffle?: () => number,
    frameBytes = 60,
  ) {
    const bench = new EthernetBench({}, 1, shuffle);
    const upPs = await bench.bringUp();
    let fired = 0;
    bench.a.port.faults.addRule(effect, selection, { fired: () => fired++ });
    for (let index = 0; index < 20; index++)
      bench.a.at(upPs + index * 100_000, () => bench.a.send(frameBytes, index));
    await bench.runTo(upPs + 100 * US);
    const { transmitted, rearranged, busyPs } = bench.a.port;
    const { received } = bench.b.port;
    expect(ethernetImbalance(transmitted, received, rearranged)).toEqual({ frames: 0, bytes: 0 });
    expect(bench.a.port.inspect()).toMatchObject({ heldBackFrames: 0 });
    return { fired, came: bench.b.arrivals.map(({ bytes }) => bytes[0]), busyPs, bench };
  }
  const inOrder = Array.from({ length: 20 }, (_, first) => first);
  const first = (frame: number, last = frame) => ({ first: frame, last });

  it('sends a copy some time after its frame, which takes its time on the link', async () => {
    const copied = await sentUnder({ kind: 'duplicated', passes: 1, delayPs: US }, first(3, 4));
    // They are due when the 13th and the 14th are sent, and leave first.
    expect(copied.came).toEqual([...inOrder.slice(0, 12), 2, 12, 3, ...inOrder.slice(13)]);
    expect([copied.fired, copied.busyPs]).toEqual([2, 22 * 67_200]);
    expect(copied.bench.a.port.rearranged).toEqual({ copiedFrames: 2, copiedBytes: 128, heldBackFrames: 0 });
  });

  it('lets a number of frames overtake one, or waits for a time', async () => {
    const passed = await sentUnder({ kind: 'reordered', passes: 3, delayPs: 10 * US }, first(5));
    expect(passed.came).toEqual([0, 1, 2, 3, 5, 6, 7, 4, ...inOrder.slice(8)]);
    const late = await sentUnder({ kind: 'reordered', passes: 3, delayPs: 10 * US }, first(19));
    expect(late.came).toEqual([...inOrder.slice(0, 18), 19, 18]);
    const { arrivals } = late.bench.b;
    expect(arrivals[19]!.timePs - arrivals[17]!.timePs).toBe(10 * US + 100_000);
  });

  it('holds one frame at a time, and counts by shots and at random', async () => {
    const every = await sentUnder({ kind: 'reordered', passes: 2, delayPs: 10 * US }, { shots: 2 });
    expect(every).toMatchObject({ fired: 2, came: [1, 2, 0, 4, 5, 3, ...inOrder.slice(6)] });
    const random = new Random(7, 'chance');
    const chance = { probability: 0.5, random };
    const lost = await sentUnder({ kind: 'lost' }, { chance });
    expect(lost.came.length).toBe(20 - lost.fired);
    expect(lost.fired).toBeGreaterThan(4);
  });

  it('keeps the order of one instant, for any order of execution', async () => {
    const effects: PacketEffect[] = [
      { kind: 'duplicated', passes: 1, delayPs: 200_000 },
      { kind: 'reordered', passes: 9, delayPs: 200_000 },
    ];
    for (const effect of effects) {
      const { came } = await sentUnder(effect, {});
      for (let seed = 0; seed < 5; seed++)
        expect((await sentUnder(effect, {}, new Random(seed, 'shuffle').unit)).came).toEqual(came);
    }
  });

  it('damages a frame within a switch, with a right FCS, in one bit after its type', async () => {
    const { bench, fired } = await sentUnder(corruption(true), first(2), undefined, 100);
    const bytes = bench.b.arrivals[1]!.bytes;
    const sent = frameOf(100, 1);
    const struck = bytes.flatMap((byte, at) => (byte === sent[at] ? [] : [[at, byte ^ sent[at]!]]));
    expect([fired, struck.length, bench.b.port.received.corruptedFrames]).toEqual([1, 1, 0]);
    expect(struck[0]![0]).toBeGreaterThanOrEqual(14);
    expect([1, 2, 4, 8, 16, 32, 64, 128]).toContain(struck[0]![1]);
  });

  /** 60 bytes of an IP frame, with this first word of its header; IPv4 has a checksum, as if the rest were zeros. */
  const ipFrame = (type: number, word: number): Uint8Array => {
    const bytes = new Uint8Array(60);
    const view = new DataView(bytes.buffer);
    view.setUint16(12, type);
    view.setUint16(14, word);
    if (type === 0x0800) view.setUint16(24, ~word & 0xffff);
    return bytes;
  };

  it('RFC 3168, 5: marks congestion if the IP header has ECT, and counts no other frame', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    let fired = 0;
    const notes: string[] = [];
    bench.a.port.tap = {
      packetPassed: (...[, , , , , note]) => {
        notes.push(note);
      },
    };
    bench.a.port.faults.addRule({ kind: 'congested' }, first(2, 4), { fired: () => fired++ });
    bench.a.port.faults.addRule({ kind: 'duplicated', passes: 1, delayPs: US }, first(5), unobserved);
    bench.a.port.faults.addRule({ kind: 'lost' }, first(6), unobserved);
    // ECN is in the two lowest bits of the second byte of IPv4, and in bits 5 and 4 of IPv6; 88b5 is for experiments.
    const sent = [
      ...[ipFrame(0x0800, 0x4500), ipFrame(0x0800, 0x4502), ipFrame(0x86dd, 0x6000), ipFrame(0x88b5, 0x4502)],
      ...[ipFrame(0x0800, 0x45a9), ipFrame(0x86dd, 0x6a6f), ipFrame(0x86dd, 0x6010), ipFrame(0x0800, 0x4501)],
    ];
    for (const [at, frame] of sent.entries())
      bench.a.at(upPs + at * 100_000, () => bench.a.port.send(frame, 0, frame.length));
    await bench.runTo(upPs + 100 * US);
    const words = bench.b.arrivals.map(({ bytes }) =>
      [14, 24].map((at) => ((bytes[at]! << 8) | bytes[at + 1]!).toString(16)),
    );
    const marked = 'marked for congestion by a fault';
    const copied = `a copy, made by a fault; ${marked}`;
    expect(notes).toEqual(['', '', '', '', marked, 'lost on the cable', marked, '', copied]);
    // The fifth is marked and copied with its mark; the sixth is lost and not marked.
    expect(words).toEqual([
      ...[
        ['4500', 'baff'],
        ['4502', 'bafd'],
        ['6000', '0'],
        ['4502', '0'],
      ],
      ...[
        ['45ab', 'ba54'],
        ['6030', '0'],
        ['4501', 'bafe'],
        ['45ab', 'ba54'],
      ],
    ]);
    expect(fired).toBe(2);
  });

  it('identifies frames as RoCE packets by their headers alone', async () => {
    for (const only of ['requests', 'responses', 'datagrams'] as const)
      expect(await sentUnder({ kind: 'lost' }, { only })).toMatchObject({ fired: 0, came: inOrder });
  });

  it('loses held-back frames when the link goes down', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    const { faults } = bench.a.port;
    faults.addRule({ kind: 'reordered', passes: 9, delayPs: 50 * US }, first(1), unobserved);
    faults.addRule({ kind: 'duplicated', passes: 1, delayPs: 50 * US }, first(2), unobserved);
    bench.a.at(upPs, () => bench.a.sendAll(2, 60));
    bench.a.at(upPs + 10 * US, () => bench.a.port.setEnabled(false));
    await bench.runTo(upPs + 5 * US);
    expect(bench.a.port.unsent).toEqual({ frames: 1, bytes: 64 });
    await bench.runTo(upPs + 100 * US);
    expect(bench.b.arrivals.map(({ bytes }) => bytes[0])).toEqual([1]);
    expect(bench.a.port.transmitted).toMatchObject({ frames: 2, lostFrames: 1, lostBytes: 64 });
    // One frame was on the link, 84 bytes at 10 Gb/s; neither its copy nor the other frame was.
    expect([bench.a.port.busyPs, bench.a.port.unsent]).toEqual([67_200, { frames: 1, bytes: 64 }]);
    expect(bench.a.port.inspect()).toMatchObject({ heldBackFrames: 0 });
    expectBalance(bench);
  });

  it('loses and corrupts the configured share by a seed, the same in every run', async () => {
    const outcome = async (seed: number, shuffle?: () => number) => {
      const bench = new EthernetBench(
        { lossPerMillion: 50_000, corruptionPerMillion: 20_000 },
        seed,
        shuffle,
      );
      const upPs = await bench.bringUp();
      bench.a.at(upPs, () => bench.a.sendAll(10_000, 60));
      await bench.runTo(upPs + 2 * MS);
      expectBalance(bench);
      return { ...bench.a.port.transmitted, first: bench.b.arrivals[500]!.timePs };
    };
    const first = await outcome(1);
    // 500 and 190 expected; five standard deviations are 109 and 69.
    expect(Math.abs(first.lostFrames - 500)).toBeLessThan(109);
    expect(Math.abs(first.corruptedFrames - 190)).toBeLessThan(69);
    expect(await outcome(1)).toEqual(first);
    expect(await outcome(1, new Random(3, 'shuffle').unit)).toEqual(first);
    expect((await outcome(2)).lostFrames).not.toBe(first.lostFrames);
  });

  it('draws independent random numbers in the opposite direction', async () => {
    const bench = new EthernetBench({ lossPerMillion: 500_000 });
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.sendAll(64, 60));
    bench.b.at(upPs, () => bench.b.sendAll(64, 60));
    await bench.runTo(upPs + 50 * US);
    const arrived = (arrivals: typeof bench.a.arrivals) => arrivals.map(({ bytes }) => bytes[0]).join();
    expect(arrived(bench.a.arrivals)).not.toBe(arrived(bench.b.arrivals));
    expectBalance(bench);
  });
});
