/** The outcome of a simulation that failed: a result, too, so that the other rows keep theirs. */
import { ConfigurationError } from '../../base/index.ts';
import type { PointOutcome } from '../../experiments/validate/index.ts';
import { RunError } from '../../sim/index.ts';

/** @throws any other error */
export function failureOf(error: unknown): PointOutcome {
  if (error instanceof RunError || error instanceof ConfigurationError) return { failure: error.message };
  throw error;
}
