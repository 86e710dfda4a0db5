/**
 * Finds the records of one operation: its post, the doorbell with which the device received it, its time on the device,
 * its packets on the cable, and the poll of its completion. Matches queue pair and WQE counter, and for packets
 * destination and PSN.
 */
import { mask24 } from '../../base/index.ts';
import {
  flushedTrack,
  packetLost,
  portOfTrack,
  type Timeline,
  type TimelineRecord,
} from '../../machine/timeline/index.ts';
import { farEndOf, farPortsOf, isSwitch, type Topology } from '../../machine/topology/index.ts';
import { opcodeRow } from '../../wire/index.ts';
import { type Way, Ways } from './ways.ts';

/** One operation of a node, as far as the timeline has it. */
export interface OperationFlow {
  readonly node: number;
  /** Number of the post, among those of its node from power-on; -1 if the post is not in the timeline. */
  readonly ordinal: number;
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly opcode: number;
  /** Indexes into the timeline, by time. */
  readonly records: readonly number[];
}

const nodeOf = ({ track }: TimelineRecord): number => Number(track.process.replace(/^\D+/, ''));
const sideOf = ({ track }: TimelineRecord): string => track.process.replace(/\d+$/, '');

class OpenFlow implements OperationFlow {
  readonly node: number;
  readonly ordinal: number;
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly opcode: number;
  readonly records: number[] = [];
  hasDoorbell = false;
  isOver = false;
  isTaken = false;

  constructor(node: number, [qpn, wqeCounter, opcode]: readonly number[], ordinal: number) {
    this.node = node;
    this.qpn = qpn!;
    this.wqeCounter = wqeCounter!;
    this.opcode = opcode!;
    this.ordinal = ordinal;
  }
}

