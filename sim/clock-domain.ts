/**
 * A clock domain runs the stages of a block diagram edge by edge, skipping the edges at which nothing is due.
 *
 * At one edge the due stages run in the order in which they were added: from the output of the pipeline back
 * to its input. So a stage never sees in the same cycle what a stage in front of it hands over, while a slot
 * freed downstream can be used upstream in the same cycle. That order is the design, not an accident of
 * scheduling: everything that reaches a clock domain from outside (a message, a timer) only leaves work in a
 * fifo or wakes a stage at a later edge.
 */
import type { Cycles, Picoseconds } from '../base/units.ts';
import type { ChannelReader } from './channel.ts';
import type { Clock } from './clock.ts';
import type { EdgeKeeper } from './epoch.ts';

/** A stage does one cycle's work, as a method of its owner. It asks for its next cycle with {@link ClockDomain.wake}. */
export type Stage<Owner = unknown> = (this: Owner, cycle: Cycles) => void;

/** What a domain must know of its process to tell whether anything comes before its next edge. */
export interface DomainProcess {
  nowPs: Picoseconds;
  /** Edges before this instant may run in the process's turn; no record comes in before it. */
  untilPs: Picoseconds;
  readonly runningProgramCount: number;
  readonly queue: { readonly nextPs: Picoseconds };
  /** See {@link LogicalProcess.quietPs}. */
  quietPs(reader: ChannelReader): Picoseconds;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Of a domain alone: its edges are run one by one. */
const NO_PROCESS: DomainProcess = {
  nowPs: 0,
  untilPs: Number.NEGATIVE_INFINITY,
  runningProgramCount: 0,
  queue: { nextPs: NEVER },
  quietPs: () => Number.NEGATIVE_INFINITY,
};
const STAGE_COUNT_MAX = 32;
/** Stands for the next edge when there is none: the greatest small integer of V8, which lasts for 5 s at 400 MHz. */
const NO_CYCLE = 0x7fff_ffff;

/** Sets of stages have the first one, furthest downstream, as their highest bit. */
const FIRST_STAGE = 0x8000_0000;
const UPSTREAM_OF_FIRST = 0x7fff_ffff;
const NONE_RUNS = -1;

/** A stage and whose it is: called as a method it needs no function in between. */
class OwnedStage {
  readonly run: Stage;
  readonly owner: unknown;

  constructor(run: Stage, owner: unknown) {
    this.run = run;
    this.owner = owner;
  }
}

export class ClockDomain {
  readonly clock: Clock;
  /** Time of the next edge at which a stage is due, or Infinity. Only the domain changes it. */
  nextPs: Picoseconds = NEVER;
  /** The edge being run, or the last one run. */
  cycle: Cycles = 0;
  /** Edges at which something was due. */
  activeEdgeCount = 0;

  readonly #process: DomainProcess;
  readonly #stages: OwnedStage[] = [];
  readonly #keepers: EdgeKeeper[] = [];
  /**
   * Stages that wait, as a bit set (there are seldom more than three), and the cycle that each waits for: integers until
   * one waits for NO_CYCLE or a later one, floats from then on.
   */
  #waiting = 0;
  #wakeCycle: Int32Array | Float64Array = new Int32Array(STAGE_COUNT_MAX);
  /** The next edge, or the one that is running, and the stages due at it. */
  #nextCycle = NO_CYCLE;
  #dueStages = 0;
  /** While an edge runs, all stages upstream of the one that runs. */
  #upstream = NONE_RUNS;

  constructor(clock: Clock, process: DomainProcess = NO_PROCESS) {
    this.clock = clock;
    this.#process = process;
  }

