/**
 * Permitted passing of TLPs at a transmitter: table 2-40 of PCIe base specification 3.1, 2.4.1, as a table.
 *
 * Row: the TLP that wants to pass. Column: the older TLP that still waits. The specification's "Y/N" is `may`,
 * its "Yes" is `must` (else deadlock), its "No" is `mustNot`. Configuration and I/O writes are non-posted
 * requests with data.
 *
 * Example: a completion (row D) waits after a write (column 2) that lacks credits. It may leave first only with the relaxed
 * ordering attribute. A write after a read that lacks credits must leave first.
 */
import {
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_RELAXED_ORDERING,
  flowOf,
  MEMORY_READ,
  NON_POSTED,
  POSTED,
} from '../tlp/index.ts';

/** Rows and columns of the table. */
const ORDER_POSTED = 0;
const ORDER_READ = 1;
const ORDER_NON_POSTED_DATA = 2;
const ORDER_COMPLETION = 3;
const CLASS_COUNT = 4;

type Passing = 'mustNot' | 'may' | 'must';

/** One row: by column posted, read, non-posted with data, completion. */
type Row = readonly [posted: Passing, read: Passing, nonPostedData: Passing, completion: Passing];

/** Relaxed ordering clear (cells a). Completions of one request never pass each other; those of different requests may. */
const STRICT_ORDERING: readonly Row[] = [
  ['mustNot', 'must', 'must', 'may'],
  ['mustNot', 'may', 'may', 'may'],
  ['mustNot', 'may', 'may', 'may'],
  ['mustNot', 'must', 'must', 'may'],
];

/** Relaxed ordering set (cells b): TLPs that may then also pass posted requests. A read has no such cell. */
const RELAXED_ORDERING: readonly Row[] = [
  ['may', 'must', 'must', 'may'],
  ['mustNot', 'may', 'may', 'may'],
  ['may', 'may', 'may', 'may'],
  ['may', 'must', 'must', 'may'],
];

const flattened = (table: readonly Row[]): number[] =>
  table.flat().map((cell) => (cell === 'mustNot' ? 0 : 1));
const MAY_PASS = new Uint8Array([...flattened(STRICT_ORDERING), ...flattened(RELAXED_ORDERING)]);

/** Row or column of a TLP kind. */
function orderClassOf(kind: number): number {
  if (kind === MEMORY_READ || kind === CONFIG_READ) return ORDER_READ;
  if (kind === CONFIG_WRITE) return ORDER_NON_POSTED_DATA;
  const flow = flowOf(kind);
  return flow === POSTED ? ORDER_POSTED : flow === NON_POSTED ? ORDER_NON_POSTED_DATA : ORDER_COMPLETION;
}

/** Whether a TLP of this kind and flags may leave before an older one of kind `olderKind`. */
export function mayPass(kind: number, flags: number, olderKind: number): boolean {
  const table = (flags & FLAG_RELAXED_ORDERING) === 0 ? 0 : CLASS_COUNT * CLASS_COUNT;
  return MAY_PASS[table + orderClassOf(kind) * CLASS_COUNT + orderClassOf(olderKind)] === 1;
}
