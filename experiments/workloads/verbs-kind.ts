/** perftest's tests of verbs as a kind of test: latency and bandwidth of WRITE, READ, SEND and atomics. */
import { perfBufferBytes } from './perf-buffer.ts';
import { isLatencyTest, lengthsOf, type PerfArgs, perfDefaults, verbOf } from './perf-plan.ts';
import type { Posts, ReadyWorkload, TestKind, TestProgram, Traffic } from './test-kind.ts';
import { verbsRules, verbsSizeOf } from './verbs-rules.ts';
import { verbsTable } from './verbs-table.ts';
import type { Workload } from './workload.ts';

const readyVerbs: Readonly<Record<string, ReadyWorkload>> = {
  'kv-get': {
    meaning: 'GETs of a key-value store by READ, keys as YCSB draws them',
    test: 'read-bw',
    size: 64,
    qps: 16,
    region: 64 * 1024 ** 2,
    pattern: 'zipf',
  },
  'kv-put': {
    meaning: 'PUTs of a key-value store by inlined WRITE, keys as YCSB draws them',
    test: 'write-bw',
    size: 64,
    qps: 16,
    inline: 64,
    region: 64 * 1024 ** 2,
    pattern: 'zipf',
  },
  'rpc-echo': {
    meaning: 'remote procedure calls by SEND over reliable connections, with a window of calls',
    test: 'send-bw',
    size: 64,
    qps: 4,
    txDepth: 32,
    inline: 64,
    cqMod: 16,
    echo: true,
  },
  'fasst-rpc': {
    meaning: 'remote procedure calls as FaSST has them: datagrams both ways, one QP for each thread',
    test: 'send-bw',
    connection: 'UD',
    size: 32,
    threads: 2,
    txDepth: 64,
    inline: 32,
    cqMod: 16,
    echo: true,
  },
};

/** Default number of requests per completion. */
function moderationOf({ postList = 1, rate }: Workload): number {
  // Whether the time of each message is measured.
  if (rate !== undefined) return 1;
  return postList === 1 ? perfDefaults.cqModeration : postList;
}

/** perftest's inline limits: smaller for datagrams than for messages of connections. */
const inlineOf = ({ test, connection }: Workload): number =>
  connection === 'UD' ? perfDefaults.datagramInlineBytes : perfDefaults.inlineBytes[verbOf(test)];

/** A client and a server for each thread. */
function programsOf(args: PerfArgs): TestProgram[] {
  const { threads = 1, qpCount, isLatency } = args;
  const kind = isLatency ? 'latency' : 'bandwidth';
  return Array.from({ length: threads }, (_, thread) => {
    const own = Math.floor(qpCount / threads) + (thread < qpCount % threads ? 1 : 0);
    const ownArgs = threads === 1 ? args : { ...args, qpCount: own, allQpCount: qpCount, thread };
    return ['Client', 'Server'].map((role, node) => ({
      node,
      name: thread === 0 ? role.toLowerCase() : `${role.toLowerCase()}.${thread}`,
      module: `perf-${kind}`,
      exportName: `${kind}${role}`,
      args: ownArgs,
    }));
  }).flat();
}

function trafficOf(args: PerfArgs): Traffic {
  const { verb, connection = 'RC', isBidirectional, isEchoed, eventModeration, qpCount } = args;
  const isSend = verb === 'send';
  const isAnswered = isBidirectional === true || isEchoed === true;
  const posts = (messages: number): Posts[] =>
    lengthsOf(args).map(({ bytes, share }) => ({ count: share * messages, bytes }));
  const sender = {
    posts,
    addressBytes: 16,
    coreAdvice: sending,
    flightAdvice: {
      more: ['--tx-depth', '--qps'],
      less: ['--cq-mod', ...(eventModeration === undefined ? [] : ['--moderation'])],
    },
  };
  const coreAdvice = isSend ? receiving : sending;
  const server = isAnswered ? { ...sender, coreAdvice } : { addressBytes: 16, coreAdvice };
  return {
    sides: [
      { ...sender, receives: isSend && isAnswered },
      { ...server, receives: isSend },
    ],
    service: connection,
    hasOneService: true,
    isBothWays: isBidirectional === true,
    qpCount,
    idleOptions: [],
  };
}

const sending = {
  more: ['--threads', 'host.core.clockMHz', '--post-list'],
  less: ['host.cost.postSend'],
};
const receiving = {
  more: ['--threads', 'host.core.clockMHz'],
  less: ['host.cost.postRecv', 'host.cost.pollCompletion'],
};

export const verbsKind: TestKind = {
  rules: verbsRules,
  ready: readyVerbs,
  presetOf: (asked) => ({
    verb: verbOf(asked.test),
    sizeBytes: verbsSizeOf(asked),
    inlineBytes: isLatencyTest(asked.test) ? inlineOf(asked) : 0,
    cqModeration: moderationOf(asked),
  }),
  expansionRefusal: (option, test) =>
    option === 'all' && verbOf(test) === 'atomic' ? `${test} has one size, 8 bytes` : undefined,
  receives: (test) => verbOf(test) === 'send',
  iwarpRefusal: ({ verb, isLatency }, hasAtomics) =>
    verb === 'atomic' && !hasAtomics
      ? [
          isLatency ? 'atomic-lat' : 'atomic-bw',
          'a test of write, read or send over iWARP, which has atomics with hca.capability.iwarpExtensions=true',
        ]
      : undefined,
  programCounts: ({ threads = 1 }) => ({ threads }),
  memoryBytes: (args) => (args.isOnDemand === true ? 0 : (args.threads ?? 1) * perfBufferBytes(args)),
  programsOf,
  resultOf: (rates) => rates,
  trafficOf,
  tableOf: verbsTable,
};
