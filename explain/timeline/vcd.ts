/**
 * Exports a timeline as a value change dump (IEEE 1364-2005, clause 18) for waveform viewers: states of blocks and
 * cores, levels of FIFOs and queues, whether a direction of a link is busy, the last value of each register of BAR0,
 * and clocks.
 *
 *     state of a block or core   a number of 8 bits; a comment in the file names the numbers: 0 idle, 1 busy, 2 … stalled for a reason
 *     level, register            32 bits
 *     link, clock                1 bit; clocks only if the time range has at most {@link edgesMax} edges of all of them
 */

import { type Timeline, type TimelineRecord, timelineKinds } from '../../machine/timeline/index.ts';
import type { ExactPs } from '../../sim/index.ts';
import { registerName } from './labels.ts';

/** A clock of a process. */
export interface VcdClock {
  readonly process: string;
  readonly name: string;
  readonly frequencyMHz: number;
}

/** Bits of a signal that holds a number and not a state. */
const wordBits = 32;

/** Greatest number of clock edges in a file: more would hide everything else. */
export const edgesMax = 200_000;

interface Change {
  readonly atPs: bigint;
  readonly value: number;
}

/** One signal: its name in its process, its width in bits, the names of its numbers, and its changes in any order. */
interface Signal {
  readonly process: string;
  readonly name: string;
  readonly bits: number;
  readonly names: readonly string[];
  readonly changes: Change[];
}

export interface VcdFile {
  readonly text: string;
  readonly signalCount: number;
  readonly changeCount: number;
  /** False if the time range has too many edges. */
  readonly hasClocks: boolean;
}

/** @param timeline whose categories `blocks`, `levels`, `cores`, `tlps`, `packets` and `registers` are shown */
export function vcdOf(timeline: Timeline, clocks: readonly VcdClock[]): VcdFile {
  const signals = new Map<string, Signal>();
  let [firstPs, lastPs] = [0n, 0n];
  for (const record of timeline.records()) {
    const atPs = BigInt(record.atPs);
    const endPs = atPs + BigInt(record.durationPs);
    if (signals.size === 0) firstPs = atPs;
    if (endPs > lastPs) lastPs = endPs;
    addRecord(signals, record, atPs, endPs);
  }
  const spanPs = Number(lastPs - firstPs);
  const edgeCount = clocks.reduce((sum, { frequencyMHz }) => sum + (2 * spanPs * frequencyMHz) / 1e6, 0);
  const hasClocks = signals.size > 0 && edgeCount <= edgesMax;
  const all = [
    ...signals.values(),
    ...(hasClocks ? clocks.map((clock) => clockSignal(clock, firstPs, lastPs)) : []),
  ];
  const changes = orderedChanges(all);
  const text = `${headerOf(all)}${bodyOf(all, changes)}`;
  return { text, signalCount: all.length, changeCount: changes.length, hasClocks };
}

function addRecord(signals: Map<string, Signal>, record: TimelineRecord, atPs: bigint, endPs: bigint): void {
  const { kind, track, values } = record;
  const signalOf = (name: string, bits: number, names: readonly string[] = []): Signal => {
    const key = `${track.process} ${name}`;
    const signal = signals.get(key) ?? { process: track.process, name, bits, names, changes: [] };
    signals.set(key, signal);
    return signal;
  };
  const during = (signal: Signal, value: number): void =>
    void signal.changes.push({ atPs, value }, { atPs: endPs, value: 0 });
  const { category } = timelineKinds[kind];
  if (category === 'blocks') {
    const names = ['idle', 'busy', ...(track.names ?? []).map((reason) => `stalled: ${reason}`)];
    during(signalOf(`block ${track.name}`, 8, names), kind === 'blockBusy' ? 1 : 2 + values[0]!);
  } else if (kind === 'core') {
    during(signalOf(track.name, 8, ['idle', ...track.names!]), 1 + values[0]!);
  } else if (kind === 'level') {
    signalOf(track.name, wordBits).changes.push({ atPs, value: values[0]! });
  } else if (category === 'tlps' || category === 'packets') {
    during(signalOf(`${track.group} ${track.name}`, 1), 1);
  } else if (category === 'registers') {
    signalOf(`register ${registerName(track.process, values[1]!)}`, wordBits).changes.push({
      atPs,
      value: values[2]!,
    });
  }
}

