/** Shared parts of the tests of a Linux in this process. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import {
  defaultCacheFolder,
  finishScenario,
  type InsideStage,
  insideFiles,
  insideScenarioOf,
  scenarioNamed,
  silentProgress,
  startInside,
} from '../../guests/linux/index.ts';
import type { DevicesReport } from '../../guests/serve/index.ts';
import { CableCapture } from './cable-capture.ts';

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

/** The devices' report at the end of a scenario, and its capture of the cable. */
interface ScenarioEnd {
  readonly report: DevicesReport;
  readonly capture: CableCapture;
}

/** How many commands of each name the drivers have sent to an HCA. */
export const commandCounts = ({ nodes }: DevicesReport, names: readonly string[], node = 0): number[] =>
  names.map((name) => nodes[node]!.hca.commands[name]?.count ?? 0);

/** Packets of each opcode in a direction of the cable, from the first HCA (0) or to it (1). */
export const packetCounts = ({ wire }: DevicesReport, direction: 0 | 1): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(wire[direction]!.opcodes).map(([opcode, { packets }]) => [opcode, packets]),
  );

/**
 * Declares the tests of a scenario in this process: its brief steps where it has such, then the ledgers, the linter and the
 * packets of the cable.
 * @param check expects counts that follow from the scenario's commands
 */
export async function testInsideScenario(
  name: string,
  check: (end: ScenarioEnd) => void = () => {},
  memoryMib: number = slowPc.memoryMib,
): Promise<void> {
  const scenario = insideScenarioOf(scenarioNamed(name));
  const reason = await reasonAgainstInside('debian');
  const isSkipped = reason !== undefined && process.env['CI'] !== 'true';
  describe.skipIf(isSkipped)(`${scenario.title} (in this process)`, () => {
    const capture = new CableCapture(scenario.hcas);
    const analysis = { capture: capture.options, lint: true };
    let stage: InsideStage;
    let hasFailed = false;
    beforeAll(async () => {
      expect(reason).toBeUndefined();
      stage = await startInside(scenario, {
        kernel: 'debian',
        cache,
        pc: { ...slowPc, memoryMib },
        analysis,
      });
    }, insideBootTimeoutMs);
    afterAll(async () => {
      await stage?.session[Symbol.asyncDispose]();
      capture.close();
    });
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
      // No store of a stock driver goes to a place without a doorbell: a post would be lost with it.
      for (const { hca } of report.nodes) expect(hca.violations).not.toHaveProperty('doorbellOffset');
      // Notes tell what a driver leaves that a fault has ended.
      const findings = report.analyses.flatMap((each) => each.findings);
      expect(findings.filter(({ severity }) => severity !== 'note')).toEqual([]);
      // IBTA vol 1, 7.8: headers and CRCs of all packets, checked by a reader that shares no code with the device.
      expect(capture.read().wrong).toEqual([]);
      check({ report, capture });
    });
  });
}
