import { describe, expect, it } from 'vitest';
import { toHex } from '../base/bytes.ts';
import { Random } from '../sim/random.ts';
import { EthernetBench, type EthernetEnd, ethernetImbalance } from './ethernet-bench.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';

const US = 1_000_000;
/** At 10 Gb/s: a shortest frame with preamble and FCS, 72 bytes, and with the gap; a quantum, 512 bit times. */
const SHORT_PS = 57_600;
const STEP_PS = 67_200;
const QUANTUM_PS = 51_200;
/** Two ports of 150 ns and 2 m of 4.8 ns. */
const LATENCY_PS = 309_600;
const [MAC_A, MAC_B] = [0x0200_0000_000a, 0x0200_0000_000b];
/** The other end must stop at three held frames, and may resume at one. */
const small = { receiveFifoFrames: 4, pauseXoffPercent: 75, pauseXonPercent: 50, pauseQuanta: 1000 };

const benchOf = (changes: Partial<EthernetConfig> = {}, shuffle?: () => number): EthernetBench =>
  new EthernetBench({ ...small, ...changes }, 1, shuffle, [MAC_A, MAC_B]);

/** A frame written from the standard: IEEE 802.3-2018, 31B.3.1. */
const controlBytes = (
  quanta: number,
  { opcode = 1, to = '0180c2000001', bytes = 60, type = '8808' } = {},
) => {
  const frame = Buffer.alloc(bytes);
  frame.write(`${to}020000000001${type}`, 'hex');
  frame.writeUInt16BE(opcode, 14);
  frame.writeUInt16BE(quanta, 16);
  return frame;
};

/** PAUSE frames that an end sees, by direction, with the instant of their last bit. */
function pausesAt({ port }: EthernetEnd): { readonly line: string; readonly atPs: number }[] {
  const seen: { line: string; atPs: number }[] = [];
  port.tap = {
    packetPassed: (direction, atPs, bytes, first, length) => {
      const hex = toHex(bytes.subarray(first, first + length));
      if (hex.startsWith('0180c2000001')) seen.push({ line: `${direction} ${hex}`, atPs });
    },
  };
  return seen;
}

const letGo = (end: EthernetEnd): void => {
  end.consumesAtOnce = true;
  for (const slot of end.held.splice(0)) end.port.consume(slot);
};

const orderOf = (end: EthernetEnd): number[] => end.arrivals.map(({ bytes }) => bytes[0]!);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index & 0xff);

function expectBalance({ a, b }: EthernetBench): void {
  for (const [near, far] of [
    [a.port, b.port],
    [b.port, a.port],
  ] as const) {
    const control = [near.flowControl.counters, far.flowControl.counters];
    expect(ethernetImbalance(near.transmitted, far.received, near.rearranged, control)).toEqual({
      frames: 0,
      bytes: 0,
    });
  }
}

/** A sends short frames as fast as possible to b, which releases none until `takesPs` after the link is up. */
async function stalled(takesPs: number, changes: Partial<EthernetConfig> = {}, count = 30) {
  const bench = benchOf(changes);
  const { a, b } = bench;
  const pauses = pausesAt(b);
  const upPs = await bench.bringUp();
  b.consumesAtOnce = false;
  a.at(upPs, () => a.sendAll(count, 60));
  b.at(upPs + takesPs, () => letGo(b));
  /** When b has reached its level, and when its PAUSE has arrived at a. */
  const fullPs = upPs + SHORT_PS + 2 * STEP_PS + LATENCY_PS;
  const pausedPs = fullPs + 1 + SHORT_PS + LATENCY_PS;
  return { bench, a, b, pauses, upPs, fullPs, pausedPs };
}

