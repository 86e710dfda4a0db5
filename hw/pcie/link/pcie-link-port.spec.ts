import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConfigurationError, InvariantError } from '../../../base/assert.ts';
import { Random } from '../../../sim/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  COMPLETION_FLOW,
  FLAG_RELAXED_ORDERING,
  FLOAT_TIME,
  flowOf,
  MEMORY_READ,
  MEMORY_WRITE,
  NON_POSTED,
  POSTED,
  tagOf,
  trafficClassOf,
  WORD_DESCRIPTOR,
} from '../tlp/tlp.ts';
import { creditsOf } from './flow-control.ts';
import {
  answer,
  type LinkBenchOptions,
  linkBench,
  linkPair,
  memoryRead,
  memoryWrite,
  onReceive,
  onSendSpace,
  runPair,
} from './link-bench.ts';
import { mayPass } from './link-ordering.ts';

const zeros = new Uint8Array(4096);

describe('a link port', () => {
  it('delivers a 64 byte write after its serialisation and the latency', () => {
    const bench = linkBench();
    const source = Uint8Array.from({ length: 64 }, (_, at) => at);
    memoryWrite(bench.device, { address: 0x1000, trafficClass: 5, source, lengthBytes: 64 });
    bench.run(1_000_000);
    // 12 B header + 64 B + 8 B framing = 84 B; Gen3 x8: 8e6 × 130 × 370 / (64e3 × 128 × 369) = 127.2971 ps per byte.
    expect(bench.atHost).toEqual([{ kind: MEMORY_WRITE, timePs: 125_000 + 10_693, bytes: [...source] }]);
  });

  it('delivers every length from every alignment byte for byte', () => {
    const bench = linkBench({ link: { maxPayloadBytes: 4096 } });
    const source = Uint8Array.from({ length: 4200 }, (_, at) => (at * 13) & 0xff);
    let endPs = 0;
    for (let length = 1; length <= 4096; length += length < 140 ? 1 : 97) {
      bench.atHost.length = 0;
      const from = length % 9;
      memoryWrite(bench.device, {
        address: 0x1_0000_0000 + (length % 4),
        trafficClass: 5,
        source,
        sourceOffset: from,
        lengthBytes: length,
      });
      endPs += 2_000_000;
      bench.run(endPs);
      expect(bench.atHost[0]!.bytes).toEqual([...source.subarray(from, from + length)]);
    }
  });

  it('lets a TLP with credits leave without an event, and one after a full transmit buffer wait', () => {
    const bench = linkBench({ endpoint: { transmitBufferTlps: 2 } });
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    expect(bench.deviceLp.queue.pendingCount).toBe(0);
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    expect(bench.deviceLp.queue.pendingCount).toBe(1);
    expect(bench.device.transmitter.waitingCount).toBe(1);
    bench.run(1_000_000);
    // End to end at multiples of 96 bytes (84 aligned to 16), regardless of waits: 84, 180, 276 bytes.
    expect(bench.atHost.map(({ timePs }) => timePs - 125_000)).toEqual([10_693, 22_914, 35_135]);
    // It waited for the first TLP's slot in the transmit buffer: 10,693 ps.
    expect(bench.device.transmitter.stallPs[POSTED * 4]).toBe(10_693);
  });

  it('returns credits within the turn, at their instant, without an event', () => {
    const bench = linkBench({ rootPort: { postedHeaders: 1 } });
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    bench.run(1_000_000);
    expect(bench.hostLp.queue.firedCount).toBe(0);
    expect(bench.host.transmitter.lanes.updateFcCount).toBe(1);
    // The next write may leave, and leaves at once.
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    expect(bench.device.transmitter.waitingCount).toBe(0);
  });

  it('calls its senders when a full fifo has room again, and rejects more than its capacity', () => {
    const bench = linkBench({ endpoint: { transmitBufferTlps: 1, postedFifoTlps: 2 } });
    let calls = 0;
    onSendSpace(bench.device, POSTED, () => calls++);
    for (let tlp = 0; tlp < 3; tlp++) {
      expect(bench.device.canSend(POSTED)).toBe(true);
      memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    }
    expect(bench.device.canSend(POSTED)).toBe(false);
    expect(bench.device.canSend(NON_POSTED)).toBe(true);
    expect(() =>
      memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 }),
    ).toThrow(InvariantError);
    bench.run(1_000_000);
    expect(calls).toBe(1);
    expect(bench.atHost).toHaveLength(3);
  });

  it('rejects a payload above MPS and credits that could never admit the largest TLP', () => {
    const bench = linkBench();
    expect(() =>
      memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 257 }),
    ).toThrow(/MPS/);
    // 256 bytes from an odd address touch 65 dwords: 17 units of 16 bytes.
    expect(() => linkBench({ rootPort: { postedData: 16 } })).toThrow(ConfigurationError);
    expect(() => linkBench({ rootPort: { postedData: 17 } })).not.toThrow();
    expect(() => linkBench({ link: { lanes: 3 } })).toThrow(/lanes is 3/);
  });

  it('PCIe 2.4.1: lets a write pass a read that lacks credits, and holds a read after a write that lacks them', () => {
    const bench = linkPair({ rootPort: { nonPostedHeaders: 1, postedHeaders: 1 } });
    const seen: number[] = [];
    const held: number[] = [];
    onReceive(bench.host, (offset, kind) => {
      seen.push(kind);
      held.push(offset);
    });
    const { device } = bench;
    memoryRead(device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: 1 });
    memoryRead(device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: 2 });
    memoryWrite(device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    runPair(bench.deviceLp, bench.hostLp, 125_000, 1_000_000);
    expect(seen).toEqual([MEMORY_READ, MEMORY_WRITE]);
    // A second write lacks credits; a completion after it must wait, unless it has relaxed ordering.
    memoryWrite(device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    answer(device, { tag: 3, trafficClass: 12 });
    runPair(bench.deviceLp, bench.hostLp, 125_000, 2_000_000);
    expect(seen).toHaveLength(2);
    device.transmitter.closeAccount(2_000_000);
    // Non-posted: header credits from 0 on; posted: header credits, completion: ordering, from 1,000,000 on.
    expect([...device.transmitter.stallPs]).toEqual([
      0, 1_000_000, 0, 0, 0, 2_000_000, 0, 0, 0, 0, 0, 1_000_000,
    ]);
    for (const offset of held) bench.host.consume(offset);
    held.length = 0;
    runPair(bench.deviceLp, bench.hostLp, 125_000, 3_000_000);
    expect(seen.slice(2).sort()).toEqual([MEMORY_READ, MEMORY_WRITE, COMPLETION].sort());
    expect(seen.indexOf(COMPLETION)).toBeGreaterThan(seen.lastIndexOf(MEMORY_WRITE));
  });

  it('PCIe 2.4.1: lets a completion with relaxed ordering pass a write that lacks credits', () => {
    const bench = linkPair({ rootPort: { postedHeaders: 1 } });
    const seen: number[] = [];
    onReceive(bench.host, (_, kind) => seen.push(kind));
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    answer(bench.device, { tag: 3, trafficClass: 12, flags: FLAG_RELAXED_ORDERING });
    runPair(bench.deviceLp, bench.hostLp, 125_000, 1_000_000);
    expect(seen).toEqual([MEMORY_WRITE, COMPLETION]);
  });

  it('returns credits when a quarter is free, and acknowledges every second TLP or in time', () => {
    const bench = linkBench({ rootPort: { postedHeaders: 8 } });
    for (let tlp = 0; tlp < 5; tlp++)
      memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 4 });
    bench.run(2_000_000);
    bench.host.closeAccounts(2_000_000);
    // Every second header of eight is a quarter; the fifth Ack is due by its age.
    expect(bench.host.transmitter.lanes.updateFcCount).toBe(2);
    expect(bench.host.transmitter.lanes.ackCount).toBe(3);
    expect(bench.host.transmitter.linkBytes).toBe(5 * 8);
  });

  it('PCIe 2.6.1: counts a transmitter that overruns its credits', () => {
    const bench = linkPair({ rootPort: { postedHeaders: 2 } });
    let seen = 0;
    onReceive(bench.host, () => seen++);
    bench.device.transmitter.posted.credits.limit = creditsOf(4, 512);
    for (let tlp = 0; tlp < 4; tlp++)
      memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 4 });
    runPair(bench.deviceLp, bench.hostLp, 125_000, 1_000_000);
    expect(seen).toBe(4);
    expect(bench.host.receiver.overflowCount).toBe(2);
  });

  it('carries sideband wires after everything placed on the lanes, outside all statistics', () => {
    const bench = linkBench();
    memoryWrite(bench.host, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    bench.host.sendSideband(9, 1);
    bench.run(1_000_000);
    expect(bench.atDevice.map(({ kind }) => kind)).toEqual([MEMORY_WRITE, 9]);
    expect(bench.device.receiver.received.tlps.reduce((sum, count) => sum + count)).toBe(1);
  });

  it('approaches the closed form of Gen3 x8 at MPS 256 and never beats it', () => {
    const bench = linkBench();
    const domain = bench.deviceLp.addClockDomain(427);
    let sent = 0;
    const count = 2_000;
    const stage = domain.addStage((cycle) => {
      if (!bench.device.canSend(POSTED)) return;
      memoryWrite(bench.device, {
        address: 0x1_0000_0000 + (sent % 1024) * 256,
        trafficClass: 5,
        source: zeros,
        lengthBytes: 256,
      });
      if (++sent < count) domain.wake(stage, cycle + 1);
    });
    onSendSpace(bench.device, POSTED, () => {
      if (sent < count) domain.wakeAfter(stage, bench.deviceLp.nowPs);
    });
    domain.wake(stage, 1);
    bench.run(100_000_000);
    expect(bench.atHost).toHaveLength(count);
    // 62.845 Gb/s × 256 / 288: 16 B header + 256 + 8 B framing = 280, aligned to 16.
    const bound = (64 * (128 / 130) * (369 / 370) * 256) / 288;
    const durationPs = bench.atHost[count - 1]!.timePs - bench.atHost[0]!.timePs;
    // Instants are rounded up to picoseconds.
    expect(durationPs + 1).toBeGreaterThanOrEqual((8_000 * 256 * (count - 1)) / bound);
    const gigabits = (8_000 * 256 * (count - 1)) / durationPs;
    expect(gigabits).toBeGreaterThan(bound * 0.999);
    // measurements.csv I-025 … I-038 and J-001 … J-003 at their best: 54.4 to 56.0.
    expect(gigabits).toBeGreaterThan(54.4);
    expect(gigabits).toBeLessThan(56);
  });
});

