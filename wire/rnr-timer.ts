/**
 * RNR timer: the delay before a request is retried after an RNR NAK, by its 5-bit code. Source: InfiniBand Architecture
 * Specification, volume 1, 9.7.5.2.8.
 */
import { psPerUs } from '../base/index.ts';

/** Waiting times after an RNR NAK by timer code 0 to 31, in units of hundredths of a millisecond (9.7.5.2.8). */
export const rnrTimerUnitsByCode: readonly number[] = [
  65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
  4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

const RNR_TIMER_UNIT_PS = 10 * psPerUs;

/** The same in picoseconds, as in the standard. */
export const rnrTimerPsByCode: readonly number[] = rnrTimerUnitsByCode.map(
  (count) => count * RNR_TIMER_UNIT_PS,
);
