/**
 * A file of results: JSON lines. The first is the header; each further one is a row, appended when its point is
 * finished.
 *
 *     {"schema":"hca-sweep/1","version":…,"sweep":…,"pointCount":…,"axes":[…],"spec":{…}}
 *     {"hash":…,"index":7,"status":"done","axes":{…},"figures":{…}}
 *
 * A process may be killed at any instant, which may leave an incomplete last line: the next process that opens the file
 * removes the line, and its point runs again. If a point has two rows, the later one counts. At the end of a run the
 * file is rewritten in the order of the points, so that its bytes depend neither on workers nor on interruptions.
 *
 * When `append` returns, the operating system has the row: it survives the process, but not the machine.
 */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync } from 'node:fs';
import { ConfigurationError, codeOf } from '../../base/index.ts';
import { appendWhole, isWrittenInPlace, readRegularFile, replaceFile, statOf } from '../../runtime/files.ts';
import { FileLock } from './file-lock.ts';
import type { SweepHeader, SweepRow } from './row.ts';

export interface Results {
  readonly header: SweepHeader;
  /** Rows by rising index, one per point. */
  readonly rows: readonly SweepRow[];
}

/**
 * Reads a complete or incomplete file of results.
 * @throws ConfigurationError naming file and line
 */
export function readResults(file: string): Results {
  const { header, rows } = parsedResults(file, textOf(file));
  if (header === undefined)
    throw new ConfigurationError('results', file, 'a file that hca sweep has written');
  return { header, rows: sorted(rows) };
}

/** Writes results in the order of the points, atomically. */
function writeResults(file: string, { header, rows }: Results): void {
  try {
    replaceFile(file, textOfResults(header, rows));
  } catch (error) {
    throw new ConfigurationError('output file', file, `a file that can be written (${codeOf(error)})`);
  }
}

/** Writes results into a file that no sweep has open: such a sweep would continue with data that no longer exists. */
export function writeJoinedResults(file: string, results: Results): void {
  using _lock = isWrittenInPlace(statOf(file)) ? undefined : new FileLock(file);
  writeResults(file, results);
}

export class ResultsFile implements Disposable {
  readonly #file: string;
  readonly #header: SweepHeader;
  readonly #lock: FileLock;
  readonly #rows = new Map<number, SweepRow>();
  /** Whether the file has the rows in order, each once. */
  #isInOrder = true;
  #lastIndex = -1;
  readonly #handle: number;

  /**
   * Creates a file, or continues the file of an earlier run of the same sweep.
   * @throws ConfigurationError for a file of another sweep, for a file without results, and while another process
   * writes it
   */
  constructor(file: string, header: SweepHeader) {
    this.#file = file;
    this.#header = header;
    this.#lock = new FileLock(file);
    try {
      this.#handle = this.#opened();
    } catch (error) {
      this.#lock[Symbol.dispose]();
      throw error;
    }
  }

  /** The existing rows, by index. */
  get rows(): ReadonlyMap<number, SweepRow> {
    return this.#rows;
  }

