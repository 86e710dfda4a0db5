/**
 * Explains one operation step by step: the stages that tile its time from the post until the program has the
 * completion, and the events during each. The times of the steps add up to the operation's latency exactly: each begins
 * where the previous one ended.
 */

import {
  packetCorrupted,
  packetLost,
  packetRetransmitted,
  type Timeline,
  type TimelineCategory,
  type TimelineRecord,
} from '../../machine/timeline/index.ts';
import type { ExactPs } from '../../sim/index.ts';
import { cutTo, type FabricPart, partsOnFabric } from './fabric-parts.ts';
import { type OperationFlow, operationFlows } from './flows.ts';
import { argumentsOf, labelOf } from './labels.ts';

/** An event during a step. */
interface ExplainedEvent {
  /** Time after the post. */
  readonly afterPs: number;
  readonly durationPs: number;
  /** Host or device, and the place within it. */
  readonly where: string;
  readonly text: string;
}

/** A part of a step. */
interface ExplainedPart {
  readonly where: string;
  readonly afterPs: number;
  readonly durationPs: number;
  readonly text: string;
}

interface ExplainedStep {
  /** A stage of the report's operations, or `taken`: from the departure of the CQE until software has polled it. */
  readonly stage: string;
  readonly afterPs: number;
  readonly durationPs: number;
  /** The awaited event, and the reason. */
  readonly text: string;
  /** Over switches, parts of the time on the fabric, which add up to the step: each hop, each cable, each wait. */
  readonly parts?: readonly ExplainedPart[];
  readonly events: readonly ExplainedEvent[];
}

/** Packets of an operation, requests and answers, that did not go through at once. */
export interface ExplainedLosses {
  /** Lost on a cable, or dropped by a switch. */
  readonly lost: number;
  /** Arrived, but corrupted: the receiver drops them. */
  readonly corrupted: number;
  /** Sent again. */
  readonly repeated: number;
}

export interface Explanation {
  /** The host that posted it. */
  readonly node: number;
  /** Number of the operation among the sends of its host, from 0. */
  readonly ordinal: number;
  readonly operation: string;
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly payloadBytes: number;
  /** Since power-on. */
  readonly postedPs: number;
  /** Sum of all steps. */
  readonly latencyPs: number;
  /** True without a CQE: it ends when the device has received its acknowledgement. */
  readonly isSilent: boolean;
  /** CQE syndrome of a failed operation, which has no stages. */
  readonly syndrome?: number;
  /** Other operations of both hosts that were under way: their DMA, TLPs and look-ups are among the events. */
  readonly others: number;
  /** Present if packets were lost or sent again: the time of a step is then that of all attempts together. */
  readonly losses?: ExplainedLosses;
  readonly steps: readonly ExplainedStep[];
}

const stageTexts: Readonly<Record<string, string>> = {
  doorbell:
    'The store that announces the request crosses PCIe; the device takes it, finds the QP and lets it wait for its turn. Until its WQE is asked for, nothing else of it is known there.',
  wqeFetch:
    'The WQE is read from the send queue in host memory. (One that came by BlueFlame, or with the WQE ahead of it, needs no read.)',
  scheduling:
    'The WQE is on chip and waits for the requester: its turn among the QPs, its context, a free record.',
  payloadRead:
    'The local key is checked and translated, and the payload is read by DMA from host memory into a packet slot. (Inline data is in the WQE.)',
  transmit:
    'Its packets are formed and wait for the packets ahead of them, for credits and for the cable, until the last one is handed over.',
  rateLimit: 'Congestion control held back packets of the QP: its rate did not allow them yet.',
  tcpWindow:
    'The memory of the card’s TCP for this connection was full of segments that the peer had not acknowledged.',
  framing:
    'The last segment is written as an FPDU: header, payload, markers and CRC. Then TCP has the message.',
  tcpSend:
    'The request waits in the card’s TCP for its windows, for the engine and for a place among the frames.',
  retransmission: 'No acknowledgement came for the segment of the request, and TCP sent it again.',
  placement:
    'The response is in order in the card’s TCP: its key is checked, and its payload leaves for memory.',
  ackTimeout: 'No answer came until the ACK time-out of the QP was over; then it was sent again.',
  rnrDelay:
    'The far end had no receive, or a page was not there: the delay that its RNR NAK named had to pass.',
  remote:
    'The packets cross the cable; the far device checks and carries them out; its answer comes back and is matched to the request.',
  completion:
    'The CQE is formed: the CQ’s context and the page of the entry are needed, and a place in the DMA write queue.',
  taken: 'The CQE crosses PCIe into host memory; software finds it there when it next polls, or is woken.',
  failed: 'It ended with an error completion: no stages are kept of it.',
};

/** Keys by which records are assigned to an operation. */
export const categoriesOfOperations: readonly TimelineCategory[] = ['operations', 'doorbells'];

const numberOf = (ps: ExactPs): number => Number(ps);
const endOf = ({ atPs, durationPs }: TimelineRecord): number => numberOf(atPs) + durationPs;

