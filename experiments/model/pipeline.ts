/**
 * Jobs in a row of stages, in order and without anything else in the way: when the last one leaves.
 *
 *     job k begins at stage s when it has left stage s − 1 and job k − 1 no longer holds stage s
 *
 * Of `count` equal jobs the last begins at stage s at (passes before s) + (count − 1) × (longest hold up to s): the
 * bottleneck so far sets the distance. The few jobs that differ follow one by one.
 */

/** Times of one stage for a job of type `Job`, in picoseconds. */
export interface Stage<Job> {
  /** The term of the estimate that its pass belongs to. */
  readonly term: string;
  /** How long the next job has to wait behind the beginning of this one. */
  readonly holdPs: (job: Job) => number;
  /** From the beginning to the job's being at the next stage. */
  readonly passPs: (job: Job) => number;
}

const nothing = (): number => 0;

/** A stage that delays and never holds up. */
export const delay = <Job>(term: string, passPs: (job: Job) => number): Stage<Job> => ({
  term,
  holdPs: nothing,
  passPs,
});

/** When the last job has left the last stage, counted from the first one's being at the first. */
export function lastLeavesPs<Job>(
  stages: readonly Stage<Job>[],
  job: Job,
  count: number,
  tail: readonly Job[] = [],
): number {
  /** When each stage is free for a further job. */
  const free = new Float64Array(stages.length);
  let leftPs = 0;
  if (count > 0) {
    let slowestPs = 0;
    for (const [at, stage] of stages.entries()) {
      const holdPs = stage.holdPs(job);
      slowestPs = Math.max(slowestPs, holdPs);
      free[at] = leftPs + (count - 1) * slowestPs + holdPs;
      leftPs += stage.passPs(job);
    }
    leftPs += (count - 1) * slowestPs;
  }
  for (const last of tail) {
    leftPs = 0;
    for (const [at, stage] of stages.entries()) {
      const beginsPs = Math.max(leftPs, free[at]!);
      free[at] = beginsPs + stage.holdPs(last);
      leftPs = beginsPs + stage.passPs(last);
    }
  }
  return leftPs;
}
