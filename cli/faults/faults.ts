/** `hca faults`: lists every injectable fault, its fields, and an example option. */
import type { Command } from 'commander';
import { type PageTable, pageOf, tableSection } from '../../explain/page/index.ts';
import { listingColumns, tableOf } from '../../explain/text/table.ts';
import { faultListing } from '../../machine/faults/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { Screen, writeJson } from '../output.ts';

interface ListingOptions extends HtmlChoice {
  readonly json?: string;
}

export function listFaults(options: ListingOptions, command: Command): void {
  checkWritable(options.html);
  const listing = faultListing();
  if (options.json !== undefined) writeJson(options.json, { schema: 'hca-faults/1', faults: listing });
  const screen = new Screen(options.json);
  const tables = tablesOf(listing);
  for (const { title, head, rows } of tables) screen.print(tableOf(title, head, rows, listingColumns()));
  const head = headOf(command, { title: 'Faults that can be injected' });
  writePage(options, () => pageOf(head, tables.map(tableSection)), screen);
}

const tablesOf = (listing: ReturnType<typeof faultListing>): PageTable[] => [
  {
    title: 'Faults (--fault field=value,... or --faults FILE)',
    head: ['fault', 'what happens', 'what is seen', 'for example (--fault)'],
    rows: listing.map(({ kind, doc, seen, example, more = [] }) => [
      kind,
      doc,
      seen,
      [example, ...more].join('\n'),
    ]),
  },
  {
    title: 'Fields (* needed; and node, 0 when left out)',
    head: ['fault', 'field', 'what it may be', 'meaning'],
    rows: listing.flatMap((row) =>
      row.fields.map(({ name, isRequired, range, doc }, at) => [
        at === 0 ? row.kind : '',
        isRequired ? `${name} *` : name,
        range,
        doc,
      ]),
    ),
  },
];
