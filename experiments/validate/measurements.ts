/**
 * Published measurements as a CSV file: one line per figure, with its place in the source and its conditions. The files
 * of this project are reference/measurements.csv, measurements-second.csv, measurements-third.csv and
 * fabric-measurements.csv there; a user's file has the same columns, of which most may be missing.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import { csvRecords } from './csv.ts';

const requiredColumns = ['id', 'nic', 'link', 'workload', 'params', 'metric', 'value', 'unit'] as const;
const otherColumns = ['source', 'where', 'pcie', 'verified', 'evidence', 'method', 'role'] as const;
type Column = (typeof requiredColumns)[number] | (typeof otherColumns)[number];

/** A line of a file; a column that the file lacks is empty. */
export interface Measurement extends Readonly<Record<Exclude<Column, 'value'>, string>> {
  readonly value: number;
}

/** The letter that begins the id of a published row; a user's rows are one group. */
export const groupOf = ({ id, source }: Pick<Measurement, 'id' | 'source'>): string =>
  source === '' ? 'own' : id[0]!;

/** Whether parameters may have been fitted to a row: one that was known when they were. */
export const isGiven = ({ role }: Pick<Measurement, 'role'>): boolean => role === 'accept';

/**
 * The rows of a file.
 * @param file its name, for messages
 * @throws ConfigurationError that names the line, for a missing column or cell, a value that is no number of 0 or more,
 * and a column or id that stands twice
 */
export function parsedMeasurements(text: string, file = 'measurements.csv'): Measurement[] {
  const [head, ...records] = csvRecords(text.replace(/^\uFEFF/, ''), file);
  const columns = head?.cells ?? [];
  const missing = requiredColumns.filter((name) => !columns.includes(name));
  if (missing.length > 0)
    throw new ConfigurationError(
      file,
      columns.join(',').slice(0, 80),
      `a first line with the columns ${missing.join(', ')}`,
    );
  for (const name of [...requiredColumns, ...otherColumns])
    if (columns.indexOf(name) !== columns.lastIndexOf(name))
      throw new ConfigurationError(file, name, 'each column once');
  const rows = records.map(({ line, cells }) => measurementOf(cells, columns, `${file} line ${line}`));
  const ids = new Set<string>();
  for (const { id } of rows) {
    if (ids.has(id)) throw new ConfigurationError(file, id, 'ids that differ');
    ids.add(id);
  }
  if (rows.length === 0)
    throw new ConfigurationError(file, 'no row', 'a row or more after the names of the columns');
  return rows;
}

const decimal = /^\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

function measurementOf(cells: readonly string[], columns: readonly string[], place: string): Measurement {
  const cell = (column: Column): string => cells[columns.indexOf(column)] ?? '';
  const id = cell('id');
  if (cells.length !== columns.length)
    throw new ConfigurationError(`${place} (${id})`, cells.length, `${columns.length} cells`);
  if (!/^[\w-]+$/.test(id)) throw new ConfigurationError(place, id, 'an id of letters, digits and hyphens');
  const value = Number(cell('value'));
  if (!decimal.test(cell('value')) || !Number.isFinite(value))
    throw new ConfigurationError(
      `${place} (${id})`,
      cell('value'),
      'a number of 0 or more in the column value',
    );
  const texts = Object.fromEntries(
    [...requiredColumns, ...otherColumns].map((column) => [column, cell(column)] as const),
  ) as Record<Column, string>;
  return { ...texts, value };
}

const units: Readonly<Record<string, number>> = {
  ...{ '': 1, B: 1, KB: 2 ** 10, KiB: 2 ** 10, MB: 2 ** 20, MiB: 2 ** 20 },
};

/**
 * A number among the conditions: `size=64`, `QPs/machine=48`, `MR size=4 MB`.
 * @throws InvariantError if it is missing
 */
export function circumstance(row: Measurement, name: string): number {
  const found = statedCircumstance(row, name);
  if (found === undefined) throw new InvariantError(`measurements.csv ${row.id}`, name, 'among its params');
  return found;
}

/** The same; undefined if it is missing. */
export function statedCircumstance({ params, workload }: Measurement, name: string): number | undefined {
  const named = new RegExp(`(?<![\\w])${name}=(\\d+)(?: ?(B|KB|KiB|MB|MiB))?(?=[;,)\\s]|$)`);
  for (const text of [params, workload]) {
    const match = named.exec(text);
    if (match !== null) return Number(match[1]) * units[match[2] ?? '']!;
  }
  return undefined;
}
