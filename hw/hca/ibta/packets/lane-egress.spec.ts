/** A UD SEND of 2048 bytes takes 33 blocks of 64 bytes: a lane of 8448 bytes holds four. */
import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../../../base/index.ts';
import {
  lanesDefaults,
  laneTablesOf,
  MANAGEMENT_LANE,
  Opcode,
  PACKET_PAYLOAD_OFFSET,
  WORD_PSN,
} from '../../../../wire/index.ts';
import { WireBench } from '../../../../wire/wire-bench.ts';
import { hcaParameters } from '../../parameters.ts';
import { LaneEgress } from './lane-egress.ts';

const { UD_SEND_ONLY } = Opcode;
const usPs = 1_000_000;

async function laneBench(weights: Partial<ReturnType<typeof lanesDefaults>['low']> = {}) {
  const wire = {
    dataVls: '2',
    receiveBufferBytes: 16_896,
    creditReturnBytes: 64,
    transmitAheadBytes: 0,
  } as const;
  const bench = new WireBench(wire);
  const { a, b } = bench;
  const defaults = lanesDefaults();
  const egress = new LaneEgress({
    lp: a.lp,
    wire: a.port,
    config: { ...defaultsOf(hcaParameters), lanePackets: 3 },
    arbitration: laneTablesOf({ ...defaults, low: { ...defaults.low, ...weights } }, 2),
  });
  let openings = 0;
  egress.connect({ gate: { packetsLeft: () => openings++ } });
  a.onSpace = () => egress.spaceFreed();
  const send = (psn: number, lane: number, payloadBytes = 2048): void => {
    const offset = egress.sendPacket(UD_SEND_ONLY, payloadBytes, 0, a.lp.nowPs, lane);
    egress.txWords[(offset >> 2) + WORD_PSN] = psn;
    egress.txBytes[offset + PACKET_PAYLOAD_OFFSET] = psn;
    egress.packetFilled(offset);
  };
  const upPs = await bench.bringUp();
  return { bench, a, b, egress, send, upPs, openings: () => openings };
}

describe('the queues in front of a port', () => {
  it('pass a packet at once if none waits, with the times of the port alone', async () => {
    const { bench, a, b, egress, send, upPs } = await laneBench();
    a.at(upPs, () => send(1, 1));
    await bench.runTo(upPs + 5 * usPs);
    // 2048 + 34 bytes and 2 of framing at 250 ps each, and the default cable.
    expect(b.arrivals.map(({ timePs }) => timePs - upPs)).toEqual([2084 * 250 + 89_600]);
    expect([egress.heldCount, b.arrivals[0]!.payload[0]]).toEqual([0, 1]);
  });

  it('have a lane without credits wait alone, and close it when it has its packets', async () => {
    const { bench, a, b, egress, send, upPs, openings } = await laneBench();
    b.consumesAtOnce = false;
    a.at(upPs, () => {
      for (let psn = 0; psn < 7; psn++) send(psn, 0);
      // The state before this instant counts.
      expect(egress.isOpen(0)).toBe(true);
    });
    a.at(upPs + 10 * usPs, () => {
      expect([egress.isOpen(0), egress.isOpen(1)]).toEqual([false, true]);
      send(50, 1);
    });
    await bench.runTo(upPs + 20 * usPs);
    expect(b.arrivals.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 50]);
    expect(egress.heldCount).toBe(3);
    const before = openings();
    b.at(upPs + 20 * usPs, () => {
      b.consumesAtOnce = true;
      b.consumeAll();
    });
    await bench.runTo(upPs + 40 * usPs);
    expect(b.arrivals.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 50, 4, 5, 6]);
    expect([egress.heldCount, egress.isOpen(0), openings() > before]).toEqual([0, true, true]);
  });

  it('IBTA 7.6.9: share the link by weight, with lane 15 first', async () => {
    // 33 blocks each: 99 and 33 are three packets and one.
    const { bench, a, b, send, upPs } = await laneBench({ vl0: 99, vl1: 33 });
    a.at(upPs, () => {
      for (let psn = 0; psn < 7; psn++) send(psn, 0);
      for (let psn = 50; psn < 53; psn++) send(psn, 1);
      send(90, MANAGEMENT_LANE, 256);
    });
    await bench.runTo(upPs + 40 * usPs);
    // Packet 0 passed at once, the first of three.
    expect(b.arrivals.map(({ psn }) => psn)).toEqual([0, 90, 1, 2, 50, 3, 4, 5, 51, 6, 52]);
  });

  it('IBTA 7.6.6: discard a packet whose service level has no lane', async () => {
    const { bench, a, b, send, upPs } = await laneBench();
    a.at(upPs, () => {
      send(1, 16);
      send(2, 1);
    });
    await bench.runTo(upPs + 5 * usPs);
    expect([b.arrivals.map(({ psn }) => psn), a.port.discardedCount]).toEqual([[2], 1]);
  });

  it('discard what waits when the link goes down', async () => {
    const { bench, a, b, egress, send, upPs } = await laneBench();
    b.consumesAtOnce = false;
    a.at(upPs, () => {
      for (let psn = 0; psn < 6; psn++) send(psn, 0);
    });
    b.at(upPs + 10 * usPs, () => b.port.setEnabled(false));
    await bench.runTo(upPs + 30 * usPs);
    expect([b.arrivals.length, a.port.discardedCount, egress.heldCount]).toEqual([4, 2, 0]);
  });
});
