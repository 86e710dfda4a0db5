/** Captures of runs, from the shell: what was not kept is never passed over in silence. */
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { makeTemporaryFolder } from '../linux-lab/temporary-folder.ts';
import { hcaWithin } from './testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = makeTemporaryFolder('hca-wire-spec-');
afterAll(() => folder.remove());

const hca = (...args: string[]) => hcaWithin({ cwd: folder.path }, args);

it('a capture that was full says so as it is written, and when it is read', async () => {
  // 320 packets of 4096 bytes and their headers do not go into a MiB.
  const { code, err } = await hca(
    ...['perf', 'write-bw', '-s', '65536', '-n', '20', '--pcap', 'full.pcapng', '--pcap-size', '1'],
  );
  expect(code).toBe(0);
  const [, kept, dropped] =
    /^hca: full\.pcapng has the first (\d+) packets at hca0; (\d+) later ones were not kept: --pcap-size\n$/.exec(
      err,
    ) ?? [];
  expect(Number(kept) + Number(dropped)).toBeGreaterThan(320);
  const { out } = await hca('wire', join(folder.path, 'full.pcapng'));
  expect(out).toContain(`The capture at hca0 did not keep ${dropped} packets.`);
  expect(out.match(/PSN \d+/g)).toHaveLength(Number(kept));
});

it('what arrived at either end is read as one conversation', async () => {
  await hca('perf', 'write-lat', '-n', '3', '--pcap', 'in.pcapng', '--pcap-at', 'hca0:in,hca1:in');
  const { out } = await hca('wire', 'in.pcapng');
  // Three WRITEs each way, each with its ACK.
  expect(out).toContain('QP 520 and LID');
  expect(out).toContain('6 requests, 6 answers');
});
