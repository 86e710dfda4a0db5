/** Packets lost, copied and reordered on the cable: exact arrivals, and balanced statistics and credits. */
import { describe, expect, it } from 'vitest';
import { Random } from '../sim/random.ts';
import { Opcode } from './opcodes.ts';
import { FLAG_RETRANSMISSION, MANAGEMENT_LANE } from './packet.ts';
import type { PacketCounters } from './packet-counters.ts';
import { type Arrival, WireBench, type WireEnd } from './wire-bench.ts';

const { RC_ACKNOWLEDGE, RC_SEND_ONLY, UD_SEND_ONLY } = Opcode;

/** Two ports of 40 ns and 2 m of 4.8 ns. */
const latencyPs = 89_600;
/** An ACK of 30 bytes (LRH 8, BTH 12, AETH 4, ICRC 4, VCRC 2) with 2 of framing at 4X QDR, 250 ps a byte. */
const ackPs = 32 * 250;
const psnsOf = ({ arrivals }: WireEnd): number[] => arrivals.map(({ psn }) => psn);
const unobserved = { fired: (): void => {} };

/** Sends this many ACKs at one instant, each with its number from 0 as PSN, and runs for a while. */
async function sendAcks(bench: WireBench, count: number, runPs = 20_000_000): Promise<number> {
  const upPs = await bench.bringUp();
  bench.a.at(upPs, () => {
    for (let psn = 0; psn < count; psn++) bench.a.send(RC_ACKNOWLEDGE, 0, psn);
  });
  await bench.runTo(upPs + runPs);
  return upPs;
}

const arrivedAfter = ({ arrivals }: WireEnd, fromPs: number): number[] =>
  arrivals.map(({ timePs }: Arrival) => timePs - fromPs - latencyPs);

describe('a packet that is reordered', () => {
  it('is swapped with the next one, and takes the time of both', async () => {
    const bench = new WireBench();
    let fired = 0;
    bench.a.port.faults.reorderPackets({ passes: 1, delayPs: 10_000_000 }, { fired: () => fired++ }, 2);
    const upPs = await sendAcks(bench, 4);
    expect(psnsOf(bench.b)).toEqual([0, 2, 1, 3]);
    expect(arrivedAfter(bench.b, upPs)).toEqual([ackPs, 2 * ackPs, 3 * ackPs, 4 * ackPs]);
    expect(fired).toBe(1);
  });

  it('is overtaken by as many as the fault gives', async () => {
    const bench = new WireBench();
    bench.a.port.faults.reorderPackets({ passes: 3, delayPs: 10_000_000 }, unobserved, 1);
    await sendAcks(bench, 5);
    expect(psnsOf(bench.b)).toEqual([1, 2, 3, 0, 4]);
  });

  it('leaves after its time if no packet overtakes it', async () => {
    const bench = new WireBench();
    bench.a.port.faults.reorderPackets({ passes: 2, delayPs: 700_000 }, unobserved, 2);
    const upPs = await sendAcks(bench, 3);
    expect(psnsOf(bench.b)).toEqual([0, 2, 1]);
    expect(arrivedAfter(bench.b, upPs)).toEqual([ackPs, 2 * ackPs, 700_000 + ackPs]);
  });

  it('is swapped in pairs if every packet is to be', async () => {
    const bench = new WireBench();
    bench.a.port.faults.reorderPackets(
      { passes: 1, delayPs: 700_000 },
      unobserved,
      1,
      Number.POSITIVE_INFINITY,
    );
    await sendAcks(bench, 6);
    expect(psnsOf(bench.b)).toEqual([1, 0, 3, 2, 5, 4]);
  });

  it('is overtaken only by packets of its own lane', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.port.faults.reorderPackets({ passes: 1, delayPs: 10_000_000 }, unobserved, 1);
    bench.a.at(upPs, () => {
      bench.a.send(RC_ACKNOWLEDGE, 0, 1);
      bench.a.send(UD_SEND_ONLY, 256, 2, 0, MANAGEMENT_LANE);
      bench.a.send(RC_ACKNOWLEDGE, 0, 3);
    });
    await bench.runTo(upPs + 1_000_000);
    expect(psnsOf(bench.b)).toEqual([2, 3, 1]);
  });

  it('carries the bytes with which it was sent, and is lost with the link', async () => {
    const bench = new WireBench();
    const upPs = await bench.bringUp();
    bench.a.port.faults.reorderPackets({ passes: 1, delayPs: 5_000_000 }, unobserved, 1, 3);
    bench.a.at(upPs, () => bench.a.send(RC_SEND_ONLY, 100, 7));
    bench.a.at(upPs + 1_000_000, () => bench.a.send(RC_SEND_ONLY, 100, 9));
    bench.a.at(upPs + 2_000_000, () => bench.a.send(RC_SEND_ONLY, 100, 11));
    bench.a.at(upPs + 3_000_000, () => bench.a.port.setEnabled(false));
    await bench.runTo(upPs + 20_000_000);
    expect(psnsOf(bench.b)).toEqual([9, 7]);
    expect(bench.b.arrivals[1]!.payload).toEqual(Array.from({ length: 100 }, (_, index) => 7 + index));
    const { packetCount, heldBack, letGo } = bench.a.port.transmitted;
    expect([packetCount, heldBack.packetTotal, letGo.packetTotal]).toEqual([3, 2, 1]);
  });
});

