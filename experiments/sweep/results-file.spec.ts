/** Result files: contents after a kill, rejected contents, and joined shards. */
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { mergedResults, missingOf } from './merge.ts';
import { ResultsFile, readResults, writeJoinedResults } from './results-file.ts';
import type { SweepHeader, SweepRow } from './row.ts';
import { isSqlite, readSqlite, writeSqlite } from './sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-sweep-'));
afterAll(() => rmSync(folder, { recursive: true }));
let fileCount = 0;
const newFile = (): string => join(folder, `${fileCount++}.jsonl`);

const header: SweepHeader = {
  schema: 'hca-sweep/1',
  version: '1',
  sweep: 'abc',
  pointCount: 4,
  axes: ['size'],
  spec: { workload: 'µ' },
};
const row = (index: number, rate = index): SweepRow => ({
  hash: `h${index}`,
  index,
  status: 'done',
  axes: { size: index },
  figures: { messagesPerSecond: rate },
});
const failed = (index: number): SweepRow => ({
  ...row(index),
  status: 'failed',
  error: 'it broke',
  figures: {},
});

/** A file with rows in this order. */
function fileWith(...rows: readonly SweepRow[]): string {
  const file = newFile();
  using results = new ResultsFile(file, header);
  for (const each of rows) results.append(each);
  return file;
}

describe('a file of results', () => {
  it('has its rows in the order of the points after a finished run', () => {
    const file = newFile();
    {
      using results = new ResultsFile(file, header);
      for (const index of [1, 3, 0, 2]) results.append(row(index));
      expect(readFileSync(file, 'utf8').split('\n')[1]).toContain('"index":1');
      results.finish();
    }
    const ordered = fileWith(row(0), row(1), row(2), row(3));
    expect(readFileSync(file, 'utf8')).toBe(readFileSync(ordered, 'utf8'));
    expect(readResults(file)).toEqual({ header, rows: [0, 1, 2, 3].map((index) => row(index)) });
  });

  it('keeps the later of two rows of a point', () => {
    const file = fileWith(failed(0), row(1), row(0));
    expect(readResults(file).rows).toEqual([row(0), row(1)]);
    {
      using results = new ResultsFile(file, header);
      results.finish();
    }
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4);
  });

  it('cut at any byte continues with the complete rows', () => {
    const whole = readFileSync(fileWith(row(0), row(1), row(2)));
    const lineEnds = [...whole.keys()].filter((at) => whole[at] === 0x0a);
    const file = newFile();
    for (let bytes = 0; bytes <= whole.length; bytes++) {
      writeFileSync(file, whole);
      truncateSync(file, bytes);
      {
        using results = new ResultsFile(file, header);
        const rowCount = Math.max(0, lineEnds.filter((end) => end < bytes).length - 1);
        expect(results.rows.size).toBe(rowCount);
        for (let index = rowCount; index < 3; index++) results.append(row(index));
      }
      expect(readFileSync(file).equals(whole)).toBe(true);
    }
  });

  it('continues after a last line of garbage, as after a power failure', () => {
    const file = fileWith(row(0));
    appendFileSync(file, '\0\0\0\0\n');
    expect(readResults(file).rows).toEqual([row(0)]);
    using results = new ResultsFile(file, header);
    results.append(row(1));
    expect(readResults(file).rows).toEqual([row(0), row(1)]);
  });

  it('is rejected if an earlier line is garbage, if it is another kind of file, or of another sweep', () => {
    const torn = fileWith(row(0));
    appendFileSync(torn, '{"hash":\n{}\n');
    expect(() => readResults(torn)).toThrow('line 3 is not one of its rows');
    const other = newFile();
    for (const text of ['hello', 'hello\n', '{"schema":"hca-perf/1"}\n', '{"schema":"hca-sweep/1"}\n']) {
      writeFileSync(other, text);
      expect(() => new ResultsFile(other, header)).toThrow('line 1 is not one of its rows');
      expect(readFileSync(other, 'utf8')).toBe(text);
    }
    const file = fileWith(row(0));
    expect(() => new ResultsFile(file, { ...header, sweep: 'xyz' })).toThrow(
      'another sweep, of 4 points over size',
    );
    expect(() => new ResultsFile(file, { ...header, sweep: 'xyz', version: '2' })).toThrow(
      'version 1 of the emulator',
    );
    expect(() => readResults(join(folder, 'none'))).toThrow('ENOENT');
    expect(() => new ResultsFile(join(folder, 'none/x'), header)).toThrow(ConfigurationError);
  });

  it('has one writer; a lock of a dead process does not count', () => {
    const file = newFile();
    {
      using first = new ResultsFile(file, header);
      expect(first.rows.size).toBe(0);
      expect(() => new ResultsFile(file, header)).toThrow('no other sweep writes');
    }
    expect(existsSync(`${file}.lock`)).toBe(false);
    writeFileSync(`${file}.lock`, `1 ${hostname()}\n`);
    expect(() => new ResultsFile(file, header)).toThrow(`process 1 on ${hostname()}`);
    writeFileSync(`${file}.lock`, `1 elsewhere\n`);
    expect(() => new ResultsFile(file, header)).toThrow('process 1 on elsewhere');
    // No process has a number this large.
    writeFileSync(`${file}.lock`, `999999999 ${hostname()}\n`);
    using results = new ResultsFile(file, header);
    expect(results.rows.size).toBe(0);
  });

  it('respects a lock that its process may be about to fill, and takes over one that stayed empty', () => {
    const file = newFile();
    writeFileSync(`${file}.lock`, '');
    expect(() => new ResultsFile(file, header)).toThrow('just begun to write');
    expect(readFileSync(`${file}.lock`, 'utf8')).toBe('');
    const longAgo = new Date('2001-01-01');
    utimesSync(`${file}.lock`, longAgo, longAgo);
    {
      using results = new ResultsFile(file, header);
      expect(results.rows.size).toBe(0);
      expect(readFileSync(`${file}.lock`, 'utf8')).toBe(`${process.pid} ${hostname()}\n`);
    }
    expect(readdirSync(folder).filter((name) => name.startsWith(basename(`${file}.lock`)))).toEqual([]);
  });
});

