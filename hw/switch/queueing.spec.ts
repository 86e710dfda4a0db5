/**
 * Waiting on the way through one output of a switch, against a closed form. Packets of equal length arrive at random instants at several
 * senders and leave by one output. Where stages in a row take equal, constant times, a packet waits in all of them together as long as it
 * would in the last alone (Friedman, 1965: Reduction methods for tandem queuing systems), so that the mean is that of M/D/1: load /
 * (2 (1 - load)) packets (Pollaczek and Khinchine). With one output no first packet blocks another.
 */
import { describe, expect, it } from 'vitest';
import { Random } from '../../sim/index.ts';
import { SwitchBench } from './testing/switch-bench.ts';

const startPs = 50_000_000;
const payloadBytes = 256;
/** Payload, headers of a UD SEND, CRCs and framing at 250 ps a byte. */
const packetPs = (payloadBytes + 36) * 250;
/** Packet, two cables, the switch: the time of a packet that waits for nothing. */
const alonePs = packetPs + 2 * 89_600 + 120_000;
const inputCount = 8;
const packetsOfInput = 3000;

/** Mean wait of all packets, at their senders and in the switch, in packets. */
async function meanWaitOf(load: number): Promise<number> {
  const bench = new SwitchBench(inputCount + 1);
  const arrivedPs: number[] = [];
  for (let from = 0; from < inputCount; from++) {
    const random = new Random(11, `input ${from}`);
    let atPs = startPs;
    for (let index = 0; index < packetsOfInput; index++) {
      atPs += Math.ceil((-Math.log(1 - random.unit()) * packetPs * inputCount) / load);
      arrivedPs.push(atPs);
      bench.ends[from]!.sendAt(atPs, inputCount + 1, payloadBytes, from * packetsOfInput + index);
    }
  }
  await bench.runTo(startPs + Math.ceil((packetsOfInput * inputCount * packetPs) / load) * 2);
  const { arrivals } = bench.ends[inputCount]!;
  expect(arrivals).toHaveLength(inputCount * packetsOfInput);
  const waits = arrivals.map(({ timePs, psn }) => (timePs - arrivedPs[psn]! - alonePs) / packetPs);
  return waits.reduce((sum, wait) => sum + wait, 0) / waits.length;
}

describe('the mean wait at an output', () => {
  it.each([0.3, 0.5, 0.7])('is that of the closed form at a load of %d', async (load) => {
    const expected = load / (2 * (1 - load));
    const measured = await meanWaitOf(load);
    expect(measured / expected).toBeGreaterThan(0.95);
    expect(measured / expected).toBeLessThan(1.05);
  });
});
