import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Report } from '../machine/report/schema.ts';
import { itOfAll } from '../test/extent.ts';
import { machineOptionsOf } from './options.ts';
import { hca, hcaProcess, hcaProcessWithin, mainPath } from './testing/in-process.ts';

// Whole simulations, some in worker threads on machines with few cores.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Peak resident memory of a command's process, as the kernel counts it. */
async function peakKib(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [mainPath, ...args], { stdio: 'ignore' });
  let peak = 0;
  const look = setInterval(() => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0));
  }, 20);
  const code = await new Promise((resolve) => child.on('exit', resolve));
  clearInterval(look);
  expect(code).toBe(0);
  return peak;
}

describe('bad input ends with exit code 2 and one line that names it', () => {
  const cases: [words: string, args: string[]][] = [
    ['"/no/such/file"', ['move', '/no/such/file']],
    ['a regular file', ['move', folder]],
    ['did you mean pcie.link.lanes', ['move', mainPath, '--set', 'pcie.link.lane=4']],
    ['a power of two from 1 to 16 lanes', ['devinfo', '--set', 'pcie.link.lanes=3']],
    ['did you mean connectx3-qdr', ['devinfo', '--profile', 'conectx3-qdr']],
    ["'--partition <name>' argument 'both'", ['move', '--partition', 'both']],
    ["'--chunk <bytes>' argument '0'", ['move', '--chunk', '0']],
    ['expected all, none or bytes', ['move', '--traditional', 'some']],
    ['did you mean sockets', ['compare', '--paths', 'send,socket']],
    ['expected the smaller size first', ['compare', '--sizes', '4K..64']],
    ['a file that can be written', ['compare', '--html', '/no/such/folder/out.html']],
    // The command detects this error only when it runs.
    [
      'fault is "reset", expected one of interrupt, read, packet, port, cable',
      ['compare', '--paths', 'write,sockets', '--sizes', '64', '--fault', 'reset=stuck'],
    ],
    ['did you mean write-lat', ['perf', 'write-lta']],
    ['--qps is 2, expected 1', ['perf', 'read-lat', '--qps', '2']],
    [
      '--pattern is "random", expected left out without --region',
      ['perf', 'write-bw', '--pattern', 'random'],
    ],
    ['--region is 4096, expected left out: write-lat', ['perf', 'write-lat', '--region', '4K']],
    ['--region is 63, expected at least --size 64', ['perf', 'read-bw', '-s', '64', '--region', '63']],
    ['--rx-depth is 9000, expected at most 4095', ['perf', 'send-bw', '-q', '1024', '-r', '9000']],
    ['--connection is "UD", expected RC, XRC or UC for write-bw', ['perf', 'write-bw', '-c', 'UD']],
    ['--post-list is 3, expected a divisor of --tx-depth 128', ['perf', 'write-bw', '-l', '3']],
    ['--bidirectional is true, expected left out: a latency test', ['perf', 'send-lat', '-b']],
    ["'--sizes <list>' argument '64' is invalid. expected lengths", ['perf', 'write-bw', '--sizes', '64']],
    ['at most the cores of a host, 4: --set host.core.count=5', ['perf', 'write-bw', '--threads', '5']],
    ['at most the cores of a host, 4: --set host.core.count=5', ['why', 'write-bw', '--threads', '5']],
    ['--size is 1073741824, expected memory for what a program sends', ['explain', 'write-lat', '-s', '1G']],
    ['--all is true, expected left out with --size', ['perf', 'write-bw', '-a', '-s', '64']],
    [
      '--tx-depth is 4, expected left out: a program posts requests of its own',
      ['why', 'program.ts', '--tx-depth', '4'],
    ],
    ['--all is true, expected left out: a program posts', ['why', 'program.ts', '--all']],
    ['did you mean kv-get', ['perf', 'kv-gte']],
    ['fault 1 (packet), field nth, is "0"', ['perf', 'write-bw', '--fault', 'packet=late,nth=0']],
    ['did you mean read', ['move', mainPath, '--fault', 'reed=lost']],
    [
      'expected a file that can be written',
      ['move', mainPath, '--trace', 'all', '--trace-file', '/no/such/log'],
    ],
    [`"${folder}", expected a file that can be written (EISDIR)`, ['move', mainPath, '--report', folder]],
    ['a file that can be written', ['perf', 'read-lat', '--json', '/no/such/folder/out.json']],
    ["unknown option '--frobnicate'", ['profiles', '--frobnicate']],
    ["unknown option '--watch'", ['serve', '--socket', join(folder, 'socket'), '--watch', 'races']],
    ["unknown command 'mvoe'", ['mvoe']],
    ['expected a command: move, ', []],
    // Runs every command that the help lists.
    ...['lab', 'ask', 'wire', 'explain', 'sweep'].map((name): [string, string[]] => [`, ${name}`, []]),
  ];
  it.each(cases)('%s', async (words, args) => {
    const { code, out, err } = await hca(...args);
    expect([code, out, err.split('\n').length]).toEqual([2, '', 2]);
    expect(err).toContain(words);
  });

  it('of the process too', async () => {
    for (const args of [['move', '/no/such/file'], []])
      expect(await hcaProcess(...args)).toEqual(await hca(...args));
  });

  it('and leaves no incomplete file', async () => {
    const before = readdirSync(folder);
    const file = join(folder, 'out.json');
    expect((await hca('move', '/no/such/file', '--report', file)).code).toBe(2);
    expect(readdirSync(folder)).toEqual(before);
  });
});

