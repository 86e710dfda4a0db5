/** The key-value store as a kind of test: a client's requests by WRITE over UC, and the server's answers by SEND over UD. */
import { type CableFigures, Opcode } from '../../wire/index.ts';
import { bytes, count } from './field-builders.ts';
import { inlineMaxOf } from './inline-limits.ts';
import { type KvPlan, type KvRates, type KvSide, kvDefaults, putBytes } from './kv-plan.ts';
import { kvTable } from './kv-table.ts';
import { distributionOf } from './perf-latency.ts';
import { type PerfArgs, perfDefaults } from './perf-plan.ts';
import type { BandwidthRates, PerfSide } from './perf-result.ts';
import type { ReadyWorkload, TestKind, TestProgram, Traffic } from './test-kind.ts';
import type { Workload } from './workload.ts';
import type { WorkloadField } from './workload-fields.ts';
import { inlineWithin, loadNeedsRate, mtuMax, type Rule, rateWithin } from './workload-rules.ts';

export const kvFields = {
  servers: count(
    undefined,
    1,
    64,
    `of kv-rpc: threads of the server, each with its part of the items (default ${kvDefaults.servers})`,
  ),
  window: count(
    undefined,
    1,
    1024,
    `of kv-rpc: requests of a client without an answer (default ${kvDefaults.window})`,
  ),
  keySize: bytes(undefined, 8, 128, `of kv-rpc: bytes of a key (default ${kvDefaults.keyBytes})`),
  valueSize: bytes(undefined, 8, 4096, `of kv-rpc: bytes of a value (default ${kvDefaults.valueBytes})`),
  items: count(undefined, 1, 2 ** 20, `of kv-rpc: items of the store (default ${kvDefaults.items})`),
  gets: count(
    undefined,
    0,
    100,
    `of kv-rpc: GETs among 100 requests, the others are PUTs (default ${kvDefaults.getPercent})`,
  ),
  lookup: count(
    undefined,
    0,
    1e6,
    `of kv-rpc: cycles that the store itself spends on a request (default ${kvDefaults.lookupCycles}, estimate)`,
  ),
} satisfies Readonly<Record<string, WorkloadField>>;

const valueBytesOf = ({ valueSize = kvDefaults.valueBytes }: Workload): number => valueSize;

const rules: readonly Rule[] = [
  ({ pattern }) => (pattern === 'stride' ? ['pattern', 'sequential, random or zipf: keys'] : undefined),
  ({ window = kvDefaults.window, rxDepth = perfDefaults.rxDepth }, named) =>
    rxDepth < window
      ? ['rxDepth', `at least ${named('window')} ${window}: each answer consumes a receive`, rxDepth]
      : undefined,
  ({ valueSize = kvDefaults.valueBytes, mtu = mtuMax }) =>
    valueSize > mtu
      ? ['valueSize', `at most the MTU, ${mtu}: an answer is a datagram`, valueSize]
      : undefined,
  // The answers of the store are datagrams, and may be shorter than its requests.
  ({ test, inline }) => inlineWithin(inline, inlineMaxOf('UD'), test),
  loadNeedsRate,
  (asked) => rateWithin(asked, valueBytesOf(asked)),
];

const ready: Readonly<Record<string, ReadyWorkload>> = {
  herd: {
    meaning: 'a key-value store as HERD has it: requests written into polled memory, answers by datagrams',
    test: 'kv-rpc',
    threads: 4,
    servers: 4,
    window: 4,
    keySize: 16,
    valueSize: 32,
    gets: 95,
    inline: 144,
    cqMod: 64,
    pattern: 'random',
  },
};

const planOf = ({ servers, window, keySize, valueSize, items, gets, lookup, pattern }: Workload): KvPlan => ({
  servers: servers ?? kvDefaults.servers,
  window: window ?? kvDefaults.window,
  keyBytes: keySize ?? kvDefaults.keyBytes,
  valueBytes: valueSize ?? kvDefaults.valueBytes,
  items: items ?? kvDefaults.items,
  getPercent: gets ?? kvDefaults.getPercent,
  lookupCycles: lookup ?? kvDefaults.lookupCycles,
  pattern: pattern ?? kvDefaults.pattern,
});

/** Clients, each in a process of its own, and the threads of one server. */
function programsOf(args: PerfArgs): TestProgram[] {
  const of = (node: number, role: string, exportName: string, thread: number): TestProgram => ({
    node,
    name: thread === 0 ? role : `${role}.${thread}`,
    ...(role === 'server' ? { process: role } : {}),
    module: `kv-${role}`,
    exportName,
    args: { ...args, thread },
  });
  const { threads = 1, kv } = args;
  return [
    ...Array.from({ length: threads }, (_, thread) => of(0, 'client', 'kvClient', thread)),
    ...Array.from({ length: kv!.servers }, (_, thread) => of(1, 'server', 'kvServer', thread)),
  ];
}

