/** The list of all faults, as `hca faults` prints it and docs/how-to/faults.md shows it. */
import type { Field } from './fields.ts';
import { type FaultKind, faultKinds, type Kind } from './kinds.ts';

export interface FaultListing {
  readonly kind: FaultKind;
  readonly doc: string;
  readonly seen: string;
  readonly example: string;
  /** Further example options for other variants. */
  readonly more?: readonly string[];
  readonly fields: readonly FieldListing[];
}

interface FieldListing {
  readonly name: string;
  readonly isRequired: boolean;
  readonly range: string;
  readonly doc: string;
}

export function faultListing(): FaultListing[] {
  const kinds: readonly [string, Kind][] = Object.entries(faultKinds);
  return kinds.map(([kind, { doc, seen, example, more, fields }]) => ({
    kind: kind as FaultKind,
    doc,
    seen,
    example,
    ...(more === undefined ? {} : { more }),
    fields: Object.entries(fields as Readonly<Record<string, Field<unknown>>>).map(([name, field]) => ({
      name,
      isRequired: field.isRequired,
      range: shortRange(field.range),
      doc: field.doc,
    })),
  }));
}

/** The names of all commands and statuses have a page of their own. */
const shortRange = (range: string): string => range.replace(/ \([A-Z0-9_]+(, [A-Z0-9_]+){10,}\)/, ' by name');

/** The fabric of the examples: hosts 0 to 3, and switches 4 and 5. */
export const exampleFabric = 'dumbbell:4';

/** The programs that best demonstrate a fault, on the command line. */
export function commandsOf({ kind, example, more = [] }: FaultListing): string[] {
  const isOfControl = kind === 'device' || kind === 'catastrophic' || kind === 'owner' || kind === 'command';
  const program = isOfControl ? 'npx hca move' : 'npx hca perf write-bw -n 1000';
  const fabric = `npx hca fabric all-to-all --topology ${exampleFabric}`;
  return [example, ...more].map(
    (fault) => `${fault.includes('node=4') ? fabric : program} --fault '${fault}'`,
  );
}
