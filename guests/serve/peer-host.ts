/**
 * The simulated host at the other end of the cable: node 1 of the machine, which runs a user's program next to a real guest.
 *
 *     guest0 ══PCIe══ hca0 ══cable══ hca1 ══PCIe══ host1: kernel, driver, program          (or nic1: `machine.adapter`)
 *       └────────────── exchange ────────────────────┘
 *
 * Host and adapter are those of the simulated machine. A guest's accesses are carried out within a call, but the program is
 * async: so its code also runs within that call ({@link stepPrograms}), and it can wait only for simulated time.
 */
import { InvariantError, textOfThrown } from '../../base/index.ts';
import { ProgramFailedError } from '../../host/index.ts';
import {
  HcaNode,
  HostNode,
  type JsonValue,
  type LogLine,
  type MachinePlan,
  NicNode,
  type ProgramFunction,
  ProgramRunner,
  programWaitsOf,
} from '../../machine/index.ts';
import { runMicrotasks } from '../../runtime/microtasks.ts';
import { type ExactPs, type LogicalProcess, type ProgramStep, RunError } from '../../sim/index.ts';

/** Node of the simulated host. */
export const peerNode = 1;

/** The program of the simulated host. */
export interface PeerProgram {
  readonly name: string;
  readonly run: ProgramFunction;
  readonly args: JsonValue;
}

/** Outcome of the program. */
export interface PeerState {
  readonly program: string;
  /** `failed`: it threw, or its host could not continue. */
  readonly outcome: 'running' | 'ended' | 'failed';
  /** Simulated time at which it had ended. */
  readonly endedPs?: ExactPs;
  /** The returned value. */
  readonly result?: JsonValue;
  /** The program's error, in words, and its place. */
  readonly error?: string;
  readonly stack?: string;
  /** Present wait of a running program, in a sentence. */
  readonly waitsIn?: string;
}

/** Software of the simulated host failed, so that it cannot continue: an error of its program, not a defect of the emulator. */
export const isPeerFailure = (error: unknown): error is ProgramFailedError =>
  error instanceof ProgramFailedError;

/** Runs the code of resumed programs, within a call; must be called outside callbacks of promises. */
export const stepPrograms: ProgramStep = (process) => {
  const hasRun = runMicrotasks();
  if (process.runningProgramCount === 0 || process.failure !== undefined) return;
  if (!hasRun)
    throw new InvariantError('the caller', 'a callback of a promise', 'a callback of the event loop');
  const stuck = process.stuckError();
  const name = stuck instanceof ProgramFailedError ? stuck.programName : process.name;
  const what = 'awaits something that is not simulated, which a program beside a real guest cannot';
  process.failure = new ProgramFailedError(name, process.instantPs, new RunError(what));
};

export class PeerHost {
  readonly host: HostNode;
  /** The adapter in its slot: one of the two. */
  readonly hca: HcaNode | undefined;
  readonly nic: NicNode | undefined;
  /** Values of the exchange that have arrived so far. */
  arrivedCount = 0;
  readonly #programs: ProgramRunner;
  readonly #name: string;
  #state: Pick<PeerState, 'outcome' | 'result' | 'error' | 'stack'> = { outcome: 'running' };

  /** Powers the host on, and starts its program when its driver has probed the adapter. */
  constructor(plan: MachinePlan, { name, run, args }: PeerProgram) {
    const shared = { earlyPlacement: plan.shortcuts, zeroCopy: false };
    const isHca = plan.config.machine.adapter === 'hca';
    this.hca = isHca ? new HcaNode(plan, peerNode, undefined, shared) : undefined;
    this.host = new HostNode(plan, peerNode, this.hca?.hca.shared);
    this.nic = isHca ? undefined : new NicNode(plan, peerNode);
    const { onArrival = () => {} } = this.host.exchange;
    this.host.exchange.onArrival = (label) => {
      this.arrivedCount++;
      onArrival(label);
    };
    this.#programs = new ProgramRunner(this.host, plan.progress);
    this.#name = name;
    const order = { name, args, core: undefined, process: undefined, number: 0 };
    this.#programs.load(order, (context) => this.#watch(() => run(context)));
  }

  get processes(): LogicalProcess[] {
    return [this.host.lp, this.adapter.lp];
  }

  get adapter(): HcaNode | NicNode {
    return this.hca ?? this.nic!;
  }

  get hasEnded(): boolean {
    return this.state().outcome !== 'running';
  }

  /** Log lines of the program, then of the kernel. */
  get log(): LogLine[] {
    return [...this.#programs.log, ...this.host.kernelLog];
  }

  /** Outcome of the program. */
  state(): PeerState {
    const endedPs = this.#programs.states()[0]?.endedPs;
    // Its code has returned; its process' remaining resources are being released.
    const outcome =
      this.#state.outcome === 'ended' && endedPs === undefined ? 'running' : this.#state.outcome;
    const waits = outcome === 'running' ? programWaitsOf(this.host) : [];
    return {
      program: this.#name,
      ...this.#state,
      outcome,
      ...(endedPs === undefined ? {} : { endedPs }),
      ...(waits.length === 0 ? {} : { waitsIn: waits.join('; ') }),
    };
  }

  /** The host cannot continue. */
  fail(error: ProgramFailedError): void {
    const { message, stack = '' } = error;
    this.#state = { outcome: 'failed', error: message, stack };
  }

  /** An error that the program throws ends the program, not the host; the kernel releases the program's resources. */
  async #watch(run: () => ReturnType<ProgramFunction>): Promise<void> {
    try {
      const result = structuredClone((await run()) ?? undefined) as JsonValue | undefined;
      this.#state = { outcome: 'ended', ...(result === undefined ? {} : { result }) };
    } catch (thrown) {
      const stack = thrown instanceof Error ? (thrown.stack ?? '') : '';
      this.#state = { outcome: 'failed', error: textOfThrown(thrown), stack };
    }
  }
}