const isEnd = ({ kind }: TimelineRecord): boolean =>
  kind === 'operation' || kind === 'failed' || kind === 'taken';

/** The operation of a host with this number; undefined if the timeline lacks its post. */
export function operationOf(timeline: Timeline, ordinal: number, node = 0): OperationFlow | undefined {
  return operationFlows(timeline).find((flow) => flow.node === node && flow.ordinal === ordinal);
}

/**
 * From its post to its end.
 * @returns undefined if the timeline lacks its end
 */
export function timeOf(
  timeline: Timeline,
  flow: OperationFlow,
): { fromPs: number; toPs: number } | undefined {
  const records = flow.records.map((place) => timeline.record(place));
  const posted = records.find(({ kind }) => kind === 'posted');
  const ends = records.filter(isEnd);
  if (posted === undefined || ends.length === 0) return undefined;
  return { fromPs: numberOf(posted.atPs), toPs: Math.max(...ends.map(endOf)) };
}

/**
 * @param timeline with all categories for the time of the operation, and those of {@link categoriesOfOperations} also
 * for the time before it: otherwise earlier operations would not be recognised
 */
export function explained(timeline: Timeline, flow: OperationFlow): Explanation | undefined {
  const span = timeOf(timeline, flow);
  if (span === undefined) return undefined;
  const own = flow.records.map((place) => timeline.record(place));
  const executed = own.find(({ kind }) => kind === 'operation');
  const failure = own.find(({ kind }) => kind === 'failed');
  const bounds = boundsOf(timeline, flow, span, executed, failure);
  const others = operationFlows(timeline).filter(
    ({ node, ordinal }) => node !== flow.node || ordinal !== flow.ordinal,
  );
  const events = eventsOf(timeline, flow, others, span);
  const parts = partsOnFabric(timeline, flow);
  return {
    node: flow.node,
    ordinal: flow.ordinal,
    operation: labelOf(executed ?? failure!),
    qpn: flow.qpn,
    wqeCounter: flow.wqeCounter,
    payloadBytes: executed?.values[3] ?? 0,
    postedPs: span.fromPs,
    latencyPs: span.toPs - span.fromPs,
    isSilent: executed?.values[4] === 1,
    ...(failure === undefined ? {} : { syndrome: failure.values[3]! }),
    ...lossesOf(own),
    others: others.filter((other) => isUnderWay(timeline, other, span)).length,
    steps: bounds.map(({ stage, fromPs, toPs }, index) => ({
      stage,
      afterPs: fromPs - span.fromPs,
      durationPs: toPs - fromPs,
      text: stageTexts[stage] ?? '',
      ...partsWithin(parts, stage, fromPs, toPs, span.fromPs),
      // An event at the boundary of two steps belongs to the later one.
      events: events.filter(
        ({ afterPs }) =>
          afterPs >= fromPs - span.fromPs && (afterPs < toPs - span.fromPs || index === bounds.length - 1),
      ),
    })),
  };
}

/** @param own records of the operation */
function lossesOf(own: readonly TimelineRecord[]): { readonly losses?: ExplainedLosses } {
  const packets = own.filter(({ kind }) => kind === 'packet');
  const flagged = (records: readonly TimelineRecord[], flag: number): number =>
    records.filter(({ values: [, , , , flags = 0] }) => (flags & flag) !== 0).length;
  const dropped = own.filter(({ kind }) => kind === 'switchDrop').length;
  // On a fabric each cable has a record of a packet; the last one is at its destination.
  const arriving = packets.filter(({ track }) => !track.process.startsWith('switch'));
  const losses = {
    lost: flagged(packets, packetLost) + dropped,
    corrupted: flagged(packets, packetCorrupted),
    repeated: flagged(arriving, packetRetransmitted),
  };
  return Object.values(losses).some((count) => count > 0) ? { losses } : {};
}

/** The parts of a step that waits for the far device, cut to its time; none if the packets crossed no switch. */
function partsWithin(
  parts: readonly FabricPart[],
  stage: string,
  fromPs: number,
  toPs: number,
  sincePs: number,
): { readonly parts?: readonly ExplainedPart[] } {
  if (stage !== 'remote' || parts.length === 0) return {};
  const within = cutTo(parts, fromPs, toPs).filter((part) => part.toPs > part.fromPs);
  return {
    parts: within.map((part) => ({
      where: part.where,
      afterPs: part.fromPs - sincePs,
      durationPs: part.toPs - part.fromPs,
      text: part.text,
    })),
  };
}

interface Bounds {
  readonly stage: string;
  readonly fromPs: number;
  readonly toPs: number;
}

