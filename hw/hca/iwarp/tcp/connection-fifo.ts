/** A fifo of connections, by their slots. Each slot is in it once, whichever connection has the slot. */
import type { Cycles } from '../../../../base/index.ts';
import { Fifo } from '../../../../sim/index.ts';

export class ConnectionFifo {
  readonly fifo: Fifo;
  readonly #isIn: Uint8Array;

  constructor(name: string, capacity: number) {
    this.fifo = new Fifo({ name, capacity, whenFull: 'never: each connection waits once' });
    this.#isIn = new Uint8Array(capacity);
  }

  has(slot: number): boolean {
    return this.#isIn[slot] === 1;
  }

  /** @returns false if the slot is in the fifo already */
  push(slot: number, visibleCycle: Cycles): boolean {
    if (this.#isIn[slot] === 1) return false;
    this.#isIn[slot] = 1;
    this.fifo.push(slot, visibleCycle);
    return true;
  }

  pop(): number {
    const slot = this.fifo.pop();
    this.#isIn[slot] = 0;
    return slot;
  }

  clear(): void {
    this.fifo.clear();
    this.#isIn.fill(0);
  }
}
