/** Results of perftest's tests in columns: in a terminal they are perftest's. */
import { countText } from '../../explain/text/format.ts';
import type { PerfArgs } from './perf-plan.ts';
import type { BandwidthRates, LatencyResult } from './perf-result.ts';
import { lengthText, meanBytesOf, mib, millionsText, timeCells, timeHeads, usec } from './result-table.ts';
import type { ResultTable } from './test-kind.ts';

export const verbsTable = ({ isLatency, verb }: PerfArgs): ResultTable =>
  isLatency ? latencyTable(verb === 'write' || verb === 'send') : bandwidthTable;

/** WRITE and SEND are a ping-pong; READ and atomics are answered. */
const latencyTable = (isHalved: boolean): ResultTable => ({
  head: ' #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ',
  lineOf: ({ args, result }) => latencyLine(args, result as LatencyResult),
  title: `Latency, ${isHalved ? 'half a round trip' : 'a whole round trip'} as perftest counts it`,
  heads: ['size', 'messages', ...timeHeads, 'interrupts'],
  cellsOf: ({ args, result, interrupts }) => [
    lengthText(args),
    countText(args.iterations),
    ...timeCells(result as LatencyResult),
    interrupts.map(countText).join(' / '),
  ],
});

function latencyLine({ sizeBytes, iterations }: PerfArgs, result: LatencyResult): string {
  return (
    ` ${String(sizeBytes).padEnd(7)} ${String(iterations).padEnd(10)}     ${usec(result.minPs).padEnd(7)}        ` +
    `${usec(result.maxPs).padEnd(7)}      ${usec(result.typicalPs).padEnd(7)}  \t       ${usec(result.averagePs).padEnd(7)}     ` +
    `\t${usec(result.deviationPs).padEnd(7)}\t\t${usec(result.p99Ps).padEnd(7)} \t\t${usec(result.p999Ps).padEnd(7)}`
  );
}

const bandwidthTable: ResultTable = {
  head: ' #bytes     #iterations    BW peak[MiB/sec]   BW average[MiB/sec]  MsgRate[Mpps]',
  lineOf: ({ args, result }) => bandwidthLine(args, result as BandwidthRates),
  title: 'Rates',
  heads: ['size', 'messages', 'MiB/s, peak', 'MiB/s, average', 'M messages/s', 'interrupts'],
  cellsOf: ({ args, result, interrupts }) => {
    const { peakBytesPerSecond, averageBytesPerSecond, messagesPerSecond } = result as BandwidthRates;
    return [
      lengthText(args),
      countText(args.iterations * args.qpCount),
      ...[peakBytesPerSecond, averageBytesPerSecond].map((rate) => (rate === undefined ? '–' : mib(rate))),
      millionsText(messagesPerSecond),
      interrupts.map(countText).join(' / '),
    ];
  },
};

function bandwidthLine(args: PerfArgs, result: BandwidthRates): string {
  const { peakBytesPerSecond: peak } = result;
  return (
    ` ${meanBytesOf(args).padEnd(10)} ${String(args.iterations).padEnd(10)}       ${(peak === undefined ? '-' : mib(peak)).padEnd(7)}            ` +
    `${mib(result.averageBytesPerSecond).padEnd(7)} \t\t   ${millionsText(result.messagesPerSecond)}`
  );
}
