/** `hca wire` on typical files: from standard input, gzipped, cut, and of link types without a reader. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { hca, mainPath } from '../testing/in-process.ts';
import { faultsOf, type Output } from '../testing/schemas.ts';
import type { WireResult } from './wire-json.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-wire-'));
afterAll(() => rmSync(folder, { recursive: true }));

const reference = (name: string): string =>
  fileURLToPath(new URL(`../../reference/wire/${name}`, import.meta.url));
const capture = readFileSync(reference('drop-write-last-ipv4.pcapng'));
const plain = readFileSync(reference('rc-send-ipv4.pcap'));

function fileOf(name: string, bytes: Uint8Array): string {
  const file = join(folder, name);
  writeFileSync(file, bytes);
  return file;
}

describe('hca wire', () => {
  it('reads standard input, plain and gzipped, like a file', async () => {
    const { code, out } = await hca('wire', reference('drop-write-last-ipv4.pcapng'));
    expect([code, out]).toEqual([0, expect.stringContaining('9 requests, 1 NAKs, 3 sent again, 3 answers')]);
    for (const input of [capture, gzipSync(capture)]) {
      const { status, stdout, stderr } = spawnSync(process.execPath, [mainPath, 'wire', '-'], {
        ...{ input, encoding: 'utf8' },
      });
      expect([status, stderr, stdout]).toEqual([0, '', out]);
    }
  });

  it('reads a gzipped file, and the existing part of a cut one', async () => {
    const whole = await hca('wire', reference('rc-send-ipv4.pcap'));
    const zipped = gzipSync(Buffer.concat([plain, plain.subarray(24)]), { level: 0 });
    expect(await hca('wire', fileOf('whole.pcap.gz', gzipSync(plain)))).toEqual(whole);
    const cut = await hca('wire', fileOf('cut.pcap.gz', zipped.subarray(0, plain.length + 200)));
    expect(cut.code).toBe(1);
    expect(cut.out).toContain('the compressed file is cut');
    expect(cut.out.split('\n').slice(1, 8)).toEqual(whole.out.split('\n').slice(1, 8));
    const damaged = Uint8Array.from(zipped);
    damaged.fill(0xff, plain.length, plain.length + 100);
    const { code, out } = await hca('wire', fileOf('damaged.pcap.gz', damaged));
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(/the compressed file is damaged|cannot be read|At byte/),
    ]);
  });

  it('shows everything before the place where a file is cut, names it, and ends with exit code 1', async () => {
    const { code, out } = await hca('wire', fileOf('cut.pcap', plain.subarray(0, plain.length - 10)));
    expect(code).toBe(1);
    expect(out).toMatch(/SEND only, PSN 256, 1 bytes/);
    expect(out).toMatch(
      /At byte \d+: the file is cut within a record with \d+ bytes of a frame, of which it has \d+ bytes\.\n$/,
    );
  });

  it('names an unsupported link type, and ends with exit code 1', async () => {
    const radio = Uint8Array.from(plain);
    radio[20] = 105;
    const { code, out } = await hca('wire', fileOf('radio.pcap', radio));
    expect([code, out]).toEqual([
      1,
      'No packet of InfiniBand, RoCE or iWARP.\n13 frames not read: there is no reader for link type 105 (the first is frame 1).\n',
    ]);
  });

  it.each<[string, Uint8Array, string]>([
    ['empty', new Uint8Array(0), '0 bytes are too few'],
    ['text', Buffer.from('no capture'), 'neither the first word of pcap nor that of pcapng'],
    ['zstd', Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0), 'compressed by zstd'],
    ['gzipped text', gzipSync('no capture'), 'neither the first word of pcap nor that of pcapng'],
  ])('rejects a file that is not a capture: %s', async (name, bytes, reason) => {
    const { code, err } = await hca('wire', fileOf('stranger', bytes));
    expect([name, code, err]).toEqual([
      name,
      2,
      expect.stringContaining(`a file of pcap or pcapng: ${reason}`),
    ]);
    expect(err.split('\n')).toHaveLength(2);
  });

  it('shows the requested number of lines, and prints the total', async () => {
    const { out } = await hca('wire', '--lines', '4', reference('drop-write-last-ipv4.pcapng'));
    expect(out.split('\n').filter((line) => /──/.test(line))).toHaveLength(4);
    expect(out).toContain('… 9 more lines: --lines shows more');
    expect(out).toContain('9 requests, 1 NAKs, 3 sent again, 3 answers');
    // Its times count from the first packet, which has no line here.
    const troubled = await hca('wire', '--trouble', reference('drop-write-last-ipv4.pcapng'));
    expect(troubled.out).toContain('     4       2997.198 us  ──▶ ! WRITE last');
    const few = await hca('wire', '--trouble', '--lines', '4', reference('drop-write-last-ipv4.pcapng'));
    expect(few.out).toContain('… 1 more lines');
  });

  it('writes JSON that matches its schema, with the lines of the screen', async () => {
    const json = join(folder, 'out.json');
    for (const more of [[], ['--trouble'], ['--lines', '4']]) {
      const args = ['wire', reference('drop-write-last-ipv4.pcapng'), ...more];
      const { out } = await hca(...args);
      const { out: silent } = await hca(...args, '--json', json);
      const output = JSON.parse(readFileSync(json, 'utf8')) as Output & WireResult;
      expect([output.schema, faultsOf(output), silent]).toEqual(['hca-wire/1', [], out]);
      const [{ counts, lines, unkept }] = output.conversations as [WireResult['conversations'][number]];
      expect(counts).toEqual({ requests: 9, NAKs: 1, 'sent again': 3, answers: 3 });
      // The page of the captures: the relay dropped the last packet of a WRITE, PSN 259.
      expect(lines).toContainEqual(
        expect.objectContaining({
          ...{ frame: 4, timePs: 2_997_198_000, isFromFirst: true, isTrouble: true },
          words: 'WRITE last, PSN 259, 928 bytes (relay: dropped)',
        }),
      );
      const shown = out.split('\n').filter((line) => /──/.test(line));
      expect(lines.map(({ words }) => words)).toEqual(shown.map((line) => line.slice(32)));
      expect(unkept).toBe(more.includes('--lines') ? 9 : 0);
    }
  });

  it('writes JSON of a file that is cut, and of one without a packet, to standard output', async () => {
    const cut = await hca('wire', fileOf('cut.pcap', plain.subarray(0, plain.length - 10)), '--json', '-');
    const output = JSON.parse(cut.out) as Output & WireResult;
    expect([cut.code, faultsOf(output), output.isWhole]).toEqual([1, [], false]);
    expect(output.notes).toContainEqual(expect.stringMatching(/the file is cut within a record/));
    const radio = Uint8Array.from(plain);
    radio[20] = 105;
    const { out } = await hca('wire', fileOf('radio.pcap', radio), '--json', '-');
    const unread = JSON.parse(out) as Output & WireResult;
    expect([faultsOf(unread), unread.conversations, unread.frames]).toEqual([
      ...[[], []],
      expect.objectContaining({ count: 13, unread: [{ kind: 'link type 105', count: 13, firstFrame: 1 }] }),
    ]);
  });

  it('reports how many frames a snap length cut', async () => {
    // Each frame of this file is cut to 90 bytes.
    const cut: number[] = [...plain.subarray(0, 24)];
    for (let at = 24; at < plain.length; ) {
      const length = plain.readUInt32LE(at + 8);
      const header = Buffer.from(plain.subarray(at, at + 16));
      header.writeUInt32LE(Math.min(90, length), 8);
      cut.push(...header, ...plain.subarray(at + 16, at + 16 + Math.min(90, length)));
      at += 16 + length;
    }
    const { code, out } = await hca('wire', fileOf('snap.pcap', Uint8Array.from(cut)));
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/5 frames cut by the capture \(its snap length\)/),
    ]);
    expect(out).toMatch(/SEND only, PSN 257, 1024 bytes; cut by the capture: 36 of 1024 bytes/);
    expect(out).not.toMatch(/damaged/);
  });
});