const isClient = (side: PerfSide): side is KvSide => 'requests' in side && side.result !== undefined;

/** The rates of all clients, and the duration of their requests. */
function resultOf(rates: BandwidthRates, sides: readonly PerfSide[]): KvRates {
  const clients = sides.filter(isClient).map(({ requests }) => requests);
  const { iterations: _, ...times } = distributionOf(
    Float64Array.from(clients.flatMap(({ timesPs }) => timesPs)),
  );
  const sum = (pick: (client: (typeof clients)[number]) => number): number =>
    clients.reduce((total, client) => total + pick(client), 0);
  return {
    ...rates,
    ...times,
    getCount: sum(({ getCount }) => getCount),
    putCount: sum(({ putCount }) => putCount),
  };
}

function trafficOf({ kv }: PerfArgs): Traffic {
  const { getPercent, keyBytes, valueBytes, servers } = kv!;
  const posts = (messages: number, getBytes: number, putBytes: number) => {
    const gets = (messages * getPercent) / 100;
    return [
      { count: gets, bytes: getBytes },
      { count: messages - gets, bytes: putBytes },
    ];
  };
  return {
    sides: [
      {
        posts: (messages) => posts(messages, keyBytes, putBytes(kv!)),
        addressBytes: 16,
        receives: true,
        coreAdvice: {
          more: ['--threads', 'host.core.clockMHz'],
          less: ['host.cost.postSend', 'host.cost.postRecv'],
        },
        flightAdvice: { more: ['--window', '--threads'], less: [] },
      },
      {
        posts: (messages) => posts(messages, valueBytes, 0),
        addressBytes: 48,
        receives: false,
        coreAdvice: { more: ['--servers', 'host.core.clockMHz'], less: ['host.cost.postSend', '--lookup'] },
      },
    ],
    service: 'UC',
    hasOneService: false,
    isBothWays: true,
    // A thread answers all clients over one QP.
    qpCount: servers,
    // One QP for each client, and no lists.
    idleOptions: ['--qps', '--post-list', '--tx-depth'],
    linkBound: (cable) => linkBound(cable, kv!),
  };
}

/**
 * Requests and answers use opposite directions: the longer time counts. The GETs are drawn randomly, so the bound uses
 * the mix with the fewest bytes.
 */
function linkBound(cable: CableFigures, kv: KvPlan): number {
  const { getPercent } = kv;
  const percents = getPercent % 100 === 0 ? [getPercent] : Array.from({ length: 101 }, (_, share) => share);
  const request = (bytes: number): number => cable.linkBytesOf(Opcode.UC_RDMA_WRITE_ONLY, bytes);
  const answer = (bytes: number): number => cable.linkBytesOf(Opcode.UD_SEND_ONLY_WITH_IMMEDIATE, bytes);
  const longer = (gets: number): number =>
    Math.max(
      gets * request(kv.keyBytes) + (1 - gets) * request(putBytes(kv)),
      gets * answer(kv.valueBytes) + (1 - gets) * answer(0),
    );
  const linkBytes = Math.min(...percents.map((percent) => longer(percent / 100)));
  const { numeratorPs, denominator } = cable.byteTime;
  return (kv.valueBytes * denominator * 1e12) / (linkBytes * numeratorPs);
}

export const kvKind: TestKind = {
  own: {
    fields: Object.keys(kvFields) as (keyof typeof kvFields)[],
    thing: 'key-value store, as kv-rpc has',
  },
  lacking: {
    fields: [
      'size',
      'qps',
      'connection',
      'postList',
      'events',
      'moderation',
      'region',
      'stride',
      'keys',
      'fixedLocal',
      'pageSize',
      'bidirectional',
      'echo',
      'sizes',
      'onDemand',
      'useSrq',
    ],
    instead: 'requests by WRITE over UC, answers by SEND over UD, and its own sizes',
  },
  rules,
  ready,
  presetOf: (asked) => ({
    verb: 'write',
    sizeBytes: valueBytesOf(asked),
    inlineBytes: perfDefaults.datagramInlineBytes,
    cqModeration: kvDefaults.cqModeration,
    kv: planOf(asked),
  }),
  expansionRefusal: (option, test) =>
    option === 'all' ? `${test} has --value-size and --key-size` : `the memory of ${test} is pinned`,
  receives: () => true,
  iwarpRefusal: () => [
    'kv-rpc',
    'kv-get or kv-put over iWARP, which lacks the UC and UD of kv-rpc and herd; hca.capability.transport=ibta has it',
  ],
  programCounts: ({ threads = 1, kv }) => ({ threads, servers: kv!.servers }),
  memoryBytes: () => 0,
  programsOf,
  resultOf,
  trafficOf,
  tableOf: () => kvTable,
};
