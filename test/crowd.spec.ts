/**
 * Crowds: many programs with their own QPs on both hosts, and a device with the smallest queues that a configuration allows.
 * Nothing overflows, a full queue stalls its producer, and every request completes once.
 */
import { expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programOf, runPrograms } from './machines.ts';
import type { CrowdArgs } from './programs/crowd.ts';

vi.setConfig({ testTimeout: 120_000 });

const cores = 4;

/** Returns as many programs as cores, on each host. */
const crowdOf = (args: Omit<CrowdArgs, 'label'>) =>
  Array.from({ length: cores }, (_, index) => [0, 1].map((node) => memberOf(index, node, args))).flat();

const memberOf = (index: number, node: number, args: Omit<CrowdArgs, 'label'>) =>
  programOf('crowd', 'member', node, {
    name: `crowd ${index} at ${node}`,
    args: { ...args, label: `crowd ${index}` } as never,
  });

it('accepts doorbells for QPs that are being served, for as long as they arrive', async () => {
  const args: Omit<CrowdArgs, 'label'> = {
    qps: 2,
    requests: 600,
    window: 16,
    bytes: 768,
    verbs: ['write'],
    nodes: [0, 1],
  };
  const { results, report } = await runPrograms(crowdOf(args));
  for (const result of results) expect(result).toEqual({ wrong: [], done: [600, 600] });
  expectBalanced(report);
});

/** Every configurable size at its minimum. */
const tiniest: Readonly<Record<string, number | string>> = {
  'hca.transmitBufferPackets': 2,
  'hca.responseBufferPackets': 2,
  'hca.completionFifoDepth': 2,
  'hca.outstandingWqes': 4,
  'hca.outstandingWqesPerQp': 1,
  'hca.wqeLineCount': 2,
  'hca.wqePrefetchCount': 1,
  'hca.wqeFetchOutstanding': 1,
  'hca.receiveQueueLineCount': 2,
  'hca.receivePrefetchCount': 1,
  'hca.burstPackets': 1,
  'hca.loopbackBufferPackets': 1,
  'hca.responderAtomicResults': 1,
  'hca.qpcCacheEntries': 2,
  'hca.qpcCacheWays': 1,
  'hca.cqcCacheEntries': 1,
  'hca.cqcCacheWays': 1,
  'hca.mptCacheEntries': 1,
  'hca.mptCacheWays': 1,
  'hca.mttCacheLines': 1,
  'hca.mttCacheWays': 1,
  'dma.tagCount': 1,
  'wire.receiveBufferBytes': 8448,
  'wire.transmitAheadBytes': 0,
  'pcie.endpointPort.postedHeaders': 2,
  'pcie.endpointPort.nonPostedHeaders': 1,
  'pcie.endpointPort.postedFifoTlps': 1,
  'pcie.endpointPort.nonPostedFifoTlps': 1,
  'pcie.endpointPort.completionFifoTlps': 1,
  'pcie.endpointPort.transmitBufferTlps': 1,
  'pcie.function.requestFifoDepth': 3,
  'pcie.rootPort.postedHeaders': 2,
  'pcie.rootPort.nonPostedHeaders': 1,
  'pcie.rootPort.postedFifoTlps': 1,
  'pcie.rootPort.nonPostedFifoTlps': 1,
  'pcie.rootPort.completionFifoTlps': 1,
  'pcie.rootPort.transmitBufferTlps': 1,
};

it.each([
  ['with everything as small as it may be', tiniest],
  [
    'with everything as small as it may be, over the slowest slot',
    { ...tiniest, 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  ],
])('stalls and loses nothing in either direction, with all verbs, %s', async (_, set) => {
  const args: Omit<CrowdArgs, 'label'> = {
    qps: 3,
    requests: 12,
    window: 4,
    bytes: 1500,
    verbs: ['write', 'read', 'send'],
    nodes: [0, 1],
  };
  const { results, report } = await runPrograms(crowdOf(args), { set });
  for (const result of results) expect(result).toEqual({ wrong: [], done: [12, 12, 12] });
  expectBalanced(report);
});
