/** A toy card: rows on a curve over x, and simulations that are a formula of x and the values. */
import type { Case, Figures, Measurement, Point } from '../../validate/index.ts';
import { CardBench, type CardFit } from '../card-bench.ts';

export interface ToyRow {
  readonly id: string;
  readonly x: number;
  readonly measured: number;
  /** Kept back from every fit. */
  readonly isKeptBack?: boolean;
  /** Other conditions of the simulation: rows with equal ones and equal x share it. */
  readonly run?: string;
}

export const toyFit = (
  name: string,
  start: number,
  candidates: readonly number[],
  published = start,
  derivedFrom: readonly string[] = [],
): CardFit => ({ name, paths: [name], published, start, candidates, derivedFrom });

const pointOf = (x: number, run: string): Point => ({
  machine: { profile: 'toy', set: { x, run } },
  workload: { kind: 'constant' },
});

const blank = {
  nic: '',
  link: '',
  workload: '',
  metric: '',
  unit: '',
  where: '',
  pcie: '',
};

/** The rows of one family: within tolerance if the error is a tenth or less. */
export function toyCurve(name: string, rows: readonly ToyRow[]): Case[] {
  const family: Case['family'] = {
    name,
    of: {},
    workload: 'toy',
    points: () => [],
    figure: 'y',
    tolerance: 'rate',
    over: 'x',
  };
  return rows.map(({ id, x, measured, isKeptBack = false, run = '' }) => {
    const texts = { ...blank, verified: '', evidence: '', method: '', params: `x=${x}` };
    const row: Measurement = {
      ...texts,
      id,
      source: name,
      value: measured,
      role: isKeptBack ? 'reserve' : 'accept',
    };
    return { row, family, points: [pointOf(x, run)] };
  });
}

/** A bench whose simulations are a formula; values that it is not given are published ones. */
export function toyBench(
  fits: readonly CardFit[],
  y: (x: number, values: Readonly<Record<string, number>>) => number,
): { readonly bench: CardBench; readonly ran: () => number } {
  let count = 0;
  const published = Object.fromEntries(fits.map((fit) => [fit.name, fit.published]));
  const bench = new CardBench(fits, ({ point, set }) => {
    count++;
    const values = { ...published, ...(set as Record<string, number>) };
    return Promise.resolve({ y: y(point.machine.set!['x'] as number, values) } satisfies Figures);
  });
  return { bench, ran: () => count };
}
