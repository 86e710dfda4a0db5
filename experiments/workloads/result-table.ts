/** Columns that the tables of results share: times, rates and lengths, for a terminal and for a page. */
import { bytesText, timeText } from '../../explain/text/format.ts';
import type { PerfArgs } from './perf-plan.ts';
import type { LatencyResult } from './perf-result.ts';

export const usec = (ps: number): string => (ps / 1e6).toFixed(2);
/** 2^20 bytes, which perftest calls MB. */
export const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(2);
/** With perftest's digits: the longest messages reach only a few hundred per second. */
export const millionsText = (perSecond: number): string => (perSecond / 1e6).toFixed(6);

/** Bytes of a message; for randomly drawn lengths, their mean. */
export function meanBytesOf({ sizeBytes, sizes }: PerfArgs): string {
  if (sizes === undefined) return String(sizeBytes);
  const sum = sizes.reduce((total, { weight }) => total + weight, 0);
  return String(Math.round(sizes.reduce((total, { bytes, weight }) => total + bytes * weight, 0) / sum));
}

/** The message length of a row, as a page names it. */
export const lengthText = ({ sizeBytes, sizes, isOnDemand }: PerfArgs): string =>
  `${sizes === undefined ? '' : 'drawn, up to '}${bytesText(sizeBytes)}${isOnDemand === true ? ' on demand' : ''}`;

type Times = Pick<LatencyResult, 'minPs' | 'typicalPs' | 'averagePs' | 'p99Ps' | 'maxPs'>;

export const timeHeads = ['least', 'typical', 'mean', '99 %', 'most'];
export const timeCells = ({ minPs, typicalPs, averagePs, p99Ps, maxPs }: Times): string[] =>
  [minPs, typicalPs, averagePs, p99Ps, maxPs].map(timeText);
