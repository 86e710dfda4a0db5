/**
 * Stories of players that specs play, alter and have judged. They are data (stories.json.gz), by the names that the specs call them, so
 * that their specs stay as they are when seeds draw other stories.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Story } from '../story.ts';

const examples = JSON.parse(
  gunzipSync(readFileSync(new URL('stories.json.gz', import.meta.url))).toString(),
) as Readonly<Record<string, Story>>;

/** @param name a number, or `windows` and a number of one whose programs bind memory windows */
export function exampleStory(name: number | `windows ${number}`): Story {
  const story = examples[name];
  if (story === undefined) throw new Error(`no example ${name}: one of ${Object.keys(examples).join(', ')}`);
  return story;
}
