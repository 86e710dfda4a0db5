/**
 * iWARP connections. Expected are the messages that the captures' page counts (reference/wire/README.md), the CRCs of
 * RFC 5044, and bytes written out from RFC 5040, 5041 and 5044.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCapture } from '../capture-reader.ts';
import { CaptureReading } from '../capture-reading.ts';
import { pcapFile } from '../testing/file-bytes.ts';
import { crc32c } from './crc32c.ts';
import { readFpdu, readHandshake } from './mpa.ts';
import { isRdmap, rdmapWords } from './rdmap-words.ts';

const folder = new URL('../../../reference/wire/', import.meta.url);
const page = readFileSync(new URL('README.md', folder), 'utf8');
const names = readdirSync(folder).filter((name) => name.startsWith('siw-'));
const fileOf = (name: string): Uint8Array => readFileSync(new URL(name, folder));

function read(file: Uint8Array): CaptureReading {
  const reading = new CaptureReading({ lines: Number.POSITIVE_INFINITY, isTroubleOnly: false });
  reading.push(file);
  reading.end();
  return reading;
}

const linesOf = (reading: CaptureReading): string[] =>
  reading.conversations().flatMap(({ utterances }) => utterances.map(({ words }) => words));

/** Messages of a file by this project's names, counted as the page counts them by its own. */
function countedOf(name: string): Record<string, number> {
  const row = page.split('\n').find((line) => line.startsWith(`| ${name} |`)) ?? '';
  const ours: Record<string, string> = {
    READ_REQUEST: 'READ request',
    READ_RESPONSE: 'READ response',
    SEND_SE: 'SEND solicited',
  };
  const found = [...row.matchAll(/RDMAP (\w+) (\d+)/g)];
  return Object.fromEntries(found.map(([, word, count]) => [ours[word!] ?? word!, Number(count)]));
}

/** Frames of a capture, cut to this length. */
const cutTo = (name: string, bytes: number): Uint8Array =>
  pcapFile(
    1,
    readCapture(fileOf(name)).frames.map((frame) => ({
      bytes: frame.bytes.subarray(0, bytes),
      wireBytes: frame.bytes.length,
    })),
  );

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

