/** `hca profiles`: the named profiles, and every parameter with unit, default, range, source and meaning. */
import { profileListing } from '../machine/profile/index.ts';
import { listingColumns, tableOf } from '../text/table.ts';
import { Screen, writeJson } from './output.ts';

export function listProfiles({ json }: { readonly json?: string }): void {
  const listing = profileListing();
  if (json !== undefined) writeJson(json, { schema: 'hca-profiles/1', ...listing });
  const screen = new Screen(json);
  const profiles = listing.profiles.map(({ name, doc, values }) => [
    name,
    doc,
    Object.entries(values)
      .map(([path, value]) => `${path}=${value}`)
      .join('\n'),
  ]);
  screen.print(
    tableOf('Profiles (--profile NAME)', ['name', 'what it is', 'changes'], profiles, listingColumns()),
  );
  const rows = listing.parameters.map((row) => [
    row.path,
    String(row.default),
    row.unit,
    row.range,
    row.source,
    row.doc,
  ]);
  const head = ['path', 'default', 'unit', 'range', 'source', 'meaning'];
  screen.print(tableOf('Parameters (--set path=value)', head, rows, listingColumns()));
}
