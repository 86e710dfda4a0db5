/**
 * QPC fields by dotted path, for the parts of the model that work on sets of fields: a transition copies those it sets
 * from the mailbox into the stored context and leaves all others alone.
 */
import { addressPath } from './address-path.ts';
import { qpc } from './qpc.ts';

export type AddressPathField = keyof typeof addressPath.fields & string;
type PlainField = Exclude<keyof typeof qpc.fields & string, 'primaryPath' | 'alternatePath'>;

/** A field of the context, such as `pd` or `primaryPath.remoteLid`. */
export type QpcFieldPath = PlainField | `${'primaryPath' | 'alternatePath'}.${AddressPathField}`;

export const addressPathFields = Object.keys(addressPath.fields) as AddressPathField[];

type CopyField = (from: DataView, fromBase: number, to: DataView, toBase: number) => void;

const copyByPath = new Map<QpcFieldPath, CopyField>();
for (const [name, accessor] of Object.entries(qpc.fields)) {
  if ('fields' in accessor) {
    for (const [inner, innerAccessor] of Object.entries(accessor.fields)) {
      copyByPath.set(`${name}.${inner}` as QpcFieldPath, copierOf(innerAccessor));
    }
  } else {
    copyByPath.set(name as QpcFieldPath, copierOf(accessor));
  }
}

/** Copies the named fields from one context to another; everything else in the target keeps its value. */
export function copyQpcFields(
  paths: readonly QpcFieldPath[],
  from: DataView,
  fromBase: number,
  to: DataView,
  toBase: number,
): void {
  for (const path of paths) copyByPath.get(path)!(from, fromBase, to, toBase);
}

/** Any accessor: the result of its `get` is valid for its `set`. */
interface Copyable {
  get(view: DataView, base: number): unknown;
  set(view: DataView, base: number, value: unknown): void;
}

function copierOf(accessor: Copyable): CopyField {
  return (from, fromBase, to, toBase) => accessor.set(to, toBase, accessor.get(from, fromBase));
}
