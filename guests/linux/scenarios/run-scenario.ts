/** Runs a scenario from beginning to end, and reports each step; a failed step ends it. */
import type { ServeReport } from '../../serve/index.ts';
import { GuestError } from '../guest-error.ts';
import type { VectorComparison } from '../interrupts.ts';
import { finishScenario, type Scenario } from './scenario.ts';
import type { Stage } from './stage.ts';

interface StepOutcome {
  readonly title: string;
  readonly holds: boolean;
  /** The observed output, or the error. */
  readonly text: string;
  /** On the session's clock, so that a run of this process is the same every time. */
  readonly elapsedMs: number;
}

export interface ScenarioOutcome {
  readonly scenario: string;
  readonly holds: boolean;
  readonly steps: readonly StepOutcome[];
  readonly figures: Readonly<Record<string, number>>;
  readonly interrupts: readonly VectorComparison[];
  /** Findings of the analysers; left out without an analysis, or if a step failed. */
  readonly analyses?: ServeReport['analyses'];
}

/**
 * @param start boots the guests
 * @param whenOver inspects the devices at the end, in any case
 * @throws ConfigurationError for options; GuestError if the guests do not start
 */
export async function runScenario(
  scenario: Scenario,
  start: () => Promise<Stage>,
  print: (line: string) => void,
  whenOver: (stage: Stage, holds: boolean) => Promise<void> = async () => {},
): Promise<ScenarioOutcome> {
  print(`${scenario.name}: ${scenario.title}`);
  const stage = await start();
  await using _session = stage.session;
  const steps: StepOutcome[] = [];
  const take = async (title: string, act: () => Promise<string | undefined>): Promise<boolean> => {
    const outcome = await outcomeOf(title, stage, act);
    steps.push(outcome);
    const seconds = (outcome.elapsedMs / 1000).toFixed(1);
    print(`  ${outcome.holds ? 'ok    ' : 'FAILED'} ${seconds.padStart(5)} s  ${title}`);
    if (outcome.text !== '') print(outcome.text.replace(/^/gm, '                  '));
    return outcome.holds;
  };
  let interrupts: readonly VectorComparison[] = [];
  let analyses: ServeReport['analyses'] = [];
  let holds = true;
  for (const step of scenario.steps) holds &&= await take(step.title, () => step.run(stage));
  holds &&= await take('the ledgers balance, and device and guest agree on interrupts', async () => {
    const result = await finishScenario(stage);
    ({ interrupts } = result);
    ({ analyses } = result.report);
    return interrupts.map(({ name, guestCount }) => `${name} ${guestCount}`).join(', ');
  });
  await whenOver(stage, holds);
  return {
    ...{ scenario: scenario.name, holds, steps, figures: stage.figures, interrupts },
    ...(analyses.length > 0 ? { analyses } : {}),
  };
}

async function outcomeOf(
  title: string,
  { session }: Stage,
  act: () => Promise<string | undefined>,
): Promise<StepOutcome> {
  const startMs = session.nowMs;
  const elapsedMs = (): number => Math.round(session.nowMs - startMs);
  try {
    const text = (await act()) ?? '';
    return { title, holds: true, text, elapsedMs: elapsedMs() };
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    return { title, holds: false, text: error.message, elapsedMs: elapsedMs() };
  }
}
