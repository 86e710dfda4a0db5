/**
 * Conclusions of `hca move`'s comparison for newcomers, in a few sentences with figures of this run. A sentence about a
 * path that did not run is omitted.
 */

import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import type { CompareNetwork, ComparePath } from '../../experiments/workloads/index.ts';
import { countText, rateText, timeText } from '../../explain/text/format.ts';
import type { HostSpent } from '../../machine/index.ts';

/** Numbers with as many digits as a sentence needs. */
const figure = (value: number): string =>
  value >= 100 ? countText(value) : String(Number(value.toFixed(value >= 10 ? 1 : 2)));

const sumOf = ({ hosts }: CompareRow, pick: (spent: HostSpent) => number): number =>
  pick(hosts[0]) + pick(hosts[1]);

/** Cycles of both hosts for each byte moved. */
const perByte = (row: CompareRow, pick: (spent: HostSpent) => number): number =>
  row.totalBytes === 0 ? 0 : sumOf(row, pick) / row.totalBytes;

const times = (count: number, what: string): string =>
  `${figure(count)} ${what}${figure(count) === '1' ? '' : 's'}`;

/**
 * @param network that of the machine's HCAs
 * @returns sentences without leading numbers
 */
export function takeaways(rows: readonly CompareRow[], network: CompareNetwork): string[] {
  const rowOf = (path: ComparePath): CompareRow | undefined => rows.find((row) => row.path === path);
  const [pio, sockets, send] = [rowOf('pio'), rowOf('sockets'), rowOf('send')];
  const [write, read] = [rowOf('write'), rowOf('read')];
  const sentences: string[] = [];
  if (sockets !== undefined && write !== undefined) {
    sentences.push(zeroCopy(sockets, write), kernelBypass(sockets, write));
    if (read !== undefined) sentences.push(oneSided(sockets, write, read));
    if (send !== undefined && read !== undefined)
      sentences.push(latency(sockets, send, write, read, network));
  }
  if (pio !== undefined && write !== undefined) sentences.push(byProcessor(pio, write));
  return sentences;
}

function zeroCopy(sockets: CompareRow, write: CompareRow): string {
  const copied = (row: CompareRow): number => perByte(row, ({ copiedBytes }) => copiedBytes);
  const bus = (row: CompareRow): number => perByte(row, ({ memory }) => memory.total);
  return (
    `Zero copy: by sockets the processors copy each byte ${times(copied(sockets), 'time')} between programs and kernels, by RDMA WRITE ` +
    `${times(copied(write), 'time')}; ${figure(bus(sockets))} bytes cross the memory buses for each byte moved, against ${figure(bus(write))}.`
  );
}

function kernelBypass(sockets: CompareRow, write: CompareRow): string {
  const calls = (row: CompareRow): number => sumOf(row, ({ systemCalls }) => systemCalls);
  const interrupts = (row: CompareRow): number => sumOf(row, (spent) => spent.interrupts);
  return (
    `Kernel bypass: the same bytes take ${times(calls(sockets), 'system call')} and ${times(interrupts(sockets), 'interrupt')} by sockets, ` +
    `${calls(write)} and ${interrupts(write)} by RDMA WRITE: the program rings the doorbell itself.`
  );
}

function oneSided(sockets: CompareRow, write: CompareRow, read: CompareRow): string {
  const cycles = (row: CompareRow): number => perByte(row, ({ cyclesTotal }) => cyclesTotal);
  const passive = write.hosts[1].cyclesTotal + read.hosts[0].cyclesTotal;
  return (
    `One side works: a byte costs ${figure(cycles(sockets))} processor cycles of both hosts by sockets, ${figure(cycles(write))} by RDMA WRITE, ` +
    `and the other side of WRITE and READ ${passive === 0 ? 'none' : figure(passive)}.`
  );
}

/** Both are timed until the completion at the requesting host; over iWARP, WRITE until that of a READ after it. */
const readIsFasterOverIwarp =
  ' WRITE is behind READ because a completed WRITE may still be on its way over iWARP: it is timed until a READ of no bytes after it is answered.';
const readIsFaster =
  " WRITE is behind READ because both are timed until their completion: WRITE's bytes are not inline in the request, so the card reads them from memory before it sends them, and it waits for the ACK.";

function latency(
  sockets: CompareRow,
  send: CompareRow,
  write: CompareRow,
  read: CompareRow,
  network: CompareNetwork,
): string {
  const why = network === 'iwarp' ? readIsFasterOverIwarp : readIsFaster;
  return (
    `Latency of one message: ${timeText(sockets.latencyPs)} by sockets, ${timeText(send.latencyPs)} by SEND, ` +
    `${timeText(write.latencyPs)} by RDMA WRITE, ${timeText(read.latencyPs)} by RDMA READ.${read.latencyPs < write.latencyPs ? why : ''}`
  );
}

function byProcessor(pio: CompareRow, write: CompareRow): string {
  return (
    `Without DMA the processor carries every word: programmed I/O reaches ${rateText(pio.bytesPerSecond)} at ` +
    `${figure(perByte(pio, ({ cyclesTotal }) => cyclesTotal))} cycles a byte, RDMA WRITE ${rateText(write.bytesPerSecond)}.`
  );
}

/** The sentences, numbered, for the terminal. */
export const takeawayText = (rows: readonly CompareRow[], network: CompareNetwork): string =>
  takeaways(rows, network)
    .map((sentence, at) => `${at + 1}. ${sentence}`)
    .join('\n');
