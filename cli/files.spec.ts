/** Output files with full disks, closed pipes and symbolic links. Runs the command from a shell where that matters. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../base/assert.ts';
import { visible } from '../base/visible.ts';
import { checkedFaults, readFaults } from '../machine/faults/index.ts';
import { profileValues } from '../machine/profile/configuration.ts';
import { type Ended, hcaWithin, mainPath } from './testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const root = mkdtempSync(join(tmpdir(), 'hca-files-'));
afterAll(() => rmSync(root, { recursive: true }));

let folder = root;
// Builds the command first, while the disk has space.
beforeAll(() => void shell('hca --version'));
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});

/** Runs a line of bash in the folder, where `hca` is the command line. */
function shell(line: string): Omit<Ended, 'code'> & { readonly code: number | null } {
  const start = `set -o pipefail; hca() { "${process.execPath}" "${mainPath}" "$@"; }; ${line}`;
  const options = { cwd: folder, encoding: 'utf8', timeout: 100_000 } as const;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', start], options);
  return { code: status, out: stdout, err: stderr };
}

const pathOf = (name: string): string => join(folder, name);
const isWhole = (name: string): boolean =>
  (JSON.parse(readFileSync(pathOf(name), 'utf8')) as { parameters: unknown[] }).parameters.length > 100;
const good = '{"good":true}\n';

describe('a file that cannot be written completely', () => {
  it('stays unchanged; the command prints one line and ends with an error', () => {
    writeFileSync(pathOf('out.json'), good);
    // Accepts 4 KiB, like a disk that fills up, and rejects the rest.
    const { code, err } = shell("trap '' XFSZ; ulimit -f 4; hca profiles --json out.json");
    expect([code, err.trim().split('\n')]).toEqual([2, [expect.stringMatching(/"out.json".*\(EFBIG\)/)]]);
    expect(readFileSync(pathOf('out.json'), 'utf8')).toBe(good);
    expect(readdirSync(folder)).toEqual(['out.json']);
  });

  it.each(['profiles --json', 'perf write-lat -s 64 -n 2 --pcap', 'perf write-lat -s 64 -n 2 --vcd'])(
    'is reported when it is a device that is full: hca %s',
    (command) => {
      const { code, err } = shell(`hca ${command} /dev/full`);
      expect([code, err]).toEqual([2, expect.stringMatching(/^hca: [^\n]*"\/dev\/full"[^\n]*\(ENOSPC\)\n$/)]);
    },
  );
});

it('a sweep on a full disk keeps the complete rows, and continues with them', () => {
  const sweep = 'hca sweep --workload write-bw,iters=20 --vary size=64..640+64 --jobs 2 --out rows.jsonl';
  const full = shell(`trap '' XFSZ; ulimit -f 24; ${sweep}`);
  expect([full.code, full.err]).toEqual([
    2,
    'hca: results is "rows.jsonl", expected a file that can be written (EFBIG)\n',
  ]);
  const lines = readFileSync(pathOf('rows.jsonl'), 'utf8').split('\n');
  expect(lines.pop()).toBe('');
  expect(lines.length).toBeGreaterThan(2);
  for (const line of lines) JSON.parse(line);
  const again = shell(sweep);
  expect([again.code, again.err]).toEqual([0, '']);
  expect(again.out).toContain(`rows.jsonl has ${lines.length - 1} of them`);
  expect(readFileSync(pathOf('rows.jsonl'), 'utf8').trimEnd().split('\n')).toHaveLength(11);
});

describe('standard output', () => {
  it('that is full causes one line and exit code 1', () => {
    const { code, err } = shell('hca profiles > /dev/full');
    expect([code, err]).toEqual([1, 'hca: standard output cannot be written (ENOSPC)\n']);
  });

  it('whose reader closes it does not prevent a requested file', () => {
    // The head of the table is printed before the run, its rows after it.
    const { out } = shell('hca perf write-bw --iters 2 --json out.json | head -1');
    expect(out).toContain('#bytes');
    const { rows } = JSON.parse(readFileSync(pathOf('out.json'), 'utf8')) as { rows: unknown[] };
    expect(rows).toHaveLength(1);
  });

  it('whose reader closes it ends a run without other output, as SIGPIPE would', () => {
    expect(shell('hca profiles | head -1').code).toBe(141);
  });
});

