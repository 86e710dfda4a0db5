/** Studies of on-chip caches: translations, contexts, and translations of the IOMMU. */
import { bindsText, bytesText, percentText, type Study, type StudyFigures, timesText } from './study.ts';

const rate = 'messagesPerSecond';

export const mtt: Study = {
  name: 'mtt',
  question: 'How large must the MTT cache be, by page size and access pattern?',
  spec: {
    workload: 'write-bw,size=64,region=32Mi,iters=400,warmup=200,qps=4',
    vary: { 'hca.mttCacheLines': '64..2048*4', pageSize: '4K,2M', pattern: 'sequential,random' },
  },
  reduced: { 'hca.mttCacheLines': '64,1024', pageSize: '4K,2M', pattern: 'random' },
  plots: [
    { x: 'hca.mttCacheLines', y: [rate], by: 'pattern' },
    { x: 'hca.mttCacheLines', y: ['caches.1.mtt.misses'], by: 'pattern' },
  ],
  answer(figures) {
    const lines = figures.numbersOf('hca.mttCacheLines');
    const [least, most] = [lines[0]!, lines.at(-1)!];
    const at = (count: number, pageSize: string) => ({
      'hca.mttCacheLines': count,
      pageSize,
      pattern: 'random',
    });
    const rateAt = (count: number, pageSize: string): number => figures.at(rate, at(count, pageSize));
    const enough = lines.find((count) => rateAt(count, '4K') >= 0.95 * rateAt(most, '4K'))!;
    return [
      `Random WRITEs of 64 bytes over 32 MiB in pages of 4 KiB reach ${figures.text(rate, at(least, '4K'))} with ${least} lines of the MTT cache, ${figures.text(rate, at(most, '4K'))} with ${most}: ${timesText(rateAt(most, '4K') / rateAt(least, '4K'))} as many.`,
      `${enough} lines have 95 % of that.`,
      `With pages of 2 MiB ${least} lines reach ${figures.text(rate, at(least, '2M'))} already: a line has the entries of eight pages, and 32 MiB are 16 of them.`,
    ];
  },
};

export const contexts: Study = {
  name: 'qps',
  question: 'How many QPs until their contexts thrash?',
  spec: {
    workload: 'write-bw,size=64,inline=64,threads=4,iters=16,warmup=8',
    vary: { qps: '16..1024*2', 'hca.qpcCacheEntries': '64,256' },
  },
  reduced: { qps: '16,64,256', 'hca.qpcCacheEntries': '64' },
  plots: [{ x: 'qps', y: [rate, 'caches.0.qpc.misses'], by: 'hca.qpcCacheEntries' }],
  answer(figures) {
    const sizes = figures.numbersOf('hca.qpcCacheEntries');
    const qps = figures.numbersOf('qps');
    const rateAt = (count: number, entries: number): number =>
      figures.at(rate, { qps: count, 'hca.qpcCacheEntries': entries });
    const bestOf = (entries: number): number =>
      qps.toSorted((left, right) => rateAt(right, entries) - rateAt(left, entries))[0]!;
    const fallOf = (entries: number): number | undefined =>
      qps.find(
        (count) => count > bestOf(entries) && rateAt(count, entries) < 0.7 * rateAt(bestOf(entries), entries),
      );
    const words = sizes.map((entries) => {
      const fall = fallOf(entries);
      return `${entries} contexts on chip ${fall === undefined ? `carry ${qps.at(-1)} QPs` : `thrash from ${fall} QPs on`}`;
    });
    const entries = sizes[0]!;
    const last = { qps: qps.at(-1)!, 'hca.qpcCacheEntries': entries };
    const best = { qps: bestOf(entries), 'hca.qpcCacheEntries': entries };
    return [
      `${words.join('; ')} (70 % of the best rate is the limit).`,
      `With ${entries} contexts the best rate is ${figures.text(rate, best)}, at ${best.qps} QPs; with ${last.qps} QPs it is ${figures.text(rate, last)}.`,
      `There ${missText(figures, last, 'qpc', 0)} of the context look-ups in the sender miss, each a read of 256 bytes over PCIe, and the ${bindsText(figures, last)} binds: a receiver stops for each read, while a requester serves other QPs with several reads in flight (\`hca.contextFetchesInFlight\`).`,
    ];
  },
};

/** Share of a cache's look-ups that missed. */
function missText(
  figures: StudyFigures,
  place: Readonly<Record<string, number>>,
  cache: string,
  node: number,
): string {
  const misses = figures.at(`caches.${node}.${cache}.misses`, place);
  return percentText(misses / (misses + figures.at(`caches.${node}.${cache}.hits`, place)));
}

export const iommu: Study = {
  name: 'iommu',
  question: 'What does an IOMMU cost?',
  spec: {
    workload: 'write-bw,size=64,iters=400,warmup=200,qps=4,pattern=random',
    vary: { region: '64Ki,256Ki,1Mi,4Mi,16Mi', 'pcie.iommu.isEnabled': 'false,true' },
  },
  reduced: { region: '64Ki,4Mi', 'pcie.iommu.isEnabled': 'false,true' },
  plots: [{ x: 'region', y: [rate], by: 'pcie.iommu.isEnabled' }],
  answer(figures) {
    const regions = figures.numbersOf('region');
    const rateAt = (region: number, isEnabled: boolean): number =>
      figures.at(rate, { region, 'pcie.iommu.isEnabled': isEnabled });
    const lost = (region: number): number => 1 - rateAt(region, true) / rateAt(region, false);
    const [small, large] = [regions[0]!, regions.at(-1)!];
    const beyond = regions.find((region) => lost(region) > 0.1);
    return [
      `Random WRITEs of 64 bytes over ${bytesText(small)} lose ${percentText(lost(small))} of their rate to an IOMMU, over ${bytesText(large)} ${percentText(lost(large))}.`,
      beyond === undefined
        ? `Nowhere up to ${bytesText(large)} is more than a tenth lost.`
        : `More than a tenth is lost from ${bytesText(beyond)} on; below, ${bindsText(figures, { region: small, 'pcie.iommu.isEnabled': true })} binds and hides the walks.`,
      `At ${bytesText(large)} it is ${figures.text(rate, { region: large, 'pcie.iommu.isEnabled': true })} instead of ${figures.text(rate, { region: large, 'pcie.iommu.isEnabled': false })}.`,
    ];
  },
};