describe('a run that fails', () => {
  const tiny = ['--set', 'host.memory.sizeMib=64', '--set', 'host.swap.sizeMib=0'];
  const out = [...tiny, '--set', 'host.memory.reservedKib=65472'];
  it.each([
    ['alone', 'NetError: ENOMEM', ['compare', '--paths', 'sockets', '--sizes', '64', ...out]],
    ['among others', 'ENOMEM', ['compare', '--paths', 'sockets,write', '--sizes', '64', ...out]],
    ['of a program', 'more of host.memory.sizeMib', ['compare', '--paths', 'pio', '--sizes', '64', ...out]],
    ['on the pool of cutoff', 'ENOMEM', ['cutoff', '--sizes', '64..128', '--waiting', 'poll', ...out]],
    ['on the pool of perf', 'ENOMEM', ['perf', 'write-lat', '-s', '64', '--odp', ...out]],
  ])('%s ends with exit code 1 and one line that says why', async (_where, words, args) => {
    const { code, err } = await hca(...args);
    expect([code, err.trim().split('\n').length]).toEqual([1, 1]);
    expect(err).toContain(words);
  });

  itOfAll('on a pool ends its process', async () => {
    const words = ['cutoff', '--sizes', '64..128', '--waiting', 'poll', ...out];
    const { code, err } = await hcaProcessWithin({ cores: 2 }, words);
    expect([code, err.trim().split('\n').length]).toEqual([1, 1]);
  });
});

describe('hca', () => {
  it('says its version', async () => {
    const { code, out, err } = await hcaProcess('--version');
    const { version } = JSON.parse(readFileSync(join(mainPath, '../../package.json'), 'utf8')) as {
      version: string;
    };
    expect([code, out, err]).toEqual([0, `hca-emulator ${version}, Node ${process.version}\n`, '']);
  });

  it('lists parameters and faults in readable lines, also without a terminal', async () => {
    for (const command of ['profiles', 'faults']) {
      const { out } = await hca(command);
      expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(120);
    }
  });
});