describe('iWARP in a capture', () => {
  it.each(names)('has the messages that the page counts: %s', (name) => {
    const told = read(fileOf(name)).conversations();
    const { 'sent again': _again, ...counts } = told[0]?.counts ?? {};
    expect(counts).toEqual(countedOf(name));
    expect(told).toHaveLength(name === 'siw-no-listener-ipv4.pcap' ? 0 : 1);
  });

  it.each([
    ['siw-tcp-loss-nocrc-ipv4.pcapng', 1],
    ['siw-read-response-loss-crc-ipv4.pcapng', 1],
    ['siw-all-crc-ipv4.pcap', 0],
  ])('shows retransmitted TCP segments: %s', (name, count) => {
    const lines = linesOf(read(fileOf(name)));
    expect(lines.filter((words) => /sent again$/.test(words))).toHaveLength(count);
    expect(lines.filter((words) => /relay: dropped/.test(words))).toHaveLength(count);
  });

  it.each([
    ['siw-terminate-read-stag-nocrc-ipv4.pcap', 'STag not valid (RDMAP, type 1, code 0x0)'],
    ['siw-terminate-write-stag-crc-ipv4.pcap', 'STag not valid (DDP, type 1, code 0x0)'],
    ['siw-terminate-write-stag-nocrc-ipv4.pcap', 'STag not valid (DDP, type 1, code 0x0)'],
  ])('RFC 5040, 4.8: reports why a stream was terminated, even if siw swaps the word: %s', (name, why) => {
    expect(linesOf(read(fileOf(name)))).toContain(`TERMINATE, message 1: ${why}`);
  });

  it.each([
    // The words of the capture are 0001 0001; and 8004 c004, 8004 8004, where the initiator offers both and the responder takes one.
    ['siw-rping-crc-ipv4.pcap', ['serves 1 READs at once, has 1 outstanding']],
    [
      'siw-p2p-crc-mtu4500-ipv4.pcap',
      [
        'serves 4 READs at once, has 4 outstanding, peer-to-peer, ready by WRITE or READ',
        'serves 4 READs at once, has 4 outstanding, peer-to-peer, ready by WRITE',
      ],
    ],
  ])(
    'RFC 6581, 9: says what the ends of a connection agree on, apart from private data: %s',
    (name, agreed) => {
      const [request, reply] = linesOf(read(fileOf(name)));
      expect(request).toBe(`MPA request, revision 2, CRC, ${agreed[0]}`);
      expect(reply).toBe(`MPA reply, revision 2, CRC, ${agreed.at(-1)}`);
    },
  );

  it('RFC 5044, 7.1.1: a request of revision 1 has private data alone', () => {
    const frame = Uint8Array.from([...Buffer.from('MPA ID Req Frame'), 0x40, 1, 0, 4, 0x80, 4, 0xc0, 4]);
    expect(readHandshake(frame)).toMatchObject({ enhanced: undefined, privateBytes: 4, revision: 1 });
    frame[16] = 0x50;
    frame[17] = 2;
    expect(readHandshake(frame)).toMatchObject({ privateBytes: 0, enhanced: { outboundReads: 4 } });
    // The word is not there whole.
    frame[19] = 3;
    expect(readHandshake(frame)).toMatchObject({ enhanced: undefined, privateBytes: 3 });
  });

  it('RFC 5040, 4.8: decodes the control word of a Terminate in the RFC’s layout', () => {
    const header = '4147 00000000 00000002 00000001 00000000';
    expect(rdmapWords(bytesOf(`${header} 0102e000`), 22).words).toBe(
      'TERMINATE, message 1: access rights violation (RDMAP, type 1, code 0x2)',
    );
    expect(rdmapWords(bytesOf(`${header} 12020000`), 22).words).toBe(
      'TERMINATE, message 1: no buffer for the message (DDP, type 2, code 0x2)',
    );
  });

  it('RFC 7306, 5 and 6: reads atomics and immediate data', () => {
    const queue = (number: number): string => `00000000 0000000${number} 00000003 00000000`;
    const request = `414a ${queue(1)} 00000002 00000007 00001234 0000000000000040 ${'00'.repeat(32)}`;
    expect(rdmapWords(bytesOf(request), 70).words).toBe(
      'ATOMIC request, message 3, compare and swap 0x7 at 0x40 STag 0x1234',
    );
    expect(rdmapWords(bytesOf(`414b ${queue(3)} 00000007 00000000000000ff`), 30).words).toBe(
      'ATOMIC response, message 3 to 0x7, was 0xff',
    );
    expect(rdmapWords(bytesOf(`4148 ${queue(0)} 0000000000000001`), 26).words).toBe(
      'IMMEDIATE, message 3, 8 bytes',
    );
    expect(rdmapWords(bytesOf(`4144 0000abcd 00000000 00000003 00000000`), 18).words).toBe(
      'SEND with invalidate, message 3, 0 bytes, invalidates STag 0xabcd',
    );
    expect(isRdmap(bytesOf(`41 4c ${queue(0)}`))).toBe(false);
  });

  it('finds a connection without its handshake by a right CRC', () => {
    const { frames } = readCapture(fileOf('siw-rping-crc-ipv4.pcap'));
    // Frames 4 and 6 are the request and the reply.
    const later = pcapFile(
      1,
      frames.slice(6).map(({ bytes }) => ({ bytes })),
    );
    const { counts } = read(later).conversations()[0]!;
    expect(counts).toEqual(countedOf('siw-rping-crc-ipv4.pcap'));
  });

  it('reports a missing segment, and continues after it', () => {
    const { frames } = readCapture(fileOf('siw-all-crc-ipv4.pcap'));
    // Frame 12 is the second of four of a SEND.
    const rest = frames.filter((_, index) => index !== 11).map(({ bytes }) => ({ bytes }));
    const lines = linesOf(read(pcapFile(1, rest)));
    expect(lines.filter((words) => /gap: 1448 bytes of TCP not seen/.test(words))).toHaveLength(1);
    // Moved after the two that follow it, it is late, and all messages are present.
    const late = [...frames.slice(0, 11), ...frames.slice(12, 14), frames[11]!, ...frames.slice(14)];
    const reading = read(
      pcapFile(
        1,
        late.map(({ bytes }) => ({ bytes })),
      ),
    );
    const { late: lateCount, gaps, ...counts } = reading.conversations()[0]!.counts;
    expect([lateCount, gaps]).toEqual([1, 1]);
    expect(counts).toEqual(countedOf('siw-all-crc-ipv4.pcap'));
  });

  it.each(names)('reads the messages of frames that the capture cut to 96 bytes: %s', (name) => {
    const reading = read(cutTo(name, 96));
    const counts = reading.conversations()[0]?.counts ?? {};
    const { 'sent again': _again, ...messages } = counts;
    // Ethernet, IPv4 and TCP with time stamps are 66 bytes, the length and the longest header 20.
    expect(messages).toEqual(countedOf(name));
    for (const words of linesOf(reading)) expect(words).not.toMatch(/damaged|no FPDU/);
  });

  it('reports an FPDU with a wrong CRC as damaged', () => {
    const { frames } = readCapture(fileOf('siw-rping-crc-ipv4.pcap'));
    frames[9]!.bytes[66 + 24]! ^= 1;
    const lines = linesOf(
      read(
        pcapFile(
          1,
          frames.map(({ bytes }) => ({ bytes })),
        ),
      ),
    );
    expect(lines.filter((words) => /damaged: wrong CRC32c/.test(words))).toHaveLength(1);
  });
});

describe('MPA', () => {
  it('RFC 5044, 4.4: computes CRC32c', () => {
    expect(crc32c(new TextEncoder().encode('123456789'))).toBe(0xe306_9283);
  });

  it('RFC 5044, 4.3: removes markers from an FPDU, and includes them in its CRC', () => {
    // A WRITE of 600 bytes whose FPDU begins at offset 0 of the stream: markers at 0 and 512.
    const segment = Uint8Array.from([
      0xc1,
      0x40,
      ...new Array<number>(12).fill(7),
      ...new Array<number>(600).fill(9),
    ]);
    const plain = [0x02, 0x66, ...segment];
    const stream = [0, 0, 0, 0, ...plain.slice(0, 508), 0, 0, 2, 0, ...plain.slice(508)];
    const crc = crc32c(Uint8Array.from(stream));
    const bytes = Uint8Array.from([
      ...stream,
      crc & 0xff,
      (crc >>> 8) & 0xff,
      (crc >>> 16) & 0xff,
      crc >>> 24,
    ]);
    for (let length = 0; length < bytes.length; length++)
      expect(readFpdu(bytes.subarray(0, length), 0)).toBe(undefined);
    expect(readFpdu(bytes, 0)).toEqual({ segment, streamBytes: bytes.length, crc, isCrcRight: true });
  });
});
