/** Outputs compared and repeated, from the shell: figures, exit codes, and rejected input. */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeTemporaryFolder } from '../../guests/linux/temporary-folder.ts';
import { itOfAll, rowsOf } from '../../test/extent.ts';
import type { Invocation } from '../invocation.ts';
import { type Ended, hcaProcessWithin, hcaWithin } from '../testing/in-process.ts';
import { faultsOf, type Output } from '../testing/schemas.ts';

// Whole simulations on machines with few cores.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const folder = makeTemporaryFolder('hca-rerun-spec-');
afterAll(() => folder.remove());

const pathOf = (name: string): string => join(folder.path, name);

/** Runs `hca` in the folder. */
const hca = (...args: string[]): Promise<Ended> => hcaWithin({ cwd: folder.path }, args);

type Json = { invocation: Invocation } & Record<string, unknown>;
const read = (name: string): Json => JSON.parse(readFileSync(pathOf(name), 'utf8')) as Json;
const write = (name: string, value: unknown): void => writeFileSync(pathOf(name), JSON.stringify(value));

const traced = ['--trace', 'commands', '--trace-file', 'log', '--lint'];

beforeAll(async () => {
  write('lanes.json', { extends: 'connectx3-fdr', values: { 'pcie.link.lanes': 4 } });
  write('plan.json', { version: 1, faults: [{ packet: 'lost', nth: 9 }] });
  writeFileSync(pathOf('moved.bin'), Buffer.alloc(5000, 3));
  const perf = ['perf', 'write-bw', '-s', '4096', '-n', '60'];
  await hca(...perf, '--json', 'a.json');
  const elsewhere = ['--partition', 'per-node', '--faults', 'plan.json', '--profile', './lanes.json'];
  await hca(...perf, ...elsewhere, '--seed', '7', '--json', 'b.json');
  const move = ['move', 'moved.bin', '--traditional', 'none', '--chunk', '1K', '--report'];
  await hca(...move, 'single.json', '--partition', 'single');
  await hca(...move, 'workers.json', '--partition', 'per-node', '--no-shortcuts', '--json', 'moved.json');
});

describe('an invocation', () => {
  it('has parameters, seed and faults from every source, and nothing about how the run was computed', async () => {
    const { invocation, configHash } = read('b.json');
    expect(invocation).toMatchObject({
      command: 'perf',
      arguments: ['write-bw', '--size', '4096', '--iters', '60'],
      machine: {
        profile: 'lanes.json',
        set: { 'wire.speed': 'FDR', 'pcie.link.lanes': 4 },
        seed: 7,
        faults: ['packet=lost,nth=9,node=0'],
        configHash,
      },
    });
    expect(JSON.stringify(invocation)).not.toMatch(/per-node|tmp|\/|plan/);
  });

  it('leaves reports of all partitions equal, byte for byte', async () => {
    expect(readFileSync(pathOf('workers.json'), 'utf8')).toBe(readFileSync(pathOf('single.json'), 'utf8'));
    expect(read('single.json').invocation.input).toEqual({
      file: 'moved.bin',
      bytes: 5000,
      sha256: createHash('sha256').update(Buffer.alloc(5000, 3)).digest('hex'),
    });
  });
});