describe('Ctrl-C in the middle of a run', () => {
  it('ends it immediately, and leaves no incomplete file', async () => {
    const before = readdirSync(folder);
    const args = ['perf', 'write-lat', '--iters', '100000000', '--json', join(folder, 'never.json')];
    const child = spawn(process.execPath, [mainPath, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    // The head of the table is present when the run begins.
    child.stdout.once('data', () => child.kill('SIGINT'));
    expect(await new Promise((resolve) => child.on('exit', (_, signal) => resolve(signal)))).toBe('SIGINT');
    expect(readdirSync(folder)).toEqual(before);
  });
});

// Other commands are tested in rerun.spec.ts.
describe('standard output is pure JSON with --json -', () => {
  const one = join(folder, 'byte.bin');
  writeFileSync(one, 'x');
  const traced = ['--trace', 'commands', '--trace-file', join(folder, 'pure.log'), '--lint'];
  const single = ['--partition', 'single', '--traditional', 'none'];
  it.each([[['move', one, '--watch', 'races', ...single, ...traced]], [['profiles']], [['faults']]])(
    'of %s',
    async (args) => {
      const { code, out, err } = await hca(...args, '--json', '-');
      expect([code, err]).toEqual([0, '']);
      expect(() => JSON.parse(out) as unknown).not.toThrow();
    },
  );
});

it.each(['move', 'perf', 'compare', 'devinfo', 'cutoff', 'serve', 'guest', 'linux', 'torture'])(
  'hca %s has the option --no-shortcuts',
  async (command) => {
    const { code, out } = await hca(command, '--help');
    expect(code).toBe(0);
    expect(out).toContain('--no-shortcuts');
  },
);

it('the option --no-shortcuts reaches the machine', () => {
  expect(machineOptionsOf({ set: [], shortcuts: false }).shortcuts).toBe(false);
  expect(machineOptionsOf({ set: [] }).shortcuts).toBeUndefined();
});

describe('hca move', () => {
  itOfAll('holds no file in memory, however large it is', async () => {
    const none = ['--partition', 'single', '--traditional', 'none'];
    const [small, large] = [join(folder, 'small.bin'), join(folder, 'large.bin')];
    const mib = 1024 ** 2;
    writeFileSync(small, Buffer.alloc(8 * mib, 1));
    writeFileSync(large, Buffer.alloc(40 * mib, 2));
    const smallKib = await peakKib(['move', small, ...none]);
    const largeKib = await peakKib(['move', large, ...none]);
    // A buffer of the whole file at either host would increase memory by at least this difference.
    expect(largeKib - smallKib).toBeLessThan(32 * 1024);
    expect(largeKib).toBeLessThan(1024 ** 2);
  });

  it('moves a file in workers and writes the report, and next to it the facts of the run', async () => {
    const file = join(folder, 'file.bin');
    writeFileSync(file, Buffer.alloc(4097, 7));
    const path = join(folder, 'report.json');
    const how = ['--partition', 'per-device', '--traditional', 'none'];
    const { code, out, err } = await hca('move', file, '--report', path, ...how);
    expect([code, err]).toEqual([0, '']);
    // Moves the whole file three ways.
    expect(out.match(/equal/g)).toHaveLength(3);
    expect(out).toContain('The ledgers balance');
    const report = JSON.parse(readFileSync(path, 'utf8')) as Report;
    expect([report.schema, report.checks.balanced]).toEqual(['hca-report/1', true]);
    expect(readFileSync(path, 'utf8')).not.toMatch(/per-device|wallMs|threads/);
    const facts = readFileSync(join(folder, 'report.run.json'), 'utf8');
    expect(JSON.parse(facts)).toMatchObject({ partition: 'per-device', threads: 4 });
    expect(existsSync(`${path}.tmp`)).toBe(false);
  }, 60_000);

  it('compares five paths first', async () => {
    const file = join(folder, 'compared.bin');
    writeFileSync(file, Buffer.alloc(4097, 7));
    const { code, out, err } = await hca('move', file, '--partition', 'single');
    expect([code, err]).toEqual([0, '']);
    expect(out.match(/equal/g)).toHaveLength(5 + 3);
    expect(out).toContain('0 cycles of host 1 for RDMA WRITE, 0 cycles of host 0 for RDMA READ');
    expect(out).toContain('The ledgers balance');
  });

  it('writes the same report with --no-shortcuts', async () => {
    const file = join(folder, 'plain.bin');
    writeFileSync(file, Buffer.alloc(300_000, 5));
    const reports = await Promise.all(
      [[], ['--no-shortcuts']].map(async (options, at) => {
        const path = join(folder, `plain${at}.json`);
        const how = ['--partition', 'single', '--traditional', 'none', '--report', path];
        const { code, err } = await hca('move', file, ...how, ...options);
        expect([code, err]).toEqual([0, '']);
        return readFileSync(path, 'utf8');
      }),
    );
    expect(reports[1]).toBe(reports[0]);
  });

  it('prints only JSON if that goes to standard output', async () => {
    const file = join(folder, 'one.bin');
    writeFileSync(file, 'x');
    const none = ['--traditional', 'none'];
    const { out } = await hca('move', file, '--json', '-', '--partition', 'single', ...none);
    expect(JSON.parse(out)).toMatchObject({ fileBytes: 1, isCorrect: true, comparison: [] });
  });
});

describe('hca compare', () => {
  it('shows paths over sizes as tables and plots, and writes figures and a page', async () => {
    const page = join(folder, 'compare.html');
    const json = join(folder, 'compare.json');
    const files = ['--html', page, '--json', json];
    const choice = ['--sizes', '256,1K', '--paths', 'sockets,write', '--count', '4'];
    const { code, out, err } = await hca('compare', ...choice, ...files);
    expect([code, err]).toEqual([0, '']);
    expect(out.match(/equal/g)).toHaveLength(4);
    for (const words of ['NIC, sockets', 'RDMA WRITE', 'protocol', 'Latency of one message'])
      expect(out).toContain(words);
    const { schema, rows } = JSON.parse(readFileSync(json, 'utf8')) as { schema: string; rows: object[] };
    expect(schema).toBe('hca-compare/1');
    expect(rows).toMatchObject([
      { path: 'sockets', sizeBytes: 256, messages: 4, isEqual: true, isBalanced: true },
      { path: 'write', sizeBytes: 256 },
      { path: 'sockets', sizeBytes: 1024 },
      { path: 'write', sizeBytes: 1024, hosts: [{}, { cyclesTotal: 0 }] },
    ]);
    expect(readFileSync(page, 'utf8')).toContain('Rate of a stream');
  }, 60_000);

  it('names omitted runs', async () => {
    const { out } = await hca('compare', '--sizes', '64,1M', '--paths', 'pio', '--count', '1');
    expect(out).toContain('Left out, as word by word takes too long: programmed I/O of 1.000 MiB.');
    expect(out).not.toContain('Fewer messages');
  });

  it('names runs with fewer messages than requested', async () => {
    const { out } = await hca('compare', '--sizes', '32K', '--paths', 'pio', '--count', '9');
    expect(out).toContain('Fewer messages than --count: programmed I/O of 32.00 KiB: 2 (64.00 KiB at most).');
  });
});

describe('hca perf', () => {
  it('prints the columns of perftest', async () => {
    const latency = await hca('perf', 'write-lat', '--iters', '20');
    expect(latency.out.split('\n')[0]).toContain('t_min[usec]    t_max[usec]  t_typical[usec]');
    expect(latency.out.split('\n')[1]).toMatch(/^ 2 +20 /);
    const bandwidth = await hca('perf', 'send-bw', '--iters', '50', '--size', '4096', '--qps', '2');
    expect(bandwidth.out.split('\n')[0]).toBe(
      ' #bytes     #iterations    BW peak[MiB/sec]   BW average[MiB/sec]  MsgRate[Mpps]',
    );
  });

  it('prints the bottleneck after the table, and the parts of the time', async () => {
    const bandwidth = await hca('perf', 'write-bw', '-n', '600', '-s', '64', '-q', '4');
    const lines = bandwidth.out.trimEnd().split('\n').slice(2);
    expect(lines[0]).toMatch(/^What binds: core of host 0, (9\d|100) % busy\.$/);
    expect(lines[1]).toMatch(/^ {2}Next in line: .* % (busy|full)\.$/);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect((await hca('perf', 'write-lat', '-n', '5')).out).toContain('Where the time goes');
  });

  it.each(['write-bw', 'read-lat', 'read-bw', 'send-lat', 'atomic-lat', 'atomic-bw'])(
    'measures %s, with and without completion events',
    async (test) => {
      const figures: number[] = [];
      for (const events of [[], ['--events']]) {
        const { out, code, err } = await hca('perf', test, '-n', '16', '-s', '8', '--json', '-', ...events);
        expect([code, err]).toEqual([0, '']);
        const { rows } = JSON.parse(out) as { rows: { elapsedPs: number; isBalanced: boolean }[] };
        expect(rows).toMatchObject([{ isBalanced: true }]);
        figures.push(rows[0]!.elapsedPs);
      }
      expect(figures[1]).not.toBe(figures[0]);
    },
    60_000,
  );

  it('prints the findings of the buffer ownership watch', async () => {
    const watched = ['perf', 'write-bw', '-n', '20', '-s', '64', '--watch', 'races'];
    expect((await hca(...watched)).out).toContain(
      '64 bytes: Races on host 0: none\n 64 bytes: Races on host 1: none',
    );
    const { rows } = JSON.parse((await hca(...watched, '--json', '-')).out) as { rows: object[] };
    expect(rows).toMatchObject([{ races: [[], []] }]);
  });

  itOfAll(
    'gives for all sizes what it gives one by one',
    async () => {
      const all = await hca('perf', 'write-bw', '--all', '--iters', '2', '--json', '-');
      const { rows } = JSON.parse(all.out) as { rows: { args: { sizeBytes: number } }[] };
      expect(rows.map(({ args }) => args.sizeBytes)).toEqual(
        Array.from({ length: 23 }, (_, n) => 2 ** (n + 1)),
      );
      const one = await hca('perf', 'write-bw', '--size', '1024', '--iters', '2', '--json', '-');
      expect(rows[9]).toEqual((JSON.parse(one.out) as { rows: unknown[] }).rows[0]);
    },
    120_000,
  );

  itOfAll('gives on its pool what it gives in one thread', async () => {
    const words = ['perf', 'write-bw', '--size', '1024', '--odp', '--iters', '2', '--json', '-'];
    const ended = await hcaProcessWithin({ cores: 2 }, words);
    expect(ended).toEqual(await hca(...words));
    expect((JSON.parse(ended.out) as { rows: unknown[] }).rows).toHaveLength(2);
  });
});

describe('hca devinfo and hca profiles', () => {
  it('print the output of ibv_devinfo -v', async () => {
    const { out } = await hca('devinfo');
    expect(out).toContain('hca_id:\tmlx4_0');
    expect(out).toContain('state:\t\t\tPORT_ACTIVE (4)');
    expect(out).toContain('active_speed:\t\t10.0 Gbps (4)');
    expect(out).toContain('active_width:\t\t4X (2)');
  });

  // rdma-core 44 prints the codes of ibv_port_attr like this.
  it.each([
    ['SDR', '2.5 Gbps (1)', 'port_cap_flags:\t\t0x00000848'],
    ['DDR', '5.0 Gbps (2)', 'port_cap_flags:\t\t0x00000848'],
    ['FDR10', '10.0 Gbps (8)', 'port_cap_flags:\t\t0x00000848'],
    ['FDR', '14.0 Gbps (16)', 'port_cap_flags:\t\t0x00004848'],
    ['EDR', '25.0 Gbps (32)', 'port_cap_flags:\t\t0x00004848'],
    ['HDR', '50.0 Gbps (64)', 'port_cap_flags:\t\t0x0000c848'],
    ['NDR', '100.0 Gbps (128)', 'port_cap_flags:\t\t0x0000c848'],
  ])('print the speed of the cable, %s', async (speed, text, flags) => {
    const { out } = await hca('devinfo', '--set', `wire.speed=${speed}`, '--set', 'wire.lanes=12');
    expect(out).toContain(`active_speed:\t\t${text}`);
    expect(out).toContain('active_width:\t\t12X (8)');
    expect(out).toContain(flags);
  });

  it('list every parameter', async () => {
    const { out } = await hca('profiles', '--json', '-');
    const { parameters } = JSON.parse(out) as { parameters: { path: string }[] };
    expect(parameters.map(({ path }) => path)).toContain('hca.coreClockMHz');
    expect((await hca('profiles')).out).toContain('gen5-x16-what-if');
  });
});
