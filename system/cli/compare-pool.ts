/** Runs comparisons side by side, each a simulation in a worker of its own. */
import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import runCompare, { type CompareOrder, type CompareRow } from './compare-run.ts';

/**
 * Yields rows in the order of the orders, whatever is done first.
 * @param onDone called when one is done: how many are
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
  const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
  const filename = new URL(`./compare-run${ending}`, import.meta.url).href;
  const threads = Math.max(1, Math.min(orders.length, availableParallelism()));
  const pool = new Piscina({ filename, minThreads: 1, maxThreads: threads });
  let done = 0;
  try {
    const rows = orders.map(async (order) => {
      const row = (await pool.run(order)) as CompareRow;
      onDone(++done);
      return row;
    });
    // A failure is met where its row would be yielded.
    for (const row of rows) row.catch(() => {});
    for (const row of rows) yield await row;
  } finally {
    await pool.destroy();
  }
}
