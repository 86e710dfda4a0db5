/** Valid combinations of the fields of perftest's tests: anything that a test cannot do is rejected with a reason. */
import { inlineMaxOf } from './inline-limits.ts';
import { isLatencyTest, isReliable, perfDefaults, type SizeShare, verbOf } from './perf-plan.ts';
import type { Workload } from './workload.ts';
import type { WorkloadFieldName } from './workload-fields.ts';
import { inlineWithin, loadNeedsRate, mtuMax, qpsOf, type Rule, rateWithin } from './workload-rules.ts';

/** Entries of the largest CQ: all QPs of a thread complete into one. */
const completionsMax = 2 ** 22 - 1;
/** Bytes of a message, and bytes of all message lengths that one is drawn from. */
const sizeMax = 2 ** 30;
/** Random numbers for drawing lengths. */
const weightSumMax = 2 ** 32;
const moderationMax = 2 ** 16 - 1;
/** A datagram is one packet: this is its default length. */
const datagramDefaultBytes = 2048;

/** The lengths and weights of `64:90,4096:10`. */
export const sharesOf = (sizes: string): SizeShare[] =>
  sizes.split(',').map((share) => {
    const [bytes, weight] = share.split(':').map(Number);
    return { bytes: bytes!, weight: weight! };
  });

/** Bytes of a message: of the longest one if lengths are drawn. */
export function verbsSizeOf({ test, size, sizes, connection, mtu }: Workload): number {
  if (sizes !== undefined) return Math.max(...sharesOf(sizes).map(({ bytes }) => bytes));
  const verb = verbOf(test);
  if (size !== undefined) return size;
  if (isLatencyTest(test)) return perfDefaults.latencySizeBytes[verb];
  return connection === 'UD'
    ? Math.min(datagramDefaultBytes, mtu ?? datagramDefaultBytes)
    : perfDefaults.sizeBytes[verb];
}

/** Fields that only bandwidth tests have, with reasons. */
const ofBandwidth: readonly (readonly [WorkloadFieldName, string])[] = [
  ['threads', 'a latency test has one message in flight'],
  ['postList', 'a latency test posts one message at a time'],
  ['bidirectional', 'a latency test goes to and fro'],
  ['sizes', 'a latency test has messages of one length'],
];

