/**
 * A reader's program on a machine of its own, with the linter and the watch of buffers, in steps of simulated time.
 */
import * as library from '../../browser.ts';
import {
  type FaultEntry,
  Machine,
  ProgramFailedError,
  type ProgramFunction,
  type Race,
} from '../../browser.ts';
import { type Cause, causesOf, MotionWatch } from '../../explain/why/index.ts';
import { parsedFault } from '../../machine/faults/index.ts';
import type {
  Arrival,
  LabProgram,
  MachinePicture,
  OperationPicture,
  PostedOperation,
  ProgramOrder,
  ProgramProgress,
  ProgramRemark,
  StandingPlace,
  WatchedTime,
} from '../protocol.ts';
import { Arrivals } from './arrivals.ts';
import { WatchedRun } from './operation/picture.ts';
import { PostedLines } from './posted-lines.ts';
import { ProgramCalls } from './program-calls.ts';
import { compiled, evaluated, lineIn, type ProgramExports, ProgramTextError } from './program-text.ts';

const hosts = [0, 1] as const;

/** Calls with which a program reads and writes memory: an access ends where the next call begins. */
const accesses = /^(?:read|write|touch|load|store)/;

/** Recording starts this long before an operation's post, because a thread may be ahead of its machine. */
const leadPs = 5_000_000;

export class ProgramSession implements LabProgram {
  #machine: Machine | undefined;
  #calls: ProgramCalls[] = [];
  #failure: ProgramRemark | undefined;
  #motion: MotionWatch | undefined;
  /** Reason for the end of the run, and the causes of failures; available after the end. */
  #ending: unknown;
  #findings: readonly Cause[] = [];
  #main: Promise<void> | undefined;
  #mainResult: string | undefined;
  #hasEnded = false;
  #posted = new PostedLines(() => undefined);
  #arrivals = new Arrivals([]);
  /** Log lines that the stopped host had written before the breakpoint. */
  #logCount: number | undefined;
  #stood: StandingPlace | undefined;
  #hasLeft = false;
  /** The watched operation or instant, and the records from {@link leadPs} before it. */
  #watched:
    | { readonly fromPs: number; readonly operation: WatchedTime | undefined; readonly run: WatchedRun }
    | undefined;

  async load(order: ProgramOrder): Promise<readonly ProgramRemark[]> {
    const { text, machine, faults, watched, watchedPs = watched?.fromPs, breakpoints, stood } = order;
    await this.#machine?.close();
    this.#machine = undefined;
    this.#failure = undefined;
    this.#motion = undefined;
    this.#ending = undefined;
    this.#findings = [];
    this.#main = undefined;
    this.#mainResult = undefined;
    this.#hasEnded = false;
    this.#watched =
      watchedPs === undefined ? undefined : { fromPs: watchedPs, operation: watched, run: new WatchedRun() };
    this.#arrivals = new Arrivals(breakpoints ?? [], stood);
    this.#logCount = undefined;
    this.#stood = stood;
    this.#hasLeft = false;
    this.#posted = new PostedLines((node) => this.#calls[node]?.line);
    this.#calls = hosts.map(() => new ProgramCalls());
    try {
      const code = compiled(text);
      const programs = hosts.map((node) =>
        evaluated(code, this.#calls[node]!.libraryOf(library), (line) => this.#reached(node, line)),
      );
      if (programs[0]!.main !== undefined) this.#main = this.#runMain(programs[0]!.main);
      else await this.#loadHosts(programs, machine, faults.map(parsedFault));
      return [];
    } catch (error) {
      const line = error instanceof ProgramTextError ? error.line : undefined;
      return [{ line, severity: 'error', text: error instanceof Error ? error.message : String(error) }];
    }
  }

  async #loadHosts(
    programs: readonly ProgramExports[],
    { profile, set, seed }: ProgramOrder['machine'],
    faults: readonly FaultEntry[],
  ): Promise<void> {
    const runs = [programs[0]!.host0, programs[1]!.host1];
    if (runs.every((run) => run === undefined))
      throw new ProgramTextError('exports no host0, no host1 and no main', undefined);
    this.#machine = await Machine.create({
      profile,
      set,
      seed,
      faults,
      watch: 'races',
      analysis: {
        timeline: { categories: ['operations'], onPost: this.#posted.onPost },
        ...this.#watched?.run.analysis,
        lint: true,
        evidence: { placeOf: (node) => this.#placeOf(node) },
      },
      programPatienceMs: 5000,
    });
    this.#motion = new MotionWatch(this.#machine);
    for (const node of hosts) {
      const run = runs[node] as
        | ((program: library.ProgramContext) => Promise<library.JsonValue | undefined>)
        | undefined;
      if (run === undefined) continue;
      const watched: ProgramFunction = (program) => {
        this.#arrivals.began(program);
        return run(this.#calls[node]!.contextOf(program));
      };
      await this.#machine.load({ node, name: `host${node}`, run: watched });
    }
  }

  #reached(node: number, line: number): void {
    this.#arrivals.reached(node, line);
    if (this.#arrivals.standsAt !== undefined) this.#logCount ??= this.#calls[node]!.logCount;
  }

  /** The arrival at which the program has stopped; its code may have run ahead, even to its end. */
  get #standsAt(): Arrival | undefined {
    const { standsAt } = this.#arrivals;
    return this.#hasLeft || standsAt === undefined || this.#machine?.nowPs !== standsAt.atPs + 1
      ? undefined
      : standsAt;
  }

