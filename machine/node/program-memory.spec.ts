/** The memory of a program rejects invalid addresses and lengths, in every call. */
import { expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { Machine } from '../machine.ts';
import type { ProgramMemory } from './program-memory.ts';

const hostile = [Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, -1, 0.5, 2 ** 53, 1e300];
const bytes = new Uint8Array(8);

/** Each call receives a mapped address; the second number is an additional or replacing argument. */
const calls: Readonly<Record<string, (memory: ProgramMemory, address: number, odd: number) => unknown>> = {
  map: (memory, _, odd) => memory.map(odd),
  'mapFixed address': (memory, _, odd) => memory.mapFixed(odd, 4096, {}, 'noReplace'),
  'mapFixed length': (memory, address, odd) => memory.mapFixed(address, odd),
  'unmap address': (memory, _, odd) => memory.unmap(odd, 4096),
  'unmap length': (memory, address, odd) => memory.unmap(address, odd),
  'remap length': (memory, address, odd) => memory.remap(address, odd, 4096, true),
  'remap new length': (memory, address, odd) => memory.remap(address, 4096, odd, true),
  'protect length': (memory, address, odd) => memory.protect(address, odd, 'read'),
  'advise length': (memory, address, odd) => memory.advise(address, odd, 'dontFork'),
  'read address': (memory, address, odd) => memory.read(odd === 0.5 ? address + odd : odd, 8),
  'read length': (memory, address, odd) => memory.read(address, odd),
  'write address': (memory, address, odd) => memory.write(odd === 0.5 ? address + odd : odd, bytes),
  'touch length': (memory, address, odd) => memory.touch(address, odd, 'read'),
  'load address': (memory, _, odd) => memory.load(odd, bytes),
  'store address': (memory, _, odd) => memory.store(odd, bytes),
};

it('accepts only non-negative integers, and otherwise leaves its bytes unchanged', async () => {
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': 64 } });
  const taken: string[] = [];
  let left: Uint8Array = bytes;
  await machine.load({
    node: 0,
    run: async ({ memory }) => {
      const address = memory.map(8192);
      memory.write(address, bytes.fill(7));
      for (const [name, call] of Object.entries(calls)) {
        for (const odd of hostile) {
          const attempt = async () => call(memory, address, odd);
          const error = await attempt().catch((thrown: unknown) => thrown);
          if (!(error instanceof ConfigurationError)) taken.push(`${name} ${odd}`);
        }
      }
      left = memory.read(address, 8);
    },
  });
  await machine.run();
  expect(taken).toEqual([]);
  expect(left).toEqual(new Uint8Array(8).fill(7));
});
