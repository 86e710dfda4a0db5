/**
 * Crowds: many programs with QPs of their own at both hosts, and a device whose queues hold as little as a configuration may
 * ask for. Nothing overflows, whatever is full stalls what fills it, and every request completes once.
 */
import { expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programOf, runPrograms } from './machines.ts';
import type { CrowdArgs } from './programs/crowd.ts';

vi.setConfig({ testTimeout: 120_000 });

const cores = 4;

/** As many programs as there are cores, at each host. */
const crowdOf = (args: Omit<CrowdArgs, 'label'>) =>
  Array.from({ length: cores }, (_, index) => [0, 1].map((node) => memberOf(index, node, args))).flat();

const memberOf = (index: number, node: number, args: Omit<CrowdArgs, 'label'>) =>
  programOf('crowd', 'member', node, {
    name: `crowd ${index} at ${node}`,
    args: { ...args, label: `crowd ${index}` } as never,
  });

it('takes doorbells for QPs that are being served, for as long as they come', async () => {
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