  /** A program that creates its own machine runs as a whole. */
  async #runMain(main: () => Promise<unknown>): Promise<void> {
    try {
      this.#mainResult = JSON.stringify(await main(), undefined, 1);
    } catch (error) {
      this.#failure = remarkOf(error);
    }
    this.#hasEnded = true;
  }

  async runFor(ps: number): Promise<ProgramProgress> {
    if (this.#main !== undefined) {
      await this.#main;
      return {
        ...nothingYet,
        hasEnded: true,
        results: [this.#mainResult],
        remarks: this.#failure === undefined ? [] : [this.#failure],
      };
    }
    if (this.#machine === undefined) return { ...nothingYet, hasEnded: true };
    const machine = this.#machine;
    const stands = this.#standsAt;
    const limitPs = (stands?.atPs ?? machine.nowPs) + ps;
    // A program that wakes exactly at the instant of its breakpoint reaches the line within that instant.
    const untilPs =
      this.#stood?.reached !== undefined && limitPs === this.#stood.atPs ? limitPs + 1 : limitPs;
    this.#hasLeft ||= stands !== undefined;
    if (this.#watched !== undefined && !this.#watched.run.isKeeping) {
      const keptPs = Math.max(0, this.#watched.fromPs - leadPs);
      if (!this.#hasEnded && machine.nowPs < keptPs)
        await this.#run(machine, Math.min(untilPs, keptPs) - machine.nowPs);
      if (machine.nowPs >= keptPs) this.#watched.run.keep();
    }
    if (!this.#hasEnded && machine.nowPs < untilPs) await this.#run(machine, untilPs - machine.nowPs);
    return this.#progressOf(machine);
  }

  async operations(): Promise<readonly PostedOperation[]> {
    return this.#machine === undefined ? [] : this.#posted.operationsOf(await this.#machine.timeline());
  }

  async picture(): Promise<OperationPicture> {
    if (this.#machine === undefined || this.#watched?.operation === undefined)
      throw new Error('no operation of a program is being watched');
    const { operation, run } = this.#watched;
    return run.pictureOf(this.#machine, operation);
  }

  async moment(): Promise<MachinePicture> {
    if (this.#machine === undefined || this.#watched === undefined)
      throw new Error('no instant of a program is being watched');
    const { fromPs, run } = this.#watched;
    return run.momentOf(this.#machine, fromPs);
  }

  /** The line of a host's last call of the library. */
  #placeOf(node: number): string | undefined {
    const line = this.#calls[node]?.line;
    return line === undefined ? undefined : String(line);
  }

  async #run(machine: Machine, ps: number): Promise<void> {
    const motion = this.#motion!;
    try {
      const { reason } = await machine.run(motion.isStuck ? undefined : machine.nowPs + ps);
      this.#hasEnded = reason === 'ended';
      if (!this.#hasEnded) this.#ending = await motion.check();
    } catch (error) {
      this.#ending = error;
    }
    if (this.#ending !== undefined) {
      this.#failure = remarkOf(this.#ending);
      this.#hasEnded = true;
    }
    if (this.#hasEnded)
      this.#findings = await causesOf(machine, this.#ending, (error) => {
        const line = lineIn(error);
        return line === undefined ? undefined : String(line);
      });
  }

  /** Findings about the program up to the present instant. */
  async #remarksOf(
    machine: Machine,
    nodes: Awaited<ReturnType<Machine['report']>>['nodes'],
  ): Promise<readonly ProgramRemark[]> {
    const analyses = await machine.analyses();
    const atEnd = this.#standsAt === undefined;
    return [
      ...(atEnd ? this.#findings.filter(isNews).map(remarkOfFinding) : []),
      ...(this.#failure === undefined || !atEnd ? [] : [this.#failure]),
      ...analyses.flatMap(({ findings }, node) =>
        findings.map(
          ({ severity, text, object, atPs }): ProgramRemark => ({
            line: this.#calls[node]?.lineAt(Number(atPs)),
            severity: severity === 'error' ? 'error' : 'warning',
            text: `linter, host ${node}, ${object}: ${text}`,
          }),
        ),
      ),
      ...nodes.flatMap(({ races }, node) =>
        (races ?? []).map(
          (race): ProgramRemark => ({
            line: this.#calls[node]?.lineAt(Number(race.program.atPs), accesses),
            severity: 'error',
            text: raceText(race, node, this.#calls[node]?.lineAt(Number(race.device.atPs), /^post/)),
          }),
        ),
      ),
    ];
  }

  /** Lines that were logged by the machine's present instant. */
  async #logOf(machine: Machine): Promise<ProgramProgress['log']> {
    const stands = this.#standsAt;
    const isCut = stands !== undefined || !this.#hasEnded;
    const counts = hosts.map(() => 0);
    return (await machine.log()).flatMap(({ node, atPs, text }) => {
      const isOver =
        node === stands?.node ? counts[node]!++ >= this.#logCount! : isCut && atPs > machine.nowPs;
      return isOver ? [] : [{ node, atPs: Number(atPs), text }];
    });
  }

  async #progressOf(machine: Machine): Promise<ProgramProgress> {
    const { operations, nodes } = await machine.report();
    const stands = this.#standsAt;
    const isStanding = stands !== undefined;
    const ended = (await machine.programs()).map(({ endedPs }) => endedPs);
    const isOver = !isStanding && ended.every((ps) => ps !== undefined);
    const results = isStanding ? [] : await machine.results();
    return {
      // The instant of the end, not of the call in which the program ended.
      atPs: isOver ? Math.max(...ended.map(Number)) : (stands?.atPs ?? machine.nowPs),
      hasEnded: this.#hasEnded && !isStanding,
      log: await this.#logOf(machine),
      results: results.map((result) =>
        result === undefined ? undefined : JSON.stringify(result, undefined, 1),
      ),
      remarks: await this.#remarksOf(machine, nodes),
      lines: hosts.map((node) => this.#lineOf(node, machine.nowPs)),
      hosts: nodes.map(({ cpu, interrupts }) => ({
        systemCalls: cpu.systemCalls.control + cpu.systemCalls.dataPath,
        interrupts: interrupts.reduce((sum, { handled }) => sum + handled, 0),
      })),
      operations: Object.fromEntries(
        Object.entries(operations).flatMap(([name, { count }]) => (count === 0 ? [] : [[name, count]])),
      ),
      arrival: this.#arrivals.firstUntil(machine.nowPs),
    };
  }

  /** The present line of a host's program, which may have run ahead of the machine's present instant. */
  #lineOf(node: number, nowPs: number): number | undefined {
    const stands = this.#standsAt;
    return stands?.node === node ? stands.line : this.#calls[node]?.lineAt(nowPs);
  }
}

const nothingYet: ProgramProgress = {
  atPs: 0,
  hasEnded: false,
  log: [],
  results: [],
  remarks: [],
  lines: [],
  hosts: [],
  operations: {},
  arrival: undefined,
};

function raceText({ program, device }: Race, node: number, postedLine: number | undefined): string {
  const posted = postedLine === undefined ? '' : ` (posted at line ${postedLine})`;
  return `host ${node}: the program does ${program.access} to ${program.lengthBytes} bytes at 0x${program.address.toString(16)}, which the device ${device.access} for work request ${device.wrId} of ${device.queue}${posted} until its completion has been taken`;
}

/** Accesses to the device's buffers are reported separately. */
const isNews = ({ cause }: Cause): boolean => cause !== 'buffer-in-use';

/** Places the remark at the line of the mistake if it is known, else at the line where it shows. */
function remarkOfFinding({ weight, sentence, advice, line, mendLine }: Cause): ProgramRemark {
  const where = mendLine ?? line;
  const shows = mendLine === undefined || line === undefined ? '' : ` It shows at line ${line}.`;
  return {
    line: where === undefined ? undefined : Number(where),
    severity: weight === 'fault' ? 'error' : 'warning',
    text: `${sentence}${shows} ${advice}`,
  };
}

/** An error of the program at its line; an error of the machine without a line. */
function remarkOf(error: unknown): ProgramRemark {
  const cause = error instanceof ProgramFailedError ? error.cause : error;
  return {
    line: lineIn(cause),
    severity: 'error',
    text: error instanceof Error ? error.message : String(error),
  };
}
