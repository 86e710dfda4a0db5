import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { hca } from '../testing/in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-linux-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A refused command fetches nothing. */
const cache = ['--cache', join(folder, 'cache')];

describe('hca linux refuses, in one line and before anything is fetched,', () => {
  it.each([
    [[], '--run is "left out", expected a command, or --script with a file'],
    [
      ['--run', 'host1: true'],
      '--run is "host1: true", expected a command of host 0: host 1 takes --hosts 2',
    ],
    [['--hosts', '2', '--run', 'host2: true'], '--run is "host2: true", expected a command of hosts 0 to 1'],
    [
      ['--run', 'ib_write_lat &'],
      "--run is \"ib_write_lat &\", expected a command without & at its end: that takes --hosts 2, or pair 'SERVER' 'CLIENT'",
    ],
    [
      ['--run', 'true', '--pc', 'coreMHz=5'],
      /^parameter of the PC is "coreMHz", expected one of memoryMib, .*; did you mean coreMhz\?$/,
    ],
    [['--run', 'true', '--pc', 'coreMhz=5'], 'coreMhz is 5, expected an integer from 100 to 10000 MHz'],
    [
      ['--run', 'true', '--pc', 'coreMhz=fast'],
      'coreMhz is "fast", expected an integer from 100 to 10000 MHz',
    ],
    [
      ['--run', 'true', '--pc', 'cyclesPerInstruction=0.01'],
      'cyclesPerInstruction is 0.01, expected a number from 0.1 to 100 cycles',
    ],
    [['--run', 'true', '--pc', 'coreMhz'], '--pc is "coreMhz", expected parameter=value'],
    [
      ['--run', 'true', '--script', join(folder, 'none.sh')],
      /^--script is ".*", expected a readable file \(ENOENT\)$/,
    ],
    [
      [
        '--run',
        'true',
        '--set',
        'hca.capability.transport=iwarp',
        '--set',
        'hca.capability.linkLayer=ethernet',
      ],
      /^hca\.capability\.transport is "iwarp", expected ibta for guests/,
    ],
    [['--run', 'true', '--fault', 'packet=lost,nth=1,node=1'], /^fault 1, field node, is "1", /],
    [
      ['--run', 'true', '--pcap', join(folder, 'x.pcapng'), '--pcap-at', 'hca1'],
      /^end of a capture is "hca1"/,
    ],
    [
      ['--run', 'true', '--timeline-operations', '1..2'],
      /^--timeline-operations is "1\.\.2", expected left out/,
    ],
    [
      ['--write-budget', join(folder, 'b.json'), '--script', '/dev/null'],
      /^--run is "left out", expected a command for/,
    ],
    ...[
      ...[['--run', 'true'], ['--script', '/dev/null'], ['--hosts', '2'], ['--timeout', '5'], ['--why']],
      ...[
        ['--peer', 'p.ts'],
        ['--topology', 'star:4'],
      ],
      ...[['--budget', 'b.json'], ['--html', 'p.html'], ['--timeline', 't.json'], ['--cpu-profile']],
    ].map((given): [string[], RegExp] => [
      ['--scenario', 'loopback', ...given],
      new RegExp(`^${given[0]} is .*, expected left out with --scenario loopback, which decides that$`),
    ]),
    [
      ['--fetch-only', '--run', 'true'],
      '--run is "true", expected left out with --fetch-only, which runs no guest',
    ],
    [
      ['--run', 'true', '--topology', 'star:4', '--set', 'hca.capability.linkLayer=ethernet'],
      /^hca\.capability\.roce is "none", expected v1 or v2/,
    ],
    [['--hosts', '3', '--run', 'host3: true'], '--run is "host3: true", expected a command of hosts 0 to 2'],
    [['--hosts', '9', '--run', 'true'], /expected an integer from 1 to 8/],
    [['--hosts', '3', '--topology', '0-1', '--run', 'true'], 'hcas is 3, expected an integer from 1 to 2'],
    [
      ['--peer', join(folder, 'none.ts'), '--run', 'true'],
      /^--peer is ".*none.ts", expected a module of JavaScript or TypeScript$/,
    ],
    [['--peer-args', '1', '--run', 'true'], '--peer-args is "1", expected an option beside --peer'],
    [
      ['--peer', import.meta.filename, '--hosts', '2', '--run', 'true'],
      'hcas is 2, expected 1 beside a peer: the other HCA is its',
    ],
    [['--run', 'true', '--timeout', '0'], /expected an integer from 1 to 3600/],
  ] as const)('%j', async (options, message) => {
    const { code, out, err } = await hca('linux', ...cache, ...options);
    expect([code, out]).toEqual([2, '']);
    expect(err.replace(/^hca: /, '').trimEnd()).toEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
    expect(readdirSync(folder)).not.toContain('cache');
  });

  it('a file that it would read and write', async () => {
    const file = join(folder, 'script.sh');
    writeFileSync(file, 'true\n');
    const { code, err } = await hca('linux', '--script', file, '--report', file);
    expect(code).toBe(2);
    expect(err).toContain('output file is');
  });
});

it('hca linux names its kernels, and a kernel that is none of them', async () => {
  const { out } = await hca('linux', '--help');
  expect(out).toContain('debian, debian-pae, backports');
  const { code, err } = await hca('linux', ...cache, '--kernel', '2.4', '--run', 'true');
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('debian-pae, backports, a folder of an installed kernel'),
  ]);
});
