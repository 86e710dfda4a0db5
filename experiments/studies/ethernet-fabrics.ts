/** Studies of fabrics of Ethernet: frames lost or paused, flows on one path by their hash, and congestion control. */
import { bytesText, percentText, type Study, timesText } from './study.ts';

const rate = 'bytesPerSecond';
const slowest = 'slowestBytesPerSecond';
const p99 = 'p99Ps';

/** Ports of RoCE v2. */
const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;

const flowControl = 'switch.ethernet.flowControl';

const recovery = 'hca.lossRecovery';
const goBackN = 'go-back-n';
const selective = 'selective-repeat';

export const loss: Study = {
  name: 'loss',
  question: 'What does an incast of RoCE lose if switches drop instead of pausing?',
  spec: {
    workload: 'incast,size=64Ki,messages=20',
    machine: {
      topology: 'star:8',
      // More than a round trip through a full queue of 512 KiB.
      set: { ...roce, 'switch.ethernet.bufferKib': 1024, 'hca.retransmitHighUs': 2000 },
    },
    vary: { hosts: '2,3,5,8', [flowControl]: 'none,pause', [recovery]: `${goBackN},${selective}` },
  },
  reduced: { hosts: '2,3', [flowControl]: 'none,pause', [recovery]: `${goBackN},${selective}` },
  plots: [
    { x: 'hosts', y: [rate], by: flowControl, where: [`${recovery}=${goBackN}`] },
    { x: 'hosts', y: [rate, p99, 'drops'], by: recovery, where: [`${flowControl}=none`] },
    { x: 'hosts', y: ['drops', 'heldBytesMax'], by: flowControl, where: [`${recovery}=${goBackN}`] },
  ],
  answer(figures) {
    const counts = figures.numbersOf('hosts');
    const [few, many] = [counts[0]!, counts.at(-1)!];
    const at = (hosts: number, control: string, scheme = goBackN) => ({
      hosts,
      [flowControl]: control,
      [recovery]: scheme,
    });
    return [
      `With pauses ${many - 1} senders reach ${figures.text(rate, at(many, 'pause'))} together, without them ${figures.text(rate, at(many, 'none'))}, ${percentText(figures.at(rate, at(many, 'none')) / figures.at(rate, at(many, 'pause')))} of it; with ${few - 1} it is ${figures.text(rate, at(few, 'none'))}, and ${figures.at('drops', at(few, 'none'))} packets are dropped.`,
      `A switch with 1 MiB drops ${figures.at('drops', at(many, 'none'))} packets, and each loss costs a requester the rest of its window (go-back-N) or a timeout: 99 % of the messages end within ${figures.text(p99, at(many, 'none'))} instead of ${figures.text(p99, at(many, 'pause'))}; with selective repeat it drops ${figures.at('drops', at(many, 'none', selective))}, and the senders reach ${figures.text(rate, at(many, 'none', selective))}, 99 % of the messages within ${figures.text(p99, at(many, 'none', selective))}.`,
      `With pauses the fullest input holds ${bytesText(figures.at('heldBytesMax', at(many, 'pause')))}, and senders stand paused for up to ${percentText(figures.at('senderWaitShare', at(many, 'pause')))} of the time.`,
    ];
  },
};

const lossPerMillion = 'ethernet.lossPerMillion';
const MTU_BYTES = 1024;
/** Local ACK timeout code 14, in which the traffic's QPs wait, RTO_high of the default profile, and the default window. */
const ACK_TIMEOUT_PS = 4.096e6 * 2 ** 14;
const RTO_HIGH_PS = 320e6;
const WINDOW_PACKETS = 128;
/** Packets that leave from a lost one until its NAK is taken: 9 us over two cables and a switch, at 0.9 us each. */
const ROUND_TRIP_PACKETS = 10;

/** Packets of the run: 100 messages of 64 KiB. */
const PACKETS = 6400;

/**
 * Time of a run in closed form: of `PACKETS` packets of `packetPs` on the cable, each lost with the probability `loss` on its whole way.
 *
 *     go-back-N          n t (1 + p N / (1 - p)) + [n p (1 - (1 - p)²)] T     NAK or repeated packet lost: the ACK timeout T
 *     selective repeat   n t / (1 - p) + [n p²] max(0, RTO_high - W t)        repeated packet lost: the window W is used up
 *
 * Numbers in brackets are those of timeouts, rounded: a short run has none of rare ones.
 */
const runTimePs = {
  [goBackN]: (packetPs: number, loss: number): number =>
    PACKETS * packetPs * (1 + (loss * ROUND_TRIP_PACKETS) / (1 - loss)) +
    Math.round(PACKETS * loss * (1 - (1 - loss) ** 2)) * ACK_TIMEOUT_PS,
  [selective]: (packetPs: number, loss: number): number =>
    (PACKETS * packetPs) / (1 - loss) +
    Math.round(PACKETS * loss ** 2) * Math.max(0, RTO_HIGH_PS - WINDOW_PACKETS * packetPs),
} as const;

export const recoveries: Study = {
  name: 'recovery',
  question: 'What does a lost packet cost with go-back-N, and with selective repeat?',
  spec: {
    workload: 'incast,size=64Ki,messages=100',
    machine: { topology: 'star:2', set: roce },
    vary: {
      [lossPerMillion]: '0,100,300,1000,3000,10000,30000',
      [recovery]: `${goBackN},${selective}`,
    },
  },
  reduced: { [lossPerMillion]: '0,1000,10000', [recovery]: `${goBackN},${selective}` },
  plots: [{ x: lossPerMillion, y: [rate, p99], by: recovery }],
  answer(figures) {
    const at = (perMillion: number, scheme: string) => ({ [lossPerMillion]: perMillion, [recovery]: scheme });
    const whole = figures.at(rate, at(0, goBackN));
    const packetPs = (MTU_BYTES * 1e12) / whole;
    const measured = (perMillion: number, scheme: string): string =>
      percentText(figures.at(rate, at(perMillion, scheme)) / whole);
    /** A packet passes two cables. */
    const expected = (perMillion: number, scheme: typeof goBackN | typeof selective): string =>
      percentText((PACKETS * packetPs) / runTimePs[scheme](packetPs, 1 - (1 - perMillion / 1e6) ** 2));
    const compared = (perMillion: number, scheme: typeof goBackN | typeof selective): string =>
      `${measured(perMillion, scheme)} (closed form ${expected(perMillion, scheme)})`;
    const [some, many] = [1000, 10_000];
    return [
      `If each of two cables loses one packet in a thousand, go-back-N keeps ${compared(some, goBackN)} of ${figures.text(rate, at(0, goBackN))}, selective repeat ${compared(some, selective)}.`,
      `If it is one in a hundred, they keep ${compared(many, goBackN)} and ${compared(many, selective)}: with go-back-N a lost NAK or repeated packet costs the ACK timeout of 67 ms, with selective repeat a lost repeated packet costs RTO_high of 320 µs, during which a window of ${WINDOW_PACKETS} packets is sent.`,
      `Without loss both reach ${figures.text(rate, at(0, selective))}: the window is more than a round trip.`,
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