describe('a receiver that accepts nothing', () => {
  it('IEEE 802.3-2018, 31B.3: stops the sender by a PAUSE frame of its own MAC, and lets it resume by one without quanta', async () => {
    const { bench, a, b, pauses, upPs, fullPs, pausedPs } = await stalled(10 * US);
    await bench.runTo(upPs + 100 * US);
    const [zeros, source] = ['00'.repeat(42), '02000000000b'];
    const xonPs = upPs + 10 * US + 1;
    expect(pauses).toEqual([
      { line: `outbound 0180c2000001${source}8808000103e8${zeros}`, atPs: fullPs + 1 + SHORT_PS },
      { line: `outbound 0180c2000001${source}880800010000${zeros}`, atPs: xonPs + SHORT_PS },
    ]);
    // A accepts a frame if at most 128 bytes wait, 102.4 ns: exactly the frames accepted by then have arrived.
    const takenCount = Math.floor((pausedPs - upPs + 102_400) / STEP_PS) + 1;
    const before = b.arrivals.filter(({ timePs }) => timePs < xonPs);
    expect(before).toHaveLength(takenCount);
    const goesOnPs = xonPs + SHORT_PS + LATENCY_PS + 1;
    expect(b.arrivals[takenCount]!.timePs).toBe(goesOnPs + SHORT_PS + LATENCY_PS);
    expect(orderOf(b)).toEqual(upTo(30));
    expect(b.port.received.fifoDrops).toBe(0);
    expect(a.arrivals).toEqual([]);
    expectBalance(bench);
  });

  it('IEEE 802.3-2018, 31B.3: lets the sender resume after its quanta if the frame that ends the pause is lost or damaged', async () => {
    for (const kind of ['lost', 'corrupted'] as const) {
      const { bench, a, b, upPs, pausedPs } = await stalled(10 * US);
      const effect = kind === 'lost' ? { kind } : { kind, place: 0, isInside: false };
      let fired = 0;
      b.port.faults.addRule(effect, { only: 'pauses', first: 2 }, { fired: () => fired++ });
      await bench.runTo(upPs + 100 * US);
      const after = b.arrivals.find(({ timePs }) => timePs > upPs + 10 * US)!;
      expect(after.timePs).toBe(pausedPs + 1000 * QUANTUM_PS + SHORT_PS + LATENCY_PS);
      expect([fired, orderOf(b)]).toEqual([1, upTo(30)]);
      expect(a.port.received.corruptedFrames).toBe(kind === 'lost' ? 0 : 1);
      expectBalance(bench);
    }
  });

  it('IEEE 802.3-2018, 31B.3: is not overtaken by frames that form while the link is busy', async () => {
    const { bench, b, pauses, upPs } = await stalled(50 * US);
    // 1,504 bytes with FCS, 1.2192 µs each. When b is full, at 501.6 ns, the link has accepted three, since it accepts one if
    // less than its forming time of 2 µs is reserved: at 0, 0 and 438.4 ns. It would accept the next at 1657.6.
    b.at(upPs, () => b.sendAll(100, 1500, 2 * US));
    await bench.runTo(upPs + 200 * US);
    expect(pauses[0]!.atPs - upPs).toBe(3 * 1_219_200 + SHORT_PS);
    // Half of 1,000 quanta later it asks again, and waits for the frames that the link has accepted then.
    const again = pauses[1]!.atPs - pauses[0]!.atPs - 500 * QUANTUM_PS;
    expect(again).toBeGreaterThanOrEqual(0);
    expect(again).toBeLessThan(2 * US + 1_219_200 + STEP_PS);
    expectBalance(bench);
  });

  it('repeats its PAUSE at half the time while it is full', async () => {
    const { bench, b, pauses, upPs, fullPs } = await stalled(200 * US);
    await bench.runTo(upPs + 300 * US);
    const asked = pauses.slice(0, -1).map(({ atPs }) => atPs - (fullPs + 1 + SHORT_PS));
    expect(asked).toEqual(Array.from({ length: 8 }, (_, index) => index * 500 * QUANTUM_PS));
    expect([b.arrivals.length, b.port.received.fifoDrops]).toEqual([30, 0]);
    const { sentFrames, sentBytes, sentTransitions, stoppingPs } = b.port.flowControl.totals();
    expect([sentFrames, sentBytes, sentTransitions]).toEqual([9, 9 * 64, 1]);
    expect(stoppingPs).toBe(upPs + 200 * US - fullPs);
  });

  it('counts its frames separately, and their time on the link', async () => {
    const { bench, a, b, upPs, pausedPs } = await stalled(10 * US);
    await bench.runTo(upPs + 100 * US);
    expect(b.port.transmitted).toMatchObject({ frames: 0, bytes: 0 });
    expect(a.port.received).toMatchObject({ deliveredFrames: 0, deliveredBytes: 0 });
    expect(b.port.busyPs).toBe(2 * STEP_PS);
    const endPs = upPs + 10 * US + 1 + SHORT_PS + LATENCY_PS;
    const waitedPs = Math.floor((pausedPs - upPs + 102_400) / STEP_PS + 1) * STEP_PS - 102_400;
    expect(a.port.flowControl.totals()).toMatchObject({
      receivedFrames: 2,
      receivedBytes: 128,
      receivedPauses: 2,
      receivedTransitions: 1,
      pausedPs: endPs - pausedPs,
      // From the instant at which it would have accepted the next one.
      pauseWaitPs: endPs + 1 - (upPs + waitedPs),
    });
  });

  it('IEEE 802.3-2018, 31B.3: receives no frame that a fault holds back while the sender is stopped, for any number of the sender’s own PAUSE frames', async () => {
    const { bench, a, b, upPs } = await stalled(200 * US, {}, 4);
    const [passes, delayPs] = [5, 500 * US];
    a.port.faults.addRule({ kind: 'reordered', passes, delayPs }, { first: 1, last: 1 }, { fired: () => {} });
    // Its own receiver accepts nothing either: it pauses the far end, again and again.
    a.consumesAtOnce = false;
    b.at(upPs, () => b.sendAll(3, 60));
    await bench.runTo(upPs + 1000 * US);
    expect(a.port.flowControl.totals().sentFrames).toBeGreaterThan(10);
    expect(orderOf(b)).toEqual([1, 2, 3, 0]);
    expect(b.arrivals[3]!.timePs).toBe(upPs + delayPs + SHORT_PS + LATENCY_PS);
    expectBalance(bench);
  });

  it('drops frames without a slot when a PAUSE frame is lost, counts them, and sends another PAUSE', async () => {
    const { bench, b, upPs } = await stalled(60 * US, {}, 900);
    b.port.faults.addRule({ kind: 'lost' }, { only: 'pauses', first: 1, last: 1 }, { fired: () => {} });
    await bench.runTo(upPs + 50 * US);
    const { slotCount, received } = b.port;
    const dropped = received.fifoDrops;
    // 381 frames arrive in half of its quanta, 25.6 µs.
    expect(dropped).toBeGreaterThan(381 - slotCount);
    expect([b.held.length, dropped]).toEqual([slotCount, received.fifoDrops]);
    await bench.runTo(upPs + 500 * US);
    expect([b.arrivals.length, received.fifoDrops]).toEqual([900 - dropped, dropped]);
    expectBalance(bench);
  });

  it('sees the fifo as it was at the end of an instant, for any order in the next one, and misses nothing', async () => {
    for (let seed = 0; seed < 8; seed++) {
      const shuffle = seed === 0 ? undefined : new Random(seed, 'shuffle').unit;
      const bench = benchOf({}, shuffle);
      const { a, b } = bench;
      const pauses = pausesAt(b);
      const upPs = await bench.bringUp();
      b.consumesAtOnce = false;
      const fullPs = upPs + SHORT_PS + 2 * STEP_PS + LATENCY_PS;
      a.at(upPs, () => a.sendAll(3, 60));
      a.at(upPs + 10 * STEP_PS, () => a.sendAll(3, 60));
      // Full for a picosecond, and not because of frames that arrive and leave within it.
      b.at(fullPs + 1, () => {
        for (const slot of b.held.splice(0, 2)) b.port.consume(slot);
      });
      for (const at of [8, 9, 10])
        b.at(fullPs + at * STEP_PS, () => {
          const slot = b.held.shift();
          if (slot !== undefined) b.port.consume(slot);
        });
      await bench.runTo(upPs + 20 * US);
      expect(pauses.map(({ atPs, line }) => [atPs - fullPs - 1, line.slice(41, 45)])).toEqual([
        [SHORT_PS, '03e8'],
        [SHORT_PS + STEP_PS, '0000'],
      ]);
      expect(b.port.heldFrames).toBe(1);
    }
  });

  it('sends a new PAUSE after the link was down', async () => {
    const { bench, a, b, pauses, upPs } = await stalled(100 * US, { pauseQuanta: 65_535 });
    a.at(upPs + 20 * US, () => a.port.setEnabled(false));
    a.at(upPs + 21 * US, () => a.port.setEnabled(true));
    await bench.runTo(upPs + 60 * US);
    const upAgainPs = b.linkStates.at(-1)!.nowPs;
    expect(b.linkStates.map(({ isUp }) => isUp)).toEqual([true, false, true]);
    expect(pauses.map(({ atPs }) => atPs).slice(1)).toEqual([upAgainPs + 1 + SHORT_PS]);
  });

  it('is the same in a new epoch', async () => {
    for (const lostFrom of [2, 1000]) {
      const [whole, cut] = [await stalled(40 * US), await stalled(40 * US)];
      for (const { b } of [whole, cut])
        b.port.faults.addRule({ kind: 'lost' }, { only: 'pauses', first: lostFrom }, { fired: () => {} });
      await whole.bench.runTo(whole.upPs + 100 * US);
      await cut.bench.runTo(cut.upPs + 5 * US);
      cut.bench.beginEpoch(20 * US);
      await cut.bench.runTo(cut.upPs + 80 * US);
      expect(cut.b.arrivals.at(-1)!.timePs).toBe(whole.b.arrivals.at(-1)!.timePs - 20 * US);
      for (const end of ['a', 'b'] as const)
        expect(cut.bench[end].port.flowControl.totals()).toEqual(whole.bench[end].port.flowControl.totals());
    }
  });

  it('sends nothing when the fifo passes both thresholds while the link is busy', async () => {
    const bench = benchOf();
    const { a, b } = bench;
    const pauses = pausesAt(b);
    const upPs = await bench.bringUp();
    b.consumesAtOnce = false;
    b.at(upPs, () => b.sendAll(3, 1514));
    a.at(upPs, () => a.sendAll(3, 60));
    // The three have arrived after 501.6 ns; b's frames have left after 3690 ns.
    b.at(upPs + US, () => letGo(b));
    await bench.runTo(upPs + 100 * US);
    expect(pauses).toEqual([]);
  });

  it('sends its PAUSE before its own frames, and after the frame in progress and accepted ones', async () => {
    const bench = benchOf();
    const { a, b } = bench;
    const pauses = pausesAt(b);
    const upPs = await bench.bringUp();
    b.consumesAtOnce = false;
    b.at(upPs, () => b.sendAll(4, 1514));
    a.at(upPs, () => a.sendAll(3, 60));
    await bench.runTo(upPs + 20 * US);
    // Each of its frames needs 1230.4 ns with its gap; at 501.6 ns the second had not been accepted.
    expect(pauses[0]!.atPs).toBe(upPs + 1_230_400 + SHORT_PS);
    expect(a.arrivals[1]!.timePs).toBe(upPs + 1_230_400 + STEP_PS + 1_220_800 + LATENCY_PS);
  });

  it('sends no PAUSE, and drops frames, until software enables PAUSE frames; ends the pause when software disables them', async () => {
    const { bench, a, b, pauses, upPs } = await stalled(500 * US, {}, 40);
    b.port.flowControl.set(false, true);
    await bench.runTo(upPs + 20 * US);
    expect([pauses.length, b.held.length, b.port.received.fifoDrops]).toEqual([0, 4, 36]);
    b.at(upPs + 30 * US, () => b.port.flowControl.set(true, true));
    b.at(upPs + 40 * US, () => b.port.flowControl.set(false, true));
    await bench.runTo(upPs + 50 * US);
    expect(pauses.map(({ atPs }) => atPs)).toEqual([30, 40].map((us) => upPs + us * US + 1 + SHORT_PS));
    expect(a.port.flowControl.totals().pausedPs).toBe(10 * US);
    expectBalance(bench);
  });
});

