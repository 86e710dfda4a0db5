/** `hca profiles`: the named profiles, and every parameter with unit, default, range, source and meaning. */
import type { Command } from 'commander';
import { type PageTable, pageOf, tableSection } from '../../explain/page/index.ts';
import { listingColumns, tableOf } from '../../explain/text/table.ts';
import { profileListing } from '../../machine/profile/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { Screen, writeJson } from '../output.ts';

interface ListingOptions extends HtmlChoice {
  readonly json?: string;
}

export function listProfiles(options: ListingOptions, command: Command): void {
  checkWritable(options.html);
  const listing = profileListing();
  if (options.json !== undefined) writeJson(options.json, { schema: 'hca-profiles/1', ...listing });
  const screen = new Screen(options.json);
  const tables = tablesOf(listing);
  for (const { title, head, rows } of tables) screen.print(tableOf(title, head, rows, listingColumns()));
  const head = headOf(command, { title: 'Profiles and parameters' });
  writePage(options, () => pageOf(head, tables.map(tableSection)), screen);
}

const tablesOf = ({ profiles, parameters }: ReturnType<typeof profileListing>): PageTable[] => [
  {
    title: 'Profiles (--profile NAME)',
    head: ['name', 'what it is', 'changes'],
    rows: profiles.map(({ name, doc, values }) => [
      name,
      doc,
      Object.entries(values)
        .map(([path, value]) => `${path}=${value}`)
        .join('\n'),
    ]),
  },
  {
    title: 'Parameters (--set path=value)',
    head: ['path', 'default', 'unit', 'range', 'source', 'meaning'],
    rows: parameters.map((row) => [row.path, String(row.default), row.unit, row.range, row.source, row.doc]),
  },
];
