/** Formats rows for people. */
import type { Measurement } from './measurements.ts';
import type { Tally } from './validation.ts';

const named = /\b(size|window(?:\/thread)?|N|code|timeout|retry_cnt|MR size)=(\d+(?: [KM]i?B)?)/g;

/** Columns that distinguish a row within its family. */
export function circumstancesText({ params, workload, metric }: Measurement): string {
  const found = [...params.matchAll(named)].map(([, name, value]) => `${name}=${value}`);
  if (found.length > 0) return found.join(' ');
  const plain = params === '' || params.length > 40 ? workload : params;
  return plain.length <= 40 ? plain : metric;
}

/** Three significant digits, without an exponent. */
export function figureText(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en');
  return size === 0 ? '0' : Number(value.toPrecision(3)).toString();
}

/** A signed percentage; undefined if the measured value is 0. */
export function errorText(measured: number, error: number): string {
  if (measured === 0 || !Number.isFinite(error)) return '–';
  const percent = error * 100;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(digits)} %`;
}

export const markdownTable = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

export const percentText = (share: number): string => `${(share * 100).toFixed(0)} %`;

/** `491 of 534, 91.9 %`: rows within tolerance among those that ran. */
export function tallyText({ holds, misses, failed, share }: Tally): string {
  const run = holds + misses + failed;
  return run === 0 ? '–' : `${holds} of ${run}, ${shareText(share)}`;
}

/** The share of rows that hold, to a tenth and never rounded up: 89.8 % are not 90 %. */
export const shareText = (share: number): string => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
