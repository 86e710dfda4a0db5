/** Guests of a test, in which the steps of a scenario run one after another, each in its own test. */
import { GuestError } from '../../guests/linux/index.ts';

/** Required interface of guests: their power can be cut. */
interface Guests {
  readonly session: AsyncDisposable;
}

interface StepIn<Stage> {
  readonly title: string;
  /** @returns text worth showing */
  run(stage: Stage): Promise<string | undefined>;
}

/**
 * A failed step is tried once more in freshly booted guests, after all earlier steps: a guest that no longer answers is not
 * used again, and nothing is left of the first try. Both tries are printed. At most one additional boot is made; if a step
 * fails after it, all later steps fail at once.
 */
export class Staged<Stage extends Guests> {
  readonly #start: (onNotice: (text: string) => void) => Promise<Stage>;
  readonly #print: (text: string) => void;
  readonly #taken: StepIn<Stage>[] = [];
  #stage: Stage | undefined;
  #hasBootedAnew = false;
  #failure: string | undefined;
  /** Output of the devices about guests that wait or disconnect. */
  readonly #notices: string[] = [];

  /** @param start boots the guests; @param print receives the output of a failed step */
  constructor(
    start: (onNotice: (text: string) => void) => Promise<Stage>,
    print: (text: string) => void = (text) => console.error(text),
  ) {
    this.#start = start;
    this.#print = print;
  }

  async boot(): Promise<void> {
    this.#stage = await this.#start((text) => this.#notices.push(text));
  }

  async take(step: StepIn<Stage>): Promise<string | undefined> {
    this.#checkTried();
    try {
      return await this.#run(step);
    } catch (error) {
      this.#print(`"${step.title}" failed:\n${[String(error), ...this.#notices].join('\n')}`);
      this.#failure = step.title;
      if (this.#hasBootedAnew || !(error instanceof GuestError)) throw error;
    }
    this.#hasBootedAnew = true;
    await this.end();
    await this.boot();
    for (const earlier of this.#taken.splice(0)) await this.#run(earlier);
    const seen = await this.#run(step);
    this.#failure = undefined;
    return seen;
  }

  /** The guests after all steps, to be ended as their user would. */
  finished(): Stage {
    this.#checkTried();
    return this.#stage!;
  }

  /** Cuts the power of guests that still run. */
  async end(): Promise<void> {
    await this.#stage?.session[Symbol.asyncDispose]();
  }

  #checkTried(): void {
    if (this.#failure !== undefined) throw new Error(`not tried, since "${this.#failure}" failed`);
  }

  async #run(step: StepIn<Stage>): Promise<string | undefined> {
    const seen = await step.run(this.#stage!);
    this.#taken.push(step);
    return seen;
  }
}
