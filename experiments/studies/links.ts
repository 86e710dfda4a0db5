/** Studies of the slot: its generation, and the number of reads that must be in flight. */
import { bindsText, bytesText, percentText, type Study, timesText } from './study.ts';

const bandwidth = 'averageBytesPerSecond';
const rate = 'messagesPerSecond';

export const generations: Study = {
  name: 'generations',
  question: 'What do Gen4 and Gen5 bring instead of Gen3?',
  spec: {
    workload: 'write-bw,iters=100,qps=4',
    machine: { profile: 'gen5-x16-what-if', set: { 'pcie.link.lanes': 8, 'dma.tagCount': 64 } },
    vary: { size: '64,512,4096,65536', 'pcie.link.generation': '3,4,5' },
  },
  reduced: { size: '64,65536', 'pcie.link.generation': '3,5' },
  plots: [{ x: 'size', y: [bandwidth], by: 'pcie.link.generation' }],
  answer(figures) {
    const sizes = figures.numbersOf('size');
    const [small, large] = [sizes[0]!, sizes.at(-1)!];
    const newest = figures.numbersOf('pcie.link.generation').at(-1)!;
    const at = (size: number, generation: number) => ({ size, 'pcie.link.generation': generation });
    const gain = (size: number): number =>
      figures.at(bandwidth, at(size, newest)) / figures.at(bandwidth, at(size, 3));
    const most = sizes.toSorted((left, right) => gain(right) - gain(left))[0]!;
    return [
      `Under a cable of 100 Gb/s, WRITEs of ${bytesText(large)} reach ${figures.text(bandwidth, at(large, 3))} over eight lanes of Gen3 and ${figures.text(bandwidth, at(large, newest))} over Gen${newest}: ${timesText(gain(large))}.`,
      `WRITEs of ${bytesText(small)} reach ${figures.text(rate, at(small, 3))} and ${figures.text(rate, at(small, newest))}: ${timesText(gain(small))}; there ${bindsText(figures, at(small, newest))} binds.`,
      `Most is gained at ${bytesText(most)}, ${timesText(gain(most))}.`,
    ];
  },
};

/** 400 Gb/s in bytes. */
const wantedBytesPerSecond = 50e9;

export const tags: Study = {
  name: 'tags',
  question: 'How many tags does 400 Gb/s need at 600 ns?',
  spec: {
    workload: 'write-bw,size=65536,iters=20,qps=8,txDepth=16,cqMod=8',
    machine: {
      profile: 'gen5-x16-what-if',
      // Every other bottleneck below the cable is removed; the widest available cable carries 300 Gb/s.
      set: {
        'wire.lanes': '12',
        'wire.receiveBufferBytes': 131072,
        'pcie.enumeration.maxReadRequestBytes': 512,
        'pcie.rootComplex.outstandingReadCount': 127,
        'dma.dataPathBytes': 512,
        'hca.transmitBytesPerCycle': 1024,
        'hca.receiveBytesPerCycle': 1024,
        'hca.transmitBufferPackets': 256,
      },
    },
    vary: { 'dma.tagCount': '8..128*2', 'pcie.rootComplex.readLatencyPs': '150000,600000' },
  },
  reduced: { 'dma.tagCount': '8,16', 'pcie.rootComplex.readLatencyPs': '600000' },
  plots: [{ x: 'dma.tagCount', y: [bandwidth], by: 'pcie.rootComplex.readLatencyPs' }],
  answer(figures) {
    const counts = figures.numbersOf('dma.tagCount');
    const at = (tagCount: number) => ({
      'dma.tagCount': tagCount,
      'pcie.rootComplex.readLatencyPs': 600_000,
    });
    const rateAt = (count: number): number => figures.at(bandwidth, at(count));
    const fewest = counts[0]!;
    const most = counts.at(-1)!;
    const perTag = rateAt(fewest) / fewest;
    const linear = counts.filter((count) => rateAt(count) > 0.9 * perTag * count).at(-1)!;
    return [
      `At 600 ns in the root complex ${fewest} tags with reads of 512 bytes bring ${figures.text(bandwidth, at(fewest))}: ${Math.round(perTag / 1e6)} MB/s a tag.`,
      `The rate grows with the tags up to ${linear}, and is ${figures.text(bandwidth, at(most))} with ${most}, where ${bindsText(figures, at(most))} binds.`,
      `At that rate a tag, 400 Gb/s need ${Math.ceil(wantedBytesPerSecond / perTag)} tags of 512 bytes: extrapolated, for the widest cable here carries 300 Gb/s (${percentText(rateAt(most) / 37.5e9)} of which is reached).`,
    ];
  },
};
