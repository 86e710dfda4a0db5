/**
 * The published measurements of reference/measurements.csv: one line per figure, with its place in the source and its
 * conditions.
 */
import { InvariantError } from '../../base/index.ts';

const columns = [
  'id',
  'source',
  'where',
  'nic',
  'pcie',
  'link',
  'workload',
  'params',
  'metric',
  'value',
  'unit',
  'verified',
  'evidence',
  'method',
  'role',
] as const;
type Column = (typeof columns)[number];

/** A line of the file. */
export interface Measurement extends Readonly<Record<Exclude<Column, 'value'>, string>> {
  readonly value: number;
}

/** The letter that begins its id. */
export const groupOf = ({ id }: Pick<Measurement, 'id'>): string => id[0]!;

/** The cells of a line: separated by commas; cells with commas are in quotation marks, which are doubled inside. */
const cellsOf = (line: string): string[] =>
  [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare!,
  );

/** @throws InvariantError for a line with a missing column, or without a number in its value column */
export function parsedMeasurements(text: string): Measurement[] {
  const [head, ...lines] = text.split(/\r?\n/).filter((line) => line !== '');
  if (head !== columns.join(',')) throw new InvariantError('measurements.csv', head ?? '', columns.join(','));
  return lines.map((line) => {
    const cells = cellsOf(line);
    const entries = columns.map((column, at) => [column, cells[at]] as const);
    const row = Object.fromEntries(entries) as Record<Column, string>;
    const value = Number(row.value);
    if (cells.length !== columns.length || row.value === '' || Number.isNaN(value))
      throw new InvariantError(`measurements.csv ${cells[0]}`, cells.length, `${columns.length} cells`);
    return { ...row, value };
  });
}

const units: Readonly<Record<string, number>> = { '': 1, KB: 2 ** 10, MB: 2 ** 20 };

/**
 * A number among the conditions: `size=64`, `QPs/machine=48`, `MR size=4 MB`.
 * @throws InvariantError if it is missing
 */
export function circumstance({ id, params, workload }: Measurement, name: string): number {
  for (const text of [params, workload]) {
    const at = text.indexOf(`${name}=`);
    const match = /^(\d+)(?: (KB|MB)\b)?/.exec(at < 0 ? '' : text.slice(at + name.length + 1));
    if (match !== null) return Number(match[1]) * units[match[2] ?? '']!;
  }
  throw new InvariantError(`measurements.csv ${id}`, name, 'among its params');
}
