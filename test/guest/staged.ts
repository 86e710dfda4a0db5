/** Guests of a test, in which the steps of a scenario are carried out one after the other, in tests of their own. */
import { GuestError } from '../../guests/linux/index.ts';

/** What is needed of guests: that their power can be cut. */
interface Guests {
  readonly session: AsyncDisposable;
}

interface StepIn<Stage> {
  readonly title: string;
  /** @returns what is worth telling */
  run(stage: Stage): Promise<string | undefined>;
}

/**
 * A step that fails is tried once more in guests that boot anew, after all the steps before it: a guest that no longer answers is not
 * asked again, and what is left over from the first try is gone. Both tries are printed. One boot more is had in all; where a step fails
 * after it, those behind it fail at once.
 */
export class Staged<Stage extends Guests> {
  readonly #start: (onNotice: (text: string) => void) => Promise<Stage>;
  readonly #print: (text: string) => void;
  readonly #taken: StepIn<Stage>[] = [];
  #stage: Stage | undefined;
  #hasBootedAnew = false;
  #failure: string | undefined;
  /** What the devices said of guests that wait or go. */
  readonly #notices: string[] = [];

  /** @param start boots the guests; @param print takes what is said of a step that failed */
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

  /** Cuts the power of what still runs. */
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
