/**
 * Turns a scenario of guests/linux into tests: one boot for all, a test for each step, and one for the ledgers at the end. If
 * guests are unavailable (no apt, no koffi, another platform) the tests are skipped with a reason; under CI they fail.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import {
  defaultCacheFolder,
  finishScenario,
  guestFiles,
  type ScenarioOptions,
  scenarioNamed,
  silentProgress,
  startScenario,
} from '../../guests/linux/index.ts';
import { nativeUnavailableReason } from '../../guests/slot/index.ts';
import { CableCapture } from './cable-capture.ts';
import { Staged } from './staged.ts';

export type Kernel = 'debian' | 'backports';

/** Source of the tests' guests. */
export const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };

/** Booting takes seconds, several times that on a busy machine. */
export const bootTimeoutMs = 240_000;
const stepTimeoutMs = 900_000;

/** Why no guest with this kernel is available; undefined if one is. Fetches and builds missing parts. */
export async function reasonAgainst(kernel: Kernel, hasSoftIwarp = false): Promise<string | undefined> {
  const reason = nativeUnavailableReason();
  if (reason !== undefined) return reason;
  try {
    await guestFiles({ kernel, hasSoftIwarp }, cache);
    return undefined;
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return error.message;
  }
}

/** Options with which guests of tests are started. */
export const optionsFor = (kernel: Kernel, cpus = 2): ScenarioOptions => ({
  kernel,
  cache,
  memoryMib: 1024,
  cpus,
  console: 'kept',
  serve: {},
  onNotice: () => {},
});

/** Scenarios of stock drivers, which keep the rules of the adapter's interface: the linter checks all their actions. */
const linted = [
  ...['cable', 'ethernet-offloads', 'ethernet-peer', 'loopback', 'nfs', 'nfs-roce', 'probe', 'raw-packets'],
  ...['roce', 'roce-peer', 'roce-v1', 'roce-v1-peer', 'subnet-manager', 'two-guests'],
];

/** Expectations of the frames on a scenario's cable. */
export interface CableCheck {
  /** Capture of one end alone, so that each frame appears once. */
  readonly sizeBytes: number;
  /** Fails for frames that are wrong. @returns a summary */
  check(file: string): Promise<string>;
}

/** Declares the tests of a scenario, of its brief steps where it has such; left out, `cable` expects packets of RDMA. */
export async function testScenario(name: string, kernel: Kernel, cable?: CableCheck): Promise<void> {
  const scenario = scenarioNamed(name);
  const isLinted = linted.includes(name);
  const title = `${scenario.title} (Linux of ${kernel})`;
  const reason = await reasonAgainst(kernel, scenario.hasSoftIwarp);
  if (reason !== undefined) {
    describe(title, () => {
      if (process.env['CI'] === 'true') it('has a guest', () => expect.fail(reason));
      else it.skip(`needs a guest: ${reason}`);
    });
    return;
  }
  describe(title, () => {
    // Each of two guests has one processor, since they then start in two thirds of the time; a single guest has several.
    const options = optionsFor(kernel, scenario.guests === 2 ? 1 : 2);
    const capture =
      cable === undefined ? new CableCapture(scenario.hcas) : new CableCapture(1, cable.sizeBytes);
    const analysis = { capture: capture.options, ...(isLinted ? { lint: true } : {}) };
    const serve = { analysis };
    const staged = new Staged((onNotice) => startScenario(scenario, { ...options, serve, onNotice }));
    beforeAll(() => staged.boot(), bootTimeoutMs);
    afterAll(async () => {
      await staged.end();
      capture.close();
    });
    for (const step of scenario.briefSteps ?? scenario.steps) {
      it(step.title, { timeout: stepTimeoutMs, retry: 0 }, async ({ annotate }) => {
        const seen = await staged.take(step);
        if (seen !== undefined) await annotate(seen);
      });
    }
    it('ends with ledgers that balance, and interrupts on which device and guest agree', {
      timeout: stepTimeoutMs,
      // It ends the guests, which a second try would need.
      retry: 0,
    }, async ({ annotate }) => {
      const { report } = await finishScenario(staged.finished());
      expect(report.analyses).toHaveLength(isLinted ? scenario.hcas : 0);
      expect(report.analyses.flatMap(({ findings }) => findings)).toEqual([]);
      if (cable !== undefined) {
        await annotate(await cable.check(capture.options.file));
        return;
      }
      // IBTA vol 1, 7.8: headers and CRCs of all packets on the cable, checked by a reader that shares no code with the device.
      const { packets, wrong } = capture.read();
      expect(wrong).toEqual([]);
      await annotate(`${packets} packets of the cable are right`);
    });
  });
}
