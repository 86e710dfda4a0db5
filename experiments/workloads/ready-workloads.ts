/**
 * Predefined workloads that replace a test by name: `hca perf kv-get`, or `kv-get,qps=8` as text. Given fields override
 * theirs.
 */
import type { PerfTestName } from './perf-plan.ts';
import type { WorkloadValues } from './workload-fields.ts';

interface ReadyWorkload extends WorkloadValues {
  readonly test: PerfTestName;
  /** Description of the workload. */
  readonly meaning: string;
}

const readyWorkloads: Readonly<Record<string, ReadyWorkload>> = {
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

export const readyWorkloadNames = Object.keys(readyWorkloads);

/** The fields of a predefined workload; undefined for any other word. */
export function readyWorkload(name: string): (WorkloadValues & { readonly test: PerfTestName }) | undefined {
  const ready = readyWorkloads[name];
  if (ready === undefined) return;
  const { meaning: _, ...workload } = ready;
  return workload;
}

/** Name and meaning of each, for help and pages. */
export const readyWorkloadWords = (): (readonly [name: string, meaning: string])[] =>
  Object.entries(readyWorkloads).map(([name, { meaning }]) => [name, meaning]);
