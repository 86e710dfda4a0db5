/** The timeline of a run as files: a Perfetto trace, a value change dump. */

import { timeText } from '../../explain/text/format.ts';
import {
  edgesMax,
  operationFlows,
  perfettoChunks,
  type VcdClock,
  vcdOf,
} from '../../explain/timeline/index.ts';
import { traceFileOf } from '../../machine/analysis/index.ts';
import type { Machine } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { DroppedRecords, Timeline, TimelineOptions } from '../../machine/timeline/index.ts';
import { writeFileAtomically } from '../../runtime/output-files.ts';

/** Operations by number, from 0 in the order in which host 0 posts them. */
export interface OperationRange {
  readonly first: number;
  readonly last: number;
}

/** The records to collect and the files to write: plain data, which workers receive. */
export interface TimelineOrder {
  readonly options: TimelineOptions;
  readonly timeline?: string;
  readonly vcd?: string;
  readonly operations?: OperationRange;
}

/** The files written. */
export interface TimelineWritten {
  readonly files: readonly string[];
  readonly records: number;
  readonly processes: readonly DroppedRecords[];
  /** Remarks for the reader. */
  readonly notes: readonly string[];
}

/** The same for one of several rows, with its name in the file names. */
export const orderOfRow = (order: TimelineOrder, rowName: string): TimelineOrder => ({
  ...order,
  ...(order.timeline === undefined ? {} : { timeline: traceFileOf(order.timeline, rowName) }),
  ...(order.vcd === undefined ? {} : { vcd: traceFileOf(order.vcd, rowName) }),
});

/** A machine that has run: simulated hosts or served devices. */
export interface Recorded {
  readonly timeline: Timeline;
  readonly clocks: readonly VcdClock[];
  /** Simulated time that it has reached. */
  readonly elapsedPs: number;
}

/** Writes the files of a machine that has run. */
export const writeTimeline = async (machine: Machine, order: TimelineOrder): Promise<TimelineWritten> =>
  writeRecorded(
    { timeline: await machine.timeline(), clocks: clocksOf(machine), elapsedPs: machine.nowPs },
    order,
  );

export function writeRecorded(
  { timeline: whole, clocks, elapsedPs }: Recorded,
  order: TimelineOrder,
): TimelineWritten {
  const notes: string[] = [];
  const shown = order.operations === undefined ? whole : timeOfOperations(whole, order.operations, notes);
  const files: string[] = [];
  if (order.timeline !== undefined) {
    writeFileAtomically(order.timeline, Buffer.concat(perfettoChunks(shown)));
    files.push(order.timeline);
  }
  if (order.vcd !== undefined) {
    const { text, changeCount, hasClocks } = vcdOf(shown, clocks);
    writeFileAtomically(order.vcd, text);
    files.push(order.vcd);
    if (changeCount === 0) notes.push(`${order.vcd} has no signal: none of the categories shown has one.`);
    else if (!hasClocks)
      notes.push(
        `${order.vcd} leaves the clocks out: more than ${edgesMax} edges. A shorter --timeline-window has them.`,
      );
  }
  if (shown.count === 0)
    notes.push(`Nothing was recorded in this window: the machine ran from 0 to ${timeText(elapsedPs)}.`);
  return { files, records: shown.count, processes: whole.dropped, notes };
}

/** The part of a timeline that contains these operations. */
function timeOfOperations(timeline: Timeline, { first, last }: OperationRange, notes: string[]): Timeline {
  const flows = operationFlows(timeline).filter(
    ({ node, ordinal }) => node === 0 && ordinal >= first && ordinal <= last,
  );
  const places = flows.flatMap(({ records }) => records);
  const range = first === last ? `Operation ${first} is` : `Operations ${first} to ${last} are`;
  if (places.length === 0) {
    notes.push(`${range} not among the records: host 0 posted fewer, or they found the stream full.`);
    return timeline.between(0, 0);
  }
  if (flows.length <= last - first)
    notes.push(`${range} not all among the records: ${flows.length} were found.`);
  // The record that begins last is not the one that ends last: an operation without a CQE lasts longer than its last
  // packet.
  let [fromPs, toPs] = [BigInt(timeline.record(places[0]!).atPs), 0n];
  for (const place of places) {
    const record = timeline.record(place);
    const atPs = BigInt(record.atPs);
    const endPs = atPs + BigInt(record.durationPs);
    if (atPs < fromPs) fromPs = atPs;
    if (endPs > toPs) toPs = endPs;
  }
  return timeline.between(fromPs, toPs + 1n);
}

const clocksOf = ({ config, nodeCount }: Machine): readonly VcdClock[] =>
  Array.from({ length: nodeCount }, (_, node) => hostClocks(config, node)).flat();

/** Clocks of a simulated host and of the device in its slot. */
export const hostClocks = (config: MachineConfig, node: number): VcdClock[] => [
  { process: `host${node}`, name: 'cores', frequencyMHz: config.host.core.clockMHz },
  deviceClock(config, node, config.machine.adapter),
];

export function deviceClock({ nic, hca }: MachineConfig, node: number, adapter: 'hca' | 'nic'): VcdClock {
  const frequencyMHz = adapter === 'nic' ? nic.coreClockMHz : hca.coreClockMHz;
  return { process: `${adapter}${node}`, name: 'core', frequencyMHz };
}
