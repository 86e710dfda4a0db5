/**
 * Titles of axes and figures of a sweep, in words and with units.
 *
 *     pcie.link.latencyPs    PCIe link latency (ps)
 *     messagesPerSecond      message rate
 */
import { profileListing } from '../../machine/profile/index.ts';
import { wordsOf } from './words.ts';

/** Fields of a workload, which have no path: named like the options of `hca perf`. */
const fields: Readonly<Record<string, string>> = {
  ...{ test: 'test', size: 'message size (B)', iters: 'messages of a QP', qps: 'QPs', threads: 'threads' },
  ...{ connection: 'service', txDepth: 'send queue depth', rxDepth: 'receive queue depth', useSrq: 'SRQ' },
  ...{
    inline: 'inline up to (B)',
    blueflame: 'BlueFlame',
    postList: 'WQEs of a post',
    events: 'waits for events',
  },
  ...{ cqMod: 'signalled one in', moderation: 'moderation', mtu: 'path MTU (B)', region: 'region (B)' },
  ...{
    pattern: 'addresses',
    stride: 'stride (B)',
    keys: 'keys',
    fixedLocal: 'one local place',
    pageSize: 'page size (B)',
    rate: 'offered rate (1/s)',
  },
  ...{ arrivals: 'arrivals', backlog: 'backlog', window: 'requests in flight', servers: 'servers' },
  ...{
    keySize: 'key size (B)',
    valueSize: 'value size (B)',
    items: 'items',
    gets: 'share of GETs',
    profile: 'profile',
    topology: 'topology',
  },
  ...{ hosts: 'hosts', messages: 'messages of a flow', verb: 'verb', algorithm: 'algorithm' },
};

/** Units of quantities as people write them; units that are nouns, such as `lines`, are part of the name. */
const quantities: Readonly<Record<string, string>> = {
  ...{
    ps: 'ps',
    ns: 'ns',
    us: 'µs',
    ms: 'ms',
    MHz: 'MHz',
    bytes: 'B',
    KiB: 'KiB',
    MiB: 'MiB',
    m: 'm',
    metres: 'm',
  },
  ...{ cycles: 'cycles', 'bytes/cycle': 'B/cycle', 'MB/s': 'MB/s', percent: '%', '%': '%', log2: 'log2' },
};

/** A unit at the end of a name. */
const unitEnd =
  /(?<=[a-z\d])(?:Ps|Ns|Us|Ms|MHz|Mhz|Bytes|Kib|Mib|Metres|Cycles|Percent)$|\.megabytesPerSecond$/;

/** The title of an axis: a workload field or a parameter's path, with its unit. */
export function axisTitleOf(path: string): string {
  if (fields[path] !== undefined) return fields[path];
  const parameter = profileListing().parameters.find((each) => each.path === path);
  const unit = quantities[parameter?.unit ?? ''];
  const named = unit === undefined ? path : path.replace(unitEnd, '');
  const words = named
    .replace(/^hca\./, '')
    .split('.')
    .map(wordsOf)
    .join(' ');
  return unit === undefined ? words : `${words} (${unit})`;
}

/** Contexts have the names of the standard's objects: `qpc`. */
export const cacheNameOf = (name: string): string =>
  /^[a-z]{3,4}$/.test(name) ? name.toUpperCase() : wordsOf(name);

/** Figures that a client measures, with names of their own. */
const figures: Readonly<Record<string, string>> = {
  messagesPerSecond: 'message rate',
  averageBytesPerSecond: 'mean payload rate',
  peakBytesPerSecond: 'peak payload rate',
  linkBytesPerSecond: 'rate on the cable',
  firstPs: 'latency of the first message',
  minPs: 'least latency',
  typicalPs: 'typical latency',
  averagePs: 'mean latency',
  p90Ps: 'latency, 90 %',
  p99Ps: 'latency, 99 %',
  p999Ps: 'latency, 99.9 %',
  maxPs: 'greatest latency',
  durationPs: 'time of the measurement',
  elapsedPs: 'simulated time',
  iterations: 'messages',
  bytesPerSecond: 'payload rate of all flows',
  cableBytesPerSecond: 'payload rate of one cable',
  slowestBytesPerSecond: 'rate of the slowest flow',
  fastestBytesPerSecond: 'rate of the fastest flow',
  medianPs: 'median latency',
  fairness: "Jain's index of fairness",
  farWaitShare: "longest wait of a switch's output, share of the time",
  senderWaitShare: "longest wait of a host's port, share of the time",
  heldBytesMax: 'most bytes held at an input of a switch',
  drops: 'packets dropped by switches',
  marks: 'packets marked by switches',
  'load.offeredPerSecond': 'offered rate',
  'load.arrivedPerSecond': 'arrival rate',
  'load.droppedCount': 'dropped messages',
  'bottleneck.binds.share': 'share of the time that the bottleneck is busy',
};

const endings: readonly (readonly [pattern: RegExp, words: (match: readonly string[]) => string])[] = [
  [/^interrupts\.(\d+)$/, ([, host]) => `interrupts of host ${host}`],
  [/^load\.interruptsPerSecond\.(\d+)$/, ([, host]) => `interrupt rate of host ${host}`],
  [/^load\.busyCores\.(\d+)$/, ([, host]) => `busy cores of host ${host}`],
  [/^cores\.(\d+)\.cycles\.(\w+)$/, ([, core, cause]) => `cycles of core ${core}: ${wordsOf(cause!)}`],
  [
    /^caches\.(\d+)\.(\w+)\.(\w+)$/,
    ([, node, cache, what]) => `${cacheNameOf(cache!)} ${wordsOf(what!)} of HCA ${node}`,
  ],
  [/^bottleneck\.next\.(.+)\.share$/, ([, name]) => `share of the time that ${name} is busy`],
  [/^stages\.(.+)\.share$/, ([, stage]) => `share of ${wordsOf(stage!)}`],
];

/** The title of a figure of a run; its unit is shown separately. */
export function figureTitleOf(name: string): string {
  if (figures[name] !== undefined) return figures[name];
  for (const [pattern, words] of endings) {
    const match = pattern.exec(name);
    if (match !== null) return words(match);
  }
  return name
    .replace(/(?:BytesPerSecond|PerSecond)$/, 'Rate')
    .replace(/Ps$/, '')
    .split('.')
    .map(wordsOf)
    .join(' ')
    .trim();
}
