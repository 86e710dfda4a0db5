/** Admits one thread at a time: readers of a socket among themselves, and writers, so that their bytes keep their order. */
import type { Cpu, NetPlatform, Signal } from '../platform.ts';

export class Turn {
  readonly #released: Signal;
  #isTaken = false;

  constructor(platform: NetPlatform) {
    this.#released = platform.newSignal();
  }

  /** Runs `body` while no other thread is inside; the turn is released even if the body throws. */
  async run<T>(cpu: Cpu, body: () => Promise<T>): Promise<T> {
    while (this.#isTaken) await this.#released.wait(cpu);
    this.#isTaken = true;
    try {
      return await body();
    } finally {
      this.#isTaken = false;
      this.#released.raise();
    }
  }
}