describe('joined results', () => {
  it('are not written into a file that a sweep has open, which would continue with a lost one', () => {
    const file = newFile();
    {
      using sweep = new ResultsFile(file, header);
      sweep.append(row(0));
      expect(() => writeJoinedResults(file, { header, rows: [row(2)] })).toThrow('no other sweep writes');
      sweep.append(row(1));
    }
    expect(readResults(file).rows.map(({ index }) => index)).toEqual([0, 1]);
    writeJoinedResults(file, { header, rows: [row(2)] });
    expect(readResults(file).rows.map(({ index }) => index)).toEqual([2]);
    expect(existsSync(`${file}.lock`)).toBe(false);
  });
});

describe('results of shards', () => {
  const part = (name: string, ...rows: readonly SweepRow[]) => ({ file: name, header, rows });

  it('are joined in the order of the points without duplicates, and missing ones are named', () => {
    const joined = mergedResults([part('a', row(0), row(2)), part('b', row(0), row(1))]);
    expect(joined.rows).toEqual([row(0), row(1), row(2)]);
    expect(missingOf(joined)).toEqual([3]);
  });

  it('prefer finished points to failed ones, in either order', () => {
    expect(mergedResults([part('a', failed(0)), part('b', row(0))]).rows).toEqual([row(0)]);
    expect(mergedResults([part('a', row(0)), part('b', failed(0))]).rows).toEqual([row(0)]);
  });

  it('are rejected if they belong to two sweeps, or disagree', () => {
    const other = { file: 'b', header: { ...header, sweep: 'xyz' }, rows: [] };
    expect(() => mergedResults([part('a'), other])).toThrow('the same sweep as a');
    expect(() => mergedResults([part('a', row(1, 5)), part('b', row(1, 6))])).toThrow(
      'point 1 of b is "other figures"',
    );
  });
});

describe('results under the name of a symbolic link or a device', () => {
  it('are written to the link’s target, and the link stays', () => {
    const file = newFile();
    const links = [`${file}.rows`, `${file}.database`] as const;
    symlinkSync('rows', links[0]);
    symlinkSync('database', links[1]);
    {
      using results = new ResultsFile(links[0], header);
      for (const index of [1, 0]) results.append(row(index));
      results.finish();
    }
    writeSqlite(links[1], readResults(links[0]));
    expect(links.map((link) => lstatSync(link).isSymbolicLink())).toEqual([true, true]);
    expect(readResults(join(folder, 'rows')).rows.map(({ index }) => index)).toEqual([0, 1]);
    expect(readSqlite(join(folder, 'database')).rows).toHaveLength(2);
  });

  it('are rejected for a device, which stays', () => {
    expect(() => new ResultsFile('/dev/zero', header)).toThrow('not a regular file');
    expect(() => writeSqlite('/dev/zero', { header, rows: [row(0)] })).toThrow('not a regular file');
    expect(() => readResults('/dev/zero')).toThrow('not a regular file');
    expect(isSqlite('/dev/zero')).toBe(false);
    expect([existsSync('/dev/zero.lock'), lstatSync('/dev/zero').isCharacterDevice()]).toEqual([false, true]);
  });
});

describe('a database of results', () => {
  it('has a column for each axis and figure, for any names, and can be read back', () => {
    const axes = ['hca.mttCacheLines', 'Hash', 'index', 'a"b', 'events'];
    const odd: SweepRow = {
      hash: 'h0',
      index: 0,
      status: 'done',
      axes: { 'hca.mttCacheLines': 16, Hash: 'x', index: 3, 'a"b': null, events: 1 },
      figures: { messagesPerSecond: 1.5, bound: 'link', hash: 7 },
    };
    const results = {
      header: { ...header, axes },
      rows: [odd, { ...odd, index: 1, status: 'failed' as const, error: 'e', figures: {} }],
    };
    const file = join(folder, 'a.sqlite');
    writeSqlite(file, results);
    writeSqlite(file, results);
    expect(isSqlite(file)).toBe(true);
    expect(isSqlite(fileWith(row(0)))).toBe(false);
    expect(readSqlite(file)).toEqual(results);
    expect(() => writeSqlite(join(folder, 'none/x.sqlite'), results)).toThrow(ConfigurationError);
  });
});
