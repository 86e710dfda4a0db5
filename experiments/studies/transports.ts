/** The study of transports for a mesh of threads: QPs and their contexts, receive queues and their memory, and the rate. */
import type { AxisValue } from '../sweep/index.ts';
import { bytesText, type Study, type StudyFigures, timesText } from './study.ts';

const rate = 'bytesPerSecond';
const misses = 'caches.qpc.misses';
const messageBytes = 64;
const messageCount = 64;
const windowMessages = 32;
/** Bytes before a datagram in its receive: IBTA vol 1, 11.4.2.1. */
const grhBytes = 40;
/** Threads of a host, each of which reaches every thread of every other host. */
const threads = 4;

interface Way {
  readonly name: string;
  readonly axes: Readonly<Record<string, AxisValue>>;
  readonly slotBytes: number;
  /** Flows of `peers` peers that may use one receive queue. */
  flowsOfQueue(peers: number): number;
}

const each = (): number => 1;
const all = (peers: number): number => peers;

/** RC: a QP of each thread to each remote thread. XRC: one to each remote host. UD: one QP of each thread. */
const ways: readonly Way[] = [
  {
    name: 'RC',
    axes: { connection: 'RC', useSrq: false, qps: threads ** 2 },
    slotBytes: messageBytes,
    flowsOfQueue: each,
  },
  {
    name: 'RC with a shared queue',
    axes: { connection: 'RC', useSrq: true, qps: threads ** 2 },
    slotBytes: messageBytes,
    flowsOfQueue: all,
  },
  {
    name: 'XRC',
    axes: { connection: 'XRC', useSrq: false, qps: threads },
    slotBytes: messageBytes,
    flowsOfQueue: all,
  },
  {
    name: 'UD',
    axes: { connection: 'UD', useSrq: false, qps: threads },
    slotBytes: messageBytes + grhBytes,
    flowsOfQueue: all,
  },
];

export const transports: Study = {
  name: 'transports',
  question: 'What do RC, XRC, UD and shared receive queues save in a mesh of threads?',
  spec: {
    workload: `all-to-all,verb=send,size=${messageBytes},messages=${messageCount},window=${windowMessages}`,
    vary: { topology: 'star:4,star:8,star:16,star:32' },
    points: ways.map(({ axes }) => axes),
  },
  reduced: { topology: 'star:4,star:8' },
  plots: [
    { x: 'topology', y: [rate, misses, 'qpCount'], by: 'connection', where: ['useSrq=false'] },
    { x: 'topology', y: [rate, 'receiveQueueCount'], by: 'useSrq', where: ['connection=RC'] },
  ],
  answer(figures) {
    const hosts = figures
      .valuesOf('topology')
      .map((name) => Number(String(name).slice('star:'.length)))
      .toSorted((left, right) => left - right);
    const many = hosts.at(-1)!;
    const point = (way: Way, count = many) => ({ ...way.axes, topology: `star:${count}` });
    const perHost = (way: Way): number => figures.at(rate, point(way)) / messageBytes / many;
    const [rc] = ways;
    const fastest = ways.toSorted((left, right) => perHost(right) - perHost(left))[0]!;
    const memory = (way: Way): number => {
      const slots = figures.at('receiveQueueCount', point(way)) * way.flowsOfQueue(many - 1) * windowMessages;
      return slots * way.slotBytes;
    };
    const thrashing = ways.flatMap((way) => {
      const first = hosts.find((count) => repeatedMisses(figures, way, count) > 0.25);
      return first === undefined
        ? []
        : [`${way.name} from ${first} hosts on (${figures.at('qpCount', point(way, first))} QPs)`];
    });
    return [
      `Between ${many} hosts of ${threads} threads each, a host has ${ways.map((way) => `${figures.at('qpCount', point(way))} QPs with ${way.name}`).join(', ')}, and sends ${ways.map((way) => (perHost(way) / 1e6).toFixed(2)).join(', ')} million SENDs of ${messageBytes} bytes a second: ${fastest.name} ${timesText(perHost(fastest) / perHost(rc!))} as many as RC.`,
      thrashing.length === 0
        ? `Up to ${many} hosts all contexts of QPs fit into the card's cache.`
        : `At least one message in four loads a context again that the card's cache has lost with ${thrashing.join(', ')}${thrashing.length === ways.length ? '' : '; not with the others'}.`,
      `If every receive queue has buffers for the window of ${windowMessages} of each host that may use it, a host needs ${ways.map((way) => `${bytesText(memory(way))} with ${way.name}`).join(', ')}.`,
    ];
  },
};

/** Loads of contexts for each message, without the first load of each. */
function repeatedMisses(figures: StudyFigures, { axes }: Way, count: number): number {
  const place = { ...axes, topology: `star:${count}` };
  const again = figures.at(misses, place) - count * figures.at('qpCount', place);
  return again / (messageCount * count * (count - 1));
}
