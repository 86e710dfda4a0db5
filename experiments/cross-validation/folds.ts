/**
 * Folds: which rows a fit may use, and which ones judge it.
 *
 *     C      every row of source C judges, the other sources train; the same for each other source
 *     odd    of each curve the first, third, fifth … point judge, the others train
 *     even   the reverse
 *
 * Rows that come from one simulation (a rate and a bandwidth of one size, two statistics of one run) are one point of a
 * curve, and are never on both sides. A row whose simulations are on both sides takes no part in `odd` and `even`. A
 * curve of fewer than three points trains in both. Rows that were kept back from every fit train in no fold.
 */
import { ConfigurationError } from '../../base/index.ts';
import { type Case, groupOf, isGiven, isRun, pointKey, statedCircumstance } from '../validate/index.ts';

export interface Fold {
  readonly name: string;
  readonly training: readonly Case[];
  readonly heldOut: readonly Case[];
}

const halves = ['odd', 'even'] as const;
type Half = (typeof halves)[number];
/** A curve with fewer points has none to leave out. */
const pointsLeast = 3;

/**
 * The folds of these names, or all.
 * @throws ConfigurationError for a name of no fold
 */
export function foldsOf(cases: readonly Case[], names?: readonly string[]): Fold[] {
  const given = cases.filter(({ row }) => isGiven(row));
  const sources = [...new Set(given.map(({ row }) => groupOf(row)))];
  const known = [...sources, ...halves];
  for (const name of names ?? [])
    if (!known.includes(name)) throw new ConfigurationError('--folds', name, `folds of ${known.join(', ')}`);
  return known
    .filter((name) => names?.includes(name) ?? true)
    .map((name) => (isHalf(name) ? withoutHalf(given, name) : withoutSource(given, name)));
}

export const isHalf = (name: string): name is Half => (halves as readonly string[]).includes(name);

const withoutSource = (given: readonly Case[], name: string): Fold => ({
  name,
  training: given.filter(({ row }) => groupOf(row) !== name),
  heldOut: given.filter(({ row }) => groupOf(row) === name),
});

function withoutHalf(given: readonly Case[], name: Half): Fold {
  const sides = sidesOf(given);
  const of = (side: Side): Case[] => given.filter(({ row }) => sides.get(row.id) === side);
  const other = halves.find((half) => half !== name)!;
  return {
    name,
    training: given.filter((one) => [other, 'both'].includes(sides.get(one.row.id)!)),
    heldOut: of(name),
  };
}

type Side = Half | 'both' | 'none';

/** The side of each row, by its id. */
function sidesOf(given: readonly Case[]): ReadonlyMap<string, Side> {
  const sideOfPoint = new Map<string, Half>();
  const sides = new Map<string, Side>();
  const curves = [...Map.groupBy(given, ({ family }) => family).values()].map(risingOf);
  // Long curves first: a short one may share a simulation with one of them.
  for (const curve of [...curves.filter((one) => !isShort(one)), ...curves.filter(isShort)]) {
    let count = 0;
    for (const one of curve) {
      const keys = one.points.map(pointKey);
      const taken = new Set(keys.flatMap((key) => sideOfPoint.get(key) ?? []));
      if (taken.size > 1) {
        sides.set(one.row.id, 'none');
        continue;
      }
      const side = [...taken][0] ?? (isShort(curve) ? undefined : halves[count++ % 2]!);
      sides.set(one.row.id, side ?? 'both');
      if (side !== undefined) for (const key of keys) sideOfPoint.set(key, side);
    }
  }
  return sides;
}

const isShort = (curve: readonly Case[]): boolean =>
  new Set(curve.map(({ points }) => points.map(pointKey).join('\n'))).size < pointsLeast;

/** The rows of a family in the order of its x axis. */
function risingOf(curve: readonly Case[]): Case[] {
  const { family } = curve[0]!;
  const over = isRun(family) ? family.over : undefined;
  if (over === undefined) return [...curve];
  const xOf = ({ row }: Case): number => statedCircumstance(row, over) ?? 0;
  return curve.toSorted((left, right) => xOf(left) - xOf(right));
}
