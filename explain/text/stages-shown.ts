/** Which stages of operations a table has columns for. */
import type { OperationReport } from '../../machine/index.ts';

/** Stages of requests that were sent again. */
const retryStages: readonly string[] = ['ackTimeout', 'rnrDelay'];

/** All stages, but those of requests sent again only where there were such. */
export function stagesShown(operations: readonly Pick<OperationReport, 'milestonesPs'>[]): string[] {
  return Object.keys(operations[0]?.milestonesPs ?? {}).filter(
    (stage) =>
      !retryStages.includes(stage) || operations.some(({ milestonesPs }) => (milestonesPs[stage] ?? 0) > 0),
  );
}