describe('the name of an output', () => {
  it('stays the device, the pipe or the symbolic link that it is', () => {
    execFileSync('mkfifo', [pathOf('pipe')]);
    symlinkSync('target.json', pathOf('link.json'));
    const { code, err } = shell(
      'cat pipe > piped.json & hca faults --json /dev/null && hca profiles --json pipe && wait && ' +
        'hca profiles --json link.json && hca faults --json /dev/stdout > faults.txt',
    );
    expect([code, err]).toEqual([0, '']);
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
    expect(lstatSync(pathOf('pipe')).isFIFO()).toBe(true);
    expect(lstatSync(pathOf('link.json')).isSymbolicLink()).toBe(true);
    expect([isWhole('piped.json'), isWhole('target.json')]).toEqual([true, true]);
    expect(readFileSync(pathOf('faults.txt'), 'utf8')).toContain('{\n');
  });

  it('keeps the permissions of the file', () => {
    writeFileSync(pathOf('out.json'), good);
    chmodSync(pathOf('out.json'), 0o600);
    expect(shell('hca profiles --json out.json').code).toBe(0);
    expect(statSync(pathOf('out.json')).mode & 0o777).toBe(0o600);
    expect(isWhole('out.json')).toBe(true);
  });

  it('must not be an input, nor occur twice, under any spelling', async () => {
    writeFileSync(pathOf('in.json'), good);
    symlinkSync('in.json', pathOf('soft.json'));
    linkSync(pathOf('in.json'), pathOf('hard.json'));
    for (const args of [
      'move in.json --json in.json',
      'move in.json --report soft.json',
      'move in.json --json ./hard.json',
      'move soft.json --trace all --trace-file in.json',
      'devinfo --profile ./in.json --json in.json',
      'perf write-lat --faults in.json --json soft.json',
      'move README --report new.json --json ./new.json',
      'compare --json new.json --html new.json',
      'perf write-lat --pcap new.json --json new.json',
      'perf write-lat --trace new.vcd --pcap new.vcd',
      'ask inline --markdown new.html --html new.html',
    ]) {
      const { code, err } = await hcaWithin({ cwd: folder }, args.split(' '));
      expect([args, code, err]).toEqual([args, 2, expect.stringMatching(/is not (read|written) as well\n$/)]);
    }
    expect(readFileSync(pathOf('in.json'), 'utf8')).toBe(good);
  });
});

describe('the name of an input', () => {
  it('must be a regular file: the command does not wait for a pipe', async () => {
    execFileSync('mkfifo', [pathOf('pipe')]);
    for (const path of ['/dev/zero', pathOf('pipe')]) {
      expect(() => profileValues(path)).toThrow('not a regular file');
      expect(() => readFaults(path)).toThrow('not a regular file');
    }
    const sweep = 'sweep --workload write-bw --vary hca.mttCacheLines=16,32';
    for (const args of [
      ...['move pipe', 'move /dev/zero', 'devinfo --profile /dev/zero', 'wire /dev/zero'],
      ...['torture --story /dev/zero', `${sweep} --reuse /dev/zero`, `${sweep} --out pipe`],
      ...['plot pipe --x size --y rate', 'diff pipe pipe', 'rerun /dev/zero'],
    ]) {
      const { code, err } = await hcaWithin({ cwd: folder }, args.split(' '));
      expect([args, code, err]).toEqual([args, 2, expect.stringMatching(/a? regular file/)]);
    }
  });

  it('may have content nested to any depth, which is rejected in one line', async () => {
    const nest = (open: string, close: string): string => `${open.repeat(50_000)}1${close.repeat(50_000)}`;
    const values = { objects: nest('{"a":', '}'), lists: nest('[', ']') };
    const refused = (read: () => unknown): void => {
      expect(read).toThrow(ConfigurationError);
      expect(read).toThrow(/^.{1,400}$/);
    };
    for (const value of [values.objects, values.lists, `{"hca.mttCacheLines":${values.lists}}`]) {
      for (const text of [
        value,
        `{"values":${value}}`,
        `{"extends":${value}}`,
        `{"version":1,"faults":${value}}`,
      ]) {
        writeFileSync(pathOf('deep.json'), text);
        refused(() => profileValues(pathOf('deep.json')));
        refused(() => checkedFaults(readFaults(pathOf('deep.json')), 2));
      }
    }
    const { code, err } = await hcaWithin({ cwd: folder }, ['devinfo', '--profile', './deep.json']);
    expect([code, err]).toEqual([2, expect.stringMatching(/^hca: [^\n]*\n$/)]);
  });

  it('is printed with its control characters escaped', () => {
    const name = 'a\u001b[31m\u009b2J\u202e\n.bin';
    writeFileSync(pathOf(name), 'x');
    const one = 'hca move "$(printf \'a\\033[31m\\xc2\\x9b2J\\xe2\\x80\\xae\\n.bin\')"';
    const { out, err, code } = shell(`${one} --partition single --traditional none`);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('a\\x1b[31m\\x9b2J\\u202e\\x0a.bin');
    const missing = shell(`cd /; ${one}; hca devinfo --profile "$(printf '\\033[31m\\xc2\\x9b.json')"`);
    expect(missing.err.split('\n')).toHaveLength(3);
    const printed = [...`${out}${missing.err}`.replaceAll('\n', '')];
    expect(printed.filter((character) => visible(character) !== character)).toEqual([]);
  });
});
