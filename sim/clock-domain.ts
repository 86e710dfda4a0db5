/**
 * A clock domain runs the stages of a block diagram edge by edge, skipping the edges at which nothing is due.
 *
 * At one edge the due stages run in the order in which they were added: from the output of the pipeline back
 * to its input. So a stage never sees in the same cycle what a stage in front of it hands over, while a slot
 * freed downstream can be used upstream in the same cycle. That order is the design, not an accident of
 * scheduling: everything that reaches a clock domain from outside (a message, a timer) only leaves work in a
 * fifo or wakes a stage at a later edge.
 */
import type { Clock } from './clock.ts';

/** A stage does one cycle's work. It asks for its next cycle with {@link ClockDomain.wake}. */
export type Stage = (cycle: number) => void;

const NEVER = Number.POSITIVE_INFINITY;
const STAGE_COUNT_MAX = 32;
const NEAR_CYCLES = 64;

export class ClockDomain {
  readonly clock: Clock;
  /** Where the owner of time keeps what is due next. */
  #due: Float64Array = new Float64Array(1).fill(NEVER);
  #dueIndex = 0;
  /** The edge being run, or the last one run. */
  cycle = 0;
  /** Edges at which something was due. */
  activeEdgeCount = 0;

  readonly #stages: Stage[] = [];
  readonly #wakeCycle = new Float64Array(STAGE_COUNT_MAX);
  /** Stages with a wake cycle, as a bit set: most edges concern one or two of them. */
  #waiting = 0;
  /** Those of them that are looked at after each edge. The others (timeouts) are not due before {@link #farCycle}. */
  #near = 0;
  #farCycle = NEVER;
  /** Earliest wake cycle, and the stages that have it; while an edge runs, its stages that are still to run. */
  #nextCycle = NEVER;
  #dueStages = 0;
  #isRunning = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Time of the next edge at which a stage is due, or Infinity. */
  get nextPs(): number {
    return this.#due[this.#dueIndex]!;
  }

  /** Keeps {@link nextPs} at `due[index]` from now on. */
  attachDue(due: Float64Array, index: number): void {
    due[index] = this.nextPs;
    this.#due = due;
    this.#dueIndex = index;
  }

  /**
   * Adds a stage behind (upstream of) those added before, and returns its number for {@link wake}.
   * @throws RangeError for the 33rd
   */
  addStage(stage: Stage): number {
    if (this.#stages.length === STAGE_COUNT_MAX)
      throw new RangeError(`more than ${STAGE_COUNT_MAX} stages in a clock domain`);
    this.#stages.push(stage);
    return this.#stages.length - 1;
  }

  /** Has `stage` run at edge `cycle`, or earlier if it was already due earlier. */
  wake(stage: number, cycle: number): void {
    const bit = 1 << stage;
    if ((this.#waiting & bit) !== 0 && cycle >= this.#wakeCycle[stage]!) return;
    this.#wakeCycle[stage] = cycle;
    this.#waiting |= bit;
    this.#near |= bit;
    if (cycle > this.#nextCycle) return;
    if (this.#isRunning || cycle === this.#nextCycle) {
      this.#dueStages |= bit;
      return;
    }
    this.#nextCycle = cycle;
    this.#dueStages = bit;
    this.#due[this.#dueIndex] = this.clock.edgePs(cycle);
  }

  /** Has `stage` run at the first edge after the instant `nowPs`: what a message or a timer does. */
  wakeAfter(stage: number, nowPs: number): void {
    this.wake(stage, this.clock.cycleAfter(nowPs));
  }

  /** Runs the due stages of the next edge. */
  runEdge(): void {
    const cycle = this.#nextCycle;
    this.cycle = cycle;
    this.activeEdgeCount++;
    this.#isRunning = true;
    for (let left = this.#dueStages; left !== 0; ) {
      const bit = left & -left;
      this.#waiting &= ~bit;
      this.#near &= ~bit;
      this.#stages[31 - Math.clz32(bit)]!(cycle);
      // A stage may have woken one upstream of it for this very edge: a slot freed is used in the same cycle.
      left = this.#dueStages & -(bit << 1);
    }
    this.#isRunning = false;
    this.#findNext(cycle);
  }

  /** Finds the earliest wake cycle after the edge `cycle`, and the stages that have it. */
  #findNext(cycle: number): void {
    const wakeCycle = this.#wakeCycle;
    const farCycle = cycle + NEAR_CYCLES;
    let next = NEVER;
    let dueStages = 0;
    for (let left = this.#near; left !== 0; left &= left - 1) {
      const bit = left & -left;
      let due = wakeCycle[31 - Math.clz32(bit)]!;
      if (due > farCycle) {
        this.#near &= ~bit;
        if (due < this.#farCycle) this.#farCycle = due;
        continue;
      }
      // A stage that one upstream of it woke for this very edge runs at the next one.
      if (due <= cycle) due = cycle + 1;
      if (due > next) continue;
      dueStages = due < next ? bit : dueStages | bit;
      next = due;
    }
    if (next < this.#farCycle || this.#waiting === 0) {
      this.#nextCycle = next;
      this.#dueStages = dueStages;
      this.#due[this.#dueIndex] = next === NEVER ? NEVER : this.clock.edgePs(next);
    } else {
      this.#findNextOfAll(cycle);
    }
  }

  /** What {@link #findNext} does, with a look at every stage that waits. */
  #findNextOfAll(cycle: number): void {
    let next = NEVER;
    let dueStages = 0;
    for (let left = this.#waiting; left !== 0; left &= left - 1) {
      const bit = left & -left;
      const due = Math.max(this.#wakeCycle[31 - Math.clz32(bit)]!, cycle + 1);
      if (due < next) dueStages = 0;
      if (due <= next) dueStages |= bit;
      next = Math.min(next, due);
    }
    this.#near = this.#waiting;
    this.#farCycle = NEVER;
    this.#nextCycle = next;
    this.#dueStages = dueStages;
    this.#due[this.#dueIndex] = next === NEVER ? NEVER : this.clock.edgePs(next);
  }
}
