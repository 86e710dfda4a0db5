/**
 * Published measurements as a CSV file: one line per figure, with its place in the source and its conditions. The files
 * of this project are reference/measurements.csv and reference/measurements-second.csv; a user's file has the same
 * columns, of which most may be missing.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';

const requiredColumns = ['id', 'nic', 'link', 'workload', 'params', 'metric', 'value', 'unit'] as const;
const otherColumns = ['source', 'where', 'pcie', 'verified', 'evidence', 'method', 'role'] as const;
type Column = (typeof requiredColumns)[number] | (typeof otherColumns)[number];

/** A line of a file; a column that the file lacks is empty. */
export interface Measurement extends Readonly<Record<Exclude<Column, 'value'>, string>> {
  readonly value: number;
}

/** The letter that begins its id. */
export const groupOf = ({ id }: Pick<Measurement, 'id'>): string => id[0]!;

/** Whether parameters may have been fitted to a row: one that was known when they were. */
export const isGiven = ({ role }: Pick<Measurement, 'role'>): boolean => role === 'accept';

/** The cells of a line: separated by commas; cells with commas are in quotation marks, which are doubled inside. */
const cellsOf = (line: string): string[] =>
  [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare!,
  );

/**
 * The rows of a file.
 * @param file its name, for messages
 * @throws ConfigurationError that names the line, for a missing column or cell, a value that is no number, and an id
 * that two rows share
 */
export function parsedMeasurements(text: string, file = 'measurements.csv'): Measurement[] {
  const [head = '', ...lines] = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const columns = cellsOf(head).map((name) => name.trim());
  const missing = requiredColumns.filter((name) => !columns.includes(name));
  if (missing.length > 0)
    throw new ConfigurationError(
      file,
      head.slice(0, 80),
      `a first line with the columns ${missing.join(', ')}`,
    );
  const ids = new Set<string>();
  const rows = lines.flatMap((line, at) =>
    line.trim() === '' ? [] : [measurementOf(line, columns, `${file} line ${at + 2}`)],
  );
  for (const { id } of rows) {
    if (ids.has(id)) throw new ConfigurationError(file, id, 'ids that differ');
    ids.add(id);
  }
  if (rows.length === 0) throw new ConfigurationError(file, 0, 'one row or more');
  return rows;
}

function measurementOf(line: string, columns: readonly string[], place: string): Measurement {
  const cells = cellsOf(line);
  const cell = (column: Column): string => cells[columns.indexOf(column)] ?? '';
  if (cells.length !== columns.length)
    throw new ConfigurationError(`${place} (${cell('id')})`, cells.length, `${columns.length} cells`);
  const [id, text] = [cell('id').trim(), cell('value').trim()];
  const value = Number(text);
  if (id === '') throw new ConfigurationError(place, 'no id', 'an id such as M-001');
  if (text === '' || !Number.isFinite(value))
    throw new ConfigurationError(`${place} (${id})`, text, 'a number in the column value');
  const texts = Object.fromEntries(
    [...requiredColumns, ...otherColumns].map((column) => [column, cell(column)] as const),
  ) as Record<Column, string>;
  return { ...texts, id, value };
}

const units: Readonly<Record<string, number>> = { '': 1, KB: 2 ** 10, MB: 2 ** 20 };

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
  for (const text of [params, workload]) {
    const at = text.indexOf(`${name}=`);
    const match = /^(\d+) ?(KB|MB)?\b/.exec(at < 0 ? '' : text.slice(at + name.length + 1));
    if (match !== null) return Number(match[1]) * units[match[2] ?? '']!;
  }
  return undefined;
}
