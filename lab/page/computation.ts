import { Latest } from './latest.ts';
import { messageOf } from './watched.ts';

/** The simulation of which a view shows the result: of several started, the last one counts. */
export class Computation {
  isRunning = false;
  error: string | undefined;
  readonly #latest = new Latest();
  readonly #draw: () => void;

  constructor(draw: () => void) {
    this.#draw = draw;
  }

  /** @param simulate receives a test of whether no other simulation was started since */
  async run(simulate: (isWanted: () => boolean) => Promise<void>): Promise<void> {
    const isWanted = this.#latest.begin();
    this.isRunning = true;
    try {
      await simulate(isWanted);
    } catch (error) {
      if (isWanted()) this.error = messageOf(error);
    } finally {
      if (isWanted()) {
        this.isRunning = false;
        this.#draw();
      }
    }
  }
}
