/**
 * A stock Linux that a reader types to: consoles, pause, steps to the next event, and the records that the block diagram shows.
 *
 *     snapshot ─► a shell on each console ─► the drivers, typed in ─► quanta, until the end
 *                                                                     │ after each: inputs, pause, the turn of the event loop
 *
 * Everything that happens is decided by the snapshot, the seed, and the inputs with the numbers of the steps before which they were
 * typed. So the same inputs lead to the same instant again: that is how the session goes back ({@link LinuxOrder.inputs}). The wall
 * clock decides only when steps are computed.
 */
import {
  BootedLinux,
  bootedOfBytes,
  driversLine,
  type LinuxVersions,
  linuxReportOf,
} from '../../guests/linux/booted/index.ts';
import type { PcConfig } from '../../guests/pc/index.ts';
import { devicesOrderOf } from '../../guests/serve/index.ts';
import type {
  LinuxEvent,
  LinuxInput,
  LinuxMoment,
  LinuxOrder,
  LinuxPhase,
  LinuxProgress,
} from '../protocol.ts';
import { linuxColumns, linuxRows } from '../protocol.ts';
import { RecentRecords } from './recent-records.ts';

/** Files and facts from which a machine starts. */
export interface LinuxSource {
  /** v86's machine code. */
  readonly coreCode: Uint8Array;
  /** A booted Linux (guests/linux/booted/booted-pc.ts). */
  readonly snapshot: Uint8Array;
  readonly pc: PcConfig;
  readonly versions: LinuxVersions;
}

/** Wall time that is computed between two turns of the event loop. */
const turnMs = 25;
/** Steps between two readings of the wall clock. */
const stepsPerReading = 16;
/** Simulated time by which a machine whose processors are all halted may be ahead of the wall clock. */
const aheadPs = 50_000_000_000;
const psPerMs = 1e9;
/** Steps with events that are kept: as far as a reader goes back one by one. */
const eventStepsMax = 2000;
/** The prompt of busybox's shell in its home folder. */
const prompt = '~ # ';

export class LinuxSession {
  readonly #order: LinuxOrder;
  readonly #onProgress: (progress: LinuxProgress) => void;
  readonly #records: RecentRecords;
  readonly #inputs: LinuxInput[] = [];
  readonly #replayed: LinuxInput[];
  #linux!: BootedLinux;
  #phase: LinuxPhase = 'starting';
  #steps = 0;
  #stopAtStep: number | undefined;
  /** Goes on when the reader does; undefined while it runs. */
  #pause: PromiseWithResolvers<void> | undefined;
  #awaited: { readonly event: LinuxEvent; readonly count: number } | undefined;
  #turnEndsMs = 0;
  /** The last steps in which events happened, ascending. */
  readonly #eventSteps: number[] = [];
  #eventCount = 0;
  /** Instants that belong together: simulated and of the wall clock. */
  #anchor = { ps: 0, ms: 0 };
  readonly #said: string[];
  readonly #commands: string[] = [];
  /** Hosts whose shell has printed its first prompt; the ends of what the others have printed. */
  readonly #prompted = new Set<number>();
  readonly #tails: string[] = [];
  /** Inputs of the session's own, for the end of the present step. */
  readonly #due: LinuxInput[] = [];
  #hasEnded = false;

  /** @param onProgress receives what is new, several times a second */
  constructor(order: LinuxOrder, onProgress: (progress: LinuxProgress) => void) {
    this.#order = order;
    this.#onProgress = onProgress;
    this.#replayed = [...order.inputs];
    this.#stopAtStep = order.stopAtStep;
    this.#said = Array.from({ length: order.hosts }, () => '');
    this.#records = new RecentRecords((text) => this.#commands.push(text));
  }