/** Returns the list of a key; creates it if it does not exist. */
function listIn<Value>(lists: Map<string, Value[]>, key: string): Value[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

/** All operations of a timeline, in the order of their posts. */
export function operationFlows(timeline: Timeline): readonly OperationFlow[] {
  const flows: OpenFlow[] = [];
  const byRequest = new Map<string, OpenFlow[]>();
  const openOf = (record: TimelineRecord, isOpen: (flow: OpenFlow) => boolean): OpenFlow | undefined =>
    byRequest.get(`${nodeOf(record)} ${record.values[0]} ${record.values[1]}`)?.find(isOpen);
  const begin = (record: TimelineRecord, ordinal: number): OpenFlow => {
    const flow = new OpenFlow(nodeOf(record), record.values, ordinal);
    const key = `${flow.node} ${flow.qpn} ${flow.wqeCounter}`;
    listIn(byRequest, key).push(flow);
    flows.push(flow);
    return flow;
  };
  const waiting = new Map<string, OpenFlow[]>();
  // A life record begins at the instant of its post, and may precede it in the list.
  for (let index = 0; index < timeline.count; index++) {
    const record = timeline.record(index);
    if (record.kind === 'posted') begin(record, record.values[3]!).records.push(index);
  }
  let nextFlow = 0;
  for (let index = 0; index < timeline.count; index++) {
    const record = timeline.record(index);
    const { kind, values } = record;
    if (kind === 'posted') {
      const flow = flows[nextFlow++]!;
      const key = `${flow.node} ${flow.qpn}`;
      listIn(waiting, key).push(flow);
    } else if (kind === 'doorbell' || kind === 'blueFlame') {
      const key = `${nodeOf(record)} ${values[0]}`;
      for (const flow of waiting.get(key) ?? []) flow.records.push(index);
      waiting.delete(key);
    } else if (kind === 'failed' && record.track.name === flushedTrack) {
      // The device does not number a request that it flushed before its start: its post and its completion show that it
      // was flushed.
    } else if (kind === 'operation' || kind === 'failed') {
      const flow = openOf(record, ({ isOver }) => !isOver) ?? begin(record, -1);
      flow.isOver = true;
      flow.records.push(index);
    } else if (kind === 'taken') {
      const flow = openOf(record, ({ isTaken }) => !isTaken) ?? begin(record, -1);
      flow.isTaken = true;
      flow.records.push(index);
    }
  }
  addPackets(timeline, flows);
  for (const flow of flows) flow.records.sort((left, right) => left - right);
  return flows;
}

/** An operation's packets: requests to the destination QP, responses with its PSNs. */
interface Span {
  readonly flow: OpenFlow;
  readonly fromPs: number | bigint;
  readonly firstPsn: number;
  readonly psnCount: number;
  /** Host that it was sent to; -1 if unknown. */
  readonly destination: number;
}

/** Spans by the QP that their packets are sent to, the operation started last first. */
function spansOf(timeline: Timeline, flows: readonly OpenFlow[]): ReadonlyMap<string, readonly Span[]> {
  const spans = new Map<string, Span[]>();
  for (const flow of flows)
    for (const index of flow.records) {
      const { kind, atPs, values } = timeline.record(index);
      if (kind !== 'operation') continue;
      const [, , , , , firstPsn = 0, psnCount = 0, destinationQpn, destination = -1] = values;
      const span = { flow, fromPs: atPs, firstPsn, psnCount, destination };
      listIn(spans, `to ${destinationQpn}`).push(span);
      listIn(spans, `back to ${flow.node} ${flow.qpn}`).push(span);
    }
  for (const list of spans.values())
    list.sort((left, right) => (left.fromPs < right.fromPs ? 1 : left.fromPs > right.fromPs ? -1 : 0));
  return spans;
}

const hasPsn = ({ fromPs, firstPsn, psnCount }: Span, atPs: number | bigint, psn: number): boolean =>
  atPs >= fromPs && ((psn - firstPsn) & mask24) < psnCount;

/**
 * Requests go to the QP that the operation names; responses return with its PSNs. If several operations match, the
 * one started last is meant: an unreliable request is over when it is sent, and a packet may arrive a second time after its
 * request has ended. QPs of several hosts have the same numbers: over switches, the way of a packet shows its sender;
 * else a request more likely belongs to a host at the other end of a link than to the own port. Departures from
 * switches belong to the operation, too, and packets that a switch dropped or that never reached it.
 */
function addPackets(timeline: Timeline, flows: readonly OpenFlow[]): void {
  const spans = spansOf(timeline, flows);
  const ways = new Ways(timeline);
  for (let index = 0; index < timeline.count; index++) {
    const record = timeline.record(index);
    const missing = missingAtSwitch(record);
    if (missing !== undefined) flowOfMissing(timeline.topology, spans, missing)?.records.push(index);
    if (record.kind !== 'packet' || sideOf(record) !== 'hca') continue;
    const way = ways.of(record);
    flowOfArrived(timeline.topology, spans, record, way)?.records.push(index, ...(way?.places ?? []));
  }
}

/** The operation of a packet that arrived at a host. */
function flowOfArrived(
  topology: Topology,
  spans: ReadonlyMap<string, readonly Span[]>,
  record: TimelineRecord,
  way: Way | undefined,
): OpenFlow | undefined {
  const [opcode = 0, destinationQpn, psn = 0] = record.values;
  // A packet is recorded on arrival.
  const here = nodeOf(record);
  const isRequest = opcodeRow(opcode)?.isRequest ?? false;
  // Both ends of the connection, of which the operation's host is one.
  const isBetween = ({ flow, destination }: Span): boolean => {
    if (way === undefined) return true;
    const [requester, responder] = isRequest ? [way.source.node, here] : [here, way.source.node];
    return flow.node === requester && (destination === -1 || destination === responder);
  };
  const key = isRequest ? `to ${destinationQpn}` : `back to ${here} ${destinationQpn}`;
  const found = (spans.get(key) ?? []).filter((span) => hasPsn(span, record.atPs, psn) && isBetween(span));
  const far = farPortsOf(topology, { node: here, port: portOfTrack(record.track.name) });
  const best =
    found.find(({ flow }) => flow.node !== here && far.some(({ node }) => flow.node === node)) ??
    found.find(({ flow }) => flow.node === here);
  return best?.flow;
}

/** A packet that did not pass a switch: dropped there, or lost on the cable to it. */
interface MissingPacket {
  readonly atPs: number | bigint;
  readonly node: number;
  /** Port of the switch that it came to. */
  readonly port: number;
  readonly opcode: number;
  readonly destinationQpn: number;
  readonly psn: number;
}

/** Packet that a switch dropped or never received, according to the record; undefined for other records. */
function missingAtSwitch(record: TimelineRecord): MissingPacket | undefined {
  const { kind, values, atPs, track } = record;
  const node = nodeOf(record);
  if (kind === 'switchDrop') {
    const [, port = 0, , opcode = 0, destinationQpn = 0, psn = 0] = values;
    return { atPs, node, port, opcode, destinationQpn, psn };
  }
  const [opcode = 0, destinationQpn = 0, psn = 0, , flags = 0] = values;
  if (kind !== 'packet' || sideOf(record) !== 'switch' || (flags & packetLost) === 0) return undefined;
  return { atPs, node, port: portOfTrack(track.name), opcode, destinationQpn, psn };
}

/** The operation of a packet that did not pass a switch: its sender is known at the first switch. */
function flowOfMissing(
  topology: Topology,
  spans: ReadonlyMap<string, readonly Span[]>,
  { atPs, node, port, opcode, destinationQpn, psn }: MissingPacket,
): OpenFlow | undefined {
  const sender = farEndOf(topology, { node, port });
  if (sender === undefined) return undefined;
  const isRequest = opcodeRow(opcode)?.isRequest === true;
  const isFrom = ({ flow, destination }: Span): boolean =>
    isSwitch(topology, sender.node) ||
    (isRequest ? flow.node === sender.node : destination === -1 || destination === sender.node);
  const lists = isRequest
    ? [spans.get(`to ${destinationQpn}`) ?? []]
    : [...spans].flatMap(([key, list]) => (isBackTo(key, destinationQpn) ? [list] : []));
  return lists.flat().find((span) => hasPsn(span, atPs, psn) && isFrom(span))?.flow;
}

const isBackTo = (key: string, qpn: number): boolean => key.startsWith('back to ') && key.endsWith(` ${qpn}`);
