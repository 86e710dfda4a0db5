/** "What if": points of one configuration start from the image of a booted machine and have the figures of fresh machines. */
import { expect, it } from 'vitest';
import type { LabMessage } from '../protocol.ts';
import { latency, machines, rate } from './what-if.ts';

it('answers the same in any order, from an image or after a boot', async () => {
  const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };
  const message: LabMessage = { verb: 'write', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 };
  const first = await latency(machine, message);
  await rate(machine, message, 2);
  expect(first.isBalanced).toBe(true);
  expect(await latency(machine, message)).toEqual(first);
  const other = { ...machine, set: { 'wire.cableMetres': 100 } };
  expect((await latency(other, message)).meanPs).toBeGreaterThan(first.meanPs);
  expect(await latency(machine, message)).toEqual(first);
});

it('boots once for each machine: not for another message, nor for the other machine', async () => {
  const machine = { profile: 'connectx3-qdr', set: {}, seed: 2 };
  const other = { ...machine, set: { 'hca.mttCacheLines': 64 } };
  const message: LabMessage = { verb: 'write', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 };
  const bootsBefore = machines.counts.booted;
  for (const verb of ['write', 'read'] as const)
    for (const one of [machine, other]) {
      for (const sizeBytes of [1, 4096]) await latency(one, { ...message, verb, sizeBytes });
      await rate(one, { ...message, verb }, 2);
    }
  expect(machines.counts.booted - bootsBefore).toBe(2);
});

it.each([1000, 5000])(
  'boots once with cores of %i MHz, slow or quick to wake a program',
  async (clockMHz) => {
    const machine = { profile: 'connectx3-qdr', set: { 'host.core.clockMHz': clockMHz }, seed: 1 };
    const message: LabMessage = { verb: 'write', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 };
    const bootsBefore = machines.counts.booted;
    for (const sizeBytes of [1, 4096]) await latency(machine, { ...message, sizeBytes });
    expect(machines.counts.booted - bootsBefore).toBe(1);
  },
);
