/**
 * Turns a scenario of system/linux-lab into tests: a boot for all, a test for each step, and one for the ledgers at the end.
 * Where a guest cannot be had (no apt, no koffi, another platform) the tests are skipped, each saying why; under CI a
 * guest that cannot be had fails.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import { nativeUnavailableReason } from '../../guest/index.ts';
import {
  defaultCacheFolder,
  finishScenario,
  GuestError,
  guestFiles,
  type Scenario,
  type ScenarioOptions,
  type SessionResult,
  type Stage,
  type Step,
  scenarioNamed,
  silentProgress,
  startScenario,
} from '../../system/linux-lab/index.ts';

export type Kernel = 'debian' | 'backports';

/** Where guests of tests come from. */
export const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };

/** Booting takes seconds, several times that on a busy machine. */
export const bootTimeoutMs = 240_000;
const stepTimeoutMs = 900_000;

/** Why no guest can be had with this kernel; undefined when it can. Fetches what is missing. */
export async function reasonAgainst(kernel: Kernel): Promise<string | undefined> {
  const reason = nativeUnavailableReason();
  if (reason !== undefined) return reason;
  try {
    await guestFiles(kernel, cache);
    return undefined;
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return error.message;
  }
}

/** How guests of tests are started. */
export const optionsFor = (kernel: Kernel, cpus = 2): ScenarioOptions => ({
  kernel,
  cache,
  memoryMib: 1024,
  cpus,
  console: 'kept',
  serve: {},
  onNotice: () => {},
});

/** Of stock drivers, which keep the rules of the adapter's interface: the linter watches all that they do. */
const linted = [
  ...['cable', 'ethernet-offloads', 'ethernet-peer', 'loopback', 'nfs', 'nfs-roce', 'probe', 'raw-packets'],
  ...['roce', 'roce-peer', 'roce-v1', 'roce-v1-peer', 'subnet-manager', 'two-guests'],
];

/**
 * Guests in which the steps of a scenario are carried out. A step that fails is tried once more in guests that boot anew, after all
 * the steps before it: a guest that no longer answers is not asked again, and what is left over from the first try is gone. Both
 * tries are printed. One boot more is had in all; where a step fails after it, those behind it fail at once.
 */
class Staged {
  readonly #start: () => Promise<Stage>;
  readonly #taken: Step[] = [];
  #stage: Stage | undefined;
  #hasBootedAnew = false;
  #failure: string | undefined;
  /** What the devices said of guests that wait or go. */
  readonly #notices: string[] = [];

  constructor(scenario: Scenario, options: ScenarioOptions) {
    this.#start = () => startScenario(scenario, { ...options, onNotice: (text) => this.#notices.push(text) });
  }

  async boot(): Promise<void> {
    this.#stage = await this.#start();
  }

  async take(step: Step): Promise<string | undefined> {
    if (this.#failure !== undefined) expect.fail(`not tried, since "${this.#failure}" failed`);
    try {
      return await this.#run(step);
    } catch (error) {
      console.error(`"${step.title}" failed:\n${[String(error), ...this.#notices].join('\n')}`);
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

  async #run(step: Step): Promise<string | undefined> {
    const seen = await step.run(this.#stage!);
    this.#taken.push(step);
    return seen;
  }

  /** Ends the scenario as its guests' user would, and looks at the books. */
  finish(): Promise<SessionResult> {
    if (this.#failure !== undefined) expect.fail(`not tried, since "${this.#failure}" failed`);
    return finishScenario(this.#stage!);
  }

  /** Cuts the power of what still runs. */
  async end(): Promise<void> {
    await this.#stage?.session[Symbol.asyncDispose]();
  }
}

/** Declares the tests of a scenario, of its brief steps where it has such. */
export async function testScenario(name: string, kernel: Kernel): Promise<void> {
  const scenario = scenarioNamed(name);
  const isLinted = linted.includes(name);
  const title = `${scenario.title} (Linux of ${kernel})`;
  const reason = await reasonAgainst(kernel);
  if (reason !== undefined) {
    describe(title, () => {
      if (process.env['CI'] === 'true') it('has a guest', () => expect.fail(reason));
      else it.skip(`needs a guest: ${reason}`);
    });
    return;
  }
  describe(title, () => {
    // Of two guests each has one processor: they start in two thirds of the time, and guests that are alone have several.
    const options = optionsFor(kernel, scenario.guests === 2 ? 1 : 2);
    const staged = new Staged(
      scenario,
      isLinted ? { ...options, serve: { analysis: { lint: true } } } : options,
    );
    beforeAll(() => staged.boot(), bootTimeoutMs);
    afterAll(() => staged.end());
    for (const step of scenario.briefSteps ?? scenario.steps) {
      it(step.title, { timeout: stepTimeoutMs, retry: 0 }, async ({ annotate }) => {
        const seen = await staged.take(step);
        if (seen !== undefined) await annotate(seen);
      });
    }
    it('ends with ledgers that balance, and interrupts on which device and guest agree', {
      timeout: stepTimeoutMs,
      // It ends the guests, which a second try would ask.
      retry: 0,
    }, async () => {
      const { report } = await staged.finish();
      expect(report.analyses).toHaveLength(isLinted ? scenario.hcas : 0);
      expect(report.analyses.flatMap(({ findings }) => findings)).toEqual([]);
    });
  });
}
