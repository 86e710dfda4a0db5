/**
 * Finds where two runs of one story diverge: the first instant at which the state of some block differs, by bisection,
 * since runs of one story are equal up to there. Used for stories that end differently in another partition or with
 * other shuffles.
 */
import type { BlockState } from '../sim/index.ts';
import { machineOf, playStory, programsOf } from './run-story.ts';
import type { Story } from './story.ts';

const alone = { partition: 'single', shuffleSeed: undefined } as const;

/** @returns the instant and the values that differ there, as lines; none when the states never differ */
export async function firstDifference(story: Story): Promise<string[]> {
  const { again } = story;
  if (again === undefined) return [];
  const { endPs } = await playStory(story, alone);
  return whereTheyPart(
    (ps) => stateAt(story, alone, ps),
    (ps) => stateAt(story, again, ps),
    endPs,
  );
}

type StatesAt = (ps: bigint) => Promise<readonly BlockState[]>;

/**
 * Finds the same for any two runs, which are equal up to an instant and differ from there to `endPs`, if they differ
 * there.
 */
export async function whereTheyPart(one: StatesAt, other: StatesAt, endPs: bigint): Promise<string[]> {
  const differencesAt = async (ps: bigint): Promise<string[]> => {
    const [states, others] = [await one(ps), await other(ps)];
    return states.flatMap((state, node) => differencesOf(`node ${node}`, state, others[node]!));
  };
  let differences = await differencesAt(endPs);
  if (differences.length === 0) return [];
  let [samePs, differsPs] = [0n, endPs];
  while (differsPs - samePs > 1n) {
    const middlePs = (samePs + differsPs) / 2n;
    const found = await differencesAt(middlePs);
    if (found.length === 0) samePs = middlePs;
    else [differsPs, differences] = [middlePs, found];
  }
  return [`the runs part at ${differsPs} ps:`, ...differences];
}

/** Returns the state; a run that fails before `ps` is compared in its final state. */
async function stateAt(story: Story, how: NonNullable<Story['again']>, ps: bigint): Promise<BlockState[]> {
  await using machine = await machineOf(story, how);
  for (const program of programsOf(story)) await machine.load(program);
  await machine.runTo(ps).catch(() => undefined);
  return machine.inspect();
}

/** Lines `place: one / other` of all values that are not equal. */
export function differencesOf(place: string, one: unknown, other: unknown): string[] {
  if (isObject(one) && isObject(other))
    return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((name) =>
      differencesOf(`${place} ${name}`, one[name], other[name]),
    );
  const [left, right] = [JSON.stringify(one), JSON.stringify(other)];
  return left === right ? [] : [`${place}: ${left} / ${right}`];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