describe('random traffic over tiny fifos and credits', () => {
  const tlpArbitrary = fc.record({
    kind: fc.constantFrom(MEMORY_WRITE, MEMORY_WRITE, MEMORY_READ, COMPLETION_DATA, COMPLETION),
    length: fc.integer({ min: 1, max: 128 }),
    isRelaxed: fc.boolean(),
    gapCycles: fc.integer({ min: 0, max: 60 }),
  });
  const endArbitrary = fc.record({
    postedHeaders: fc.integer({ min: 1, max: 3 }),
    postedData: fc.integer({ min: 9, max: 20 }),
    nonPostedHeaders: fc.integer({ min: 1, max: 2 }),
    nonPostedData: fc.constant(1),
    completionHeaders: fc.integer({ min: 0, max: 2 }),
    completionData: fc.integer({ min: 9, max: 20 }),
    postedFifoTlps: fc.integer({ min: 1, max: 3 }),
    nonPostedFifoTlps: fc.integer({ min: 1, max: 3 }),
    completionFifoTlps: fc.integer({ min: 1, max: 3 }),
    transmitBufferTlps: fc.integer({ min: 1, max: 3 }),
  });
  type Script = readonly {
    readonly kind: number;
    readonly length: number;
    readonly isRelaxed: boolean;
    readonly gapCycles: number;
  }[];

  /** Sends a script from the device's clock and makes the host hold each TLP for some of its cycles. */
  function play(
    script: Script,
    ends: Pick<LinkBenchOptions, 'endpoint' | 'rootPort'>,
    percent: number,
    shuffle?: () => number,
  ): { arrivals: string[]; bench: ReturnType<typeof linkPair> } {
    const link = { maxPayloadBytes: 128, updateFcPercent: percent };
    const bench = linkPair({ ...ends, link, ...(shuffle === undefined ? {} : { shuffle }) });
    const { device, host, deviceLp, hostLp } = bench;
    const domain = deviceLp.addClockDomain(400);
    let next = 0;
    const stage = domain.addStage((cycle) => {
      if (next === script.length) return;
      const { kind, length, isRelaxed, gapCycles } = script[next]!;
      if (!device.canSend(flowOf(kind))) return;
      const flags = isRelaxed ? FLAG_RELAXED_ORDERING : 0;
      if (kind === MEMORY_WRITE)
        memoryWrite(device, {
          address: next % 4,
          trafficClass: next % 16,
          source: zeros,
          lengthBytes: length,
          flags,
        });
      else if (kind === MEMORY_READ)
        memoryRead(device, { address: 0, trafficClass: next % 16, lengthBytes: length, tag: next, flags });
      else if (kind === COMPLETION) answer(device, { tag: next, trafficClass: next % 16, status: 1, flags });
      else
        answer(device, {
          tag: next,
          trafficClass: next % 16,
          data: zeros.subarray(0, length),
          address: next % 4,
          flags,
        });
      next++;
      domain.wake(stage, cycle + 1 + gapCycles);
    });
    for (const flow of [POSTED, NON_POSTED, COMPLETION_FLOW]) {
      onSendSpace(device, flow, () => domain.wakeAfter(stage, deviceLp.nowPs));
    }
    domain.wake(stage, 1);
    const arrivals: string[] = [];
    const held: number[] = [];
    const hostDomain = hostLp.addClockDomain(400);
    const drain = hostDomain.addStage((cycle) => {
      host.consume(held.shift()!);
      if (held.length > 0) hostDomain.wake(drain, cycle + 3);
    });
    onReceive(host, (offset, kind) => {
      const { words, floats } = host.reader;
      const descriptor = words[(offset >> 2) + WORD_DESCRIPTOR]!;
      arrivals.push(
        `${floats[(offset >> 3) + FLOAT_TIME]} ${kind} ${trafficClassOf(descriptor)} ${tagOf(descriptor)}`,
      );
      held.push(offset);
      hostDomain.wakeAfter(drain, hostLp.nowPs);
    });
    runPair(deviceLp, hostLp, 125_000, 200_000_000);
    return { arrivals, bench };
  }

  it('PCIe 2.4.1: completes, in a permitted order, without an overflow, and with statistics that balance', () => {
    fc.assert(
      fc.property(
        fc.array(tlpArbitrary, { minLength: 1, maxLength: 16 }),
        endArbitrary,
        endArbitrary,
        fc.constantFrom(0, 25, 100),
        (script, endpoint, rootPort, percent) => {
          const { arrivals, bench } = play(script, { endpoint, rootPort }, percent);
          expect(arrivals).toHaveLength(script.length);
          expect(bench.host.receiver.overflowCount).toBe(0);
          expect(bench.host.receiver.heldCount).toBe(0);
          // Traffic class n is TLP n of the script.
          const place = arrivals.map((line) => Number(line.split(' ')[2]));
          for (let later = 0; later < place.length; later++) {
            for (let earlier = 0; earlier < later; earlier++) {
              const passing = script[place[earlier]!]!;
              const passed = script[place[later]!]!;
              if (place[earlier]! < place[later]!) continue;
              const flags = passing.isRelaxed ? FLAG_RELAXED_ORDERING : 0;
              expect(mayPass(passing.kind, flags, passed.kind)).toBe(true);
              expect(flowOf(passing.kind)).not.toBe(flowOf(passed.kind));
            }
          }
          const { transmitter } = bench.device;
          const { received } = bench.host.receiver;
          const sum = (counts: Float64Array): number => counts.reduce((total, count) => total + count, 0);
          expect(sum(received.tlps)).toBe(sum(transmitter.tlpCount));
          expect(sum(received.linkBytes)).toBe(sum(transmitter.tlpLinkBytes));
          expect(sum(received.payloadBytes)).toBe(sum(transmitter.payloadBytes));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('gives the same trace for any order within one instant', () => {
    const endpoint = { transmitBufferTlps: 2, postedFifoTlps: 2 };
    fc.assert(
      fc.property(
        fc.array(tlpArbitrary, { minLength: 8, maxLength: 16 }),
        endArbitrary,
        fc.integer({ min: 1, max: 1_000_000 }),
        (script, rootPort, seed) => {
          const { arrivals } = play(script, { endpoint, rootPort }, 25);
          const shuffle = new Random(seed).unit;
          expect(play(script, { endpoint, rootPort }, 25, shuffle).arrivals).toEqual(arrivals);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('inputs of a port at one instant', () => {
  /**
   * A read that lacks credits waits; the credits of the earlier one return. `side` hands over a write at `pushPs`.
   * `isEventFirst` selects whether the event or the record is processed first if both are at that instant.
   */
  function play(side: 'device' | 'host', pushPs: number, isEventFirst: boolean) {
    const bench = linkPair({
      rootPort: { nonPostedHeaders: 1, transmitBufferTlps: 1 },
      endpoint: { transmitBufferTlps: 1 },
      link: { ackEveryTlps: 1 },
      shuffle: () => (isEventFirst ? 0.999 : 0),
    });
    const trace: string[] = [];
    for (const name of ['device', 'host'] as const) {
      const port = bench[name];
      onReceive(port, (offset, kind) => {
        trace.push(`${name} ${kind} ${port.reader.floats[(offset >> 3) + FLOAT_TIME]}`);
        port.consume(offset);
      });
    }
    memoryRead(bench.device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: 1 });
    memoryRead(bench.device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: 2 });
    memoryWrite(bench.host, { address: 0, source: zeros, lengthBytes: 64 });
    const lp = side === 'device' ? bench.deviceLp : bench.hostLp;
    const push = lp.queue.addHandler(() =>
      memoryWrite(bench[side], { address: 0, trafficClass: 5, source: zeros, lengthBytes: 256 }),
    );
    lp.queue.schedule(pushPs, push);
    runPair(bench.deviceLp, bench.hostLp, 125_000, 2_000_000);
    return trace;
  }

  it.each(['device', 'host'] as const)('commute with a TLP handed over by the %s', (side) => {
    // Ends of TLPs, arrivals of the first read (20 B: 127,546) and of the write (135,693), and the UpdateFC's.
    const instants = [10_693, 12_221, 127_546, 127_547, 135_693, 253_566, 254_584, 255_102, 256_113];
    for (const instant of instants) {
      for (let pushPs = instant - 3; pushPs <= instant + 3; pushPs++) {
        expect(play(side, pushPs, true)).toEqual(play(side, pushPs, false));
      }
    }
  });

  it('make credits count from the picosecond after their arrival', () => {
    // The Ack and then the UpdateFC leave at 127,547: 16 B = 2,036.8 ps; + 125,000.
    const arrivalPs = 127_547 + 2_037 + 125_000;
    const order = (pushPs: number): number[] =>
      play('device', pushPs, false)
        .filter((line) => line.startsWith('host'))
        .map((line) => Number(line.split(' ')[1]));
    expect(order(arrivalPs)).toEqual([MEMORY_READ, MEMORY_WRITE, MEMORY_READ]);
    expect(order(arrivalPs + 1)).toEqual([MEMORY_READ, MEMORY_READ, MEMORY_WRITE]);
  });
});

describe('the statistics at the end of a run', () => {
  it('include the TLPs that were sent and have not arrived', () => {
    const bench = linkBench();
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: zeros, lengthBytes: 64 });
    memoryWrite(bench.device, { address: 0, trafficClass: 6, source: zeros, lengthBytes: 64 });
    // The first arrives at 135,693, the second at 147,914.
    bench.run(140_000);
    const undelivered = bench.host.drainUndelivered();
    expect(bench.host.receiver.received.tlps[5]).toBe(1);
    expect([undelivered.tlps[5], undelivered.tlps[6], undelivered.linkBytes[6]]).toEqual([0, 1, 84]);
  });
});