describe('a packet that is duplicated', () => {
  it('arrives twice, with the gap of the fault between', async () => {
    const bench = new WireBench();
    let fired = 0;
    bench.a.port.faults.copyPackets({ passes: 1, delayPs: 300_000 }, { fired: () => fired++ }, 2);
    const upPs = await sendAcks(bench, 3);
    expect(psnsOf(bench.b)).toEqual([0, 1, 2, 1]);
    expect(arrivedAfter(bench.b, upPs)).toEqual([ackPs, 2 * ackPs, 3 * ackPs, 300_000 + ackPs]);
    expect(fired).toBe(1);
  });

  it('is a copy of the sent packet, even if others have passed through the ring since', async () => {
    const bench = new WireBench();
    bench.a.port.faults.copyPackets({ passes: 1, delayPs: 900_000_000 }, unobserved, 1);
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.send(RC_SEND_ONLY, 1000, 3, FLAG_RETRANSMISSION));
    // A thousand packets of 4 KiB overwrite the ring many times.
    for (let index = 1; index <= 1000; index++)
      bench.a.at(upPs + index * 1_200_000, () => bench.a.send(RC_SEND_ONLY, 4096, 100 + index));
    await bench.runTo(upPs + 1_300_000_000);
    const [first, again] = bench.b.arrivals.filter(({ psn }) => psn === 3);
    expect(again!.payload).toEqual(first!.payload);
    expect(again!.timePs - first!.timePs).toBeGreaterThanOrEqual(900_000_000);
    expect(again!.timePs - first!.timePs).toBeLessThan(902_000_000);
  });

  it('can itself be lost, so that only its copy arrives', async () => {
    const bench = new WireBench();
    bench.a.port.faults.copyPackets({ passes: 1, delayPs: 300_000 }, unobserved, 1);
    bench.a.port.faults.losePackets(1);
    await sendAcks(bench, 2);
    expect(psnsOf(bench.b)).toEqual([1, 0]);
  });
});