  /**
   * Runs until the machine ends or {@link stop}.
   * @throws GuestError if the guest ends or stands still
   */
  async run({ coreCode, snapshot, pc, versions }: LinuxSource): Promise<void> {
    const { hosts, seed } = this.#order;
    const devices = devicesOrderOf({ hcas: hosts, cable: hosts === 2, seed });
    this.#linux = await BootedLinux.continued(
      {
        ...{ coreCode, pc, hosts, versions, modules: [] },
        devices: { ...devices, analysis: this.#records.analysis },
      },
      bootedOfBytes(snapshot),
    );
    const linux = this.#linux;
    for (const [node, host] of linux.hosts.entries()) host.onConsole = (text) => this.#print(node, text);
    linux.onStep = () => this.#stepped();
    this.#runsFromHere();
    await linux.joinHosts();
    for (const host of linux.hosts) host.openShell(linuxRows, linuxColumns);
    this.#phase = 'running';
    await linux.until(() => this.#hasEnded);
  }

  /** The first prompt of a host is answered by the line that loads its drivers, so that the reader sees what they do. */
  #print(node: number, text: string): void {
    this.#said[node] += text;
    if (this.#prompted.has(node)) return;
    this.#tails[node] = `${this.#tails[node] ?? ''}${text}`.slice(-prompt.length);
    if (this.#tails[node] !== prompt) return;
    this.#prompted.add(node);
    this.#due.push({ step: 0, host: node, text: `${driversLine}\r` });
  }

  /** Types text into a host's console, before the next step; without a shell, nothing would read it. */
  type(host: number, text: string): void {
    if (this.#phase === 'starting') return;
    this.#apply({ step: this.#steps, host, text });
    this.#runsFromHere();
  }

  pause(): void {
    if (this.#pause !== undefined || this.#phase === 'starting' || this.#hasEnded) return;
    this.#pause = Promise.withResolvers();
    this.#phase = 'paused';
    this.#report();
  }

  /** @param event the session pauses after the next event of this kind; left out: when the reader asks for it */
  resume(event?: LinuxEvent): void {
    if (this.#pause === undefined) return;
    this.#awaited = event === undefined ? undefined : { event, count: this.#countOf(event) };
    this.#phase = 'running';
    this.#pause.resolve();
    this.#pause = undefined;
    this.#runsFromHere();
    this.#report();
  }

  stop(): void {
    this.#hasEnded = true;
    this.resume();
  }

  /** The last records of the machine, until its present instant. */
  moment(): LinuxMoment {
    const { machine, nowPs } = this.#linux;
    return this.#records.pictureOf(this.#linux.timeline(), machine.emulation.capture()!, nowPs);
  }

  /** All inputs so far: with them, another session comes to the same instants. */
  get inputs(): readonly LinuxInput[] {
    return this.#inputs;
  }

  /** The last step before this one in which an event happened; undefined if it is no longer known. */
  eventStepBefore(step: number): number | undefined {
    return this.#eventSteps.findLast((each) => each < step);
  }

  /** The report as of now, as `hca linux --report` writes it. */
  report(): string {
    return JSON.stringify(linuxReportOf(this.#linux, [], []));
  }

  #apply(input: LinuxInput): void {
    this.#inputs.push(input);
    this.#linux.host(input.host).type(input.text);
  }

  #countOf(event: LinuxEvent): number {
    return this.#records.counts[event] ?? 0;
  }

  /** After each step. @returns a promise to wait for before the next one */
  #stepped(): Promise<void> | undefined {
    this.#steps++;
    for (const { host, text } of this.#due.splice(0)) this.#linux.host(host).type(text);
    this.#noteEvents();
    while (this.#replayed[0]?.step === this.#steps) this.#apply(this.#replayed.shift()!);
    const { event, count } = this.#awaited ?? {};
    if (this.#steps === this.#stopAtStep || (event !== undefined && this.#countOf(event) !== count)) {
      this.#awaited = undefined;
      this.#phase = 'running';
      this.pause();
    }
    if (this.#pause !== undefined) return this.#pause.promise;
    if (this.#isAhead) return this.#turn();
    if (this.#steps % stepsPerReading !== 0 || performance.now() < this.#turnEndsMs) return undefined;
    return this.#turn();
  }

  #noteEvents(): void {
    const { count } = this.#records;
    if (count === this.#eventCount) return;
    this.#eventCount = count;
    this.#eventSteps.push(this.#steps);
    if (this.#eventSteps.length > 2 * eventStepsMax) this.#eventSteps.splice(0, eventStepsMax);
  }

  /** A replay does not wait: it only leads back to where the reader has been. */
  get #isReplaying(): boolean {
    return this.#stopAtStep !== undefined && this.#steps < this.#stopAtStep;
  }

  /** Halted processors must not let simulated time run away while a reader thinks. */
  get #isAhead(): boolean {
    if (this.#phase === 'starting' || this.#isReplaying) return false;
    const { nowPs } = this.#linux;
    return nowPs - this.#anchor.ps > (this.#turnEndsMs - this.#anchor.ms) * psPerMs + aheadPs;
  }

  /** Lets the event loop run; and the wall clock, if simulated time is ahead of it. */
  async #turn(): Promise<void> {
    this.#report();
    const { nowPs } = this.#linux;
    const nowMs = performance.now();
    const aheadMs = (nowPs - this.#anchor.ps) / psPerMs - (nowMs - this.#anchor.ms);
    const waits = this.#phase !== 'starting' && !this.#isReplaying && aheadMs > 0;
    await new Promise<void>((resolve) => setTimeout(resolve, waits ? Math.min(turnMs, aheadMs) : 0));
    // Time that was not computed in time is not made up for.
    if (aheadMs < 0) this.#runsFromHere();
    this.#turnEndsMs = performance.now() + turnMs;
    if (this.#pause !== undefined) await this.#pause.promise;
  }

  #runsFromHere(): void {
    const ms = performance.now();
    this.#anchor = { ps: this.#linux.nowPs, ms };
    this.#turnEndsMs = ms + turnMs;
  }

  /** Sends what is new. */
  #report(): void {
    this.#onProgress({
      phase: this.#phase,
      atPs: this.#linux.nowPs,
      step: this.#steps,
      said: this.#said.splice(0, this.#said.length, ...this.#said.map(() => '')),
      commands: this.#commands.splice(0),
      counts: { ...this.#records.counts },
      instructions: this.#linux.hosts.map(({ pc }) => pc.clock.instructionCount),
    });
  }
}
