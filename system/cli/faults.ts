/** `hca faults`: every fault that can be injected, its fields, and an option to try. */
import { faultListing } from '../machine/faults/index.ts';
import { listingColumns, tableOf } from '../text/table.ts';
import { Screen, writeJson } from './output.ts';

export function listFaults({ json }: { readonly json?: string }): void {
  const listing = faultListing();
  if (json !== undefined) writeJson(json, { schema: 'hca-faults/1', faults: listing });
  const screen = new Screen(json);
  const kinds = listing.map(({ kind, doc, seen, example, more = [] }) => [
    kind,
    doc,
    seen,
    [example, ...more].join('\n'),
  ]);
  const head = ['fault', 'what happens', 'what is seen', 'for example (--fault)'];
  screen.print(tableOf('Faults (--fault field=value,... or --faults FILE)', head, kinds, listingColumns()));
  const fields = listing.flatMap((row) =>
    row.fields.map(({ name, isRequired, range, doc }, at) => [
      at === 0 ? row.kind : '',
      isRequired ? `${name} *` : name,
      range,
      doc,
    ]),
  );
  screen.print(
    tableOf(
      'Fields (* needed; and node, 0 when left out)',
      ['fault', 'field', 'what it may be', 'meaning'],
      fields,
      listingColumns(),
    ),
  );
}
