/** `hca move` over iWARP: the file arrives by SEND, WRITE and READ, with the order that only notices give. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { hca } from '../testing/in-process.ts';

vi.setConfig({ testTimeout: 240_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-move-iwarp-'));
afterAll(() => rmSync(folder, { recursive: true }));

const iwarp = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.transport=iwarp'];

/** A file whose bytes depend on their place. */
function fileOf(lengthBytes: number): string {
  const path = join(folder, `${lengthBytes}.bin`);
  writeFileSync(
    path,
    Uint8Array.from({ length: lengthBytes }, (_, at) => (at * 167 + (at >>> 8) * 13) & 0xff),
  );
  return path;
}

async function moved(lengthBytes: number, ...words: string[]) {
  const given = ['move', fileOf(lengthBytes), '--traditional', 'none', ...iwarp, ...words];
  const { code, out, err } = await hca(...given, '--json', '-');
  return { code, err, ...JSON.parse(out) };
}

describe('move over iWARP', () => {
  it.each([
    ['one byte', 1, []],
    ['a file in chunks of one segment, one in flight', 5000, ['--chunk', '64', '--window', '1']],
    ['a mebibyte', 2 ** 20, []],
    [
      'a file over a cable that loses a twentieth of the frames of host 0',
      70_000,
      ['--chunk', '4K', '--fault', 'packet=lost,chance=5%'],
    ],
    [
      'a file over a cable that loses those of host 1',
      70_000,
      ['--chunk', '4K', '--fault', 'packet=lost,chance=5%,node=1'],
    ],
    [
      'a file with three chunks in flight there',
      20_000,
      ['--chunk', '500', '--window', '3', '--fault', 'packet=lost,chance=5%,node=1'],
    ],
  ] as const)('moves %s', async (_what, lengthBytes, words) => {
    const { code, err, legs, isCorrect, atomicCount, report } = await moved(lengthBytes, ...words);
    expect([code, err, isCorrect, atomicCount]).toEqual([0, '', true, 0]);
    expect(report.checks.balanced).toBe(true);
    for (const { sha256, received, bytesPerSecond } of legs) {
      expect(received).toBe(sha256);
      // 10 Gb/s.
      expect(bytesPerSecond).toBeLessThan(1.25e9);
    }
  });

  it('RFC 5040, 5.5: tells of each chunk by a SEND of no bytes, and never by a WRITE of a word', async () => {
    const { report } = await moved(5000, '--chunk', '1000');
    // Host 0: five chunks by SEND and a notice for each by WRITE and READ; host 1: a notice for each chunk by each.
    const [sender, receiver] = report.nodes.map((node: (typeof report.nodes)[0]) => node.hca.iwarp.sent);
    expect(sender.SEND).toEqual({ segments: 5 + 2 * 5, payloadBytes: 5000 });
    expect(receiver.SEND).toEqual({ segments: 3 * 5, payloadBytes: 0 });
    // The initiator's ready-to-receive message is a WRITE of no bytes.
    expect(sender.WRITE).toEqual({ segments: 1 + 5, payloadBytes: 5000 });
    expect(receiver.WRITE).toBeUndefined();
  });

  it('says that nothing is counted by atomics, which RDMAP does not have', async () => {
    const { code, out } = await hca('move', fileOf(1000), '--traditional', 'none', ...iwarp);
    expect(code).toBe(0);
    expect(out).toContain('Not counted by atomics, which iWARP does not have (RFC 5040).');
  });
});
