/** The faults there are, as a listing: what `hca faults` prints and what docs/faults.md holds. */
import type { Field } from './fields.ts';
import { type FaultKind, faultKinds } from './kinds.ts';

export interface FaultListing {
  readonly kind: FaultKind;
  readonly doc: string;
  readonly seen: string;
  readonly example: string;
  readonly fields: readonly FieldListing[];
}

interface FieldListing {
  readonly name: string;
  readonly isRequired: boolean;
  readonly range: string;
  readonly doc: string;
}

export function faultListing(): FaultListing[] {
  return Object.entries(faultKinds).map(([kind, { doc, seen, example, fields }]) => ({
    kind: kind as FaultKind,
    doc,
    seen,
    example,
    fields: Object.entries(fields as Readonly<Record<string, Field<unknown>>>).map(([name, field]) => ({
      name,
      isRequired: field.isRequired,
      range: shortRange(field.range),
      doc: field.doc,
    })),
  }));
}

/** The names of all commands and statuses fill a page of their own. */
const shortRange = (range: string): string => range.replace(/ \([A-Z0-9_]+(, [A-Z0-9_]+){10,}\)/, ' by name');

/** The program that shows a fault best, on the command line. */
export function commandOf({ kind, example }: FaultListing): string {
  return kind === 'device' || kind === 'catastrophic' || kind === 'owner' || kind === 'command'
    ? `npx hca move --fault '${example}'`
    : `npx hca perf write-bw -n 1000 --fault '${example}'`;
}
