/** Counters of a bandwidth test, and its duration. */

import type { ReportFigures } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { isReliable, type PerfArgs } from '../workloads/index.ts';

/** The core of one program while it measured: cycles by cause, idle ones left out. */
export interface ProgramCore {
  readonly node: number;
  readonly cycles: Readonly<Record<string, number>>;
}

export interface Measured {
  readonly config: MachineConfig;
  readonly args: PerfArgs;
  /** From the first post to the last completion. */
  readonly durationPs: number;
  readonly messagesPerSecond: number;
  /** Numbered by side, as the nodes of cores are: 0 is the client's, 1 the server's. */
  readonly figures: ReportFigures;
  /** Number of the host of each place in the figures. */
  readonly hosts: readonly number[];
  readonly cores: readonly ProgramCore[];
  /** Of each HCA from its start on, a warm-up included. */
  readonly mttLines: readonly MttLines[];
}

/** Lines of an MTT cache that were filled, and that were given up for others. */
export interface MttLines {
  readonly filled: number;
  readonly evicted: number;
}

export const mttLinesOf = ({ nodes }: ReportFigures): readonly MttLines[] =>
  nodes.map(({ hca }) => {
    const { misses = 0, evictions = 0 } = hca.caches['mtt'] ?? {};
    return { filled: misses, evicted: evictions };
  });

/** A parameter to change, and the direction that makes a run faster; an option of perf begins with `--`. */
export interface Turn {
  readonly what: string;
  readonly towards: 'more' | 'less';
  /** Parameters that must change with it; left out for none. */
  readonly along?: readonly Along[];
  /** How far it has to be turned, as a sentence; left out where each step helps. */
  readonly because?: string;
}

/** Without this, turning the other does nothing, or the rate falls. */
export interface Along {
  readonly what: string;
  readonly towards: 'more' | 'less';
  /** A sentence. */
  readonly because: string;
}

/**
 * What can bind. A server works on one thing after the other, and its share is the time it is at work; a window lets so many things
 * be under way, and its share is the time it is full.
 */
export interface Resource {
  readonly name: string;
  readonly kind: 'server' | 'window';
  readonly share: number;
  readonly turn: readonly Turn[];
}

/** The host of a side, as resources name it. */
export const hostText = ({ hosts }: Measured, side: number): string => `host ${hosts[side]}`;

export const more = (...names: readonly string[]): Turn[] => names.map((what) => ({ what, towards: 'more' }));
export const less = (...names: readonly string[]): Turn[] => names.map((what) => ({ what, towards: 'less' }));

/** Share of the measured time of so many cycles of the HCA. */
export const hcaShare = ({ config, durationPs }: Measured, cycles: number): number =>
  (cycles * 1e6) / config.hca.coreClockMHz / durationPs;

/** Lengths of messages, and which share of them has each. */
export function lengthsOf({
  sizeBytes,
  sizes = [{ bytes: sizeBytes, weight: 1 }],
}: PerfArgs): readonly { readonly bytes: number; readonly share: number }[] {
  const total = sizes.reduce((sum, { weight }) => sum + weight, 0);
  return sizes.map(({ bytes, weight }) => ({ bytes, share: weight / total }));
}

/** Of the path: without one of its own, a test has the largest there is. */
export const mtuBytesOf = ({ mtuBytes }: PerfArgs): number => (mtuBytes === 0 ? 4096 : mtuBytes);

/** Whether a message is a request with its payload, and not a READ or an atomic. */
export const isRequest = ({ verb }: PerfArgs): boolean => verb === 'write' || verb === 'send';

/** The parameter by which QPs of a test keep their distance from one message to the next. */
export function intervalOf(
  args: PerfArgs,
): 'sameQpIntervalCycles' | 'readIntervalCycles' | 'unreliableIntervalCycles' {
  if (args.kv !== undefined || !isReliable(args.connection)) return 'unreliableIntervalCycles';
  return isRequest(args) ? 'sameQpIntervalCycles' : 'readIntervalCycles';
}

/** The parameter by which a QP pauses behind a message, as the transmitter has it; atomics have none. */
export function gapOf({
  verb,
  connection,
}: PerfArgs): 'writeGapCycles' | 'sendGapCycles' | 'readGapCycles' | undefined {
  if (verb === 'atomic') return undefined;
  if (verb === 'read') return 'readGapCycles';
  return verb === 'send' && isReliable(connection) ? 'sendGapCycles' : 'writeGapCycles';
}

/** Whether payload of requests is read from memory: it is in the request, or comes with the answer, otherwise. */
export const gathers = (args: PerfArgs): boolean =>
  isRequest(args) && lengthsOf(args).some(({ bytes }) => bytes > args.inlineBytes);

/** Messages of all QPs together, in each direction that has some. */
export const messagesOf = ({ durationPs, messagesPerSecond }: Measured): number =>
  (messagesPerSecond * durationPs) / 1e12;

export const isEthernet = ({ hca }: Measured['config']): boolean => hca.capability.linkLayer === 'ethernet';
