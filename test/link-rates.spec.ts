/**
 * Bulk rates over links of every speed: either the cable or the slot is the limit, for every path MTU. Bounds are computed from
 * the standards' figures alone; the simulation approaches and never exceeds them.
 */
import { expect, it, vi } from 'vitest';
import runPerf from '../experiments/runs/perf-run.ts';
import type { BandwidthResult } from '../experiments/workloads/perf-result.ts';
import type { ParameterValues } from '../machine/profile/index.ts';

vi.setConfig({ testTimeout: 240_000 });

const bulkBytes = 65_536;

async function bytesPerSecond(
  verb: 'write' | 'read',
  mtuBytes: number,
  set: ParameterValues,
  profile?: string,
): Promise<number> {
  const { result } = await runPerf({
    machine: { set, partition: 'single', ...(profile === undefined ? {} : { profile }) },
    args: {
      verb,
      isLatency: false,
      sizeBytes: bulkBytes,
      iterations: 100,
      qpCount: 1,
      txDepth: 64,
      rxDepth: 64,
      inlineBytes: 0,
      usesEvents: false,
      cqModeration: 20,
      mtuBytes,
    },
  });
  return (result as BandwidthResult).averageBytesPerSecond;
}

/** Payload's share of a data packet on the link: LRH 8, BTH 12, ICRC 4, VCRC 2, framing 2 (IBTA volume 1, chapter 5). */
const shareOf = (mtuBytes: number): number => mtuBytes / (mtuBytes + 28);

// Data bits of 4X links (IBTA volume 2, chapters 5 and 6): 8 in 10 of QDR, 64 in 66 of FDR; the slot is faster than both.
const links = [
  ['QDR', 32e9],
  ['FDR', (56.25e9 * 64) / 66],
] as const;

it.each(links)('a 4X %s link is filled by packets of any MTU', async (speed, bitsPerSecond) => {
  for (const verb of ['write', 'read'] as const)
    for (const mtuBytes of [1024, 2048, 4096]) {
      const bound = (bitsPerSecond / 8) * shareOf(mtuBytes);
      const rate = await bytesPerSecond(verb, mtuBytes, { 'wire.speed': speed });
      expect(rate).toBeLessThanOrEqual(bound);
      expect(rate).toBeGreaterThan(0.98 * bound);
    }
});

it('a link faster than the slot, and one of a faster slot, lose nothing with the largest packets', async () => {
  for (const profile of [undefined, 'gen5-x16-what-if']) {
    const [usual, largest] = await Promise.all(
      [2048, 4096].map((mtuBytes) => bytesPerSecond('write', mtuBytes, { 'wire.speed': 'EDR' }, profile)),
    );
    expect(largest).toBeGreaterThan(0.995 * usual!);
  }
});
