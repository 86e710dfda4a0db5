/** Runs a machine of simulated hosts until its programs end or no progress is possible, and diagnoses it. */
import { psPerMs } from '../../base/index.ts';
import type { Evidence } from '../../machine/evidence/index.ts';
import type { Machine } from '../../machine/index.ts';
import { RunError } from '../../sim/index.ts';
import type { Cause } from './cause.ts';
import { diagnose, type RunEnd } from './diagnose.ts';

/** End of a run, and its causes. */
export interface DiagnosedRun {
  /** Reason for the end of the run; left out if all programs have ended. */
  readonly error?: string;
  readonly findings: readonly Cause[];
}

/** Simulated time without a post, a completion or a served request after which a run counts as stuck. */
const patiencePs = 2000 * psPerMs;
/** Simulated time between two checks. */
const checkEveryPs = 200 * psPerMs;

/**
 * @param machine created with `analysis.evidence`
 * @param lineOf program line from which an error was thrown
 * @throws any error that is not a RunError
 */
export async function diagnosedRun(
  machine: Machine,
  lineOf: (error: unknown) => string | undefined = () => undefined,
): Promise<DiagnosedRun> {
  const ended = await runWhileItMoves(machine);
  const findings = await causesOf(machine, ended, lineOf);
  const error = ended instanceof Error ? ended.message : ended;
  return { ...(error === undefined ? {} : { error }), findings };
}

/**
 * The causes of failures in a stopped machine.
 * @param ended reason for the end of the run: an error, or the reason for giving up; undefined: all programs have ended
 */
export async function causesOf(
  machine: Machine,
  ended: unknown,
  lineOf: (error: unknown) => string | undefined,
): Promise<Cause[]> {
  const report = await machine.report();
  return diagnose(await machine.evidence(), endOf(ended, lineOf), report.faults ?? []);
}

/** Undefined if all programs have ended. */
async function runWhileItMoves(machine: Machine): Promise<RunError | string | undefined> {
  const motion = new MotionWatch(machine);
  try {
    for (;;) {
      // If programs wait only for events that never occur, the machine detects it itself.
      const { reason } = await machine.run(motion.isStuck ? undefined : machine.nowPs + checkEveryPs);
      if (reason === 'ended') return undefined;
      const verdict = await motion.check();
      if (verdict !== undefined) return verdict;
    }
  } catch (error) {
    if (error instanceof RunError) return error;
    throw error;
  }
}

/** Detects, between two runs of a machine, that there is no more progress. */
export class MotionWatch {
  /** Programs wait, and nothing is in progress: a run without a limit ends with a DeadlockError, unless an event is still due. */
  isStuck = false;
  readonly #machine: Machine;
  #progress = -1;
  #movedPs: number;

  /** @param machine created with `analysis.evidence` */
  constructor(machine: Machine) {
    this.#machine = machine;
    this.#movedPs = machine.nowPs;
  }

  /** @returns why the run is over, or undefined while it may continue */
  async check(): Promise<string | undefined> {
    const machine = this.#machine;
    const progress = await machine.progress();
    if (progress !== this.#progress) {
      this.#progress = progress;
      this.#movedPs = machine.nowPs;
      this.isStuck = false;
      return undefined;
    }
    const evidence = await machine.evidence();
    const stoodPs = machine.nowPs - this.#movedPs;
    this.isStuck = stoodPs >= checkEveryPs / 2 && isOnlyWaiting(evidence);
    if (stoodPs < patiencePs + longestRetryPs(evidence)) return undefined;
    const ms = Math.round(stoodPs / psPerMs);
    return `nothing was posted, completed or served for ${ms} ms of simulated time, and programs have not ended`;
  }
}

/** No request is in progress, and no program sleeps between two checks. */
const isOnlyWaiting = ({ devices, hosts }: Evidence): boolean =>
  devices.every(({ qps }) => qps.every(({ underWay }) => underWay.length === 0)) &&
  hosts.every(({ waits }) =>
    waits.every(
      ({ kind, label }) => kind === 'exchange' || kind === 'event' || (kind === 'poll' && label === ''),
    ),
  );

/** Longest time for which a request may be retried before it fails: a run waits for that. */
function longestRetryPs({ devices }: Evidence): number {
  const times = devices.flatMap(({ qps }) =>
    qps.map(({ underWay, timeoutPs, retryCount }) =>
      underWay.length === 0 ? 0 : timeoutPs * 2 * (retryCount + 1),
    ),
  );
  return Math.max(0, ...times);
}

function endOf(ended: unknown, lineOf: (error: unknown) => string | undefined): RunEnd {
  if (ended === undefined) return { how: 'ended' };
  if (!(ended instanceof Error) || ended.name !== 'ProgramFailedError') return { how: 'waits' };
  const { cause } = ended;
  const node = Number(/host(\d+)/.exec(ended.message)?.[1] ?? 0);
  const line = lineOf(cause);
  const at = line === undefined ? {} : { line };
  // Compared by name: the command line runs a build, whose class is not the one that a program imports from the
  // sources.
  if (!(cause instanceof Error) || cause.name !== 'VerbsError')
    return {
      how: 'threw',
      thrown: { node, text: String(cause), isBoot: /^program boot failed/.test(ended.message), ...at },
    };
  return { how: 'threw', refusedVerb: { node, text: cause.message, ...at } };
}
