/**
 * Rows of a card under changed values: the simulations of a row, each run once for equal values, and the families that a
 * value changes.
 *
 *     row, values ─► its points, each with the values that change its family ─► figures (kept by point and values)
 *
 * A value changes a family if it was derived from one of its rows, or if a figure of the first, the middle or the last of
 * them differs between the value's published number and the candidate furthest from it (by a thousandth or more). Other values are left out of a
 * simulation's key, so that most candidates find their figures already there. A parameter that a point itself sets (a
 * requester that represents many machines) keeps the point's number.
 */
import type { ParameterValues } from '../../machine/profile/index.ts';
import {
  type Case,
  type Figures,
  type Point,
  type PointOutcome,
  pointKey,
  type RowResult,
  resultOf,
} from '../validate/index.ts';
import type { Judgement, SearchedValue, Values } from './search.ts';

/** A value of the card: several parameters may share it. */
export interface CardFit extends SearchedValue {
  readonly paths: readonly string[];
  readonly published: number;
  /** Ids of rows that it was derived from. */
  readonly derivedFrom: readonly string[];
}

export interface Order {
  readonly point: Point;
  readonly set: ParameterValues;
}

/** Runs one simulation; a failure is an outcome, too. */
export type Run = (order: Order) => Promise<PointOutcome>;

/** Smaller differences are none. */
const differenceLeast = 1e-3;

export class CardBench {
  readonly #fits: readonly CardFit[];
  readonly #run: Run;
  readonly #outcomes = new Map<string, Promise<PointOutcome>>();
  /** Names of the values that change a family, by its name. */
  readonly #changing = new Map<string, ReadonlySet<string>>();

  constructor(fits: readonly CardFit[], run: Run) {
    this.#fits = fits;
    this.#run = run;
  }

  /** Number of simulations so far. */
  get runCount(): number {
    return this.#outcomes.size;
  }

  /** Finds the values that change each family of these rows. */
  async probe(cases: readonly Case[]): Promise<void> {
    const families = Map.groupBy(cases, ({ family }) => family.name);
    await Promise.all(
      [...families].map(async ([name, own]) => {
        const points = probesOf(own);
        const ids = new Set(own.map(({ row }) => row.id));
        const changing = await Promise.all(
          this.#fits.map((fit) => fit.derivedFrom.some((id) => ids.has(id)) || this.#doesChange(points, fit)),
        );
        this.#changing.set(name, new Set(this.#fits.flatMap((fit, at) => (changing[at] ? [fit.name] : []))));
      }),
    );
  }

  async #doesChange(points: readonly Point[], fit: CardFit): Promise<boolean> {
    const far = furthestOf(fit);
    const changes = points.map(async (point) => {
      const [before, after] = await Promise.all(
        [fit.published, far].map((value) =>
          this.#outcomeOf(point, setOf(point, [fit], { [fit.name]: value })),
        ),
      );
      return differ(before!, after!);
    });
    return (await Promise.all(changes)).some((differs) => differs);
  }

  /** Whether a value changes a row, or, without a name, any value does. */
  changes(one: Case, name?: string): boolean {
    const changing = this.#changing.get(one.family.name)!;
    return name === undefined ? changing.size > 0 : changing.has(name);
  }

  async resultOf(one: Case, values: Values): Promise<RowResult> {
    const changing = this.#changing.get(one.family.name)!;
    const fits = this.#fits.filter(({ name }) => changing.has(name));
    const outcomes = await Promise.all(
      one.points.map(
        async (point) => [pointKey(point), await this.#outcomeOf(point, setOf(point, fits, values))] as const,
      ),
    );
    return resultOf(one, new Map(outcomes));
  }

  async judge(one: Case, values: Values): Promise<Judgement> {
    const { verdict, error = Number.NaN } = await this.resultOf(one, values);
    return {
      holds: verdict === 'holds',
      error: Number.isNaN(error) ? Number.POSITIVE_INFINITY : Math.abs(error),
    };
  }

  #outcomeOf(point: Point, set: ParameterValues): Promise<PointOutcome> {
    const key = orderKey({ point, set });
    let outcome = this.#outcomes.get(key);
    if (outcome === undefined) {
      outcome = this.#run({ point, set });
      // A failure is handled where it is awaited.
      outcome.catch(() => {});
      this.#outcomes.set(key, outcome);
    }
    return outcome;
  }
}

/** Equal for orders that are the same. */
export const orderKey = ({ point, set }: Order): string => `${pointKey(point)} ${JSON.stringify(set)}`;

/** Parameters that a simulation sets: those of `fits` that differ from the profile, and that its point leaves open. */
function setOf({ machine }: Point, fits: readonly CardFit[], values: Values): ParameterValues {
  return Object.fromEntries(
    fits.flatMap(({ name, paths, published }) =>
      values[name] === published
        ? []
        : paths
            .filter((path) => machine.set?.[path] === undefined)
            .map((path) => [path, values[name]!] as const),
    ),
  );
}

/** The first, the middle and the last simulation of a family's rows. */
export function probesOf(own: readonly Case[]): Point[] {
  const [first, middle, last] = [own[0]!, own[own.length >> 1]!, own.at(-1)!].map(({ points }) => points);
  const points = [first![0]!, middle!.at(-1)!, last!.at(-1)!];
  return [...new Map(points.map((point) => [pointKey(point), point])).values()];
}

/** The candidate whose place is furthest from the published one. */
function furthestOf({ candidates, published }: CardFit): number {
  const at = candidates.indexOf(published);
  return at >= candidates.length / 2 ? candidates[0]! : candidates.at(-1)!;
}

function differ(before: PointOutcome, after: PointOutcome): boolean {
  const [one, other] = [before, after] as [Figures, Figures];
  return Object.keys({ ...one, ...other }).some((name) => {
    const [left, right] = [one[name], other[name]];
    if (typeof left !== 'number' || typeof right !== 'number') return left !== right;
    return Math.abs(left - right) > differenceLeast * Math.abs(left);
  });
}
