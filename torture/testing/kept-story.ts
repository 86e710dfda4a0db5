/** Stories that once failed, as data: a seed gives another story when the drawing changes. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Story } from '../story.ts';

const folder = new URL('../kept/', import.meta.url);

/** Files of `hca torture --save`, by name. */
export const keptNames = (): string[] => readdirSync(folder).map((file) => file.replace(/\.json$/, ''));

export const keptStory = (name: string): Story =>
  JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as Story;