function clockSignal({ process, name, frequencyMHz }: VcdClock, firstPs: bigint, lastPs: bigint): Signal {
  const changes: Change[] = [];
  const halfEdges = BigInt(2 * frequencyMHz);
  for (let half = (firstPs * halfEdges) / 1_000_000n; ; half++) {
    const atPs = (half * 1_000_000n) / halfEdges;
    if (atPs > lastPs) break;
    changes.push({ atPs, value: half % 2n === 0n ? 1 : 0 });
  }
  return { process, name: `clock ${name}`, bits: 1, names: [], changes };
}

/**
 * Changes of all signals by time, without repeated values; several changes at one instant keep only the last. For
 * states, an end precedes a begin.
 */
function orderedChanges(signals: readonly Signal[]): { atPs: bigint; signal: number; value: number }[] {
  const ordered: { atPs: bigint; signal: number; value: number }[] = [];
  signals.forEach(({ bits, changes }, signal) => {
    const isWord = bits === wordBits;
    const byTime = changes.toSorted((left, right) =>
      left.atPs === right.atPs ? (isWord ? 0 : left.value - right.value) : left.atPs < right.atPs ? -1 : 1,
    );
    let last = isWord ? Number.NaN : 0;
    byTime.forEach(({ atPs, value }, place) => {
      if (byTime[place + 1]?.atPs === atPs || value === last) return;
      last = value;
      ordered.push({ atPs, signal, value });
    });
  });
  return ordered.sort((left, right) =>
    left.atPs === right.atPs ? left.signal - right.signal : left.atPs < right.atPs ? -1 : 1,
  );
}

/** Identifier codes: printable characters from ! on. */
function codeOf(number: number): string {
  const base = 94;
  const own = String.fromCharCode(33 + (number % base));
  return number < base ? own : codeOf(Math.floor(number / base) - 1) + own;
}

/** A name without the characters that separate words in the file. */
const wordOf = (name: string): string => name.replaceAll(/[^\w.]+/g, '_');

function headerOf(signals: readonly Signal[]): string {
  const lines = ['$version hca-emulator $end', '$timescale 1 ps $end', '$scope module machine $end'];
  for (const process of new Set(signals.map((signal) => signal.process))) {
    lines.push(`$scope module ${process} $end`);
    signals.forEach((signal, number) => {
      if (signal.process !== process) return;
      lines.push(
        `$var ${signal.bits === 1 ? 'wire' : 'reg'} ${signal.bits} ${codeOf(number)} ${wordOf(signal.name)} $end`,
      );
    });
    lines.push('$upscope $end');
  }
  const tables = signals.flatMap(({ process, name, names }) =>
    names.length === 0
      ? []
      : [
          `$comment ${process}.${wordOf(name)}: ${names.map((text, number) => `${number} ${text}`).join(', ')} $end`,
        ],
  );
  return `${[...lines, '$upscope $end', ...tables, '$enddefinitions $end'].join('\n')}\n`;
}

function bodyOf(
  signals: readonly Signal[],
  changes: readonly { readonly atPs: ExactPs; readonly signal: number; readonly value: number }[],
): string {
  const valueText = (signal: number, value: number): string =>
    signals[signal]!.bits === 1 ? `${value}${codeOf(signal)}` : `b${value.toString(2)} ${codeOf(signal)}`;
  const start = changes[0]?.atPs ?? 0;
  // Levels and registers are unknown before their first change; states are known, because intervals that extend into
  // the time range are included.
  const initial = signals.map(({ bits }, signal) =>
    bits === wordBits ? `bx ${codeOf(signal)}` : valueText(signal, 0),
  );
  const lines = [`#${start}`, '$dumpvars', ...initial, '$end'];
  let atPs: ExactPs = start;
  for (const change of changes) {
    if (change.atPs !== atPs) lines.push(`#${change.atPs}`);
    atPs = change.atPs;
    lines.push(valueText(change.signal, change.value));
  }
  return `${lines.join('\n')}\n`;
}
