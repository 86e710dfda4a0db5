/**
 * Expected bytes are those of IEEE 802.3-2018, 31D.3, written by hand; at 10 Gb/s a quantum of 512 bit times is 51.2 ns, a byte 0.8 ns, and
 * the cable 309.6 ns.
 */
import { describe, expect, it } from 'vitest';
import { toHex } from '../base/index.ts';
import { priorityPauseFrame, priorityQuantaOf } from './control-frames.ts';
import { EthernetBench } from './ethernet-bench.ts';

const macs = [0x0200_0000_0001, 0x0200_0000_0002] as const;
const framePs = (bytes: number): number => (8 + bytes + 4) * 800;
const cablePs = 309_600;
const none = undefined;

async function benchWithPfc(mask: number, config = {}): Promise<{ bench: EthernetBench; upPs: number }> {
  const bench = new EthernetBench(config, 1, undefined, macs);
  for (const { port } of [bench.a, bench.b]) {
    port.flowControl.set(false, false);
    port.flowControl.priorities.set(mask, mask);
  }
  return { bench, upPs: await bench.bringUp() };
}

describe('a PFC frame', () => {
  it('IEEE 802.3 31D.3: names priorities by bits, and has quanta for each, priority 0 first', () => {
    const quanta = [0x1234, none, none, 0xffff, none, none, none, 0];
    const frame = priorityPauseFrame(0x0200_0000_0001, quanta);
    const vector = '0089';
    const times = ['1234', '0000', '0000', 'ffff', '0000', '0000', '0000', '0000'].join('');
    expect(toHex(frame)).toBe(
      `0180c2000001020000000001880801010${vector.slice(1)}${times}${'00'.repeat(26)}`,
    );
    expect(priorityQuantaOf(frame, 0, 60)).toEqual(quanta);
  });

  it('is no frame of PAUSE, of another length or for another station', () => {
    const frame = priorityPauseFrame(macs[0], [1, 1, 1, 1, 1, 1, 1, 1]);
    const pause = Uint8Array.from(frame);
    pause[14] = 0;
    const elsewhere = Uint8Array.from(frame);
    elsewhere[5] = 2;
    expect([
      priorityQuantaOf(pause, 0, 60),
      priorityQuantaOf(frame, 0, 64),
      priorityQuantaOf(elsewhere, 0, 60),
    ]).toEqual([undefined, undefined, undefined]);
  });
});

describe('a port with PFC', () => {
  it('holds frames of a paused priority, and no others, until its quanta are over', async () => {
    const { bench, upPs } = await benchWithPfc(0x08, { pauseQuanta: 1000 });
    const startPs = upPs + 1_000_000;
    const { a, b } = bench;
    b.at(startPs, () => b.port.flowControl.priorities.stop(3, true));
    const seen: boolean[] = [];
    // It arrives at startPs + 1 + 57,600 + 309,600, and counts from the next picosecond on.
    const pausedPs = startPs + 1 + framePs(60) + cablePs;
    const ask = (atPs: number): void =>
      a.at(atPs, () =>
        seen.push(a.port.canTransmit(atPs, 3), a.port.canTransmit(atPs, 0), a.port.canTransmit(atPs)),
      );
    ask(pausedPs);
    ask(pausedPs + 1);
    b.at(pausedPs + 2, () => b.port.flowControl.priorities.stop(3, false));
    const resumedPs = pausedPs + 2 + 1 + framePs(60) + cablePs;
    ask(resumedPs);
    ask(resumedPs + 1);
    await bench.runTo(startPs + 40_000_000);
    expect(seen).toEqual([true, true, true, false, true, false, false, true, false, true, true, true]);
    expect(a.port.flowControl.priorities.totals()).toMatchObject({
      receivedPriorityPauses: 2,
      priorityPausedPs: resumedPs - pausedPs,
    });
    expect(b.port.flowControl.totals().sentFrames).toBe(2);
  });

  it('repeats a pause after half of its time, and lets it run out if the request is lost', async () => {
    const { bench, upPs } = await benchWithPfc(0xff, { pauseQuanta: 1000 });
    const startPs = upPs + 1_000_000;
    const { a, b } = bench;
    const arrivals: string[] = [];
    a.port.tap = {
      packetPassed: (direction, atPs, bytes, at) => {
        if (direction === 'inbound')
          arrivals.push(`${atPs - startPs} ${toHex(bytes.subarray(at + 14, at + 22))}`);
      },
    };
    b.at(startPs, () => b.port.flowControl.priorities.stop(1, true));
    b.at(startPs + 60_000_000, () => b.port.flowControl.priorities.stop(1, false));
    await bench.runTo(startPs + 100_000_000);
    const arrivesPs = framePs(60) + cablePs;
    // 500 quanta take 25.6 us.
    expect(arrivals).toEqual([
      `${1 + arrivesPs} 01010002000003e8`,
      `${1 + 25_600_000 + arrivesPs} 01010002000003e8`,
      `${1 + 51_200_000 + arrivesPs} 01010002000003e8`,
      `${60_000_001 + arrivesPs} 0101000200000000`,
    ]);
  });

  it('asks for pauses of all its priorities when its fifo is full, and loses nothing', async () => {
    const { bench, upPs } = await benchWithPfc(0x09, { receiveFifoFrames: 8 });
    const { a, b } = bench;
    b.consumesAtOnce = false;
    a.at(upPs + 1_000_000, () => a.sendAll(60, 1000));
    const drain = (atPs: number): void =>
      b.at(atPs, () => {
        for (const slot of b.held.splice(0)) b.port.consume(slot);
      });
    for (let round = 1; round <= 40; round++) drain(upPs + round * 20_000_000);
    await bench.runTo(upPs + 900_000_000);
    expect(b.arrivals).toHaveLength(60);
    expect(b.port.received.fifoDrops).toBe(0);
    const { sentPriorityPauses } = b.port.flowControl.priorities.totals();
    expect(sentPriorityPauses).toBeGreaterThan(4);
    expect(b.port.flowControl.totals()).toMatchObject({ sentFrames: sentPriorityPauses, stoppingPs: 0 });
    expect(a.port.flowControl.priorities.totals().priorityWaitPs).toBeGreaterThan(100_000_000);
  });

  it('treats the frame as an unknown one while it has no PFC', async () => {
    const { bench, upPs } = await benchWithPfc(0);
    const frame = priorityPauseFrame(macs[0], [9, 9, 9, 9, 9, 9, 9, 9]);
    bench.a.at(upPs + 1_000_000, () => bench.a.port.send(frame, 0, 60));
    await bench.runTo(upPs + 10_000_000);
    expect(bench.b.port.flowControl.totals()).toMatchObject({ unknownOpcodes: 1, receivedFrames: 1 });
    expect(bench.b.port.isPaused).toBe(false);
  });
});