  /**
   * Adds a stage behind (upstream of) those added before, and returns its number for {@link wake}.
   * @param owner what `run` is a method of
   * @throws RangeError for the 33rd
   */
  addStage<Owner = unknown>(run: Stage<Owner>, owner?: Owner): number {
    if (this.#stages.length === STAGE_COUNT_MAX)
      throw new RangeError(`more than ${STAGE_COUNT_MAX} stages in a clock domain`);
    this.#stages.push(new OwnedStage(run as Stage, owner));
    return this.#stages.length - 1;
  }

  /** Has `stage` run at edge `cycle`, or earlier if it was already due earlier. */
  wake(stage: number, cycle: Cycles): void {
    const bit = (FIRST_STAGE >>> stage) | 0;
    if ((this.#waiting & bit) !== 0 && cycle >= this.#wakeCycle[stage]!) return;
    this.#waiting |= bit;
    if (cycle >= NO_CYCLE) this.#wakeFar(stage, cycle);
    else this.#wakeCycle[stage] = cycle;
    if (cycle <= this.#nextCycle) this.#bringForward(stage, cycle);
  }

  /** Has `stage` run at the first edge after the instant `nowPs`: what a message or a timer does. */
  wakeAfter(stage: number, nowPs: Picoseconds): void {
    this.wake(stage, this.clock.cycleAfter(nowPs));
  }

  /** While an edge runs: whether `stage` lies upstream of the one that runs, and may still have its turn at this edge. */
  isUpstream(stage: number): boolean {
    return this.#upstream !== NONE_RUNS && (this.#upstream & (FIRST_STAGE >>> stage)) !== 0;
  }

  /**
   * Passes on to edge `cycle` while `stage` runs, if the process has nothing to do in between or at that edge but to run it
   * again: it need not wait for its turn. The stage has done all that it does at the edge before.
   * @returns whether it is that edge now; if not, the stage may {@link wake} itself
   */
  passTo(stage: number, cycle: Cycles): boolean {
    const process = this.#process;
    const isWaiting = (this.#waiting & (FIRST_STAGE >>> stage)) !== 0;
    if (isWaiting || (this.#dueStages & this.#upstream) !== 0 || process.runningProgramCount > 0)
      return false;
    for (let left = this.#waiting; left !== 0; ) {
      const other = Math.clz32(left);
      if (this.#wakeCycle[other]! <= cycle) return false;
      left &= ~((FIRST_STAGE >>> other) | 0);
    }
    const edgePs = this.clock.edgePs(cycle);
    if (edgePs >= process.untilPs || edgePs > process.queue.nextPs || cycle >= NO_CYCLE) return false;
    process.nowPs = edgePs;
    this.#stand(cycle);
    this.activeEdgeCount++;
    return true;
  }

  /** The last edge to which {@link passTo} would pass on now, or an earlier one than now runs. */
  lastPassable(stage: number): number {
    const process = this.#process;
    const isWaiting = (this.#waiting & (FIRST_STAGE >>> stage)) !== 0;
    if (isWaiting || (this.#dueStages & this.#upstream) !== 0 || process.runningProgramCount > 0) return -1;
    let last = this.#firstWaiting() - 1;
    const { untilPs } = process;
    const eventPs = process.queue.nextPs;
    // At one instant edges come before events, and after records.
    const boundPs = eventPs < untilPs ? eventPs + 1 : untilPs;
    if (boundPs === NEVER) return last;
    const bound = boundPs <= process.nowPs ? 0 : this.clock.cycleAtOrAfter(boundPs);
    if (bound <= last) last = bound - 1;
    return last;
  }

  /**
   * While `stage` runs: the instant before which its process has nothing to do but to run it again and to take records of
   * `reader`. Up to it the stage may do both itself ({@link passOver}, LogicalProcess.takeRecord), in the order of time.
   */
  quietPs(stage: number, reader: ChannelReader): Picoseconds {
    const isWaiting = (this.#waiting & (FIRST_STAGE >>> stage)) !== 0;
    if (isWaiting || (this.#dueStages & this.#upstream) !== 0) return Number.NEGATIVE_INFINITY;
    const quietPs = this.#process.quietPs(reader);
    if (this.#waiting === 0) return quietPs;
    const edgePs = this.clock.edgePs(this.#firstWaiting());
    return edgePs < quietPs ? edgePs : quietPs;
  }

  /** A stage has run at `edgeCount` more edges by itself, the last of them `cycle`. It sees to the process's time. */
  passOver(cycle: Cycles, edgeCount: number): void {
    this.#stand(cycle);
    this.activeEdgeCount += edgeCount;
  }

  /** Adds what keeps edges of this domain, to be moved when a new epoch begins. */
  addEdgeKeeper(keeper: EdgeKeeper): void {
    this.#keepers.push(keeper);
  }

  /** A new epoch, between two edges: all of this domain is `ps`, a whole number of microseconds, less. */
  rebase(ps: Picoseconds): void {
    const cycles = this.clock.cyclesOf(ps);
    for (let left = this.#waiting; left !== 0; ) {
      const stage = Math.clz32(left);
      this.#wakeCycle[stage] = this.#wakeCycle[stage]! - cycles;
      left &= ~((FIRST_STAGE >>> stage) | 0);
    }
    this.cycle -= cycles;
    if (this.nextPs !== NEVER) this.#setNext(this.#nextCycle - cycles, this.#dueStages);
    for (const keeper of this.#keepers) keeper.rebase(ps, cycles);
  }

  /** The edge that runs is now `cycle`: stored as a small integer, although some come as floats (see {@link #setNext}). */
  #stand(cycle: Cycles): void {
    if ((cycle | 0) === cycle) {
      this.cycle = cycle | 0;
      this.#nextCycle = cycle | 0;
    } else {
      this.cycle = cycle;
      this.#nextCycle = cycle;
    }
  }

  /** The first edge that a stage waits for; NO_CYCLE when it is a later one, or none waits. */
  #firstWaiting(): number {
    let first = NO_CYCLE;
    for (let left = this.#waiting; left !== 0; ) {
      const stage = Math.clz32(left);
      if (this.#wakeCycle[stage]! < first) first = this.#wakeCycle[stage]!;
      left &= ~((FIRST_STAGE >>> stage) | 0);
    }
    return first;
  }

  /** Runs the due stages of the next edge. */
  runEdge(): void {
    this.cycle = this.#nextCycle;
    this.activeEdgeCount++;
    let left = this.#dueStages;
    do {
      const stage = Math.clz32(left);
      const upstream = UPSTREAM_OF_FIRST >> stage;
      this.#upstream = upstream;
      this.#waiting &= ~((FIRST_STAGE >>> stage) | 0);
      const { run, owner } = this.#stages[stage]!;
      // A stage before may have passed on to another edge.
      run.call(owner, this.cycle);
      // It may have woken one upstream of it for this very edge: a slot freed is used in the same cycle.
      left = this.#dueStages & upstream;
    } while (left !== 0);
    this.#upstream = NONE_RUNS;
    this.#findNext();
  }

  /** Finds the earliest cycle that a stage waits for, and the stages that wait for it. */
  #findNext(): void {
    const waiting = this.#waiting;
    if (waiting === 0) {
      this.#nextCycle = NO_CYCLE;
      this.nextPs = NEVER;
      return;
    }
    const wakeCycle = this.#wakeCycle;
    const first = Math.clz32(waiting);
    let next = wakeCycle[first]!;
    let dueStages = (FIRST_STAGE >>> first) | 0;
    for (let left = waiting & ~dueStages; left !== 0; ) {
      const stage = Math.clz32(left);
      const bit = (FIRST_STAGE >>> stage) | 0;
      left &= ~bit;
      const due = wakeCycle[stage]!;
      if (due > next) continue;
      dueStages = due < next ? bit : dueStages | bit;
      next = due;
    }
    this.#setNext(next, dueStages);
  }

  #setNext(cycle: Cycles, stages: number): void {
    // Stored as a small integer, although some come as floats: the stages get it as it is stored.
    if ((cycle | 0) === cycle) this.#nextCycle = cycle | 0;
    else this.#nextCycle = cycle;
    this.#dueStages = stages;
    this.nextPs = this.clock.edgePs(cycle);
  }

  #wakeFar(stage: number, cycle: Cycles): void {
    if (this.#wakeCycle instanceof Int32Array) this.#wakeCycle = new Float64Array(this.#wakeCycle);
    this.#wakeCycle[stage] = cycle;
    this.#bringForward(stage, cycle);
  }

  /** A stage now waits for the next edge, an earlier one, or the one that is running (or for one in the far future). */
  #bringForward(stage: number, cycle: Cycles): void {
    const bit = (FIRST_STAGE >>> stage) | 0;
    if (this.#upstream !== NONE_RUNS) {
      if (cycle > this.cycle) return;
      // Upstream of the running stage it runs at this edge, else at the next one.
      if ((bit & this.#upstream) !== 0) this.#dueStages |= bit;
      else this.#wakeCycle[stage] = this.cycle + 1;
    } else if (cycle < this.#nextCycle || this.nextPs === NEVER) {
      this.#setNext(cycle, bit);
    } else if (cycle === this.#nextCycle) {
      this.#dueStages |= bit;
    }
  }
}
