/**
 * Results as an SQLite database, for notebooks: one table `points` with a column for each axis and each figure, and a table `sweep`
 * with the header.
 *
 *     SELECT "hca.mttCacheLines", "size", messagesPerSecond FROM points WHERE status = 'done' ORDER BY "index"
 */
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ConfigurationError, codeOf } from '../../base/index.ts';
import { isWrittenInPlace, readRegularFile, replaceBy, statOf } from '../../runtime/files.ts';
import type { Results } from './results-file.ts';
import type { Figure, RowStatus, SweepHeader, SweepRow } from './row.ts';

/** Columns that every table of points has, before axes and figures. */
const commonColumns = ['index', 'hash', 'status', 'error'] as const;
/** Default limit of SQLite. */
const columnsMax = 2000;

type Value = string | number | null;

/**
 * Writes a database atomically.
 * @throws ConfigurationError if it cannot be written
 */
export function writeSqlite(file: string, { header, rows }: Results): void {
  try {
    if (isWrittenInPlace(statOf(file))) throw new Error('not a regular file');
    replaceBy(file, (temporary) => {
      rmSync(temporary, { force: true });
      const database = new DatabaseSync(temporary);
      try {
        fill(database, header, rows);
      } finally {
        database.close();
      }
    });
  } catch (error) {
    throw new ConfigurationError('output file', file, `a database that can be written (${codeOf(error)})`);
  }
}

function fill(database: DatabaseSync, header: SweepHeader, rows: readonly SweepRow[]): void {
  const figures = figureNamesOf(rows);
  const columns = [...header.axes, ...figures];
  if (columns.length + commonColumns.length > columnsMax)
    throw new ConfigurationError('figures', columns.length, `at most ${columnsMax}`);
  const typed = columns.map(
    (name, at) => `${quoted(columnNameOf(name, at, columns))} ${typeOf(rows, name, at < header.axes.length)}`,
  );
  database.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN');
  database.exec(
    `CREATE TABLE points ("index" INTEGER PRIMARY KEY, hash TEXT NOT NULL, status TEXT NOT NULL, error TEXT${typed.map((column) => `, ${column}`).join('')})`,
  );
  database.exec('CREATE INDEX pointsByHash ON points (hash)');
  database.exec('CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT NOT NULL)');
  const marks = [...commonColumns, ...columns].map(() => '?').join(', ');
  const insert = database.prepare(`INSERT INTO points VALUES (${marks})`);
  for (const row of rows) {
    const axes = header.axes.map((path) => storedValue(row.axes[path]));
    const values = figures.map((name) => storedValue(row.figures[name]));
    insert.run(row.index, row.hash, row.status, row.error ?? null, ...axes, ...values);
  }
  const note = database.prepare('INSERT INTO sweep VALUES (?, ?)');
  for (const [key, value] of Object.entries({ ...header, figures })) note.run(key, JSON.stringify(value));
  database.exec('COMMIT');
}

/** Names of all figures, in order of appearance. */
export function figureNamesOf(rows: readonly SweepRow[]): string[] {
  return [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))];
}

/** SQLite ignores the case of column names; a duplicate name receives a number. */
function columnNameOf(name: string, at: number, columns: readonly string[]): string {
  const taken = [...commonColumns, ...columns.slice(0, at)].filter(
    (other) => other.toLowerCase() === name.toLowerCase(),
  );
  return taken.length === 0 ? name : `${name}_${taken.length + 1}`;
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const storedValue = (value: Figure | null | undefined): Value =>
  typeof value === 'boolean' ? Number(value) : (value ?? null);

function typeOf(rows: readonly SweepRow[], name: string, isAxis: boolean): string {
  const values = rows.map((row) => (isAxis ? row.axes[name] : row.figures[name]) ?? null);
  const isText = values.some((value) => typeof value === 'string');
  if (isText) return 'TEXT';
  return values.every((value) => value === null || typeof value === 'boolean' || Number.isSafeInteger(value))
    ? 'INTEGER'
    : 'REAL';
}

const sqliteBegin = 'SQLite format 3\0';

/** Whether a file is a database, judged by its first bytes. */
export function isSqlite(file: string): boolean {
  try {
    return readRegularFile(file).toString('latin1', 0, sqliteBegin.length) === sqliteBegin;
  } catch {
    return false;
  }
}

/**
 * Reads the output of {@link writeSqlite}; booleans return as 1 and 0.
 * @throws ConfigurationError for another database
 */
export function readSqlite(file: string): Results {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const notes = database.prepare('SELECT key, value FROM sweep').all() as { key: string; value: string }[];
    const entries = notes.map(({ key, value }) => [key, JSON.parse(value) as unknown] as const);
    const read: object = Object.fromEntries(entries);
    const { figures, ...header } = read as SweepHeader & { readonly figures: readonly string[] };
    const names = [...header.axes, ...figures];
    const columns = names.map((name, at) => columnNameOf(name, at, names));
    const records = database.prepare('SELECT * FROM points ORDER BY "index"').all();
    return { header, rows: records.map((record) => rowOfRecord(record, header, names, columns)) };
  } catch (error) {
    throw new ConfigurationError('results', file, `a database that hca sweep has written (${codeOf(error)})`);
  } finally {
    database.close();
  }
}

function rowOfRecord(
  record: Readonly<Record<string, unknown>>,
  { axes }: SweepHeader,
  names: readonly string[],
  columns: readonly string[],
): SweepRow {
  const values = names.map((name, at) => [name, (record[columns[at]!] ?? null) as Figure | null] as const);
  const { index, hash, status, error } = record as unknown as {
    index: number;
    hash: string;
    status: RowStatus;
    error: string | null;
  };
  const figures = values.slice(axes.length).filter((entry): entry is [string, Figure] => entry[1] !== null);
  return {
    hash,
    index,
    status,
    ...(error === null ? {} : { error }),
    axes: Object.fromEntries(values.slice(0, axes.length)),
    figures: Object.fromEntries(figures),
  };
}