describe('a packet that is lost', () => {
  it('takes its time on the link and never arrives', async () => {
    const bench = new WireBench();
    bench.a.port.faults.losePackets(2);
    const upPs = await sendAcks(bench, 3);
    expect(psnsOf(bench.b)).toEqual([0, 2]);
    expect(arrivedAfter(bench.b, upPs)).toEqual([ackPs, 3 * ackPs]);
  });

  it('IBTA 7.9.4: keeps its credits until the next flow control packet, at most 65,536 symbol times later', async () => {
    // 8448 bytes are 132 blocks: two packets of 4096 bytes use 2 × 65, which leaves no credit for a third.
    const bench = new WireBench({ receiveBufferBytes: 8448, creditReturnBytes: 64 });
    bench.a.port.faults.losePackets(1, 2);
    const upPs = await bench.bringUp();
    const tries: boolean[] = [];
    bench.a.at(upPs, () => {
      for (const psn of [0, 1]) bench.a.send(RC_SEND_ONLY, 4096, psn);
    });
    // A symbol of a QDR lane takes 1 ns: 65,536 ns after the second, and a flow control packet each way.
    for (const nowPs of [60_000_000, 70_000_000])
      bench.a.at(upPs + nowPs, () => tries.push(bench.a.port.canTransmit(RC_SEND_ONLY, 4096)));
    await bench.runTo(upPs + 80_000_000);
    expect(tries).toEqual([false, true]);
    expect(bench.b.port.received.creditResynchronizations).toBe(1);
  });
});

describe('statistics and credits', () => {
  /** Sends as fast as the port allows, in both directions, under every fault at once. @returns the packets that the far end received */
  async function storm(seed: number, shuffle?: () => number): Promise<WireBench> {
    const random = new Random(seed, 'storm');
    const bench = new WireBench({ receiveBufferBytes: 8448, creditReturnBytes: 640 }, shuffle);
    const upPs = await bench.bringUp();
    for (const end of [bench.a, bench.b]) {
      const { faults } = end.port;
      faults.losePackets(5, 7);
      faults.losePackets(40 + random.below(20));
      faults.reorderPackets(
        { passes: 1 + random.below(5), delayPs: 1 + random.below(3_000_000) },
        unobserved,
        3,
        90,
      );
      faults.copyPackets({ passes: 1, delayPs: 1 + random.below(9_000_000) }, unobserved, 10, 80);
      faults.corruptPackets(30, 33);
      let psn = 0;
      const sizes = Array.from({ length: 150 }, () => random.below(4097));
      const sendSome = (): void => {
        while (psn < sizes.length && end.port.canTransmit(RC_SEND_ONLY, sizes[psn]!))
          end.send(RC_SEND_ONLY, sizes[psn]!, psn++);
      };
      end.onSpace = sendSome;
      for (let nowPs = upPs; nowPs < upPs + 400_000_000; nowPs += 400_000) end.at(nowPs, sendSome);
    }
    await bench.runTo(upPs + 900_000_000);
    return bench;
  }

  const totals = (...statistics: PacketCounters[]): number[] => [
    statistics.reduce((sum, { packetTotal }) => sum + packetTotal, 0),
    statistics.reduce((sum, { byteTotal }) => sum + byteTotal, 0),
  ];

  it.each([1, 2, 3, 4, 5, 6])('balance when everything happens at once, seed %i', async (seed) => {
    const bench = await storm(seed);
    for (const [from, to] of [
      [bench.a, bench.b],
      [bench.b, bench.a],
    ] as const) {
      const { transmitted: sent } = from.port;
      const { received } = to.port;
      const [counted, taken] = [totals(sent.first, sent.retransmitted), totals(sent.lost, sent.heldBack)];
      const added = totals(sent.copied, sent.letGo);
      const arrived = totals(received.delivered, received.corrupted);
      expect(counted[0]).toBe(150);
      expect(arrived).toEqual([0, 1].map((index) => counted[index]! - taken[index]! + added[index]!));
      expect(sent.copied.packetTotal).toBe(71);
      expect(received.overruns).toBe(0);
      // All credits have returned: as much may be sent as at first.
      expect(to.port.receiveBufferedBytes).toBe(0);
      expect(from.port.canTransmit(RC_SEND_ONLY, 4096)).toBe(true);
      expect(from.port.linkBytes * 250).toBe(from.port.busyPs);
    }
  });

  it('are the same for any order of one instant', async () => {
    const seen = ({ a, b }: WireBench): unknown => [a.arrivals, b.arrivals];
    const plain = seen(await storm(9));
    for (const seed of [1, 2, 3]) {
      const random = new Random(seed, 'order');
      expect(seen(await storm(9, () => random.unit()))).toEqual(plain);
    }
  });
});
