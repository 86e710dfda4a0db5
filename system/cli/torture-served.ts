/** `hca torture --served`: rough guests at a served device, in this thread, story after story. */
import { randomInt } from 'node:crypto';
import { tableOf } from '../report/table.ts';
import {
  playServedStory,
  type ServedStory,
  servedKinds,
  shrinkServedStory,
} from '../torture/served/index.ts';
import { exitFailed, type Screen, writeJson } from './output.ts';

export interface ServedChoice {
  readonly seed?: number;
  readonly seeds?: { readonly first: number; readonly last: number };
  readonly minutes?: number;
  readonly shrink?: true;
  readonly json?: string;
}

export function tortureServed(choice: ServedChoice, screen: Screen): void {
  const { seed, seeds, json } = choice;
  const first = seed ?? seeds?.first ?? randomInt(2 ** 40);
  const last = seed ?? seeds?.last ?? Number.POSITIVE_INFINITY;
  const isTimed = !Number.isFinite(last) || choice.minutes !== undefined;
  const limitMs = isTimed ? (choice.minutes ?? 1) * 60_000 : Number.POSITIVE_INFINITY;
  const beganMs = performance.now();
  screen.print(`Served stories from seed ${first} on.`);
  const stories: ServedStory[] = [];
  for (let next = first; next <= last && performance.now() - beganMs <= limitMs; next++) {
    const story = playServedStory({ seed: next });
    stories.push(story);
    for (const { kind, text } of story.findings) screen.print(`seed ${next}: FOUND by ${kind}: ${text}`);
  }
  const failed = stories.find(({ findings }) => findings.length > 0);
  if (failed !== undefined) {
    process.exitCode = exitFailed;
    printFailure(failed, choice, screen);
  }
  const rows = servedKinds.map((kind) => [
    kind,
    stories.reduce((sum, { counts }) => sum + (counts[kind] ?? 0), 0),
  ]);
  screen.print(tableOf('What rough guests did', ['what', 'times'], rows));
  const failures = stories.filter(({ findings }) => findings.length > 0);
  screen.print(`${stories.length} served stories, ${failures.length} with findings.`);
  if (json !== undefined) writeJson(json, { firstSeed: first, stories: stories.length, failures });
}

function printFailure({ seed, findings }: ServedStory, { shrink }: ServedChoice, screen: Screen): void {
  if (shrink !== true) {
    screen.print(`Again: hca torture --served --seed ${seed}    Smaller: add --shrink`);
    return;
  }
  const small = shrinkServedStory({ seed });
  const [finding] = small?.story.findings ?? findings;
  screen.print(`Seed ${seed} made small: ${JSON.stringify(small?.options ?? { seed })}`);
  for (const action of finding?.actions ?? []) screen.print(`  ${action}`);
}
