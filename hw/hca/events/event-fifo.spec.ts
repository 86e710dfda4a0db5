import { expect, it } from 'vitest';
import { eventFormat } from '../connectx3/event-format.ts';
import { EventFifo } from './event-fifo.ts';

it('an entry that was dropped behind one that had not left is held until it has left, if both are written anew', () => {
  const fifo = new EventFifo(4, eventFormat);
  for (const eqn of [1, 2]) fifo.push(eqn, 0x13, 0, 0);
  fifo.take();
  fifo.take();
  fifo.release(1);
  expect(fifo.takeBack()).toEqual({ eqns: [1], droppedCount: 1 });
  fifo.take();
  fifo.take();
  fifo.release(0);
  expect([fifo.heldCount, fifo.hasAllLeft]).toEqual([1, false]);
  fifo.release(1);
  expect([fifo.heldCount, fifo.hasAllLeft]).toEqual([0, true]);
});
