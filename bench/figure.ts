/** Result of a benchmark. */
import { holdModelHeap } from './hold-model.ts';

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Events per second of the hold model on a binary heap, measured immediately before. */
  readonly calibration: number;
  /** Parts of the time: shares of the value, in its unit. */
  readonly parts?: Readonly<Record<string, number>>;
}

const holdEvents = 4_000_000;

export const calibration = (): number => 1e9 / holdModelHeap(holdEvents);

/** The median; of an even number, the upper one. */
export const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** The figure as a line, followed by the parts of its time. */
export function textOf({ name, value, unit, parts = {} }: Figure): string {
  const lines = Object.entries(parts).map(
    ([part, share]) => `    ${share.toPrecision(3).padStart(8)}  ${part}`,
  );
  return [`${name}: ${value.toPrecision(4)} ${unit}`, ...lines].join('\n');
}