  /**
   * Atomic.
   * @throws ConfigurationError if the disk is full
   */
  append(row: SweepRow): void {
    appendLine(this.#file, this.#handle, row);
    this.#note(row);
  }

  /** Must be called after the last row: sorts the file by points. */
  finish(): void {
    fsyncSync(this.#handle);
    if (this.#isInOrder) return;
    writeResults(this.#file, { header: this.#header, rows: sorted(this.#rows.values()) });
    this.#isInOrder = true;
  }

  [Symbol.dispose](): void {
    closeSync(this.#handle);
    this.#lock[Symbol.dispose]();
  }

  #note(row: SweepRow): void {
    this.#isInOrder &&= row.index > this.#lastIndex;
    this.#lastIndex = row.index;
    this.#rows.set(row.index, row);
  }

  #opened(): number {
    const handle = openFile(this.#file);
    try {
      const { header, rows, wholeBytes } = parsedResults(this.#file, readRegularFile(this.#file));
      if (header !== undefined) checkSame(this.#file, header, this.#header);
      ftruncateSync(handle, wholeBytes);
      if (header === undefined) appendLine(this.#file, handle, this.#header);
      for (const row of rows) this.#note(row);
      return handle;
    } catch (error) {
      closeSync(handle);
      throw error;
    }
  }
}

function appendLine(file: string, handle: number, value: object): void {
  try {
    appendWhole(handle, lineOf(value));
  } catch (error) {
    throw new ConfigurationError('results', file, `a file that can be written (${codeOf(error)})`);
  }
}

/** Only a file that can be read back can be continued: a device or a pipe is refused. */
function openFile(file: string): number {
  let handle: number | undefined;
  try {
    handle = openSync(file, 'a+');
    if (!fstatSync(handle).isFile()) throw new Error('not a regular file');
    return handle;
  } catch (error) {
    if (handle !== undefined) closeSync(handle);
    throw new ConfigurationError('results', file, `a file that can be written (${codeOf(error)})`);
  }
}

function textOf(file: string): Buffer {
  try {
    return readRegularFile(file);
  } catch (error) {
    throw new ConfigurationError('results', file, `a file that can be read (${codeOf(error)})`);
  }
}

function checkSame(file: string, found: SweepHeader, header: SweepHeader): void {
  if (found.sweep === header.sweep) return;
  const what =
    found.version === header.version
      ? `another sweep, of ${found.pointCount} points over ${found.axes.join(', ') || 'nothing'}`
      : `version ${found.version} of the emulator`;
  throw new ConfigurationError(
    'results',
    file,
    `a file of this sweep (it is of ${what}): name another with --out, and this one with --reuse to take over its points`,
  );
}

interface Parsed {
  readonly header: SweepHeader | undefined;
  /** Rows in the order of the lines. */
  readonly rows: readonly SweepRow[];
  /** Bytes of the file up to the end of the last complete line. */
  readonly wholeBytes: number;
}

const newline = 0x0a;

/** Lines of a file. Only the last one may be incomplete: cut short, or filled with other data from the disk. */
function parsedResults(file: string, bytes: Buffer): Parsed {
  const rows: SweepRow[] = [];
  let header: SweepHeader | undefined;
  let wholeBytes = 0;
  for (let line = 1; wholeBytes < bytes.length; line++) {
    const end = bytes.indexOf(newline, wholeBytes);
    if (end === -1 && header === undefined && !isBeginOfHeader(bytes)) throw notResults(file, line);
    if (end === -1) break;
    const value = jsonOf(bytes.toString('utf8', wholeBytes, end));
    if (line === 1 ? !isHeader(value) : !isRow(value)) {
      if (line > 1 && end === bytes.length - 1) break;
      throw notResults(file, line);
    }
    if (line === 1) header = value as SweepHeader;
    else rows.push(value as SweepRow);
    wholeBytes = end + 1;
  }
  return { header, rows, wholeBytes };
}

const headerBegin = '{"schema":"hca-sweep/1",';

/** A sweep may be killed while it writes its first line; any other file without an end of line is left unchanged. */
const isBeginOfHeader = (bytes: Buffer): boolean =>
  headerBegin.startsWith(bytes.toString('utf8', 0, headerBegin.length));

const notResults = (file: string, line: number): ConfigurationError =>
  new ConfigurationError(
    'results',
    file,
    `a file that hca sweep has written (line ${line} is not one of its rows)`,
  );

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isHeader = (value: unknown): boolean =>
  isObject(value) &&
  value['schema'] === 'hca-sweep/1' &&
  typeof value['sweep'] === 'string' &&
  typeof value['version'] === 'string' &&
  typeof value['pointCount'] === 'number' &&
  Array.isArray(value['axes']);

const isRow = (value: unknown): boolean =>
  isObject(value) &&
  typeof value['hash'] === 'string' &&
  Number.isSafeInteger(value['index']) &&
  ['done', 'failed', 'refused'].some((status) => status === value['status']) &&
  isObject(value['axes']) &&
  isObject(value['figures']);

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`;

const textOfResults = (header: SweepHeader, rows: readonly SweepRow[]): string =>
  [header, ...rows].map(lineOf).join('');

/** Sorts rows by index; a later row of a point replaces an earlier one. */
function sorted(rows: Iterable<SweepRow>): SweepRow[] {
  const byIndex = new Map<number, SweepRow>();
  for (const row of rows) byIndex.set(row.index, row);
  return [...byIndex.values()].toSorted((left, right) => left.index - right.index);
}
