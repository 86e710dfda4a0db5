/**
 * The program owns memory again when a call that takes it from the device returns: ibv_dereg_mr, ibv_destroy_qp, ibv_modify_qp
 * to RESET (InfiniBand vol 1, 10.6.7.2, 10.2.4.4 and 10.3.1: no access of the channel interface afterwards).
 */
import { describe, expect, it, vi } from 'vitest';
import type { JsonValue } from '../machine/program.ts';
import { expectBalanced } from './expectations.ts';
import { eachPartition, programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Each has long accesses in progress: because of the link, its tags, the host's memory, or late and mixed answers. */
const hosts: Readonly<Record<string, Readonly<Record<string, string | number>>>> = {
  'a link of one lane, Gen1': { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  'one tag': { 'dma.tagCount': 1 },
  'slow memory that answers in any order': {
    'pcie.rootComplex.readLatencyPs': 20_000_000,
    'pcie.rootComplex.completionJitterPs': 5_000_000,
    'pcie.rootComplex.completionOrder': 'shuffled',
  },
};
const traffics = [
  'gathers a WRITE',
  'answers a READ',
  'places a WRITE',
  'places the answer of a READ',
  'scatters a SEND',
];

async function expectLeftAlone(
  set: Readonly<Record<string, string | number>>,
  args: JsonValue,
): Promise<void> {
  const { results, report } = await runPrograms(programsOf('withdrawals', 'withdraw', args), { set });
  expect([args, ...results]).toEqual([args, 0, 0]);
  expectBalanced(report);
}

describe.each(Object.entries(hosts))('on a host with %s', (_host, set) => {
  it.each(traffics)('a device that %s does not access the memory after ibv_dereg_mr', async (traffic) => {
    for (const delayUs of [0, 40]) await expectLeftAlone(set, { traffic, by: 'deregMr', delayUs });
  });
});

describe.each(['destroyQp', 'modifyQp to RESET'])('after %s', (by) => {
  it.each(traffics)('a device that %s does not access the memory', (traffic) =>
    expectLeftAlone(hosts['a link of one lane, Gen1']!, { traffic, by, delayUs: 3 }),
  );
});

it.each(eachPartition)('deregistration waits for accesses in progress in partition %s', async (partition) => {
  const set = hosts['a link of one lane, Gen1']!;
  const args = { traffic: 'gathers a WRITE', by: 'deregMr', delayUs: 3 };
  const { results } = await runPrograms(programsOf('withdrawals', 'withdraw', args), { set, partition });
  expect(results).toEqual([0, 0]);
});
