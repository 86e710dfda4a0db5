/** Runs comparisons, each a simulation, in parallel on the available cores. */
import runCompare, { type CompareOrder, type CompareRow } from '../../experiments/runs/compare-run.ts';
import { taskRunner } from '../../experiments/runs/task-pool.ts';

/**
 * Yields a row for each order, in the sequence of `orders` even if a later one finishes first.
 * @param onDone called with the number of finished runs after each run
 */
export async function* comparisons(
  orders: readonly CompareOrder[],
  onDone: (count: number) => void = () => {},
): AsyncGenerator<CompareRow> {
  if (orders.length === 1) {
    yield await runCompare(orders[0]!);
    onDone(1);
    return;
  }
  await using pool = taskRunner<CompareOrder, CompareRow>('compare-run', Math.max(1, orders.length));
  let done = 0;
  const rows = orders.map(async (order) => {
    const row = await pool.run(order);
    onDone(++done);
    return row;
  });
  // A failure is thrown when its row would be yielded.
  for (const row of rows) row.catch(() => {});
  for (const row of rows) yield await row;
}