describe('a paused station', () => {
  /** An endpoint at a's end sends arbitrary MAC control frames; b sends short frames. */
  async function asked(frames: readonly (readonly [atPs: number, bytes: Uint8Array])[], heeds = true) {
    const bench = new EthernetBench(small, 1, undefined, [undefined, MAC_B]);
    const { a, b } = bench;
    const upPs = await bench.bringUp();
    b.port.flowControl.set(false, heeds);
    for (const [atPs, bytes] of frames) a.at(upPs + atPs, () => a.port.send(bytes, 0, bytes.length));
    b.at(upPs, () => b.sendAll(1000, 60));
    await bench.runTo(upPs + 200 * US);
    expect(orderOf(a)).toEqual(upTo(1000));
    expect(b.arrivals).toEqual([]);
    expectBalance(bench);
    /** Beginning and end of each interval without a sent frame. */
    const gaps = a.arrivals.flatMap(({ timePs }, index) => {
      const before = a.arrivals[index - 1]?.timePs ?? timePs;
      return timePs - before > STEP_PS ? [[before, timePs].map((ps) => ps - upPs)] : [];
    });
    return { gaps, ...b.port.flowControl.totals() };
  }
  const arrivalPs = (atPs: number): number => atPs + SHORT_PS + LATENCY_PS;
  const toOwn = '02000000000b';

  it('IEEE 802.3-2018, 31B.3: obeys the newest PAUSE, shorter or longer', async () => {
    const [from, mid] = [10 * US, 15 * US];
    const shorter = await asked([
      [from, controlBytes(500)],
      [mid, controlBytes(20)],
    ]);
    expect(shorter.gaps.map(([, endPs]) => endPs)).toEqual([
      arrivalPs(mid) + 20 * QUANTUM_PS + SHORT_PS + LATENCY_PS,
    ]);
    const longer = await asked([
      [from, controlBytes(200)],
      [mid, controlBytes(700)],
    ]);
    expect(longer.gaps.map(([, endPs]) => endPs)).toEqual([
      arrivalPs(mid) + 700 * QUANTUM_PS + SHORT_PS + LATENCY_PS,
    ]);
    expect(longer).toMatchObject({ receivedPauses: 2, receivedTransitions: 1 });
    expect(longer.pausedPs).toBe(mid - from + 700 * QUANTUM_PS);
  });

  it('IEEE 802.3-2018, 31B.3: obeys a PAUSE to its own MAC, and finishes the frame in progress', async () => {
    const { gaps } = await asked([[10 * US, controlBytes(100, { to: toOwn })]]);
    const comesPs = arrivalPs(10 * US);
    // A frame was accepted up to 102.4 ns before the previous one had left.
    const lastPs = Math.floor((comesPs + 102_400) / STEP_PS) * STEP_PS + SHORT_PS + LATENCY_PS;
    expect(gaps).toEqual([[lastPs, comesPs + 100 * QUANTUM_PS + SHORT_PS + LATENCY_PS]]);
  });

  it('IEEE 802.3-2018, 31.5: drops other MAC control frames, and counts them by error', async () => {
    const strange = [
      controlBytes(500, { opcode: 0 }),
      controlBytes(500, { opcode: 2 }),
      controlBytes(500, { opcode: 0x0101 }),
      controlBytes(500, { opcode: 0xffff }),
      controlBytes(500, { to: '0180c2000002' }),
      controlBytes(500, { to: '02000000000c' }),
      controlBytes(500, { bytes: 61 }),
      controlBytes(500, { bytes: 1514 }),
    ];
    const { gaps, ...counters } = await asked(strange.map((bytes, index) => [(5 + 3 * index) * US, bytes]));
    expect(gaps).toEqual([]);
    expect(counters).toMatchObject({
      receivedFrames: 8,
      receivedPauses: 0,
      unknownOpcodes: 4,
      malformedFrames: 4,
      pausedPs: 0,
    });
  });

  it('counts a PAUSE that it does not obey', async () => {
    const { gaps, ...counters } = await asked([[5 * US, controlBytes(500)]], false);
    expect(gaps).toEqual([]);
    expect(counters).toMatchObject({
      receivedPauses: 1,
      receivedTransitions: 0,
      pausedPs: 0,
      pauseWaitPs: 0,
    });
  });

  it('resumes when software disables obeying', async () => {
    const bench = new EthernetBench(small, 1, undefined, [undefined, MAC_B]);
    const { a, b } = bench;
    const upPs = await bench.bringUp();
    b.port.flowControl.set(false, true);
    a.at(upPs + US, () => a.port.send(controlBytes(1000), 0, 60));
    b.at(upPs + 5 * US, () => b.sendAll(1, 60));
    b.at(upPs + 9 * US, () => b.port.flowControl.set(false, false));
    await bench.runTo(upPs + 20 * US);
    // A setting counts a picosecond later and ends the pause, which counts another picosecond later.
    expect(a.arrivals[0]!.timePs).toBe(upPs + 9 * US + 2 + SHORT_PS + LATENCY_PS);
    expect(b.port.flowControl.totals().pauseWaitPs).toBe(4 * US + 2);
  });

  it('delays frames that a fault has held back, until it may resume', async () => {
    for (const xonUs of [20, 40]) {
      const bench = new EthernetBench(small, 1, undefined, [undefined, MAC_B]);
      const { a, b } = bench;
      const upPs = await bench.bringUp();
      b.port.flowControl.set(false, true);
      b.port.faults.addRule(
        { kind: 'reordered', passes: 9, delayPs: 5 * US },
        { first: 1 },
        { fired: () => {} },
      );
      b.at(upPs, () => b.send(60));
      a.at(upPs + US, () => a.port.send(controlBytes(500), 0, 60));
      a.at(upPs + xonUs * US, () => a.port.send(controlBytes(0), 0, 60));
      await bench.runTo(upPs + 100 * US);
      const endPs = Math.min(arrivalPs(US) + 500 * QUANTUM_PS, arrivalPs(xonUs * US) + 1);
      expect(a.arrivals.map(({ timePs }) => timePs - upPs)).toEqual([endPs + SHORT_PS + LATENCY_PS]);
    }
  });

  it('treats MAC control frames like any others without a MAC control sublayer', async () => {
    const bench = new EthernetBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.port.send(controlBytes(500), 0, 60));
    bench.b.at(upPs + US, () => bench.b.sendAll(1, 60));
    await bench.runTo(upPs + 10 * US);
    expect(bench.b.arrivals.map(({ bytes }) => bytes)).toEqual([[...controlBytes(500)]]);
    expect(bench.a.arrivals[0]!.timePs).toBe(upPs + US + SHORT_PS + LATENCY_PS);
  });

  it('forgets a pause when the link goes down', async () => {
    const { bench, a, b, upPs } = await stalled(200 * US, { pauseQuanta: 65_535 });
    await bench.runTo(upPs + 20 * US);
    expect([a.port.isPaused, b.arrivals.length]).toEqual([true, 15]);
    a.at(upPs + 20 * US, () => a.port.setEnabled(false));
    a.at(upPs + 21 * US, () => a.port.setEnabled(true));
    b.at(upPs + 20 * US, () => letGo(b));
    await bench.runTo(upPs + 60 * US);
    expect([a.port.isPaused, a.port.isUp]).toEqual([false, true]);
    expect(a.port.inspect()).toMatchObject({ flowControl: { isPaused: false, isStopping: false } });
    expect(a.port.flowControl.totals().receivedTransitions).toBe(1);
  });
});

