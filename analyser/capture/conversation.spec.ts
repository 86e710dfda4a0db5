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
