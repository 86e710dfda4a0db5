/** Studies of fabrics of Ethernet: frames lost or paused, flows on one path by their hash, and congestion control. */
import { bytesText, percentText, type Study, timesText } from './study.ts';

const rate = 'bytesPerSecond';
const slowest = 'slowestBytesPerSecond';
const p99 = 'p99Ps';

/** Ports of RoCE v2. */
const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;

const flowControl = 'switch.ethernet.flowControl';

export const loss: Study = {
  name: 'loss',
  question: 'What does an incast of RoCE lose if switches drop instead of pausing?',
  spec: {
    workload: 'incast,size=64Ki,messages=20',
    machine: {
      topology: 'star:8',
      set: { ...roce, 'switch.ethernet.bufferKib': 1024 },
    },
    vary: { hosts: '2,3,5,8', [flowControl]: 'none,pause' },
  },
  reduced: { hosts: '2,3', [flowControl]: 'none,pause' },
  plots: [
    { x: 'hosts', y: [rate], by: flowControl },
    { x: 'hosts', y: [p99], by: flowControl },
    { x: 'hosts', y: ['drops', 'heldBytesMax'], by: flowControl },
  ],
  answer(figures) {
    const counts = figures.numbersOf('hosts');
    const [few, many] = [counts[0]!, counts.at(-1)!];
    const at = (hosts: number, control: string) => ({ hosts, [flowControl]: control });
    return [
      `With pauses ${many - 1} senders reach ${figures.text(rate, at(many, 'pause'))} together, without them ${figures.text(rate, at(many, 'none'))}, ${percentText(figures.at(rate, at(many, 'none')) / figures.at(rate, at(many, 'pause')))} of it; with ${few - 1} it is ${figures.text(rate, at(few, 'none'))}, and ${figures.at('drops', at(few, 'none'))} packets are dropped.`,
      `A switch with 1 MiB drops ${figures.at('drops', at(many, 'none'))} packets, and each loss costs a requester the rest of its window (go-back-N) or a timeout: 99 % of the messages end within ${figures.text(p99, at(many, 'none'))} instead of ${figures.text(p99, at(many, 'pause'))}.`,
      `With pauses the fullest input holds ${bytesText(figures.at('heldBytesMax', at(many, 'pause')))}, and senders stand paused for up to ${percentText(figures.at('senderWaitShare', at(many, 'pause')))} of the time.`,
    ];
  },
};

const hashSeed = 'switch.ethernet.hashSeed';

export const collisions: Study = {
  name: 'collisions',
  question: 'What do flows lose when the hash of a switch puts them on one cable?',
  spec: {
    workload: 'permutation,size=64Ki,messages=20',
    machine: { set: roce },
    vary: {
      topology: 'leaf-spine:2x4:16,leaf-spine:4x4:16,leaf-spine:8x4:16',
      qps: '1,4,16',
      [hashSeed]: '1,2,3,4',
    },
  },
  reduced: { topology: 'leaf-spine:4x4:16', qps: '1,4', [hashSeed]: '1,2' },
  plots: [
    { x: hashSeed, y: [rate, slowest], by: 'topology', where: ['qps=1'] },
    { x: 'qps', y: [rate, slowest], by: hashSeed, where: ['topology=leaf-spine:4x4:16'] },
  ],
  answer(figures) {
    const leaves = 'leaf-spine:4x4:16';
    const seeds = figures.numbersOf(hashSeed);
    const counts = figures.numbersOf('qps');
    const [one, most] = [counts[0]!, counts.at(-1)!];
    const all = (topology: string, qps: number, figure: string): number[] =>
      seeds.map((seed) => figures.at(figure, { topology, qps, [hashSeed]: seed }));
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    const cable = figures.at('cableBytesPerSecond', { topology: leaves, qps: one, [hashSeed]: seeds[0]! });
    const share = (topology: string, qps: number, figure: string): string =>
      percentText(mean(all(topology, qps, figure)) / cable);
    const topologies = figures.valuesOf('topology').map(String);
    return [
      `On ${leaves}, with as many cables up as hosts at each leaf, the slowest of 16 flows with one QP each has ${share(leaves, one, slowest)} of a cable, the fastest ${share(leaves, one, 'fastestBytesPerSecond')} (means of ${seeds.length} hashes).`,
      `Four flows choose among four cables at random: all four are used by one choice in eleven (4!/4^4), and 2.7 of them on average.`,
      `More paths help less than more flows: with one QP each the slowest flow has ${topologies.map((topology) => `${share(topology, one, slowest)} on ${topology}`).join(', ')}; on ${leaves} with ${most} QPs it has ${share(leaves, most, slowest)}.`,
    ];
  },
};

const increase = 'hca.congestion.dcqcn.additiveIncreaseMbps';
const timer = 'hca.congestion.dcqcn.timerUs';

export const dcqcn: Study = {
  name: 'dcqcn',
  question: 'How fast does DCQCN give back the rate that it took, and what does speed cost?',
  spec: {
    workload: 'incast,size=64Ki,messages=150',
    machine: {
      topology: 'star:8',
      set: {
        ...roce,
        'ethernet.gigabitsPerSecond': 40,
        'switch.ethernet.marksCongestion': true,
        'hca.congestion.algorithm': 'dcqcn',
      },
    },
    vary: { hosts: '3,8', [increase]: '5,40,400', [timer]: '55,300' },
  },
  reduced: { hosts: '3', [increase]: '40,400', [timer]: '55,300' },
  plots: [
    { x: increase, y: [rate, p99], by: timer },
    { x: increase, y: ['marks', 'heldBytesMax'], by: timer },
  ],
  answer(figures) {
    const hosts = figures.numbersOf('hosts').at(-1)!;
    const steps = figures.numbersOf(increase);
    const [small, large] = [steps[0]!, steps.at(-1)!];
    const timers = figures.numbersOf(timer);
    const [short, long] = [timers[0]!, timers.at(-1)!];
    const at = (step: number, us: number) => ({ hosts, [increase]: step, [timer]: us });
    const share = (step: number, us: number): string =>
      percentText(figures.at(rate, at(step, us)) / figures.at('cableBytesPerSecond', at(step, us)));
    const rates = steps.map((step) => `${share(step, short)} with steps of ${step} Mb/s`).join(', ');
    return [
      `All senders begin at line rate, and marks reduce their rates at once; over 150 messages of 64 KiB each, ${hosts - 1} senders use ${rates} of the receiver's cable.`,
      `A timer of ${long} us instead of ${short} us, as firmware of a ConnectX-4 has, leaves ${share(small, long)} and ${share(large, long)}: rates grow ${timesText(long / short)} as slowly.`,
      `Larger steps cost marks, not fairness: with ${large} Mb/s the switch marks ${figures.at('marks', at(large, short))} packets instead of ${figures.at('marks', at(small, short))}, and Jain's index of fairness is ${figures.at('fairness', at(large, short)).toFixed(3)} instead of ${figures.at('fairness', at(small, short)).toFixed(3)}.`,
    ];
  },
};
