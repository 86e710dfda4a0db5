import { expect, it } from 'vitest';
import { ContextRegisters } from './context-registers.ts';

it('loads the context of a QP whose register another one has taken, the least recently used', () => {
  const registers = new ContextRegisters({ sendContextRegisters: 2, sendContextLoadCycles: 5 });
  // 1 and 2 are loaded; 1 is used again, so 3 takes the register of 2.
  expect([1, 2, 1, 3, 1, 2].map((qp) => registers.load(qp))).toEqual([5, 5, 0, 5, 0, 5]);
  registers.reset();
  expect(registers.load(2)).toBe(5);
});

it('costs nothing where the requester has no registers', () => {
  const registers = new ContextRegisters({ sendContextRegisters: 0, sendContextLoadCycles: 5 });
  expect([1, 2].map((qp) => registers.load(qp))).toEqual([0, 0]);
});
