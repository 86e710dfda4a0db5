/**
 * The table of docs/reference/timing.md: every parameter that is a time, a rate or a number of cycles, with its default and source.
 * `npm run docs` writes it between the marks of that page; a spec holds the page to it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { profileListing } from '../../machine/profile/index.ts';

const timeUnits = /^(ps|ns|us|ms|cycles|cycles.*|MHz|bytes\/cycle|ns\/m|cm|m|metres)$/;
const start = '<!-- parameters -->';
const end = '<!-- /parameters -->';
const page = new URL('../../docs/reference/timing.md', import.meta.url);

/** Markdown rows `path | default | unit | source | meaning`. */
export function timingTable(): string {
  const rows = profileListing()
    .parameters.filter(
      ({ unit, path }) =>
        timeUnits.test(unit) || /BytesPerCycle$|\.speed$|\.width$|generation$|lanes$/.test(path),
    )
    .map(
      ({ path, default: value, unit, source, doc }) =>
        `| \`${path}\` | ${value} | ${unit} | ${source} | ${doc} |`,
    );
  return ['| parameter | default | unit | source | meaning |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** The page with the table put between its marks. */
export function pageWith(table: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n${table}\n${text.slice(to)}`;
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(timingTable(), readPage()));
