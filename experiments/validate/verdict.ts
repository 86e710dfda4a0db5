/** Whether a simulated figure holds: the tolerances of reference/measurements.md, and the deviation. */

export interface Tolerance {
  readonly name: string;
  /** The largest error, relative to the measured value. */
  readonly share: number;
  /** Whether the measured value is only a lower bound: larger values hold. */
  readonly isLeast?: boolean;
}

/** "Step positions and constants exact; ratios and trends ±10–15 %; rates and same-host latency ±10 %; bandwidth ceilings ±3 %." */
export const tolerances = {
  exact: { name: 'exact', share: 0 },
  ceiling: { name: '±3 %', share: 0.03 },
  rate: { name: '±10 %', share: 0.1 },
  ratio: { name: '±15 %', share: 0.15 },
  least: { name: 'at least', share: 0, isLeast: true },
} as const satisfies Readonly<Record<string, Tolerance>>;
export type ToleranceName = keyof typeof tolerances;

export interface Verdict {
  /** (simulated − measured) / measured; if the measured value is 0, the simulated one. */
  readonly error: number;
  readonly holds: boolean;
}

/** Figures that agree to a billionth are equal: they were computed in floating point. */
const rounding = 1e-9;

export function verdictOf(measured: number, simulated: number, name: ToleranceName): Verdict {
  const tolerance: Tolerance = tolerances[name];
  const error = measured === 0 ? simulated : (simulated - measured) / measured;
  if (!Number.isFinite(error)) return { error, holds: false };
  if (tolerance.isLeast === true) return { error, holds: error >= -rounding };
  return { error, holds: Math.abs(error) <= tolerance.share + rounding };
}
