import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../base/assert.ts';
import { Random } from '../sim/random.ts';
import { Opcode, opcodeTable, packetBytesOf } from './opcodes.ts';
import { FLAG_GRH, FLAG_RETRANSMISSION, MANAGEMENT_LANE } from './packet.ts';
import { WireBench } from './wire-bench.ts';
import { NOT_SENT } from './wire-sender.ts';

const { RC_SEND_ONLY } = Opcode;

// Default cable: two ports of 40 ns and 2 m of 4.8 ns.
const LATENCY_PS = 2 * 40_000 + 2 * 4_800;

/** A port whose link is up from `upPs` on: of 2 KiB sent then, 2076 link bytes, 512 are left at `readyPs`, after 1564 × 250 ps. */
async function aboutToSend() {
  const bench = new WireBench({ transmitAheadBytes: 512 });
  const { port, lp } = bench.a;
  expect(port.expectPacket(100, 0)).toBeLessThanOrEqual(100);
  const upPs = await bench.bringUp();
  const spacePs: number[] = [];
  bench.a.onSpace = () => void spacePs.push(lp.nowPs);
  return { bench, port, lp, upPs, readyPs: upPs + 391_000, spacePs };
}

describe('a wire port', () => {
  it('delivers a packet one serialisation and one latency after it was sent', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.send(Opcode.RC_RDMA_WRITE_ONLY, 64, 7));
    await bench.runTo(upPs + 1_000_000);
    // 106 bytes and 2 of framing at 4X QDR: 108 × 250 ps = 27,000 ps.
    expect(bench.b.arrivals).toHaveLength(1);
    expect(bench.b.arrivals[0]).toMatchObject({
      timePs: upPs + 27_000 + LATENCY_PS,
      psn: 7,
      payload: Array.from({ length: 64 }, (_, index) => 7 + index),
    });
  });

  it('sends packets back to back without losing a fraction of a picosecond', async () => {
    const bench = new WireBench({ speed: 'FDR', transmitAheadBytes: 65_536 });
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => {
      for (let psn = 0; psn < 100; psn++) bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, psn);
    });
    await bench.runTo(upPs + 2_000_000);
    // 4X FDR: 14.0625 Gb/s × 64/66 × 4, or 440/3 ps per byte; 32 bytes each: 4693 1/3 ps.
    const expected = Array.from({ length: 100 }, (_, index) => {
      return upPs + Math.floor(((index + 1) * 32 * 440) / 3) + LATENCY_PS;
    });
    expect(bench.b.arrivals.map(({ timePs }) => timePs)).toEqual(expected);
  });

  it('IBTA vol 2, 5.4: takes time by speed and width', async () => {
    const cases = [
      ['SDR', '4', 1000],
      ['DDR', '4', 500],
      ['QDR', '4', 250],
      ['FDR10', '4', 200],
      ['EDR', '4', 80],
      ['QDR', '1', 1000],
      ['QDR', '8', 125],
    ] as const;
    for (const [speed, lanes, psPerByte] of cases) {
      const bench = new WireBench({ speed, lanes });
      const upPs = await bench.bringUp();
      bench.a.at(upPs, () => bench.a.send(Opcode.RC_SEND_ONLY, 2048));
      await bench.runTo(upPs + 10_000_000);
      // LRH 8 + BTH 12 + 2048 + ICRC 4 + VCRC 2 + framing 2.
      expect(bench.b.arrivals[0]!.timePs).toBe(upPs + 2076 * psPerByte + LATENCY_PS);
    }
  });

  it('counts packets of every opcode equally on both sides', async () => {
    const bench = new WireBench({ transmitAheadBytes: 65_536 });
    let nowPs = await bench.bringUp();
    for (const { opcode, hasPayload } of opcodeTable) {
      bench.a.at(nowPs, () => bench.a.send(opcode, hasPayload ? 33 : 0, opcode, hasPayload ? FLAG_GRH : 0));
      nowPs += 100_000;
      await bench.runTo(nowPs);
    }
    await bench.runTo(nowPs + 1_000_000);
    const { transmitted } = bench.a.port;
    const { delivered } = bench.b.port.received;
    for (const { opcode, hasPayload } of opcodeTable) {
      expect(delivered.rows[opcode]).toEqual({
        packets: 1,
        bytes: packetBytesOf(opcode, hasPayload ? 33 : 0, hasPayload),
        payloadBytes: hasPayload ? 33 : 0,
      });
    }
    expect(delivered.packetTotal).toBe(transmitted.packetCount);
    expect(delivered.byteTotal).toBe(transmitted.packetBytes);
    // Atomics carry their operands in addition to the payload.
    const atomic = bench.b.arrivals.find(({ opcode }) => opcode === Opcode.RC_COMPARE_SWAP);
    expect(atomic?.payload).toHaveLength(16);
  });

  it('counts retransmitted packets separately', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => {
      bench.a.send(Opcode.RC_SEND_ONLY, 8, 1);
      bench.a.send(Opcode.RC_SEND_ONLY, 8, 1, FLAG_RETRANSMISSION);
    });
    await bench.runTo(upPs + 1_000_000);
    expect(bench.a.port.transmitted.first.packetTotal).toBe(1);
    expect(bench.a.port.transmitted.retransmitted.packetTotal).toBe(1);
    expect(bench.a.port.transmitted.packetCount).toBe(2);
    expect(bench.b.arrivals).toHaveLength(2);
  });

  it('accepts another packet when little waits for the link, and calls the sender then', async () => {
    const bench = new WireBench({ transmitAheadBytes: 512 });
    const upPs = await bench.bringUp();
    const spacePs: number[] = [];
    bench.a.onSpace = () => void spacePs.push(bench.a.lp.nowPs);
    bench.a.at(upPs, () => {
      expect(bench.a.port.canTransmit(Opcode.RC_SEND_ONLY, 2048)).toBe(true);
      bench.a.send(Opcode.RC_SEND_ONLY, 2048);
      expect(bench.a.port.canTransmit(Opcode.RC_SEND_ONLY, 2048)).toBe(false);
    });
    await bench.runTo(upPs + 1_000_000);
    // 512 of the 2076 link bytes are left after 1564 × 250 ps.
    expect(spacePs).toEqual([upPs + 391_000]);
    bench.a.at(upPs + 1_000_000, () => bench.a.send(Opcode.RC_SEND_ONLY, 8));
    await bench.runTo(upPs + 2_000_000);
    expect(bench.a.port.transmitted.serializerWaitPs).toBe(1_000_000);
  });

  it('predicts when it accepts another packet, counts the wait, and need not call the sender', async () => {
    const { bench, port, lp, upPs, readyPs, spacePs } = await aboutToSend();
    bench.a.at(upPs, () => {
      bench.a.send(RC_SEND_ONLY, 2048);
      expect(port.expectPacket(readyPs, 0)).toBe(readyPs);
      expect(port.expectPacket(upPs + 100_000, 0)).toBe(readyPs);
    });
    bench.a.at(readyPs, () => expect(port.sendPacket(RC_SEND_ONLY, 2048, 0, lp.nowPs)).not.toBe(NOT_SENT));
    await bench.runTo(upPs + 2_000_000);
    expect(spacePs).toEqual([]);
    expect(port.transmitted.serializerWaitPs).toBe(291_000);
  });

  it('accepts a packet by its forming time in advance, so that the link is never idle before it', async () => {
    const { bench, port, lp, upPs, readyPs } = await aboutToSend();
    // 2076 link bytes are 519 ns: a packet that takes 300 ns to form is accepted 219 ns after the previous one.
    const formingPs = 300_000;
    const takenPs = upPs + 519_000 - formingPs;
    expect(takenPs).toBeLessThan(readyPs);
    bench.a.at(upPs, () => {
      bench.a.send(RC_SEND_ONLY, 2048);
      expect(port.expectPacket(upPs, formingPs)).toBe(takenPs);
    });
    bench.a.at(takenPs - 1, () =>
      expect(port.sendPacket(RC_SEND_ONLY, 2048, 0, lp.nowPs + formingPs)).toBe(NOT_SENT),
    );
    bench.a.at(takenPs, () =>
      expect(port.sendPacket(RC_SEND_ONLY, 2048, 0, lp.nowPs + formingPs)).not.toBe(NOT_SENT),
    );
    await bench.runTo(upPs + 2_000_000);
    expect(bench.b.arrivals.map(({ timePs }) => timePs - upPs - LATENCY_PS)).toEqual([519_000, 1_038_000]);
  });

  it('counts no wait for a packet that is ready only when the link is free', async () => {
    const { bench, port, lp, upPs, readyPs } = await aboutToSend();
    bench.a.at(upPs, () => {
      bench.a.send(RC_SEND_ONLY, 2048);
      expect(port.expectPacket(readyPs, 0)).toBe(readyPs);
    });
    bench.a.at(readyPs + 1000, () => port.sendPacket(RC_SEND_ONLY, 2048, 0, lp.nowPs));
    await bench.runTo(upPs + 2_000_000);
    expect(port.transmitted.serializerWaitPs).toBe(0);
  });

  it('calls the sender of a waiting packet, even without an attempt, when the link goes down', async () => {
    const { bench, port, lp, upPs, spacePs } = await aboutToSend();
    bench.a.at(upPs, () => {
      bench.a.send(RC_SEND_ONLY, 2048);
      port.expectPacket(upPs + 1000, 0);
    });
    bench.a.at(upPs + 2000, () => port.setEnabled(false));
    await bench.runTo(upPs + 2_000_000);
    expect(spacePs).toHaveLength(1);
    expect(spacePs[0]).toBeLessThanOrEqual(upPs + 2002);
    bench.a.at(upPs + 2_000_000, () => expect(port.expectPacket(lp.nowPs, 0)).toBe(0));
    await bench.runTo(upPs + 3_000_000);
  });

  it('sends flow control that was due before the link went down, even if nothing happened in between', async () => {
    const bench = new WireBench({ receiveBufferBytes: 8448, creditReturnBytes: 64 });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    bench.a.at(upPs, () => bench.a.send(RC_SEND_ONLY, 2048));
    await bench.runTo(upPs + 2_000_000);
    const { port } = bench.b;
    const before = port.transmitted.flowControlCount;
    bench.b.at(upPs + 3_000_000, () => bench.b.consumeAll());
    bench.b.at(upPs + 3_000_500, () => port.setEnabled(false));
    await bench.runTo(upPs + 4_000_000);
    expect(port.transmitted.flowControlCount).toBe(before + 1);
  });

  it('sends or refuses a packet in one call, as asking first does', async () => {
    const bench = new WireBench({ receiveBufferBytes: 8448, transmitAheadBytes: 65_536 });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    const { port, lp } = bench.a;
    bench.a.at(upPs, () => {
      // Credits for four packets of 33 blocks.
      for (let sent = 0; sent < 4; sent++)
        expect(port.sendPacket(RC_SEND_ONLY, 2048, 0, lp.nowPs)).not.toBe(NOT_SENT);
      expect(port.sendPacket(RC_SEND_ONLY, 2048, 0, lp.nowPs)).toBe(NOT_SENT);
      expect(port.canTransmit(RC_SEND_ONLY, 2048)).toBe(false);
      expect(port.sendPacket(RC_SEND_ONLY, 256, 0, lp.nowPs, MANAGEMENT_LANE)).not.toBe(NOT_SENT);
    });
    await bench.runTo(upPs + 10_000_000);
    expect([port.transmitted.packetCount, bench.b.arrivals.length]).toEqual([5, 5]);
  });

  it('IBTA 7.9: stops at the end of its credits and resumes when they return', async () => {
    const bench = new WireBench({
      receiveBufferBytes: 8448,
      creditReturnBytes: 64,
      transmitAheadBytes: 65_536,
    });
    let nowPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    let sent = 0;
    const spacePs: number[] = [];
    bench.a.onSpace = () => void spacePs.push(bench.a.lp.nowPs);
    bench.a.at(nowPs, () => {
      while (bench.a.port.canTransmit(Opcode.RC_SEND_ONLY, 2048))
        bench.a.send(Opcode.RC_SEND_ONLY, 2048, sent++);
    });
    nowPs += 5_000_000;
    await bench.runTo(nowPs);
    // The buffer has 132 blocks of 64 bytes; a packet of 2074 uses 33.
    expect(sent).toBe(4);
    expect(spacePs).toEqual([]);
    bench.b.at(nowPs, () => bench.b.consumeAll());
    await bench.runTo(nowPs + 1_000_000);
    // One picosecond later a flow control packet of 6 + 2 bytes leaves.
    expect(spacePs).toEqual([nowPs + 1 + 8 * 250 + LATENCY_PS]);
    expect(bench.b.port.receiveBufferHighWaterBytes).toBe(8448);
    expect(bench.b.port.receiveBufferedBytes).toBe(0);
  });

  it('IBTA 7.9: never overruns the buffer, for any sizes and times of consumption', async () => {
    const step = fc.record({
      sends: fc.array(fc.integer({ min: 0, max: 4096 }), { maxLength: 12 }),
      consumes: fc.nat({ max: 6 }),
      gapPs: fc.integer({ min: 1, max: 3_000_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.boolean(), async (steps, bothWays) => {
        const bench = new WireBench({
          receiveBufferBytes: 8448,
          creditReturnBytes: 1024,
          transmitAheadBytes: 2048,
        });
        let nowPs = await bench.bringUp();
        let wanted = 0;
        const { a, b } = bench;
        b.consumesAtOnce = false;
        for (const { sends, consumes, gapPs } of steps) {
          for (const end of bothWays ? [a, b] : [a]) {
            end.at(nowPs, () => {
              for (const bytes of sends) {
                if (!end.port.canTransmit(Opcode.RC_SEND_ONLY, bytes)) return;
                end.send(Opcode.RC_SEND_ONLY, bytes);
                if (end === a) wanted++;
              }
            });
          }
          b.at(nowPs, () => {
            for (const offset of b.held.splice(0, consumes)) b.port.consume(offset);
          });
          nowPs += gapPs;
          await bench.runTo(nowPs);
        }
        await bench.runTo(nowPs + 50_000_000);
        expect(b.arrivals).toHaveLength(wanted);
        expect(b.port.received.overruns).toBe(0);
        expect(b.port.received.creditResynchronizations).toBe(0);
        // Even with unreturned credits, the credit always suffices for the longest packet.
        b.consumeAll();
        await bench.runTo(nowPs + 100_000_000);
        expect(a.port.canTransmit(Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 4096, FLAG_GRH)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('gives the same arrivals for any order within one instant', async () => {
    // Sends, consumes and arrivals fall on a grid of 250 ps, or a picosecond after it, so that many share an instant.
    const run = async (shuffle?: () => number) => {
      const bench = new WireBench({ receiveBufferBytes: 8448, creditReturnBytes: 128 }, shuffle);
      const upPs = await bench.bringUp();
      const ends = [bench.a, bench.b];
      for (const end of ends) end.consumesAtOnce = false;
      for (let step = 0; step < 2000; step++) {
        const atPs = upPs + step * 6750;
        for (const end of ends) {
          end.at(atPs + (step & 1), () => {
            if (end.port.canTransmit(Opcode.RC_SEND_ONLY, step % 1500))
              end.send(Opcode.RC_SEND_ONLY, step % 1500);
          });
          // Held packets of this same instant may or may not be present: only earlier ones are consumed.
          end.at(atPs, () => {
            const cameBefore = end.arrivals
              .slice(-end.held.length)
              .filter(({ timePs }) => timePs < atPs).length;
            const count = Math.min(cameBefore, end.held.length);
            if (step % 3 === 0) for (const offset of end.held.splice(0, count)) end.port.consume(offset);
          });
        }
      }
      await bench.runTo(upPs + 2000 * 6750 + 10_000_000);
      return ends.map((end) => end.arrivals.map(({ timePs, payload }) => [timePs, payload.length]));
    };
    const expected = await run();
    expect(expected[0]!.length).toBeGreaterThan(100);
    for (const seed of [1, 2, 3]) {
      const random = new Random(seed);
      expect(await run(() => random.uint32() / 2 ** 32)).toEqual(expected);
    }
  });

  it('asks a sender again that was refused at the instant when credits arrived', async () => {
    const bench = new WireBench({
      receiveBufferBytes: 8448,
      creditReturnBytes: 64,
      transmitAheadBytes: 65_536,
    });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    bench.a.at(upPs, () => {
      while (bench.a.port.canTransmit(Opcode.RC_SEND_ONLY, 2048)) bench.a.send(Opcode.RC_SEND_ONLY, 2048);
    });
    await bench.runTo(upPs + 5_000_000);
    bench.a.send(Opcode.RC_ACKNOWLEDGE, 0); // breaks the credits, so that no sender waits any more
    const consumedPs = upPs + 6_000_000;
    const creditsPs = consumedPs + 1 + 8 * 250 + LATENCY_PS;
    bench.b.at(consumedPs, () => bench.b.consumeAll());
    const spacePs: number[] = [];
    bench.a.onSpace = () => void spacePs.push(bench.a.lp.nowPs);
    // Records of an instant precede its events: the credits have arrived, but count only from the next picosecond on.
    bench.a.at(creditsPs, () => expect(bench.a.port.canTransmit(Opcode.RC_SEND_ONLY, 2048)).toBe(false));
    await bench.runTo(creditsPs + 1_000_000);
    expect(spacePs).toEqual([creditsPs + 1]);
  });

  it('detects a sender that violates its credits', async () => {
    const bench = new WireBench({ receiveBufferBytes: 8448, transmitAheadBytes: 65_536 });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    bench.a.at(upPs, () => {
      for (let psn = 0; psn < 5; psn++) bench.a.send(Opcode.RC_SEND_ONLY, 2048, psn);
    });
    await bench.runTo(upPs + 10_000_000);
    expect(bench.b.port.received.overruns).toBe(1);
    expect(bench.b.arrivals).toHaveLength(4);
  });

  it('IBTA 7.6: carries management packets on lane 15 without credit, and drops those without room', async () => {
    const bench = new WireBench({ managementBufferPackets: 2, receiveBufferBytes: 8448 });
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    bench.a.at(upPs, () => {
      for (let psn = 0; psn < 3; psn++) bench.a.send(Opcode.UD_SEND_ONLY, 256, psn, 0, MANAGEMENT_LANE);
    });
    await bench.runTo(upPs + 1_000_000);
    expect(bench.b.arrivals.map(({ psn }) => psn)).toEqual([0, 1]);
    expect(bench.b.port.received.managementDrops).toBe(1);
    expect(bench.b.port.receiveBufferedBytes).toBe(0);
    bench.b.consumeAll();
    bench.a.at(upPs + 1_000_000, () => bench.a.send(Opcode.UD_SEND_ONLY, 256, 9, 0, MANAGEMENT_LANE));
    await bench.runTo(upPs + 2_000_000);
    expect(bench.b.arrivals.at(-1)?.psn).toBe(9);
  });

  it('loses the packet that a fault names, returns its credit, and delivers the rest', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.port.faults.corruptPackets(2);
    bench.a.at(upPs, () => {
      for (let psn = 0; psn < 3; psn++) bench.a.send(Opcode.RC_SEND_ONLY, 64, psn);
    });
    await bench.runTo(upPs + 1_000_000);
    expect(bench.b.arrivals.map(({ psn }) => psn)).toEqual([0, 2]);
    expect(bench.a.port.transmitted.corruptedCount).toBe(1);
    expect(bench.b.port.received.corrupted.packetTotal).toBe(1);
    expect(bench.b.port.receiveBufferedBytes).toBe(0);
  });

  it('delays the packet that a fault names and those after it', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.port.faults.delayPackets(5_000, 1);
    bench.a.at(upPs, () => {
      bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, 1);
      bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, 2);
    });
    await bench.runTo(upPs + 1_000_000);
    // 5 ns of silence, then 32 bytes each.
    expect(bench.b.arrivals.map(({ timePs }) => timePs - upPs - LATENCY_PS)).toEqual([13_000, 21_000]);
    expect(bench.a.port.transmitted.delayedCount).toBe(1);
  });

  it('IBTA 7.2: discards packets while the link is down', async () => {
    const bench = new WireBench();
    bench.a.port.setEnabled(true);
    bench.a.at(1_000_000, () => {
      expect(bench.a.port.canTransmit(Opcode.RC_SEND_ONLY, 64)).toBe(true);
      bench.a.send(Opcode.RC_SEND_ONLY, 64);
    });
    await bench.runTo(5_000_000);
    expect(bench.a.port.transmitted.discardedCount).toBe(1);
    expect(bench.a.port.transmitted.discarded.rows[Opcode.RC_SEND_ONLY]).toMatchObject({
      packets: 1,
      payloadBytes: 64,
    });
    expect(bench.a.port.transmitted.packetCount).toBe(0);
    expect(bench.b.arrivals).toHaveLength(0);
    expect(bench.b.port.received.linkDownDrops).toBe(0);
  });

  it('IBTA 7.2: discards packets of data lanes while the port is not Active, and sends those of subnet management', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    const { port } = bench.a;
    bench.a.at(upPs, () => {
      port.isOpen = false;
      expect(port.sendPacket(Opcode.RC_SEND_ONLY, 64, 0, upPs)).not.toBe(NOT_SENT);
      port.sendPacket(Opcode.UD_SEND_ONLY, 256, 0, upPs, MANAGEMENT_LANE);
      port.isOpen = true;
      port.sendPacket(Opcode.RC_ACKNOWLEDGE, 0, 0, upPs);
    });
    await bench.runTo(upPs + 5_000_000);
    expect(port.transmitted).toMatchObject({ discardedCount: 1, packetCount: 2 });
    expect(bench.b.arrivals.map(({ opcode }) => opcode)).toEqual([
      Opcode.UD_SEND_ONLY,
      Opcode.RC_ACKNOWLEDGE,
    ]);
  });

  it('rejects credits too coarse for the longest packet', () => {
    expect(() => new WireBench({ receiveBufferBytes: 8448, creditReturnBytes: 8448 })).toThrow(
      ConfigurationError,
    );
  });
});