describe('hca diff', () => {
  it('ends with 0 if all is equal, and with 1 and the causes first if not', async () => {
    expect(await hca('diff', 'a.json', 'a.json')).toEqual({
      code: 0,
      out: 'All 89 figures are equal.\n',
      err: '',
    });
    const { code, out, err } = await hca('diff', 'a.json', 'b.json');
    expect([code, err]).toEqual([1, '']);
    const places = ['parameter pcie.link.lanes', 'averageBytesPerSecond', 'caches'].map((word) =>
      out.indexOf(word),
    );
    expect(places).toEqual(places.toSorted((left, right) => left - right));
    expect(places[0]).toBeGreaterThan(0);
    expect(out).toContain('fault packet=lost,nth=9,node=0');
  });

  it('fits a terminal of 80 columns', async () => {
    const { out } = await hcaWithin({ cwd: folder.path, columns: 80 }, ['diff', 'a.json', 'b.json', '--all']);
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it('accepts the tolerances of the options, and compares only figures on request', async () => {
    const changed = read('a.json') as unknown as { rows: { result: { durationPs: number } }[] };
    changed.rows[0]!.result.durationPs *= 1.04;
    write('slower.json', changed);
    expect((await hca('diff', 'a.json', 'slower.json', '--tolerance', '3%')).code).toBe(1);
    expect(
      (await hca('diff', 'a.json', 'slower.json', '--tolerance', '3%', '--tolerance', 'durationPs=5%')).code,
    ).toBe(0);
    write('seeded.json', { ...read('a.json'), invocation: read('b.json').invocation });
    expect((await hca('diff', 'a.json', 'seeded.json')).code).toBe(1);
    expect((await hca('diff', 'a.json', 'seeded.json', '--figures')).code).toBe(0);
  });

  it('writes the same as JSON', async () => {
    const { out } = await hca('diff', 'a.json', 'b.json', '--json', '-');
    expect(JSON.parse(out)).toMatchObject({ schema: 'hca-diff/1', compared: 'hca-perf/2', isEqual: false });
  });

  it('prints any text of a file as text', async () => {
    write('odd.json', { ...read('a.json'), 'x\u001b[31m': 1, text: '\u001b[2J' });
    const { out } = await hca('diff', 'a.json', 'odd.json');
    expect(out).toContain('x\\x1b[31m');
    expect(out).not.toContain('\u001b');
  });

  it('follows a symbolic link', async () => {
    symlinkSync('a.json', pathOf('link.json'));
    expect((await hca('diff', 'a.json', 'link.json')).code).toBe(0);
  });
});

describe('hca rerun', () => {
  it.each([['a.json'], ['b.json'], ['single.json'], ['moved.json']])(
    'makes the same again of %s',
    async (name) => {
      const { code, out, err } = await hca('rerun', name);
      expect([code, err]).toEqual([0, '']);
      expect(out).toMatch(/^Again: hca (perf|move) /);
      expect(out).toContain('The same came of it.');
    },
  );

  const commands: [command: string, args: string[]][] = [
    ['devinfo', ['devinfo', '--set', 'driver.logMcgs=12']],
    ['perf', ['perf', 'send-lat', '-n', '5', '-I', '64', '--odp', '--watch', 'races', ...traced]],
    ['torture', ['torture', '--seed', '121', '--save', 'story.json']],
    ['torture', ['torture', '--story', 'story.json']],
  ];
  const others: typeof commands = [
    ['compare', ['compare', '--sizes', '64', '--paths', 'write,read', '--count', '2']],
    ['cutoff', ['cutoff', '--sizes', '64..128', '--waiting', 'poll']],
    ['fabric', ['fabric', 'ring', '--topology', 'star:3', '--size', '1024', '--messages', '2']],
    ['torture', ['torture', '--seeds', '14..15', '--jobs', '1']],
  ];
  it.each(rowsOf(commands, others))(
    'reproduces %s %j as pure JSON that matches its published schema',
    async (_command, args) => {
      const made = await hca(...args, '--json', '-');
      expect([made.code, made.err]).toEqual([0, '']);
      expect(faultsOf(JSON.parse(made.out) as Output)).toEqual([]);
      writeFileSync(pathOf('made.json'), made.out);
      const { code, out } = await hca('rerun', 'made.json', '--json', '-');
      expect(JSON.parse(out)).toMatchObject({ schema: 'hca-rerun/1', isEqual: true });
      expect(code).toBe(0);
    },
  );

  it('writes no file that the command wrote in addition to its figures', async () => {
    const files = ['x.pftrace', 'x.vcd', 'x.pcapng'];
    const recorded = ['--timeline', files[0]!, '--vcd', files[1]!, '--timeline-operations', '1..2'];
    const captured = ['--pcap', files[2]!, '--pcap-at', 'hca1', '--pcap-size', '1'];
    await hca('perf', 'write-lat', '-n', '5', ...recorded, ...captured, '--json', 'made.json');
    expect(files.map((name) => existsSync(pathOf(name)))).toEqual([true, true, true]);
    for (const name of files) rmSync(pathOf(name));
    const { code, out } = await hca('rerun', 'made.json');
    expect([code, out]).toEqual([0, expect.stringContaining('The same came of it.')]);
    expect(files.map((name) => existsSync(pathOf(name)))).toEqual([false, false, false]);
  });

  itOfAll('does so in a process', async () => {
    const words = ['rerun', 'a.json'];
    expect(await hcaProcessWithin({ cwd: folder.path }, words)).toEqual(await hca(...words));
  });

  it('names the differences', async () => {
    const { rows, ...rest } = read('a.json') as Json & { rows: { elapsedPs: number }[] };
    write('other.json', { ...rest, rows: [{ ...rows[0]!, elapsedPs: 5 }] });
    const { code, out } = await hca('rerun', 'other.json');
    expect([code, out]).toEqual([1, expect.stringContaining('rows.size=4096.elapsedPs')]);
  });

  it('finds the moved file next to the report, or at the given place, and checks its bytes', async () => {
    const elsewhere = async (...args: string[]) => {
      const { code, err } = await hcaWithin({ cwd: '/' }, ['rerun', ...args]);
      return [code, err];
    };
    expect(await elsewhere(pathOf('single.json'))).toEqual([0, '']);
    copyFileSync(pathOf('moved.bin'), pathOf('kept.bin'));
    writeFileSync(pathOf('moved.bin'), Buffer.alloc(5000, 4));
    expect(await elsewhere(pathOf('single.json'))).toEqual([
      2,
      expect.stringMatching(/^hca: .*5000 bytes, SHA-256 [0-9a-f]{64}\n$/),
    ]);
    expect(await elsewhere(pathOf('single.json'), '--file', pathOf('kept.bin'))).toEqual([0, '']);
    rmSync(pathOf('moved.bin'));
    expect(await elsewhere(pathOf('single.json'))).toEqual([
      2,
      expect.stringContaining('say where it is with --file'),
    ]);
  });
});

describe('one line and exit code 2', () => {
  it.each([
    ['missing.json', 'ENOENT'],
    ['/dev/zero', 'not a regular file'],
    ['moved.txt', 'valid JSON'],
    ['plan.json', 'an output of hca move'],
    ['newer.json', 'update hca'],
    ['deep.json', ''],
  ])('of diff and of rerun for %s', async (name, words) => {
    writeFileSync(pathOf('moved.txt'), 'no JSON');
    write('newer.json', { ...read('a.json'), schema: 'hca-perf/3' });
    const nest = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
    writeFileSync(pathOf('deep.json'), `{"schema":"hca-perf/2","rows":${nest}}`);
    for (const args of [
      ['diff', 'a.json', name],
      ['rerun', name],
    ]) {
      const { code, out, err } = await hca(...args);
      expect([args, code, out, err]).toEqual([args, 2, '', expect.stringMatching(/^hca: [^\n]*\n$/)]);
      expect(err).toContain(words);
    }
  });

  it('of diff for two kinds, for an invalid tolerance, and for a file that it reads', async () => {
    for (const args of [
      ['diff', 'a.json', 'single.json'],
      ['diff', 'a.json', 'b.json', '--tolerance', '5'],
      ['diff', 'a.json', 'b.json', '--json', 'b.json'],
      ['diff', 'a.json'],
    ]) {
      const { code, err } = await hca(...args);
      expect([args, code, err.trim().split('\n').length]).toEqual([args, 2, 1]);
    }
  });

  it.each<[string, (output: Json) => object]>([
    ['none', ({ invocation: _none, ...rest }) => rest],
    ['an option that writes a file', (output) => withArguments(output, ['write-bw', '--json', 'x.json'])],
    ['a timeline', (output) => withArguments(output, ['write-bw', '--timeline', 'x.pftrace'])],
    ['a capture', (output) => withArguments(output, ['write-bw', '--pcap', 'x.pcapng'])],
    ['an option in one word', (output) => withArguments(output, ['write-bw', '--html=x'])],
    ['a short option', (output) => withArguments(output, ['write-bw', '-s', '8'])],
    ['an argument more', (output) => withArguments(output, ['write-bw', 'read-bw'])],
    [
      'a command that waits for guests',
      (output) => ({ ...output, invocation: { ...output.invocation, command: 'serve' } }),
    ],
    [
      'a machine that is none',
      (output) => ({ ...output, invocation: { ...output.invocation, machine: { seed: 1 } } }),
    ],
    [
      'no list of arguments',
      (output) => ({ ...output, invocation: { ...output.invocation, arguments: 'write-bw' } }),
    ],
  ])('of rerun for an invocation with %s', async (_what, changed) => {
    write('strange.json', changed(read('a.json')));
    const { code, err } = await hca('rerun', 'strange.json');
    expect([code, err]).toEqual([2, expect.stringMatching(/^hca: [^\n]*\n$/)]);
  });

  it('of rerun for an argument that this version does not know', async () => {
    write('strange.json', withArguments(read('a.json'), ['write-bw', '--size', 'huge']));
    const { code, err } = await hca('rerun', 'strange.json');
    expect([code, err]).toEqual([2, expect.stringMatching(/^hca: [^\n]*\n$/)]);
  });
});

const withArguments = (output: Json, words: readonly string[]): object => ({
  ...output,
  invocation: { ...output.invocation, arguments: words },
});
