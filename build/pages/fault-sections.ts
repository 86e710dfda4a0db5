/**
 * The list of all faults between the marks of docs/how-to/faults.md. `npm run docs` writes the page; a spec compares it with the
 * declaration.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { commandsOf, faultListing } from '../../machine/faults/index.ts';

const start = '<!-- faults -->';
const end = '<!-- /faults -->';
const page = new URL('../../docs/how-to/faults.md', import.meta.url);

/** Markdown: a section for each kind. */
export function faultSections(): string {
  return faultListing()
    .map((listing) => {
      const rows = listing.fields.map(
        ({ name, isRequired, range, doc }) =>
          `| \`${name}\` | ${isRequired ? 'yes' : ''} | ${range} | ${doc} |`,
      );
      return [
        `### ${listing.kind}`,
        '',
        listing.doc,
        '',
        `*Seen as:* ${listing.seen}`,
        '',
        '| field | needed | what it may be | meaning |',
        '|---|---|---|---|',
        ...rows,
        '',
        '```',
        ...commandsOf(listing),
        '```',
        '',
      ].join('\n');
    })
    .join('\n');
}

/** The page with the sections put between its marks. */
export function pageWith(sections: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n\n${sections}\n${text.slice(to)}`;
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(faultSections(), readPage()));
