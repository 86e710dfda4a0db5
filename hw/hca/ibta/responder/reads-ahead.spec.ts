import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { TrafficClass } from '../../../dma/index.ts';
import { dataPathBench } from '../../testing/data-path-bench.ts';
import { type Completion, connectedPair, Region } from '../../testing/data-path-verbs.ts';
import { syndromesOf } from '../../testing/scenario.ts';

const pageBytes = 4096;
const pagesPerLine = 8;
const qpCount = 5;

interface Played {
  readonly elapsedPs: number;
  readonly completions: readonly Completion[];
  readonly local: Region;
  readonly remote: Region;
  /** Reads of keys and translations in that time. */
  readonly fillCount: number;
}

/** Each of five QPs, whose contexts are on chip, reads 64 bytes of a page of its own, all posted at once. */
async function readAll(ahead: number, pageOf: (qp: number) => number, lengthBytes = 64): Promise<Played> {
  const bench = await dataPathBench({ hca: { readTranslationsAhead: ahead } });
  const pairs = Array.from({ length: qpCount }, () => connectedPair(bench.a, bench.b));
  const local = new Region(bench.a, pageBytes);
  const warm = new Region(bench.b, pageBytes);
  const remote = new Region(bench.b, (qpCount + 1) * pagesPerLine * pageBytes);
  remote.fill(7);
  await bench.run(5);
  const completions: Completion[] = [];
  const read = async (from: Region, offsetOf: (qp: number) => number): Promise<number> => {
    completions.length = 0;
    const beganPs = bench.a.lp.nowPs;
    for (const [qp, { a }] of pairs.entries()) {
      const place = { address: from.address + offsetOf(qp), key: from.key };
      a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(qp * 64, lengthBytes)], remote: place });
    }
    await bench.until(() => {
      for (const { aCq } of pairs) completions.push(...aCq.drain());
      return completions.length === qpCount;
    }, 200);
    return Math.max(...bench.a.port.packets.map(({ timePs }) => timePs)) - beganPs;
  };
  await read(warm, () => 0);
  // The key of the region, and the translations of a page that no READ below uses.
  await read(remote, () => qpCount * pagesPerLine * pageBytes);
  const fillsOf = (): number =>
    bench.b.reads.requesters
      .filter(({ trafficClass }) => trafficClass === TrafficClass.translation)
      .reduce((sum, { counters }) => sum + counters.requests, 0);
  const before = fillsOf();
  const elapsedPs = await read(remote, (qp) => pageOf(qp) * pageBytes);
  return { elapsedPs, completions: [...completions], local, remote, fillCount: fillsOf() - before };
}

const linesApart = (qp: number): number => qp * pagesPerLine;

describe('READs whose memory is looked up ahead', () => {
  it('wait for one miss together instead of for one miss each', async () => {
    const [serial, together] = [await readAll(0, linesApart), await readAll(qpCount - 1, linesApart)];
    const held = await readAll(0, () => qpCount * pagesPerLine);
    const missPs = (serial.elapsedPs - held.elapsedPs) / qpCount;
    expect((serial.elapsedPs - together.elapsedPs) / missPs).toBeGreaterThan(qpCount - 2);
    expect((serial.elapsedPs - together.elapsedPs) / missPs).toBeLessThan(qpCount);
    for (const { completions, local, remote } of [serial, together]) {
      expect(syndromesOf(completions)).toEqual(Array.from({ length: qpCount }, () => 0));
      for (let qp = 0; qp < qpCount; qp++)
        expect(local.read(qp * 64, 64)).toEqual(remote.read(linesApart(qp) * pageBytes, 64));
    }
  });

  it('keep one miss in flight for each look-up, and one for the engine', async () => {
    const [one, two] = [await readAll(1, linesApart), await readAll(2, linesApart)];
    const held = await readAll(0, () => qpCount * pagesPerLine);
    const missPs = (await readAll(0, linesApart)).elapsedPs - held.elapsedPs;
    expect(one.elapsedPs - held.elapsedPs).toBeLessThan(missPs);
    expect(two.elapsedPs).toBeLessThan(one.elapsedPs);
  });

  it('share the miss of a line that several of them need', async () => {
    const shared = await readAll(qpCount - 1, (qp) => qp);
    const held = await readAll(qpCount - 1, () => qpCount * pagesPerLine);
    const apart = await readAll(qpCount - 1, linesApart);
    expect([held, shared, apart].map(({ fillCount }) => fillCount)).toEqual([0, 1, qpCount]);
    expect(syndromesOf(shared.completions)).toEqual(Array.from({ length: qpCount }, () => 0));
  });

  it('IBTA 9.7.5.2.3: are refused by key and bounds as without', async () => {
    const beyond = (): number => (qpCount + 1) * pagesPerLine;
    const [without, ahead] = [await readAll(0, beyond), await readAll(8, beyond)];
    expect(syndromesOf(ahead.completions)).toEqual(syndromesOf(without.completions));
    expect(new Set(syndromesOf(ahead.completions))).toEqual(new Set([0x13]));
  });
});
