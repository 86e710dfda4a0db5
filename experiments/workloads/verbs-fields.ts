/** The fields of a workload that perftest's tests of verbs have: its options, and ours. */
import { bytes, choice, count, flag } from './field-builders.ts';
import { inlineMaxOf } from './inline-limits.ts';
import { arrivalKinds, loadDefaults } from './offered-load.ts';
import { strideDefaultBytes } from './perf-places.ts';
import { perfConnections, perfDefaults, perfPatterns } from './perf-plan.ts';
import type { WorkloadField } from './workload-fields.ts';

const number = '[1-9]\\d{0,9}';

/** In canonical order; the fields of other kinds of test follow them. */
export const verbsFields = {
  size: bytes('s', 1, 2 ** 30, 'bytes of a message (default as perftest)'),
  iters: count('n', 1, 1e8, 'messages of a QP (default 1000 or 5000; fewer of large ones)'),
  qps: count('q', 1, 16_384, 'QPs of a bandwidth test, over all threads (default one each)'),
  threads: count(undefined, 1, 64, 'programs of each side, each on a core of its own (default 1)'),
  connection: choice('c', 'type', perfConnections, 'transport service of the QPs (default RC)'),
  txDepth: count('t', 1, 16_000, `depth of the send queue (default ${perfDefaults.txDepth})`),
  rxDepth: count('r', 1, 16_000, `depth of the receive queue (default ${perfDefaults.rxDepth})`),
  useSrq: flag(undefined, 'the QPs of a program take their receives from one queue of --rx-depth'),
  inline: bytes(
    'I',
    0,
    inlineMaxOf(),
    `messages up to this many bytes are sent inline (WRITE: up to ${inlineMaxOf('RC', 'write')}, UD: ${inlineMaxOf('UD')})`,
  ),
  blueflame: choice(
    undefined,
    'how',
    ['on', 'off'],
    'short requests go by BlueFlame, or by a doorbell (default on)',
  ),
  postList: count('l', 1, 1024, 'requests posted in one call, with one doorbell (default 1)'),
  events: flag('e', 'sleep until a completion event instead of polling'),
  cqMod: count(
    'Q',
    1,
    16_000,
    `one completion for this many messages (default ${perfDefaults.cqModeration})`,
  ),
  moderation: {
    kind: 'text',
    unit: 'n:usec',
    form: '\\d{1,5}:\\d{1,5}',
    accepted: 'completions and microseconds up to 65535, such as 16:10',
    meaning:
      'with --events, one event for this many completions or after this many microseconds, such as 16:10',
  },
  mtu: choice('m', 'bytes', [256, 512, 1024, 2048, 4096], "path MTU (default: the port's)"),
  gidIndex: count('x', 0, 127, "place of the port's GID from which packets go; a GRH on InfiniBand"),
  trafficClass: count(undefined, 0, 255, 'traffic class of the GRH or IP header; a GRH on InfiniBand'),
  region: bytes(
    undefined,
    1,
    2 ** 38,
    'memory of each side that messages walk through (default: all have one place)',
  ),
  pattern: choice(
    undefined,
    'how',
    perfPatterns,
    'how they do: place by place, any, some more often, or so far apart (default sequential)',
  ),
  stride: bytes(
    undefined,
    1,
    2 ** 38,
    `from one message to the next, of the pattern stride (default ${strideDefaultBytes})`,
  ),
  keys: count(undefined, 1, 65_536, 'memory regions in which --region is registered (default 1)'),
  fixedLocal: flag(undefined, 'only the places at the other host vary, not those of the local buffer'),
  pageSize: choice(undefined, 'size', ['4K', '2M'], 'pages of --region (default 4K)'),
  bidirectional: flag('b', 'both sides send; rates are of both directions together'),
  echo: flag(undefined, 'the server answers each message with one like it; rates are of answered ones'),
  sizes: {
    kind: 'text',
    unit: 'list',
    form: `${number}:${number}(,${number}:${number})*`,
    accepted: 'lengths with their weights, such as 64:90,4096:10',
    meaning: 'draw the length of each message, by weight: 64:90,4096:10',
  },
  warmup: count(
    undefined,
    1,
    1e8,
    'messages of a QP before the measured ones: rates and counters are from then on',
  ),
  rate: {
    ...count(
      undefined,
      1,
      1e9,
      'offered load in messages a second, whether or not earlier ones have completed: 10k, 1M (default: as fast as they complete)',
    ),
    unit: 'msg/s',
  },
  arrivals: choice(
    undefined,
    'how',
    arrivalKinds,
    `with --rate, at random times or at even distances (default ${loadDefaults.arrivals})`,
  ),
  backlog: count(
    undefined,
    1,
    2 ** 20,
    `with --rate, messages of a program that may wait to be posted; more are dropped and counted (default ${loadDefaults.backlog})`,
  ),
  onDemand: flag(undefined, 'the buffer is registered on demand instead of pinned'),
} satisfies Readonly<Record<string, WorkloadField>>;
