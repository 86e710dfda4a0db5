/** Chooses the operation stages for which a table has columns. */
import type { OperationReport } from '../../machine/index.ts';

/** Stages of retransmitted requests, and of requests that waited for a rate or for room in TCP. */
const retryStages: readonly string[] = ['ackTimeout', 'rnrDelay', 'rateLimit', 'tcpWindow', 'retransmission'];

/** All stages; these only if there were any. */
export function stagesShown(operations: readonly Pick<OperationReport, 'milestonesPs'>[]): string[] {
  return Object.keys(operations[0]?.milestonesPs ?? {}).filter(
    (stage) =>
      !retryStages.includes(stage) || operations.some(({ milestonesPs }) => (milestonesPs[stage] ?? 0) > 0),
  );
}