describe('two ends with flow control', () => {
  it('that have paused each other both resume', async () => {
    const bench = benchOf();
    const upPs = await bench.bringUp();
    const ends = [bench.a, bench.b];
    for (const end of ends) {
      end.consumesAtOnce = false;
      end.at(upPs, () => end.sendAll(200, 60));
      end.at(upPs + 40 * US, () => letGo(end));
    }
    await bench.runTo(upPs + 39 * US);
    expect(ends.map(({ port }) => port.isPaused)).toEqual([true, true]);
    await bench.runTo(upPs + 100 * US);
    for (const end of ends) expect([orderOf(end), end.port.received.fifoDrops]).toEqual([upTo(200), 0]);
    expectBalance(bench);
  });

  /** Frames that a random pair of ends carries while both release frames now and then; and the pair's configuration. */
  async function disturbed(
    seed: number,
    { heeds = true, shuffle = undefined as (() => number) | undefined } = {},
  ) {
    const random = new Random(seed, 'flow control');
    const config = {
      gigabitsPerSecond: [1, 3, 10, 40, 56][random.below(5)]!,
      mtuBytes: [100, 1500, 9000][random.below(3)]!,
      cableMetres: random.below(8),
      receiveFifoFrames: 1 + random.below(20),
      pauseXoffPercent: 1 + random.below(100),
      pauseXonPercent: random.below(100),
      pauseQuanta: 512 + random.below(2000),
      transmitAheadBytes: random.below(300),
    };
    const bench = benchOf(config, shuffle);
    const upPs = await bench.bringUp();
    bench.a.port.flowControl.set(true, heeds);
    const longest = config.mtuBytes + 14;
    const peaks = [0, 0];
    for (const [index, end] of [bench.a, bench.b].entries()) {
      const count = 200 + random.below(100);
      const isShort = random.chance(0.5);
      let sent = 0;
      end.onSpace = () => {
        while (sent < count && end.port.canTransmit())
          end.send(isShort ? 60 : 60 + ((sent * 977) % (longest - 59)), sent++);
      };
      end.at(upPs, () => end.onSpace());
      for (let at = 0; at < 6; at++) {
        const fromPs = upPs + random.below(60 * US);
        end.at(fromPs, () => (end.consumesAtOnce = false));
        end.at(fromPs + random.below(20 * US), () => letGo(end));
      }
      end.at(upPs + 90 * US, () => letGo(end));
      for (let at = 0; at < 90; at++)
        end.at(upPs + at * US, () => (peaks[index] = Math.max(peaks[index]!, end.port.heldFrames)));
    }
    await bench.runTo(upPs + 30_000 * US);
    expectBalance(bench);
    const ends = [bench.a, bench.b].map((end) => ({
      order: end.arrivals.map(({ bytes }) => bytes[0]!),
      lastPs: end.arrivals.at(-1)!.timePs,
      dropped: end.port.received.fifoDrops,
      control: end.port.flowControl.totals(),
    }));
    return { ends, sent: [bench.a, bench.b].map(({ port }) => port.transmitted.frames), peaks };
  }

  it('lose nothing, and keep the order, for any stalls and frames', async () => {
    let asked = 0;
    for (let seed = 1; seed <= 25; seed++) {
      const { ends, sent } = await disturbed(seed);
      for (const [index, { order, dropped, control }] of ends.entries()) {
        expect(order, `seed ${seed}`).toEqual(upTo(sent[1 - index]!));
        expect(dropped).toBe(0);
        asked += control.sentTransitions;
      }
    }
    expect(asked).toBeGreaterThan(50);
  });

  it('lose only the excess frames of the station that does not obey, exactly counted', async () => {
    let dropped = 0;
    for (let seed = 30; seed <= 45; seed++) {
      const { ends, sent } = await disturbed(seed, { heeds: false });
      const [atA, atB] = ends;
      expect([atA!.order, atA!.dropped]).toEqual([upTo(sent[1]!), 0]);
      expect(atB!.order.length + atB!.dropped, `seed ${seed}`).toBe(sent[0]);
      dropped += atB!.dropped;
    }
    expect(dropped).toBeGreaterThan(100);
  });

  it('do the same for any order within an instant', async () => {
    for (const seed of [50, 51, 52]) {
      const { ends } = await disturbed(seed);
      for (let order = 0; order < 2; order++)
        expect((await disturbed(seed, { shuffle: new Random(order, 'shuffle').unit })).ends).toEqual(ends);
    }
  });

  /** Frames of a that b holds when its PAUSE waits for its own longest frames, each accepted this long before it has been formed. */
  async function overshoot(cableMetres: number, formingPs: number, phasePs: number) {
    const bench = benchOf({ cableMetres, receiveFifoFrames: 86 });
    const { a, b } = bench;
    const upPs = await bench.bringUp();
    b.consumesAtOnce = false;
    a.at(upPs, () => a.sendAll(260, 60));
    b.onSpace = () => {
      while (b.port.canTransmit()) b.port.send(new Uint8Array(1514), 0, 1514, b.lp.nowPs + formingPs);
    };
    b.at(upPs + phasePs, () => b.onSpace());
    await bench.runTo(upPs + 20 * US);
    return { held: b.port.heldFrames, dropped: b.port.received.fifoDrops, slotCount: b.port.slotCount };
  }

  it('have room for the frames in flight on a cable of seven metres, and not on one of a kilometre', async () => {
    // XOFF at 64 of 86. Then b has accepted a frame that has not been formed yet: 2 × 1538 bytes until the PAUSE leaves, which
    // needs 84; 2 × (300 ns + 7 × 4.8 ns), 833 bytes, are in flight, and a has accepted 128 bytes ahead: 4122 bytes, 49.1
    // shortest frames of 84; and two.
    const bound = 52;
    let most = 0;
    for (let phasePs = 0; phasePs < 2_600_000; phasePs += 100_000) {
      const { held, dropped, slotCount } = await overshoot(7, 1_230_000, phasePs);
      expect([dropped, slotCount]).toEqual([0, 64 + bound]);
      most = Math.max(most, held - 64);
    }
    expect(most).toBeGreaterThan(bound - 5);
    // A kilometre and back takes 9.6 µs, in which 142 frames arrive.
    expect((await overshoot(1000, 0, 0)).dropped).toBeGreaterThan(142 - bound);
  });
});
