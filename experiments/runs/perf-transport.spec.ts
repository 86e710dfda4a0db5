/** Tests over iWARP: each test, service and field either has a meaning there and runs, or is refused by name before the run. */
import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../base/index.ts';
import { configuredOf, type Partition } from '../../machine/index.ts';
import { parsedWorkload, perfArgsOf, workloadFieldNames } from '../workloads/index.ts';
import { perfTestNames } from '../workloads/perf-plan.ts';
import { readyWorkloadNames } from '../workloads/ready-workloads.ts';
import { checkPort } from './perf-port.ts';
import runPerf from './perf-run.ts';

vi.setConfig({ testTimeout: 120_000 });

const machine = {
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
} as const;
const { config } = configuredOf(machine);

const check = (text: string): void => checkPort(perfArgsOf(parsedWorkload(text)), config);

/** RFC 5040 defines SEND, WRITE and READ over one reliable stream; atomics are those of RFC 7306. */
const refusedTests = {
  'atomic-lat':
    'test is "atomic-lat", expected a test of write, read or send over iWARP, which has atomics with',
  'atomic-bw':
    'test is "atomic-bw", expected a test of write, read or send over iWARP, which has atomics with',
  'kv-rpc':
    'test is "kv-rpc", expected kv-get or kv-put over iWARP, which lacks the UC and UD of kv-rpc and herd',
  herd: 'test is "kv-rpc", expected kv-get or kv-put over iWARP, which lacks the UC and UD of kv-rpc and herd',
  'fasst-rpc': 'connection is "UD", expected RC over iWARP, which has no other',
} as const;

const refusedFields = [
  ['write-lat,connection=UC', 'connection is "UC", expected RC over iWARP'],
  ['send-lat,connection=UD', 'connection is "UD", expected RC over iWARP'],
  ['read-bw,connection=XRC', 'connection is "XRC", expected RC over iWARP'],
  [
    'write-lat,mtu=1024',
    'mtu is 1024, expected left out with iWARP: segments are as long as ethernet.mtuBytes allows',
  ],
  ['write-lat,gidIndex=1', 'gidIndex is 1, expected left out with iWARP'],
  ['write-lat,trafficClass=0', 'trafficClass is 0, expected left out with iWARP'],
] as const;

/** A test in which each other field has an effect. */
const acceptedFields = [
  'write-lat,size=64,inline=64,txDepth=4',
  'send-lat,events,moderation=1:1,rxDepth=8',
  'write-bw,qps=4,threads=2,postList=2,txDepth=8,cqMod=2,blueflame=off,warmup=4',
  'write-bw,connection=RC,bidirectional,sizes=64:90,4096:10',
  'send-bw,useSrq,echo,qps=2',
  'read-bw,size=64,region=4Mi,pattern=stride,stride=8192,keys=2',
  'write-bw,size=64,region=4Mi,pattern=random,fixedLocal,pageSize=2M',
  'write-bw,size=4096,onDemand',
  'write-bw,size=64,rate=100000,arrivals=paced,backlog=64',
] as const;

/** Only the refused kv-rpc has them. */
const storeFields = ['servers', 'window', 'keySize', 'valueSize', 'items', 'gets', 'lookup'];

const fieldsOf = (text: string): string[] =>
  text
    .split(',')
    .slice(1)
    .map((part) => part.split('=')[0]!);

describe('a test over iWARP', () => {
  it.each(['atomic-lat', 'atomic-bw,qps=2'])(
    'runs, and its report balances, with the messages of RFC 7306: %s',
    async (test) => {
      const set = { ...machine.set, 'hca.capability.iwarpExtensions': true };
      const args = perfArgsOf(parsedWorkload(`${test},iters=16`));
      expect(await runPerf({ machine: { set }, args })).toMatchObject({ isBalanced: true });
    },
  );

  it.each(Object.entries(refusedTests))('is refused by name: %s', (test, words) => {
    expect(() => check(test)).toThrow(ConfigurationError);
    expect(() => check(test)).toThrow(words);
  });

  it.each([...perfTestNames, ...readyWorkloadNames].filter((name) => !Object.hasOwn(refusedTests, name)))(
    'runs, and its report balances: %s',
    async (test) => {
      const args = perfArgsOf(parsedWorkload(`${test},iters=16`));
      expect(await runPerf({ machine, args })).toMatchObject({ isBalanced: true });
    },
  );

  it.each(refusedFields)('is refused with %s', (text, words) => {
    expect(() => check(text)).toThrow(ConfigurationError);
    expect(() => check(text)).toThrow(words);
  });

  it.each(acceptedFields)('runs with %s', async (text) => {
    const args = perfArgsOf(parsedWorkload(`${text},iters=16`));
    expect(await runPerf({ machine, args })).toMatchObject({ isBalanced: true });
  });

  it('has a verdict on every field of a workload', () => {
    const texts = [...refusedFields.map(([text]) => text), ...acceptedFields];
    const known = new Set([...texts.flatMap(fieldsOf), ...storeFields, 'iters']);
    expect(workloadFieldNames.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('threads over iWARP', () => {
  const rowOf = (text: string, partition: Partition = 'single') =>
    runPerf({ machine: { ...machine, partition }, args: perfArgsOf(parsedWorkload(`${text},iters=16`)) });

  it.each([
    ['read-bw,size=64,threads=2,qps=2', 2],
    ['read-bw,size=4096,threads=2,qps=5', 2],
    ['send-bw,size=64,threads=4,qps=8,bidirectional', 4],
    ['send-bw,size=64,threads=4,qps=6,echo,txDepth=8,rxDepth=8,useSrq', 4],
  ])('connect the QPs of each at a port of its own: %s', async (text, threads) => {
    const row = await rowOf(text);
    expect(row.isBalanced).toBe(true);
    // A client and a server each.
    expect(row.cores).toHaveLength(2 * threads);
  });

  it('have the same row in every partition', async () => {
    const text = 'write-bw,size=64,threads=4,qps=8';
    expect(await rowOf(text, 'per-node')).toEqual(await rowOf(text));
  });
});

it('connects more QPs than the card has places for unacknowledged segments: each MPA request waits for one', async () => {
  const set = { ...machine.set, 'hca.iwarp.retransmissionBytes': 4096 };
  const args = perfArgsOf(parsedWorkload('read-bw,size=64,qps=8,iters=4'));
  expect(await runPerf({ machine: { set }, args })).toMatchObject({ isBalanced: true });
});

it('a test over RoCE has the tests and fields that iWARP lacks', () => {
  const roce = configuredOf({ set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } });
  const texts = [...Object.keys(refusedTests), ...refusedFields.map(([text]) => text)];
  for (const text of texts) checkPort(perfArgsOf(parsedWorkload(text)), roce.config);
});
