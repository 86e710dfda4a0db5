/** Records of a CSV text (RFC 4180): cells in quotation marks may hold commas, line breaks and doubled marks. */
import { ConfigurationError } from '../../base/index.ts';

export interface CsvRecord {
  /** Line of the text on which it begins, from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

const cell = /[ \t]*(?:"((?:[^"]|"")*)"[ \t]*|([^",\r\n]*))(,|\r?\n|\r|$)/y;

/**
 * Empty lines are left out; cells are trimmed outside their quotation marks.
 * @throws ConfigurationError that names the line, for a mark inside a cell and text after a closing mark
 */
export function csvRecords(text: string, file: string): CsvRecord[] {
  const records: CsvRecord[] = [];
  let [line, cells]: [number, string[]] = [1, []];
  let begun = line;
  cell.lastIndex = 0;
  while (cell.lastIndex < text.length || cells.length > 0) {
    const from = cell.lastIndex;
    const found = cell.exec(text);
    if (found === null)
      throw new ConfigurationError(
        `${file} line ${line}`,
        text.slice(from, from + 40),
        'cells separated by commas',
      );
    const [whole, quoted, bare = '', end] = found;
    cells.push(quoted?.replaceAll('""', '"') ?? bare.trim());
    line += whole.split('\n').length - 1;
    if (end === ',') continue;
    if (cells.some((text) => text !== '')) records.push({ line: begun, cells });
    [begun, cells] = [line, []];
    if (end === '') break;
  }
  return records;
}
