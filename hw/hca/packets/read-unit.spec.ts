import { expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { connectedPair, Region } from '../testing/data-path-verbs.ts';
import { scene } from '../testing/scenario.ts';
import { ReadUnit } from './read-unit.ts';

it('takes one after the other, and no longer than its user without it', () => {
  const unit = new ReadUnit();
  expect(unit.occupy(100, 11, 20)).toBe(20);
  // Free from 120 on: waits 10 cycles, is occupied for 17.
  expect(unit.occupy(110, 6, 17)).toBe(27);
  expect(unit.occupy(200, 11, 0)).toBe(11);
  unit.rebase(100);
  expect(unit.occupy(100, 6, 17)).toBe(17);
});

/** Nanoseconds in which `readers` of both nodes READ 20 times on each of 16 QPs. */
async function elapsedNs(hca: object, readers: 'a' | 'both', bytes = 8): Promise<number> {
  const { bench } = await scene({ hca });
  const pairs = Array.from({ length: 16 }, () => connectedPair(bench.a, bench.b));
  const memory = { a: new Region(bench.a, 4096), b: new Region(bench.b, 4096) };
  await bench.run(5);
  const beganPs = bench.a.lp.nowPs;
  const sides = pairs.flatMap((pair) => [
    { qp: pair.a, cq: pair.aCq, own: memory.a, other: memory.b },
    ...(readers === 'a' ? [] : [{ qp: pair.b, cq: pair.bCq, own: memory.b, other: memory.a }]),
  ]);
  for (const { qp, own, other } of sides) {
    for (let count = 0; count < 20; count++)
      qp.post({
        opcode: WqeOpcode.RDMA_READ,
        segments: [own.part(0, bytes)],
        remote: { address: other.address, key: other.key },
      });
    qp.ring();
  }
  await bench.until(() => sides.every(({ cq }) => cq.takenCount() === 20), 500);
  return (bench.a.lp.nowPs - beganPs) / 1e3;
}

it('measurements.csv E-001: is one for a device that asks and is asked, which so READs half as much', async () => {
  const hca = {
    readRequestCycles: 40,
    readResponseCycles: 40,
    sameQpIntervalCycles: 1,
    readIntervalCycles: 1,
  };
  // 320 READs of 40 cycles at 427 MHz; of both sides twice as many, on one unit each.
  const aloneNs = (320 * 40 * 1000) / 427;
  const [alone, both] = [await elapsedNs(hca, 'a'), await elapsedNs(hca, 'both')];
  expect(alone).toBeGreaterThan(aloneNs);
  expect(both).toBeGreaterThan(2 * aloneNs);
});

it('measurements.csv E-033: is occupied at the requester for each TLP of a response after the first', async () => {
  const hca = {
    readRequestCycles: 40,
    readSegmentCycles: 100,
    sameQpIntervalCycles: 1,
    readIntervalCycles: 1,
  };
  const [one, two, three] = [
    await elapsedNs(hca, 'a', 256),
    await elapsedNs(hca, 'a', 257),
    await elapsedNs(hca, 'a', 513),
  ] as const;
  // 320 READs; 100 cycles at 427 MHz for each of one and of two further TLPs of 256 bytes.
  const segmentNs = (320 * 100 * 1000) / 427;
  expect((two - one) / segmentNs).toBeCloseTo(1, 1);
  expect((three - one) / segmentNs).toBeCloseTo(2, 1);
});
