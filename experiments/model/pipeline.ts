/**
 * Jobs in a chain of stages, in order and without other traffic: computes when the last one leaves.
 *
 *     job k begins at stage s when it has left stage s − 1 and job k − 1 no longer holds stage s
 *
 * The last of `count` equal jobs begins at stage s at (passes before s) + (count − 1) × (longest hold up to s): the
 * slowest stage so far sets the distance. The few jobs that differ follow one by one.
 */

/** Times of one stage for a job of type `Job`, in picoseconds. */
export interface Stage<Job> {
  /** The term of the estimate that this stage's time belongs to. */
  readonly term: string;
  /** Wait of the next job after the beginning of this one. */
  readonly holdPs: (job: Job) => number;
  /** Time from the beginning until the job is at the next stage. */
  readonly passPs: (job: Job) => number;
}

const nothing = (): number => 0;

/** A stage that delays but never blocks. */
export const delay = <Job>(term: string, passPs: (job: Job) => number): Stage<Job> => ({
  term,
  holdPs: nothing,
  passPs,
});

/** When the last job has left the last stage, relative to the arrival of the first one at the first stage. */
export function lastLeavesPs<Job>(
  stages: readonly Stage<Job>[],
  job: Job,
  count: number,
  tail: readonly Job[] = [],
): number {
  /** When each stage is free for another job. */
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
