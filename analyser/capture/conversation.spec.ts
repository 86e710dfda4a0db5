/**
 * Captures of stock Linux read as conversations. What they must come to is in their page: how many NAKs of which kind, what the relay
 * dropped, doubled and held back (reference/wire/README.md).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Conversation, conversationsOf, packetsIn, readCapture } from './index.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const page = readFileSync(new URL('README.md', folder), 'utf8');
const names = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name) && !name.startsWith('siw-'));

const toldIn = (name: string): Conversation[] =>
  conversationsOf(packetsIn(readCapture(readFileSync(new URL(name, folder)))).packets);

/** A number that the page gives of a file. */
function counted(name: string, what: string): number {
  const row = page.split('\n').find((line) => line.startsWith(`| ${name} |`)) ?? '';
  return Number(new RegExp(`${what} (\\d+)`).exec(row)?.[1] ?? 0);
}

const sumOf = (told: readonly Conversation[], what: string): number =>
  told.reduce((sum, { counts }) => sum + (counts[what] ?? 0), 0);
const wordsOf = (told: readonly Conversation[]): string[] =>
  told.flatMap(({ utterances }) => utterances.map(({ words }) => words));

describe('a capture read as a conversation', () => {
  it.each(names)('has the NAKs that the page counts: %s', (name) => {
    const told = toldIn(name);
    const naks = [
      'NAK PSN sequence error',
      'NAK remote access error',
      'NAK invalid request',
      'NAK remote operational error',
    ];
    expect(sumOf(told, 'NAKs')).toBe(naks.reduce((sum, nak) => sum + counted(name, nak), 0));
    expect(sumOf(told, 'RNR NAKs')).toBe(counted(name, 'RNR NAK'));
  });

  it('has nothing to complain of where nothing was done to the packets', () => {
    const sound = names.filter(
      (name) => /^(rc|uc|ud|pingpong|perftest)-/.test(name) && name.endsWith('.pcap'),
    );
    expect(sound.length).toBeGreaterThan(20);
    for (const name of sound) {
      const trouble = toldIn(name).flatMap(({ utterances }) =>
        utterances.filter(({ isTrouble }) => isTrouble),
      );
      expect([name, trouble]).toEqual([name, []]);
    }
  });

  it.each([
    ['rc-read-ipv4.pcap', 15, 3],
    ['rc-read-ipv6.pcap', 15, 0x30],
  ])(
    'RFC 3168, 5: shows marks of congestion in IP headers, of requests and of answers: %s',
    (name, at, ce) => {
      const capture = readCapture(readFileSync(new URL(name, folder)));
      const plain = wordsOf(conversationsOf(packetsIn(capture).packets));
      for (const { bytes } of capture.frames) {
        bytes[at]! |= ce;
        // So much more is in the first word of an IPv4 header, so much less its checksum (RFC 1624).
        const view = new DataView(bytes.buffer, bytes.byteOffset);
        if (ce === 3) view.setUint16(24, view.getUint16(24) - ce);
      }
      const words = wordsOf(conversationsOf(packetsIn(capture).packets));
      expect(plain.some((line) => /marked/.test(line))).toBe(false);
      expect(words.length).toBe(plain.length);
      expect(words.length).toBeGreaterThan(3);
      for (const line of words) expect(line).toMatch(/marked for congestion/);
    },
  );

  it('shows what was sent again, what is missing, and what is answered twice', () => {
    // WRITE last of three was dropped: it and the two after it come again (frames 8 to 10).
    expect(sumOf(toldIn('drop-write-last-ipv4.pcapng'), 'sent again')).toBe(3);
    expect(wordsOf(toldIn('dup-send-ipv4.pcapng')).filter((words) => /sent again/.test(words))).toHaveLength(
      1,
    );
    expect(
      wordsOf(toldIn('dup-ack-ipv4.pcapng')).filter((words) => /answered before/.test(words)),
    ).toHaveLength(1);
    expect(wordsOf(toldIn('rnr-retry-ipv4.pcap'))).toContain(
      'RNR NAK, PSN 256: not ready, again after 1.28 ms',
    );
  });

  it('puts two directions together, and keeps connections apart', () => {
    expect(toldIn('rc-bidirectional-ipv4.pcap').map(({ first, second }) => [first, second])).toEqual([
      ['10.0.0.1 QP 31', '10.0.0.2 QP 31'],
    ]);
    expect(toldIn('perftest-send-bw-2qp-ipv6.pcap')).toHaveLength(2);
    expect(toldIn('rc-psn-wrap-ipv4.pcap')).toHaveLength(1);
  });
});
