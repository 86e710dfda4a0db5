import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { guestReportOf } from '../../guests/linux/index.ts';
import { serve } from '../../guests/serve/index.ts';
import { nativeUnavailableReason } from '../../guests/slot/index.ts';
import { hca } from '../testing/in-process.ts';
import { guestPage } from './guest-page.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-guest-page-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('hca guest rejects options that it would silently ignore', () => {
  it.each([
    ['--guests', '2'],
    ['--hcas', '2'],
    ['--cable', 'true'],
    ['--no-load', 'false'],
    ['--timeout', '9'],
  ])('%s with a scenario', async (option, value) => {
    const given = ['--cable', '--no-load'].includes(option) ? [option] : [option, value];
    const { code, err } = await hca('guest', '--scenario', 'probe', ...given);
    expect([code, err]).toEqual([
      2,
      `hca: ${option} is "${value}", expected left out with --scenario probe, which decides that\n`,
    ]);
  });

  it('a command without a guest, or for an unknown one', async () => {
    const none = await hca('guest', '--fetch-only', '--run', 'true');
    expect(none.err).toBe('hca: --run is "true", expected left out with --fetch-only, which runs no guest\n');
    const other = await hca('guest', '--run', 'true', '--run', 'guest1: true');
    expect([other.code, other.err]).toEqual([
      2,
      'hca: --run is "guest1: true", expected a command of guest 0: guest 1 takes --guests 2\n',
    ]);
  });
});

describe('hca guest rejects, naming both options, files that would stay empty', () => {
  const endings = ['--fetch-only', '--print-qemu'];
  const files = ['--html', '--json', '--report', '--budget', '--write-budget'];
  it.each(endings.flatMap((ending) => files.map((file) => [file, ending] as const)))(
    '%s with %s',
    async (file, ending) => {
      const { code, out, err } = await hca('guest', ending, file, join(folder, 'nothing'), '--run', 'true');
      expect([code, out]).toEqual([2, '']);
      expect(err).toMatch(
        new RegExp(`^hca: ${file} is ".*", expected left out with ${ending}, which runs no guest`),
      );
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it.each(['--timeline', '--vcd', '--pcap', '--trace'])('%s with --fetch-only', async (option) => {
    const { code, err } = await hca('guest', '--fetch-only', option, join(folder, 'nothing.pftrace'));
    expect([code, err]).toEqual([
      2,
      `hca: ${option} is "${join(folder, 'nothing.pftrace')}", expected left out with --fetch-only, which runs no guest\n`,
    ]);
  });

  it('and a timeline by operations, or of a scenario', async () => {
    const file = join(folder, 'nothing.pftrace');
    const operations = await hca(
      'guest',
      '--run',
      'true',
      '--timeline',
      file,
      '--timeline-operations',
      '1..2',
    );
    expect(operations.code).toBe(2);
    expect(operations.err).toContain('--timeline-operations is "1..2", expected left out');
    const scenario = await hca('guest', '--scenario', 'probe', '--vcd', join(folder, 'nothing.vcd'));
    expect(scenario.code).toBe(2);
    expect(scenario.err).toContain('--scenario is "probe", expected without a timeline');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('and one of both without effect', async () => {
    const { code, err } = await hca('guest', '--fetch-only', '--print-qemu');
    expect([code, err]).toEqual([2, 'hca: --print-qemu is true, expected left out with --fetch-only\n']);
  });
});

const head = { title: 'A stock Linux guest', command: 'hca guest --run true', version: '0' };

it.skipIf(nativeUnavailableReason() !== undefined)(
  'the page of hca guest has what ran, its interrupts and its budget, and the report of the devices',
  async () => {
    const served = await serve({ socket: join(folder, 'guest.sock') });
    const report = await served.close();
    const versions = { kernel: '6.1.0', qemu: '10.1', rdmaCore: '44', perftest: '4.5' };
    const vector = {
      adapter: 0,
      vector: 1,
      name: 'mlx4-1',
      deviceCount: 1234,
      guestCount: 1233,
      isEqual: false,
      isServed: false,
    };
    const ran = {
      guest: 0,
      command: 'ls <here>',
      output: 'a & b\n',
      exitStatus: 3,
      hasTimedOut: false,
      elapsedMs: 1,
    };
    const row = { run: 'ls <here>', hca: 0, figure: 'mmioWrites', budget: 10, counted: 11, holds: false };
    const page = guestPage(head, {
      ...guestReportOf({ versions, interrupts: [vector], report }, [ran]),
      budget: [row],
    });
    for (const words of [
      'Linux 6.1.0, rdma-core 44, perftest 4.5, on QEMU 10.1.',
      'guest0$ ls &lt;here&gt;',
      'a &amp; b',
      'exit 3',
      'hca 0 vector 1',
      '1,234',
      'DIFFERENT',
      'mmioWrites',
      'OVER',
      'What each block did',
      'The ledgers balance',
    ])
      expect(page).toContain(words);
    expect(page).toContain(report.configHash.slice(0, 12));
    expect(page).not.toContain('<here>');
    const quiet = guestPage(head, guestReportOf({ versions, interrupts: [], report }, []));
    expect(quiet).not.toContain('Budget:');
    expect(quiet).not.toContain('/proc/interrupts');
  },
);
