import { expect, it } from 'vitest';
import { machineOptionsOf } from './options.ts';

it('distinguishes two seeds', () => {
  const set = ['machine.seed=3'];
  expect(machineOptionsOf({ set })).toMatchObject({ set: { 'machine.seed': 3 } });
  expect(machineOptionsOf({ set, seed: 3 })).toMatchObject({ seed: 3 });
  expect(() => machineOptionsOf({ set, seed: 7 })).toThrow(
    '--seed is 7, expected left out with --set machine.seed=3',
  );
});
