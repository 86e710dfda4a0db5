/** The result of the key-value store in columns. perftest has no such test: they are a rate and latencies over all clients. */
import { bytesText, countText } from '../../explain/text/format.ts';
import type { KvRates } from './kv-plan.ts';
import { millionsText, timeCells, timeHeads, usec } from './result-table.ts';
import type { ResultTable } from './test-kind.ts';

export const kvTable: ResultTable = {
  head: ' #value #requests     GETs[%]  MsgRate[Mpps]    t_min[usec]  t_typical[usec]    t_avg[usec]  99%[usec]  99.9%[usec]  t_max[usec]',
  lineOf: ({ args, result }) => lineOf(result as KvRates, args.sizeBytes),
  title: 'Requests of all clients together, from before one is made until its answer is taken',
  heads: ['value', 'GETs', 'PUTs', 'M requests/s', ...timeHeads, 'interrupts'],
  cellsOf: ({ args, result, interrupts }) => {
    const rates = result as KvRates;
    return [
      bytesText(args.sizeBytes),
      countText(rates.getCount),
      countText(rates.putCount),
      millionsText(rates.messagesPerSecond),
      ...timeCells(rates),
      interrupts.map(countText).join(' / '),
    ];
  },
};

function lineOf(result: KvRates, valueBytes: number): string {
  const { getCount, putCount } = result;
  const total = getCount + putCount;
  const columns: readonly (readonly [text: string, width: number])[] = [
    [((getCount / total) * 100).toFixed(1), 11],
    [millionsText(result.messagesPerSecond), 15],
    [usec(result.minPs), 15],
    [usec(result.typicalPs), 17],
    [usec(result.averagePs), 15],
    [usec(result.p99Ps), 11],
    [usec(result.p999Ps), 13],
    [usec(result.maxPs), 13],
  ];
  const rest = columns.map(([text, width]) => text.padStart(width)).join('');
  return ` ${String(valueBytes).padEnd(6)} ${String(total).padEnd(10)}${rest}`;
}
