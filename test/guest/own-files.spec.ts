/** A guest with a user's own files and modules, checked against a budget: `hca guest --copy --module --budget`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../abi/index.ts';
import { guestPage } from '../../cli/guest/guest-page.ts';
import { figuresBetween, GuestSession, guestFiles, guestReportOf } from '../../guests/linux/index.ts';
import { bootTimeoutMs, cache, optionsFor, reasonAgainst } from './suite.ts';

const reason = await reasonAgainst('debian');

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('files of the user’s own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'own-guest-'));
  let session: GuestSession;
  const run = (command: string) => session.run(0, command, { timeoutSeconds: 120 });

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const script = join(folder, 'hello.sh');
    writeFileSync(script, '#!/bin/sh\necho "hello, $1"\n', { mode: 0o755 });
    const { kernelRoot, kernelVersion } = await guestFiles({ kernel: 'debian' }, cache);
    const stock = join(kernelRoot, 'lib/modules', kernelVersion, 'kernel/drivers');
    const modules = ['net/dummy.ko', 'infiniband/hw/mlx4/mlx4_ib.ko'].map((path) => join(stock, path));
    session = await GuestSession.start({
      ...optionsFor('debian'),
      ...{ hcas: 1, guests: 1, cable: false },
      serve: { analysis: { timeline: {} } },
      ownFiles: { copies: [script, `${script}:/lib/there/hello`], modules },
    });
    await session.load();
  }, bootTimeoutMs);
  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it('are present, and run', async () => {
    const { output } = await run('/root/hello.sh you; /usr/lib/there/hello there');
    expect(output).toBe('hello, you\nhello, there\n');
  });

  it('are modules that replace stock ones of the same name, and others', async () => {
    const { output } = await run(
      '/usr/sbin/modinfo -n mlx4_ib; /usr/sbin/modinfo -n dummy; lsmod | grep -c -e "^mlx4_ib " -e "^dummy "',
    );
    expect(
      output
        .trim()
        .split('\n')
        .map((line) => line.replace(/^.*\/updates/, 'updates')),
    ).toEqual(['updates/mlx4_ib.ko', 'updates/dummy.ko', '2']);
  });

  it('have the device’s costs: a WRITE of perftest costs a CQE and a doorbell each, in one direction', async () => {
    const [before] = await session.figures();
    const { exitStatus } = await run(
      "pair 'ib_write_bw -n 500 -s 64 -Q 1' 'ib_write_bw -n 500 -s 64 -Q 1 localhost'",
    );
    const [after] = await session.figures();
    const counted = figuresBetween(before!, after!);
    expect([exitStatus, counted['toHost.cqe'], counted['toHost.payloadWrite']]).toEqual([0, 500, 500]);
    expect(counted['mmioWrites']).toBeGreaterThanOrEqual(500);
  });

  it('are on the page of the guest at the end, with its interrupts and its devices’ figures', async () => {
    const command = '/root/hello.sh reader';
    const ran = { guest: 0, ...(await run(command)) };
    const report = guestReportOf(await session.finish(), [ran]);
    expect(report.interrupts.length).toBeGreaterThan(1);
    const head = { title: 'A stock Linux guest', command: `hca guest --run '${command}'`, version: '0' };
    const page = guestPage(head, report);
    expect(page).toContain(`guest0$ ${command}`);
    expect(page).toContain('hello, reader');
    expect(page).toContain(`Linux ${report.versions.kernel}, rdma-core ${report.versions.rdmaCore}`);
    for (const { adapter, vector, name } of report.interrupts) {
      expect(page).toContain(`hca ${adapter} vector ${vector}`);
      expect(page).toContain(name);
    }
    for (const words of ['What each block did', 'Register accesses of the guest', 'The ledgers balance'])
      expect(page).toContain(words);
    expect(page).not.toContain('DIFFERENT');
    const timeline = await session.machine.timeline();
    const writes = [...timeline.records()].filter(
      ({ kind, values }) => kind === 'operation' && values[2] === WqeOpcode.RDMA_WRITE,
    );
    expect(writes.length).toBe(report.serve.operations['WRITE']!.count);
    expect(timeline.processes).toEqual(['guest0', 'hca0']);
    // No file is taken from elsewhere.
    expect(page).not.toMatch(/(src|href)\s*=\s*["']?(https?:)?\/\//);
  });
});
