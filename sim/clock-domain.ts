/**
 * A clock domain runs the stages of a block diagram edge by edge, skipping the edges at which no stage is due.
 *
 * At one edge the due stages run in the order in which they were added: from the output of the pipeline back to its input. So a
 * stage sees data from the stage before it only in a later cycle, while a slot freed downstream can be used upstream in the
 * same cycle. That order is the design, not an accident of scheduling: an input from outside the domain (a message, a timer)
 * only leaves work in a fifo or wakes a stage at a later edge.
 */
import { type Cycles, NEVER, type Picoseconds, type Wide } from '../base/index.ts';
import type { Clock } from './clock.ts';
import type { EdgeKeeper } from './epoch.ts';

/** A stage does one cycle's work, as a method of its owner. It requests its next cycle with {@link ClockDomain.wake}. */
export type Stage<Owner = unknown> = (this: Owner, cycle: Cycles) => void;

const STAGE_COUNT_MAX = 32;
/** Represents an absent next edge: the greatest 32-bit integer, which lasts for 5 s at 400 MHz. */
const NO_CYCLE = 0x7fff_ffff;

/**
 * Highest bit of a set of stages: the first stage, furthest downstream. The sets are kept narrowed (build/README.md).
 */
const FIRST_STAGE = 0x8000_0000;
const UPSTREAM_OF_FIRST = 0x7fff_ffff;
const NONE_RUNS = -1;

/** A stage and its owner: called as a method, it needs no wrapper function. */
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
  /** Edges at which a stage was due. */
  activeEdgeCount = 0;
  /** Edges of earlier epochs: plus {@link cycle}, they give the cycles since power-on. */
  epochCycles: Wide = 0;

  readonly #stages: OwnedStage[] = [];
  readonly #keepers: EdgeKeeper[] = [];
  /**
   * Waiting stages as a bit set (there are seldom more than three), and the cycle that each waits for: integers until a stage
   * waits for NO_CYCLE or a later cycle, then floats.
   */
  #waiting = 0;
  #wakeCycle: Int32Array | Float64Array = new Int32Array(STAGE_COUNT_MAX);
  /** The next or running edge, and the stages due at it. */
  #nextCycle = NO_CYCLE;
  #dueStages = 0;
  /** While an edge runs, all stages upstream of the running one. */
  #upstream = NONE_RUNS;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Adds a stage upstream of those added before, and returns its number for {@link wake}.
   * @param owner object of the method `run`
   * @throws RangeError for the 33rd
   */
  addStage<Owner = unknown>(run: Stage<Owner>, owner?: Owner): number {
    if (this.#stages.length === STAGE_COUNT_MAX)
      throw new RangeError(`more than ${STAGE_COUNT_MAX} stages in a clock domain`);
    this.#stages.push(new OwnedStage(run as Stage, owner));
    return this.#stages.length - 1;
  }

  /** Runs `stage` at edge `cycle`, or earlier if it is already due earlier. */
  wake(stage: number, cycle: Cycles): void {
    const bit = (FIRST_STAGE >>> stage) | 0;
    if ((this.#waiting & bit) !== 0 && cycle >= this.#wakeCycle[stage]!) return;
    this.#waiting |= bit;
    if (cycle >= NO_CYCLE) this.#wakeFar(stage, cycle);
    else this.#wakeCycle[stage] = cycle;
    if (cycle <= this.#nextCycle) this.#bringForward(stage, cycle);
  }

  /** Runs `stage` at the first edge after the instant `nowPs`: used by messages and timers. */
  wakeAfter(stage: number, nowPs: Picoseconds): void {
    this.wake(stage, this.clock.cycleAfter(nowPs));
  }

  /** While an edge runs: whether `stage` is upstream of the running one, and may still run at this edge. */
  isUpstream(stage: number): boolean {
    return this.#upstream !== NONE_RUNS && (this.#upstream & (FIRST_STAGE >>> stage)) !== 0;
  }

  /**
   * While `stage` runs: the first edge that another stage waits for, NO_CYCLE if that is later or no stage waits; 0 if the
   * stage itself waits for an edge, or another is due at this one.
   */
  aloneUntil(stage: number): number {
    const waiting = this.#waiting;
    const isBusy = (waiting & (FIRST_STAGE >>> stage)) !== 0 || (this.#dueStages & this.#upstream) !== 0;
    if (isBusy) return 0;
    let first = NO_CYCLE;
    for (let left = waiting; left !== 0; ) {
      const other = Math.clz32(left);
      const cycle = this.#wakeCycle[other]!;
      if (cycle < first) first = cycle;
      left &= ~(FIRST_STAGE >>> other);
    }
    return first;
  }

  /** The running stage has run at `edgeCount` more edges by itself, the last of them `cycle`: see RunAhead. */
  standAt(cycle: Cycles, edgeCount: number): void {
    this.activeEdgeCount += edgeCount;
    // The cycle is narrowed where it fits (build/README.md).
    if ((cycle | 0) === cycle) {
      this.cycle = cycle | 0;
      this.#nextCycle = cycle | 0;
    } else {
      this.cycle = cycle;
      this.#nextCycle = cycle;
    }
  }

  /** Adds an object that keeps edges of this domain, which move when a new epoch begins. */
  addEdgeKeeper(keeper: EdgeKeeper): void {
    this.#keepers.push(keeper);
  }

  /** Handles a new epoch, between two edges: subtracts `ps`, a whole number of microseconds, from all instants of this domain. */
  rebase(ps: Picoseconds): void {
    const cycles = this.clock.cyclesOf(ps);
    for (let left = this.#waiting; left !== 0; ) {
      const stage = Math.clz32(left);
      this.#wakeCycle[stage] = this.#wakeCycle[stage]! - cycles;
      left &= ~(FIRST_STAGE >>> stage);
    }
    this.cycle -= cycles;
    this.epochCycles += cycles;
    if (this.nextPs !== NEVER) this.#setNext(this.#nextCycle - cycles, this.#dueStages);
    for (const keeper of this.#keepers) keeper.rebase(ps, cycles);
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
      this.#waiting &= ~(FIRST_STAGE >>> stage);
      const { run, owner } = this.#stages[stage]!;
      // An earlier stage may have moved to another edge.
      run.call(owner, this.cycle);
      // It may have woken an upstream stage for this same edge: a freed slot is used in the same cycle.
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
    // The cycle is narrowed where it fits (build/README.md): the stages receive it in the stored form.
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
      // A stage upstream of the running one runs at this edge, any other at the next one.
      if ((bit & this.#upstream) !== 0) this.#dueStages |= bit;
      else this.#wakeCycle[stage] = this.cycle + 1;
    } else if (cycle < this.#nextCycle || this.nextPs === NEVER) {
      this.#setNext(cycle, bit);
    } else if (cycle === this.#nextCycle) {
      this.#dueStages |= bit;
    }
  }
}