/** The steps, each beginning at the end of the previous one. */
function boundsOf(
  timeline: Timeline,
  flow: OperationFlow,
  { fromPs, toPs }: { readonly fromPs: number; readonly toPs: number },
  executed: TimelineRecord | undefined,
  failure: TimelineRecord | undefined,
): readonly Bounds[] {
  if (executed === undefined) {
    const failedPs = endOf(failure!);
    const failed = { stage: 'failed', fromPs, toPs: failedPs };
    return toPs > failedPs ? [failed, { stage: 'taken', fromPs: failedPs, toPs }] : [failed];
  }
  const stages = [...timeline.records()].filter(
    ({ kind, track, values, atPs }) =>
      kind === 'stage' &&
      track.process === executed.track.process &&
      values[1] === flow.qpn &&
      values[2] === flow.wqeCounter &&
      numberOf(atPs) >= numberOf(executed.atPs) &&
      numberOf(atPs) <= endOf(executed),
  );
  const bounds = stages.map((record) => ({
    stage: labelOf(record),
    fromPs: numberOf(record.atPs),
    toPs: endOf(record),
  }));
  return toPs > endOf(executed) ? [...bounds, { stage: 'taken', fromPs: endOf(executed), toPs }] : bounds;
}

/** Kinds that explain an operation's wait; states of blocks only if they stall. */
const shownKinds: ReadonlySet<string> = new Set([
  'posted',
  'doorbell',
  'blueFlame',
  'tlp',
  'packet',
  'dmaRead',
  'dmaWrite',
  'cacheHit',
  'cacheMiss',
  'accessRefused',
  'requestRefused',
  'switchDrop',
  'blockStalled',
  'interrupt',
  'interruptServed',
  'failed',
  'taken',
]);

/** Number of the host of a record's host, device or link. */
const hostNumberOf = ({ track }: TimelineRecord): number => Number(/\d+/.exec(track.process)?.[0] ?? -1);

/**
 * Returns a filter for records of the two ends of an operation; it accepts all records if no packet reached another
 * host.
 */
function endsFilter(
  timeline: Timeline,
  { node, records }: OperationFlow,
): (record: TimelineRecord) => boolean {
  const far = records
    .map((place) => timeline.record(place))
    .filter(({ kind, track }) => kind === 'packet' && !track.process.startsWith('switch'))
    .map(hostNumberOf)
    .filter((host) => host !== node);
  if (far.length === 0) return () => true;
  const ends = new Set([node, ...far]);
  return (record) => ends.has(hostNumberOf(record));
}

/** All records of the time at both ends, except those that belong only to another operation. */
function eventsOf(
  timeline: Timeline,
  flow: OperationFlow,
  others: readonly OperationFlow[],
  { fromPs, toPs }: { readonly fromPs: number; readonly toPs: number },
): readonly ExplainedEvent[] {
  const own = new Set(flow.records);
  const foreign = new Set(others.flatMap(({ records }) => records));
  const isAtEnd = endsFilter(timeline, flow);
  const events: ExplainedEvent[] = [];
  for (let place = 0; place < timeline.count; place++) {
    const record = timeline.record(place);
    const atPs = numberOf(record.atPs);
    // Packets at switches are parts of the steps, except its own that got no further.
    if (record.track.process.startsWith('switch') && !(own.has(place) && isMissing(record))) continue;
    if (!shownKinds.has(record.kind) || atPs < fromPs || atPs > toPs) continue;
    if ((foreign.has(place) || !isAtEnd(record)) && !own.has(place)) continue;
    events.push({
      afterPs: atPs - fromPs,
      durationPs: record.durationPs,
      where: `${record.track.process} ${record.track.name}`,
      text: eventText(record),
    });
  }
  return events;
}

/** Whether the record is of a packet that a switch dropped, or that never arrived there. */
const isMissing = ({ kind, values: [, , , , flags = 0] }: TimelineRecord): boolean =>
  kind === 'switchDrop' || (kind === 'packet' && (flags & packetLost) !== 0);

/** Numbers that add information to the name of a record. */
const shownValues: ReadonlySet<string> = new Set([
  'address',
  'lengthBytes',
  'payloadBytes',
  'psn',
  'vector',
  'entry',
  'tag',
]);

function eventText(record: TimelineRecord): string {
  const values = argumentsOf(record)
    .filter(([name, value]) => shownValues.has(name) && value !== 0)
    .map(([name, value]) => `${name} ${value}`);
  const { latencyPs } = record.track;
  const arrival =
    latencyPs === undefined ? [] : [`takes effect ${latencyPs / 1000} ns after its last byte left`];
  return [labelOf(record), ...values, ...arrival].join(', ');
}

/** Whether an operation overlaps a time range. An operation without an end lasts until the timeline's end. */
function isUnderWay(
  timeline: Timeline,
  { records }: OperationFlow,
  { fromPs, toPs }: { readonly fromPs: number; readonly toPs: number },
): boolean {
  const all = records.map((place) => timeline.record(place));
  const posted = all.find(({ kind }) => kind === 'posted') ?? all[0]!;
  const ends = all.filter(isEnd);
  const endPs = ends.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...ends.map(endOf));
  return numberOf(posted.atPs) < toPs && endPs > fromPs;
}
