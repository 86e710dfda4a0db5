/**
 * The frames of Soft-iWARP on a cable, read twice: as conversations (analyser/capture), and by tshark, which shares nothing with that. Both
 * must find the same messages, no FPDU with a wrong CRC and nothing that they cannot read. Source: RFC 5044, 5041, 5040.
 */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { CaptureReading } from '../../analyser/capture/index.ts';
import { fieldsOf, tsharkTree, wordsOf } from './tshark.ts';

/** Messages by the opcode of RDMAP, in our words (RFC 5040, 4.3); siw sends no others, and no Terminate unless something is wrong. */
const names = ['WRITE', 'READ request', 'READ response', 'SEND', 'SEND with invalidate', 'SEND solicited'];

/** Handshakes, and messages by name. */
type Counts = Readonly<Record<string, number>>;

const requests = 'MPA request';
const replies = 'MPA reply';

/**
 * Counts as `hca wire` reports them. TCP may retransmit when a busy computer is late, and siw may reject a request; nothing else may be unusual.
 */
function countsToldOf(file: string): Counts {
  const reading = new CaptureReading({ lines: Number.POSITIVE_INFINITY, isTroubleOnly: false });
  reading.push(readFileSync(file));
  reading.end();
  expect(reading.isWhole).toBe(true);
  expect(reading.feed.malformedCount).toBe(0);
  const conversations = reading.conversations();
  const lines = conversations.flatMap(({ utterances }) => utterances);
  const troubles = lines.filter(({ isTrouble, words }) => isTrouble && !/sent again|^MPA reject/.test(words));
  expect(troubles.map(({ number, words }) => `${number} ${words}`)).toEqual([]);
  const sumOf = (name: string): number =>
    conversations.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
  const linesWith = (begin: RegExp): number => lines.filter(({ words }) => begin.test(words)).length;
  return {
    [requests]: linesWith(/^MPA request/),
    [replies]: linesWith(/^MPA (reply|reject)/),
    ...Object.fromEntries(names.map((name) => [name, sumOf(name)])),
  };
}

/** Counts as tshark reads them, without TCP retransmissions. */
async function countsReadOf(tree: string, file: string): Promise<Counts> {
  const fields = ['iwarp_rdma.opcode', 'iwarp_mpa.key.req', 'iwarp_mpa.key.rep', '_ws.malformed'];
  const again = ['tcp.analysis.retransmission', 'tcp.analysis.spurious_retransmission'];
  const all = await fieldsOf(tree, file, [...fields, ...again]);
  // The cable loses nothing: what TCP sends again is there already.
  const rows = all.filter((row) => row.slice(fields.length).every((field) => field === ''));
  expect(rows.filter(([, , , malformed]) => malformed !== '')).toEqual([]);
  const opcodes = rows.flatMap(([opcode]) => opcode!.split(',').filter(Boolean)).map(Number);
  expect(opcodes.filter((opcode) => names[opcode] === undefined)).toEqual([]);
  const filled = (column: number): number => rows.filter((row) => row[column] !== '').length;
  return {
    [requests]: filled(1),
    [replies]: filled(2),
    ...Object.fromEntries(
      names.map((name, opcode) => [name, opcodes.filter((one) => one === opcode).length]),
    ),
  };
}

/** FPDUs by tshark's verdict on their CRC; those of connections without CRCs have none. */
async function verdictsOf(tree: string, file: string): Promise<{ good: number; bad: number }> {
  const words = await wordsOf(tree, file, 'iwarp_mpa');
  const countOf = (verdict: string): number => words.split(`(${verdict} CRC32`).length - 1;
  return { good: countOf('Good'), bad: countOf('Bad') };
}

/**
 * Fails if the two readers differ, or if a frame is wrong. @returns the findings
 */
export async function checkIwarp(file: string): Promise<string> {
  const tree = await tsharkTree();
  const told = countsToldOf(file);
  expect(await countsReadOf(tree, file)).toEqual(told);
  for (const name of ['WRITE', 'READ request', 'READ response', 'SEND', requests])
    expect([name, told[name]! > 0]).toEqual([name, true]);
  const { good, bad } = await verdictsOf(tree, file);
  expect(bad).toBe(0);
  expect(good).toBeGreaterThan(0);
  const counts = Object.entries(told).map(([name, count]) => `${count} ${name}`);
  return `${counts.join(', ')}; ${good} CRCs are right`;
}

/** Statements of both readers on the start of the connections in a capture. */
export interface Handshakes {
  /** Requests, replies and Terminates in our words, each kind once. */
  readonly words: readonly string[];
  /** MPA requests without a reply. */
  readonly unansweredCount: number;
}

/**
 * Fails if requests and replies of MPA, and Terminates, are others than these: connections that come to nothing, or agree on something rare.
 * @returns a check of a capture, which returns the findings
 */
export function handshakesAre(expected: Handshakes): (file: string) => Promise<string> {
  return async (file) => {
    const reading = new CaptureReading({ lines: Number.POSITIVE_INFINITY, isTroubleOnly: false });
    reading.push(readFileSync(file));
    reading.end();
    expect(reading.feed.malformedCount).toBe(0);
    const lines = reading.conversations().flatMap(({ utterances }) => utterances);
    const told = lines.map(({ words }) => words).filter((words) => /^(MPA|TERMINATE)/.test(words));
    expect([...new Set(told)].sort()).toEqual([...expected.words].sort());
    const tree = await tsharkTree();
    const fields = ['iwarp_mpa.key.req', 'iwarp_mpa.key.rep', '_ws.malformed', 'tcp.analysis.retransmission'];
    const rows = (await fieldsOf(tree, file, fields)).filter(([, , , isAgain]) => isAgain === '');
    const filled = (column: number): number => rows.filter((row) => row[column] !== '').length;
    const { unansweredCount } = expected;
    expect({ unanswered: filled(0) - filled(1), malformed: filled(2) }).toEqual({
      ...{ unanswered: unansweredCount, malformed: 0 },
    });
    expect(filled(0)).toBe(told.filter((words) => words.startsWith(requests)).length);
    return told.join('; ');
  };
}
