/** Shared parts of the tests of a Linux in this process. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import {
  defaultCacheFolder,
  finishScenario,
  type InsideStage,
  insideFiles,
  insideScenarioOf,
  type LinuxMachineOptions,
  scenarioNamed,
  silentProgress,
  startInside,
} from '../../guests/linux/index.ts';

/** Source of the tests' guests. */
export const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };

/** A slow processor: what programs do between two readings of a clock costs this computer less. */
export const slowPc = { coreMhz: 200, memoryMib: 160 } as const;

/** Booting takes 20 s of one processor, several times that on a busy machine. */
export const insideBootTimeoutMs = 600_000;
const stepTimeoutMs = 900_000;

/** Why no guest with this kernel is available; undefined if one is. Fetches and builds missing parts. */
export async function reasonAgainstInside(kernel: string): Promise<string | undefined> {
  try {
    await insideFiles({ kernel }, cache);
    return undefined;
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return error.message;
  }
}

/** Declares the tests of a scenario in this process: its brief steps where it has such, and the ledgers at the end. */
export async function testInsideScenario(
  name: string,
  pc: LinuxMachineOptions['pc'] = slowPc,
): Promise<void> {
  const scenario = insideScenarioOf(scenarioNamed(name));
  const reason = await reasonAgainstInside('debian');
  const isSkipped = reason !== undefined && process.env['CI'] !== 'true';
  describe.skipIf(isSkipped)(`${scenario.title} (in this process)`, () => {
    let stage: InsideStage;
    let hasFailed = false;
    beforeAll(async () => {
      expect(reason).toBeUndefined();
      stage = await startInside(scenario, { kernel: 'debian', cache, pc });
    }, insideBootTimeoutMs);
    afterAll(() => stage?.session[Symbol.asyncDispose]());
    // The same steps give the same results: a second try would be no other.
    for (const step of scenario.briefSteps ?? scenario.steps)
      it(step.title, { timeout: stepTimeoutMs, retry: 0 }, async ({ annotate }) => {
        expect(hasFailed).toBe(false);
        hasFailed = true;
        const seen = await step.run(stage);
        hasFailed = false;
        if (seen !== undefined) await annotate(seen);
      });
    it('ends with ledgers that balance, and interrupts on which device and guest agree', {
      timeout: stepTimeoutMs,
      retry: 0,
    }, async () => {
      expect(hasFailed).toBe(false);
      const { report } = await finishScenario(stage);
      expect(report.checks.balanced).toBe(true);
    });
  });
}
