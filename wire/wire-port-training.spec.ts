import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Opcode } from './opcodes.ts';
import { WireBench } from './wire-bench.ts';

// Default cable: two ports of 40 ns and 2 m of 4.8 ns.
const LATENCY_PS = 2 * 40_000 + 2 * 4_800;

describe('link training', () => {
  it('IBTA 14.2.5.6: brings both ends up one training time after both are enabled', async () => {
    const bench = new WireBench({ trainingUs: 10 });
    bench.a.port.setEnabled(true);
    await bench.runTo(1_000_000);
    expect([bench.a.port.isLinkUp, bench.a.port.physicalState]).toEqual([false, 2]);
    bench.b.at(1_000_000, () => bench.b.port.setEnabled(true));
    await bench.runTo(100_000_000);
    // TS1 to a, TS2 back: b is confirmed after two latencies, a one later.
    expect(bench.b.linkStates).toEqual([{ isUp: true, nowPs: 1_000_000 + 2 * LATENCY_PS + 10_000_000 }]);
    expect(bench.a.linkStates).toEqual([{ isUp: true, nowPs: 1_000_000 + 3 * LATENCY_PS + 10_000_000 }]);
    expect([bench.a.port.physicalState, bench.b.port.physicalState]).toEqual([5, 5]);
  });

  it('counts a change of the link from the next picosecond on', async () => {
    const bench = new WireBench({ trainingUs: 10 });
    const upPs = 2 * LATENCY_PS + 10_000_000; // both enabled at 0: TS1 crosses TS1, TS2 crosses TS2
    const downPs = upPs + 5_000_000;
    // Records of an instant, and their consequences, precede its events made later.
    await bench.runTo(0);
    bench.a.port.setEnabled(true);
    bench.b.port.setEnabled(true);
    await bench.runTo(upPs - 1);
    bench.a.at(upPs, () => bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, 1));
    bench.a.at(upPs + 1, () => bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, 2));
    bench.b.at(downPs - LATENCY_PS, () => bench.b.port.setEnabled(false));
    bench.a.at(downPs, () => bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, 3));
    bench.a.at(downPs + 1, () => bench.a.send(Opcode.RC_ACKNOWLEDGE, 0, 4));
    await bench.runTo(downPs + 1_000_000);
    expect(bench.a.linkStates.map(({ nowPs }) => nowPs)).toEqual([upPs, downPs]);
    expect(bench.a.port.transmitted.discardedCount).toBe(2);
    expect(bench.a.port.transmitted.packetCount).toBe(2);
    expect(bench.b.arrivals.map(({ psn }) => psn)).toEqual([2]);
    expect(bench.b.port.received.linkDownDrops).toBe(1);
  });

  it('IBTA 14.2.5.6: takes the peer down too, and comes up again', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.port.setEnabled(false));
    await bench.runTo(upPs + 1_000_000);
    expect([bench.a.port.physicalState, bench.b.port.physicalState]).toEqual([3, 2]);
    expect(bench.b.linkStates.at(-1)).toEqual({ isUp: false, nowPs: upPs + LATENCY_PS });
    bench.a.at(upPs + 1_000_000, () => bench.a.port.setEnabled(true));
    await bench.runTo(upPs + 50_000_000);
    expect([bench.a.port.isUp, bench.b.port.isUp]).toEqual([true, true]);
    bench.a.at(upPs + 50_000_000, () => bench.a.send(Opcode.RC_SEND_ONLY, 4096, 5));
    await bench.runTo(upPs + 60_000_000);
    expect(bench.b.arrivals.map(({ psn }) => psn)).toEqual([5]);
  });

  it('ends up if both ends are enabled at the end, after any history, and loses no credit', async () => {
    const action = fc.record({
      isA: fc.boolean(),
      isEnabled: fc.boolean(),
      gapPs: fc.integer({ min: 0, max: 400_000 }),
      sends: fc.nat({ max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (actions) => {
        const bench = new WireBench({ trainingUs: 0, receiveBufferBytes: 8448 });
        let nowPs = 1;
        for (const { isA, isEnabled, gapPs, sends } of actions) {
          const end = isA ? bench.a : bench.b;
          end.at(nowPs, () => end.port.setEnabled(isEnabled));
          for (const sender of [bench.a, bench.b]) {
            sender.at(nowPs, () => {
              for (let count = 0; count < sends; count++) {
                if (sender.port.canTransmit(Opcode.RC_SEND_ONLY, 4096))
                  sender.send(Opcode.RC_SEND_ONLY, 4096);
              }
            });
          }
          nowPs += gapPs;
          await bench.runTo(nowPs);
        }
        for (const end of [bench.a, bench.b]) end.at(nowPs, () => end.port.setEnabled(true));
        await bench.runTo(nowPs + 20_000_000);
        for (const end of [bench.a, bench.b]) {
          expect(end.port.isUp).toBe(true);
          expect(end.port.receiveBufferedBytes).toBe(0);
          expect(end.port.received.overruns).toBe(0);
          expect(end.port.canTransmit(Opcode.RC_SEND_ONLY, 4096)).toBe(true);
        }
        const arrived = bench.b.arrivals.length;
        bench.a.at(nowPs + 20_000_000, () => bench.a.send(Opcode.RC_SEND_ONLY, 4096));
        await bench.runTo(nowPs + 40_000_000);
        expect(bench.b.arrivals).toHaveLength(arrived + 1);
      }),
      { numRuns: 150 },
    );
  });
});
