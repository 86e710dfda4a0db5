/**
 * A scenario: an arrangement of guests and adapters, and steps that run in them one after another; each step holds or reports
 * the observed difference. The command line runs scenarios by name (`hca guest --scenario`), and the test suite (test/guest)
 * runs the same ones, but shortens steps that only measure.
 */
import type { FaultPlan } from '../../../machine/faults/index.ts';
import type { ProgramModule } from '../../../machine/index.ts';
import type { ParameterValues } from '../../../machine/profile/index.ts';

import { differencesOf, peerFaultsOf } from '../guest-report.ts';
import { GuestSession, type SessionOptions } from '../guest-session.ts';
import { ScenarioFailure, Stage } from './stage.ts';
import type { StageResult } from './stage-session.ts';

export interface Step {
  /** A sentence that holds afterwards. */
  readonly title: string;
  /** Whether it restarts a guest or cuts its power, which a PC of this process does not survive; left out: false. */
  readonly needsQemu?: true;
  /** Throws ScenarioFailure if it does not hold; returns text worth showing. */
  run(stage: Stage): Promise<string | undefined>;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly hcas: 1 | 2;
  /** Whether a cable joins two HCAs; without it each talks to itself. */
  readonly isCabled: boolean;
  readonly guests: 1 | 2;
  readonly faults: FaultPlan;
  /** A simulated host at the other end of the cable, and its program; left out: none. */
  readonly peer?: ProgramModule;
  /** See GuestChoice. */
  readonly stranger?: 'rxe';
  /** See KernelChoice. */
  readonly hasSoftIwarp?: boolean;
  /** Why only guests of QEMU can run it, if the other fields do not say so. */
  readonly needsQemu?: string;
  /** Parameters that differ from the user's or the profile's. */
  readonly set?: ParameterValues;
  /** Whether the drivers are loaded before the first step. */
  readonly isLoaded: boolean;
  readonly steps: readonly Step[];
  /** The same steps with less repetition: for reported figures that are not asserted, and without checks that tests make elsewhere. */
  readonly briefSteps?: readonly Step[];
}

/** Options not set by the scenario. */
export type ScenarioOptions = Omit<SessionOptions, 'hcas' | 'guests' | 'cable' | 'peer' | 'stranger'>;

/** Serves and boots the scenario's machines. @throws ConfigurationError, GuestError */
export async function startScenario(scenario: Scenario, options: ScenarioOptions): Promise<Stage> {
  const { hcas, isCabled, guests, faults, peer, stranger, hasSoftIwarp, set = {} } = scenario;
  const session = await GuestSession.start({
    ...options,
    serve: {
      ...options.serve,
      set: { ...options.serve.set, ...set },
      faults: [...(options.serve.faults ?? []), ...faults],
    },
    hcas,
    guests,
    cable: isCabled,
    stranger,
    hasSoftIwarp: hasSoftIwarp ?? options.hasSoftIwarp,
    ...(peer === undefined ? {} : { peer: { run: peer } }),
  });
  try {
    if (scenario.isLoaded) await session.load();
  } catch (error) {
    await session[Symbol.asyncDispose]();
    throw error;
  }
  return new Stage(session);
}

/** Ends a scenario: its ledgers must balance, and interrupts agree. @throws ScenarioFailure naming a violation */
export async function finishScenario(stage: Stage): Promise<StageResult> {
  const result = await stage.session.finish();
  const { checks, defects } = result.report;
  const failures = [
    ...(checks.cpu === undefined ? [] : [checks.cpu]),
    checks.blocks,
    checks.pcie,
    checks.interrupts,
    checks.wire,
    checks.operations,
  ].flatMap((check) => check.failures);
  const complaints = [
    ...defects.map(({ access, message }) => `a defect of the emulator by ${access}: ${message}`),
    ...failures,
    ...differencesOf(result.interrupts),
    ...peerFaultsOf(result.report),
  ];
  if (complaints.length > 0) throw new ScenarioFailure(complaints.join('; '));
  return result;
}