export const verbsRules: readonly Rule[] = [
  ({ test, size }) =>
    verbOf(test) === 'atomic' && size !== undefined && size !== 8 ? ['size', `8 for ${test}`] : undefined,
  ({ test, qps = 1 }) => (isLatencyTest(test) && qps !== 1 ? ['qps', `1 for ${test}`] : undefined),
  (asked) => {
    if (!isLatencyTest(asked.test)) return;
    const found = ofBandwidth.find(
      ([field]) => asked[field] !== undefined && asked[field] !== 1 && asked[field] !== false,
    );
    return found === undefined ? undefined : [found[0], `left out: ${found[1]}`];
  },
  ({ qps, threads = 1 }, named) =>
    qps !== undefined && qps < threads ? ['qps', `at least ${named('threads')} ${threads}`] : undefined,
  ({ test, connection = 'RC' }) => {
    const verb = verbOf(test);
    if (connection === 'UD' && verb !== 'send')
      return [
        'connection',
        `${verb === 'write' ? 'RC, XRC or UC' : 'RC or XRC'} for ${test}: UD has only SEND`,
      ];
    if (connection === 'UC' && verb !== 'send' && verb !== 'write')
      return ['connection', `RC or XRC for ${test}: only reliable connections have READ and atomics`];
    return;
  },
  ({ test, connection = 'RC', bidirectional }, named) =>
    !isReliable(connection) && verbOf(test) === 'send' && bidirectional === true
      ? [
          'bidirectional',
          `left out with ${named('connection')} ${connection}: no completion shows that all have arrived`,
        ]
      : undefined,
  ({ test, useSrq }) =>
    useSrq === true && verbOf(test) !== 'send'
      ? ['useSrq', `left out: messages of ${test} take no receives`]
      : undefined,
  ({ test, echo, bidirectional, postList = 1, ...depths }, named) => {
    if (echo !== true) return;
    if (test !== 'send-bw')
      return ['echo', `left out: only the server of send-bw receives what it can answer`];
    if (bidirectional === true) return ['echo', `left out with ${named('bidirectional')}`];
    if (postList !== 1)
      return ['postList', `left out with ${named('echo')}: an answer goes when its message has come`];
    const { txDepth = perfDefaults.txDepth, rxDepth = perfDefaults.rxDepth } = depths;
    return rxDepth < txDepth
      ? ['rxDepth', `at least ${named('txDepth')} ${txDepth} with ${named('echo')}`, rxDepth]
      : undefined;
  },
  (asked, named) => {
    const { connection, mtu } = asked;
    const sizeBytes = verbsSizeOf(asked);
    if (connection !== 'UD' || sizeBytes <= (mtu ?? mtuMax)) return;
    const limit = `at most the MTU, ${mtu ?? mtuMax}, with ${named('connection')} UD`;
    return [asked.sizes === undefined ? 'size' : 'sizes', limit, asked.sizes ?? sizeBytes];
  },
  (asked, named) => {
    const { txDepth = perfDefaults.txDepth, rxDepth = perfDefaults.rxDepth } = asked;
    const receiveDepth = verbOf(asked.test) === 'send' ? rxDepth : 1;
    const depthMax = Math.floor(completionsMax / qpsOf(asked));
    const depth = Math.max(txDepth, receiveDepth);
    if (depth <= depthMax) return;
    const range = `at most ${depthMax} with ${named('qps')} ${qpsOf(asked)}`;
    return [txDepth >= receiveDepth ? 'txDepth' : 'rxDepth', range, depth];
  },
  ({ test, inline = 0 }) => {
    const verb = verbOf(test);
    return inline > 0 && verb !== 'send' && verb !== 'write'
      ? ['inline', `left out for ${test}: only SEND and WRITE carry their bytes in the request`]
      : undefined;
  },
  ({ test, inline, connection }, named) =>
    inlineWithin(
      inline,
      inlineMaxOf(connection, verbOf(test)),
      `${test} with ${named('connection')} ${connection ?? 'RC'}`,
    ),
  ({ test, events }) =>
    test === 'write-lat' && events === true
      ? ['events', 'left out: write-lat waits for memory, not for completions']
      : undefined,
  ({ events, moderation }, named) => {
    if (moderation === undefined) return;
    if (events !== true) return ['moderation', `left out without ${named('events')}`];
    return moderation.split(':').some((part) => Number(part) > moderationMax)
      ? ['moderation', 'completions and microseconds up to 65535']
      : undefined;
  },
  loadNeedsRate,
  (asked, named) => {
    const { test, rate, postList = 1, cqMod = 1, echo } = asked;
    if (rate === undefined) return;
    if (isLatencyTest(test))
      return ['rate', `left out: ${test} has one message in flight; bandwidth tests take an offered load`];
    if (postList !== 1) return ['postList', `left out with ${named('rate')}: messages arrive one by one`];
    if (cqMod !== 1 && echo !== true)
      return ['cqMod', `1 with ${named('rate')}: the time of each message is measured`];
    return rateWithin(asked, verbsSizeOf(asked));
  },
  ({ postList = 1, txDepth = perfDefaults.txDepth, cqMod }, named) => {
    if (postList === 1) return;
    if (txDepth % postList !== 0) return ['postList', `a divisor of ${named('txDepth')} ${txDepth}`];
    if (cqMod !== undefined && (cqMod % postList !== 0 || cqMod > txDepth))
      return [
        'cqMod',
        `a multiple of ${named('postList')} ${postList}, up to ${named('txDepth')} ${txDepth}`,
      ];
    return;
  },
  ({ test, size, sizes }, named) => {
    if (sizes === undefined) return;
    if (verbOf(test) === 'atomic') return ['sizes', `left out: ${test} has one size, 8 bytes`];
    if (size !== undefined) return ['sizes', `left out with ${named('size')}`];
    const shares = sharesOf(sizes);
    const weightSum = shares.reduce((sum, { weight }) => sum + weight, 0);
    if (weightSum > weightSumMax) return ['sizes', `weights of ${weightSumMax} in all, at most`];
    return shares.some(({ bytes }) => bytes > sizeMax) ? ['sizes', `lengths up to ${sizeMax}`] : undefined;
  },
  ({ region, ...others }, named) => {
    if (region !== undefined) return;
    const walking = ['pattern', 'stride', 'keys', 'fixedLocal', 'pageSize'] as const;
    const found = walking.find((field) => others[field] !== undefined);
    return found === undefined ? undefined : [found, `left out without ${named('region')}`];
  },
  ({ pattern, stride }, named) =>
    stride !== undefined && pattern !== 'stride'
      ? ['stride', `left out without ${named('pattern')} stride`]
      : undefined,
  (asked, named) => {
    const { test, region, keys = 1 } = asked;
    if (region === undefined) return;
    if (verbOf(test) === 'send' || test === 'write-lat')
      return ['region', `left out: ${test} waits for its messages in one place; the other tests have it`];
    const sizeBytes = verbsSizeOf(asked);
    if (region < sizeBytes) return ['region', `at least ${named('size')} ${sizeBytes}`];
    const places = Math.floor(region / (Math.ceil(sizeBytes / 64) * 64));
    if (keys > places)
      return [
        'keys',
        `at most ${places}: so many messages of ${sizeBytes} bytes fit into ${named('region')}`,
      ];
    return;
  },
  ({ pageSize, onDemand }) =>
    pageSize === '2M' && onDemand === true
      ? ['pageSize', '4K on demand: huge pages are there at once']
      : undefined,
];
