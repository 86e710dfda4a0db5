/** The scenes there are, as docs/how-to/torture.md holds them between its marks. `npm run docs` writes the page; a spec holds it to the list. */
import { readFileSync, writeFileSync } from 'node:fs';
import { scenes } from './index.ts';

const start = '<!-- scenes -->';
const end = '<!-- /scenes -->';
const page = new URL('../../docs/how-to/torture.md', import.meta.url);

/** Returns Markdown rows `scene | what happens`. */
export function sceneTable(): string {
  const rows = scenes.map(({ name, about }) => `| ${name} | ${about} |`);
  return ['| scene | what happens |', '|---|---|', ...rows].join('\n');
}

/** The page with the table put between its marks. */
export function pageWith(table: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n${table}\n${text.slice(to)}`;
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(sceneTable(), readPage()));
