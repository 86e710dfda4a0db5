/**
 * The table of rules in docs/how-to/trace.md. `npm run docs` writes it between the marks of that page; a spec compares the page with it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { rules } from '../../analyser/index.ts';

const start = '<!-- rules -->';
const end = '<!-- /rules -->';
const page = new URL('../../docs/how-to/trace.md', import.meta.url);

/** Markdown rows `rule | severity | sheet | demand`. */
export function rulesTable(): string {
  const rows = Object.entries(rules).map(
    ([name, { severity, section, demand }]) => `| \`${name}\` | ${severity} | ${section} | ${demand} |`,
  );
  return ['| rule | severity | sheet | what the driver must keep |', '|---|---|---|---|', ...rows].join('\n');
}

/** The page with the table put between its marks. */
export function pageWith(table: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n${table}\n${text.slice(to)}`;
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(rulesTable(), readPage()));
