/**
 * Explains failed requests: from an error completion back to the check that refused, with the found and the expected
 * value. Everything comes from records of the run. If a check leaves no record, only the completion is reported:
 * nothing is guessed.
 */
import { CqeSyndrome, frameOperation } from '../../abi/index.ts';
import { operationNames, portNames } from '../../hw/hca/index.ts';
import type { SwitchDrop } from '../../hw/switch/index.ts';
import {
  answerBadKey,
  answerBadPd,
  answerMissingRight,
  answerOutOfBounds,
  dropNames,
  noOpcode,
  packetCorrupted,
  packetLost,
  packetRetransmitted,
  portOfTrack,
  requestChecks,
  type Timeline,
  type TimelineRecord,
  translationsOf,
} from '../../machine/timeline/index.ts';
import { farEndOf, peersOf, portsOf, type Topology } from '../../machine/topology/index.ts';
import { frameProtocols, opcodeRow } from '../../wire/index.ts';

/** A step from a completion back to its cause. */
interface Reason {
  /** Device and block. */
  readonly where: string;
  readonly atPs: number;
  readonly text: string;
  /** The value that the check found, and the expected value. */
  readonly found?: string;
  readonly heldTo?: string;
  /** Clause of the rule. */
  readonly clause?: string;
}

export interface Failure {
  readonly node: number;
  readonly qpn: number;
  readonly queue: 'send' | 'receive';
  readonly wqeCounter: number;
  /** Name of the status in libibverbs. */
  readonly status: string;
  readonly atPs: number;
  /** The opcode of a send request, and its number among the posts of its host. */
  readonly operation?: string;
  readonly ordinal?: number;
  /** File and line that posted it, if recorded. */
  readonly postedAt?: string;
  /** The nearest step first. */
  readonly reasons: readonly Reason[];
}

/** Posted requests, signalled or not, whose end the run does not have. */
export interface Unfinished {
  readonly node: number;
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly operation: string;
  readonly ordinal: number;
  readonly postedPs: number;
  readonly postedAt?: string;
  readonly reasons: readonly Reason[];
}

/** Names of CQE syndromes, as in work completions. */
const statuses: Readonly<Record<number, string>> = {
  [CqeSyndrome.LOCAL_LENGTH_ERR]: 'LOC_LEN_ERR',
  [CqeSyndrome.LOCAL_QP_OP_ERR]: 'LOC_QP_OP_ERR',
  [CqeSyndrome.LOCAL_PROT_ERR]: 'LOC_PROT_ERR',
  [CqeSyndrome.WR_FLUSH_ERR]: 'WR_FLUSH_ERR',
  [CqeSyndrome.MW_BIND_ERR]: 'MW_BIND_ERR',
  [CqeSyndrome.BAD_RESP_ERR]: 'BAD_RESP_ERR',
  [CqeSyndrome.LOCAL_ACCESS_ERR]: 'LOC_ACCESS_ERR',
  [CqeSyndrome.REMOTE_INVAL_REQ_ERR]: 'REM_INV_REQ_ERR',
  [CqeSyndrome.REMOTE_ACCESS_ERR]: 'REM_ACCESS_ERR',
  [CqeSyndrome.REMOTE_OP_ERR]: 'REM_OP_ERR',
  [CqeSyndrome.TRANSPORT_RETRY_EXC_ERR]: 'RETRY_EXC_ERR',
  [CqeSyndrome.RNR_RETRY_EXC_ERR]: 'RNR_RETRY_EXC_ERR',
  [CqeSyndrome.REMOTE_ABORTED_ERR]: 'REM_ABORT_ERR',
};
/** The name of a work completion's status, by the syndrome of its CQE. */
export const statusOf = (syndrome: number): string => statuses[syndrome] ?? `syndrome ${hex(syndrome)}`;

/** Program line of each post: by node and number of the post. */
export type PostedAt = (node: number, ordinal: number) => string | undefined;

const hex = (value: number): string => `0x${value.toString(16)}`;
const nodeOf = ({ track }: TimelineRecord): number => Number(track.process.replace(/^\D+/, ''));
const rightNames = ['local read', 'local write', 'remote read', 'remote write', 'atomic'];
const rightsText = (rights: number): string =>
  rightNames.filter((_, bit) => ((rights >> bit) & 1) === 1).join(', ') || 'none';
const qpRightNames = ['remote read', 'remote write', 'atomic'];
const qpRightsText = (rights: number): string =>
  qpRightNames.filter((_, bit) => ((rights >> bit) & 1) === 1).join(', ') || 'none';

/** All records of a run, and the hosts and cables that it ran on. */
interface Run {
  readonly records: readonly TimelineRecord[];
  readonly topology: Topology;
}

const runOf = (timeline: Timeline): Run => ({
  records: [...timeline.records()],
  topology: timeline.topology,
});

/** Searches the records before one, backwards: a failure's cause is near, and runs have many of both. */
class Earlier {
  readonly records: readonly TimelineRecord[];
  readonly #run: Run;
  readonly #end: number;

  constructor(run: Run, end: number) {
    this.records = run.records;
    this.#run = run;
    this.#end = end;
  }

  until(end: number): Earlier {
    return new Earlier(this.#run, end);
  }

  /** Whether a host receives the packets that another host sends over a cable. */
  arePeers(node: number, other: number): boolean {
    return node !== other && peersOf(this.#run.topology, node).includes(other);
  }

  /** Whether a record of a cable is of packets that a host sent, at the other end of its cable: another host, or a switch. */
  isFarEnd(node: number, record: TimelineRecord): boolean {
    const { topology } = this.#run;
    const [at, port] = [nodeOf(record), portOfTrack(record.track.name)];
    const far = portsOf(topology, node).map((own) => farEndOf(topology, own)!);
    return at !== node && far.some((end) => end.node === at && end.port === port);
  }

  findLastIndex(isIt: (record: TimelineRecord) => boolean): number {
    let at = this.#end - 1;
    while (at >= 0 && !isIt(this.records[at]!)) at--;
    return at;
  }

  findLast(isIt: (record: TimelineRecord) => boolean): TimelineRecord | undefined {
    return this.records[this.findLastIndex(isIt)];
  }

  filter(isIt: (record: TimelineRecord) => boolean): readonly TimelineRecord[] {
    return this.records.filter((record, at) => at < this.#end && isIt(record));
  }
}

/**
 * All failures of a run, in time order.
 * @param timeline with the categories operations, packets and checks
 */
export function failuresOf(timeline: Timeline, postedAt: PostedAt): readonly Failure[] {
  const run = runOf(timeline);
  return run.records.flatMap((record, place) =>
    record.kind === 'errorCompletion' ? [failureOf(run, place, postedAt)] : [],
  );
}

function failureOf(run: Run, place: number, postedAt: PostedAt): Failure {
  const record = run.records[place]!;
  const [qpn = 0, wqeCounter = 0, syndrome = 0, isSend = 0] = record.values;
  const node = nodeOf(record);
  const posted = isSend === 1 ? postOf(run, place, node, qpn, wqeCounter) : undefined;
  const line = posted === undefined ? undefined : postedAt(node, posted.values[3]!);
  return {
    node,
    qpn,
    queue: isSend === 1 ? 'send' : 'receive',
    wqeCounter,
    status: statusOf(syndrome),
    atPs: Number(record.atPs),
    ...(posted === undefined
      ? {}
      : {
          operation: operationNames[posted.values[2]!] ?? hex(posted.values[2]!),
          ...(posted.values[3]! < 0 ? {} : { ordinal: posted.values[3]! }),
        }),
    ...(line === undefined ? {} : { postedAt: line }),
    reasons: reasonsOf(run, place, posted),
  };
}

/** The last post of this WQE before its completion. */
function postOf(
  run: Run,
  place: number,
  node: number,
  qpn: number,
  wqeCounter: number,
): TimelineRecord | undefined {
  return new Earlier(run, place).findLast(
    (record) =>
      record.kind === 'posted' &&
      nodeOf(record) === node &&
      record.values[0] === qpn &&
      record.values[1] === wqeCounter,
  );
}

function reasonsOf(run: Run, place: number, posted: TimelineRecord | undefined): readonly Reason[] {
  const record = run.records[place]!;
  const [qpn = 0, , syndrome = 0, isSend = 0] = record.values;
  const node = nodeOf(record);
  const before = new Earlier(run, place);
  if (syndrome === CqeSyndrome.WR_FLUSH_ERR) return flushReasons(before, record);
  if (syndrome === CqeSyndrome.LOCAL_PROT_ERR) return accessReasons(before, node, qpn);
  if (syndrome === CqeSyndrome.LOCAL_LENGTH_ERR && isSend === 0)
    return [
      {
        where: `hca${node} receiver`,
        atPs: Number(record.atPs),
        text: 'the message is longer than the segments of the receive that it found',
        clause: 'IBTA vol 1, 9.7.4.1.6',
      },
    ];
  if (isRefusedByPeer(syndrome)) return peerReasons(before, node, qpn);
  if (syndrome === CqeSyndrome.TRANSPORT_RETRY_EXC_ERR || syndrome === CqeSyndrome.RNR_RETRY_EXC_ERR)
    return retryReasons(before, record, posted);
  return [];
}

const isRefusedByPeer = (syndrome: number): boolean =>
  syndrome === CqeSyndrome.REMOTE_ACCESS_ERR ||
  syndrome === CqeSyndrome.REMOTE_INVAL_REQ_ERR ||
  syndrome === CqeSyndrome.REMOTE_OP_ERR;

/** A flushed request is not at fault: the QP was in the error state after an earlier failure. */
function flushReasons(before: Earlier, { values, track }: TimelineRecord): readonly Reason[] {
  const cause = before.findLast(
    (record) =>
      record.track.process === track.process &&
      record.values[0] === values[0] &&
      ((record.kind === 'errorCompletion' && record.values[2] !== CqeSyndrome.WR_FLUSH_ERR) ||
        record.kind === 'requestRefused'),
  );
  if (cause === undefined) return [];
  const what =
    cause.kind === 'errorCompletion'
      ? `WQE ${hex(cause.values[1]!)} of its ${cause.values[3] === 1 ? 'send' : 'receive'} queue ended with ${statusOf(cause.values[2]!)}`
      : 'it refused a request of its peer';
  return [
    {
      where: `${track.process} ${track.name}`,
      atPs: Number(cause.atPs),
      text: `the QP went to the error state when ${what}`,
      clause: 'IBTA vol 1, 10.3.1.5',
    },
  ];
}

/** The last translation that a device refused for a QP. */
function accessReasons(before: Earlier, node: number, qpn: number): readonly Reason[] {
  const refused = before.findLast(
    ({ kind, track }) =>
      kind === 'accessRefused' && track.process === `hca${node}` && track.name === translationsOf(qpn),
  );
  return refused === undefined ? [] : [accessReason(refused)];
}

function accessReason({ track, atPs, values }: TimelineRecord): Reason {
  const [user = 0, key = 0, answer = 0, address = 0, lengthBytes = 0, found = 0, heldTo = 0, heldToEnd = 0] =
    values;
  const reason = { where: `${track.process} translation for the ${portNames[user]}`, atPs: Number(atPs) };
  if (answer === answerBadKey)
    return {
      ...reason,
      text: `no memory region has the key ${hex(key)}`,
      found: hex(found),
      heldTo: heldTo < 0 ? 'a valid MPT entry' : `key ${hex(heldTo)} of the region in this MPT entry`,
    };
  if (answer === answerBadPd)
    return {
      ...reason,
      text: `the region of key ${hex(key)} belongs to another protection domain than the QP`,
      found: `PD ${hex(found)} of the QP`,
      heldTo: `PD ${hex(heldTo)} of the region`,
    };
  if (answer === answerOutOfBounds)
    return {
      ...reason,
      text: `the access reaches out of the region of key ${hex(key)}`,
      found: `[${hex(address)}, ${hex(address + lengthBytes)})`,
      heldTo: `[${hex(heldTo)}, ${hex(heldToEnd)})`,
    };
  if (answer === answerMissingRight)
    return {
      ...reason,
      text: `the region of key ${hex(key)} does not give the right`,
      found: `asked for: ${rightsText(found)}`,
      heldTo: `given: ${rightsText(heldTo)}`,
    };
  return {
    ...reason,
    text: `the page of address ${hex(address)} under key ${hex(key)} is not present, or its entry could not be read`,
  };
}

/**
 * Index of the responder's refusal for this QP, or -1. QPs of both hosts may have the same number, and a QP may be
 * connected to one of its own host: a refusal at the far end returned as a NAK over the cable, a refusal at the own end
 * did not.
 */
function refusalOf(before: Earlier, node: number, qpn: number): number {
  const lastNak = before.findLastIndex(
    (record) =>
      record.kind === 'packet' &&
      nodeOf(record) === node &&
      record.values[1] === qpn &&
      record.values[5]! > nakOfSequence,
  );
  for (let end = before; ; ) {
    const at = end.findLastIndex(({ kind, values }) => kind === 'requestRefused' && values[6] === qpn);
    if (at < 0) return -1;
    const refused = before.records[at]!;
    const isAnswered = lastNak > at && before.records[lastNak]!.values[2] === refused.values[3];
    if (nodeOf(refused) === node && lastNak < at) return at;
    if (before.arePeers(node, nodeOf(refused)) && isAnswered) return at;
    end = before.until(at);
  }
}

/** Syndrome of an AETH; those above are refusals (IBTA vol 1, 9.7.5.1.2 and 9.7.5.2.2). */
const nakOfSequence = 0x60;

/** Refusals of this QP by the responder, and the check that caused each. */
function peerReasons(before: Earlier, node: number, qpn: number): readonly Reason[] {
  const at = refusalOf(before, node, qpn);
  if (at < 0) return [];
  const refused = before.records[at]!;
  const [ownQpn = 0, check = 0, opcode = 0, psn = 0, found = 0, heldTo = 0] = refused.values;
  const name = requestChecks[check]!;
  const request = `${opcodeRow(opcode)?.name ?? hex(opcode)}, PSN ${psn}`;
  const reason = {
    where: `${refused.track.process} responder of QP ${hex(ownQpn)}`,
    atPs: Number(refused.atPs),
  };
  const earlier = before.until(at);
  switch (name) {
    case 'access':
      return [
        { ...reason, text: `refused ${request}: remote access error` },
        ...accessReasons(earlier, nodeOf(refused), ownQpn),
      ];
    case 'receive': {
      const receive = earlier.findLast(
        ({ kind, track, values }) =>
          kind === 'errorCompletion' &&
          track.process === refused.track.process &&
          values[0] === ownQpn &&
          values[3] === 0,
      );
      const status = receive === undefined ? 'an error' : statusOf(receive.values[2]!);
      return [
        {
          ...reason,
          text: `refused ${request}: the receive that it found ended with ${status}`,
          clause: 'IBTA vol 1, 9.9.3',
        },
        ...(receive?.values[2] === CqeSyndrome.LOCAL_PROT_ERR
          ? accessReasons(earlier, nodeOf(refused), ownQpn)
          : []),
      ];
    }
    case 'qpRight':
      return [
        {
          ...reason,
          text: `refused ${request}: the QP does not accept this operation`,
          found: `asked for: ${qpRightsText(found)}`,
          heldTo: `given: ${qpRightsText(heldTo)}`,
          clause: 'IBTA vol 1, table 60',
        },
      ];
    case 'atomicAlignment':
      return [
        {
          ...reason,
          text: `refused ${request}: the address is no multiple of 8`,
          found: hex(found),
          heldTo: 'a multiple of 8',
        },
      ];
    case 'sharedQueue':
      return [
        {
          ...reason,
          text: `refused ${request}: it names no shared receive queue of the QP's domain, or another than its message began with`,
          found: found < 0 ? 'no such queue' : `a queue of domain ${hex(found)}`,
          heldTo: `domain ${hex(heldTo)} of the QP`,
          clause: 'IBTA vol 1, annex A14',
        },
      ];
    case 'broken':
      return [
        {
          ...reason,
          text: `refused ${request}: its receive queue cannot be read, or the CQ of the shared one has failed`,
          clause: 'IBTA vol 1, 9.9.3',
        },
      ];
    case 'readResources':
      return [
        {
          ...reason,
          text: `refused ${request}: more READs and atomics than the responder keeps`,
          found: `${found} at once`,
          heldTo: `at most ${heldTo}`,
        },
      ];
    default:
      return [
        {
          ...reason,
          text: `refused ${request}: it does not continue the message, or its length is not what it announced`,
          found: `${found} bytes`,
          heldTo: `at most the MTU, ${heldTo} bytes`,
          clause: 'IBTA vol 1, 9.7.4.1.6',
        },
      ];
  }
}

/** Packets sent and received during the retries of a request. */
function retryReasons(
  before: Earlier,
  record: TimelineRecord,
  posted: TimelineRecord | undefined,
): readonly Reason[] {
  const node = nodeOf(record);
  const sincePs = posted === undefined ? 0 : Number(posted.atPs);
  const packets = before.filter(({ kind, atPs }) => kind === 'packet' && Number(atPs) >= sincePs);
  const { out, whose } = sentBy(before, packets, node, record.values[0]!);
  const back = packets.filter((packet) => nodeOf(packet) === node && packet.values[1] === record.values[0]);
  const has = (bit: number) => (packet: TimelineRecord) => (packet.values[4]! & bit) !== 0;
  const came = back.filter((packet) => !has(packetLost | packetCorrupted)(packet));
  const rnrCount = came.filter(({ values }) => values[5]! >>> 5 === 1).length;
  const counts = [
    `${out.length} packets${whose} left host ${node} since the post`,
    `${out.filter(has(packetRetransmitted)).length} of them again`,
    `${out.filter(has(packetLost)).length} never arrived`,
    `${out.filter(has(packetCorrupted)).length} arrived corrupted`,
  ];
  const isNotReady = record.values[2] === CqeSyndrome.RNR_RETRY_EXC_ERR;
  return [
    {
      where: `hca${node} requester`,
      atPs: Number(record.atPs),
      // A missing page of an on-demand region is answered like a missing receive: RNR NAK.
      text: isNotReady
        ? 'the peer had no receive, or no page for it, as often as the QP was to try'
        : 'no acknowledgement came within the time-out, as often as the QP was to try',
      found: `${rnrCount} RNR NAKs, ${came.length - rnrCount} other packets to this QP`,
      heldTo: isNotReady ? 'rnrRetry of the QP' : 'timeout and retryCnt of the QP',
      clause: isNotReady ? 'IBTA vol 1, 9.7.5.2.8' : 'IBTA vol 1, 9.7.6.1.3',
    },
    { where: `cable from hca${node}`, atPs: sincePs, text: counts.join(', ') },
    {
      where: `cable to hca${node}`,
      atPs: sincePs,
      text: `${back.length} packets left for this QP, ${back.filter(has(packetLost)).length} of them never arrived, ${back.filter(has(packetCorrupted)).length} arrived corrupted`,
    },
  ];
}

/** Packets of a QP that arrived at the far end of its host's cable: all of the host's if the QP there is unknown. */
function sentBy(
  before: Earlier,
  packets: readonly TimelineRecord[],
  node: number,
  qpn: number,
): { readonly out: readonly TimelineRecord[]; readonly whose: string } {
  const out = packets.filter((packet) => packet.kind === 'packet' && before.isFarEnd(node, packet));
  const peerQpn = peerQpnOf(before, out, node, qpn);
  return peerQpn === undefined
    ? { out, whose: ' of all its QPs' }
    : { out: out.filter(({ values }) => values[1] === peerQpn), whose: ' of this QP' };
}

/** Named by a completed request of either end; or, if all packets went to one QP, that QP. */
function peerQpnOf(
  before: Earlier,
  out: readonly TimelineRecord[],
  node: number,
  qpn: number,
): number | undefined {
  const ended = (place: number, isAt: (host: number) => boolean): TimelineRecord | undefined =>
    before.findLast(
      (record) => record.kind === 'operation' && record.values[place] === qpn && isAt(nodeOf(record)),
    );
  const ownRequest = ended(0, (host) => host === node);
  const farRequest = ended(7, (host) => before.arePeers(node, host));
  const named = ownRequest?.values[7] ?? farRequest?.values[0];
  if (named !== undefined) return named;
  const [first, ...others] = new Set(out.map(({ values }) => values[1]!));
  return others.length === 0 ? first : undefined;
}

/** Greatest number of losses listed; the rest is counted. */
const lossesMax = 10;

/** Packets that never arrived, or arrived corrupted: a program may wait for them indefinitely. */
export interface Losses {
  readonly count: number;
  /** The reasons of the first failure. */
  readonly first: readonly Reason[];
}

export function lossesOf(timeline: Timeline): Losses {
  const lost = [...timeline.records()].filter(
    (record) => (flagsOf(record) & (packetLost | packetCorrupted)) !== 0 || isDropAtSwitch(record),
  );
  return { count: lost.length, first: lost.slice(0, lossesMax).map(lossReason) };
}

const isDropAtSwitch = ({ kind, values }: TimelineRecord): boolean =>
  kind === 'switchDrop' && values[7] === 1;

function lossReason(record: TimelineRecord): Reason {
  const { track, values } = record;
  const atPs = Number(record.atPs);
  if (record.kind === 'switchDrop')
    return {
      where: `${track.process}, port ${values[1]}`,
      atPs,
      text: `${packetText(values.slice(3))}, dropped: ${dropWords[dropNames[values[0]!]!]}`,
    };
  const fate = (flagsOf(record) & packetLost) !== 0 ? 'never arrived' : 'arrived corrupted';
  return { where: `cable to ${track.process}`, atPs, text: `${whatOf(record)}, ${fate}` };
}

/** Reasons of switches. */
const dropWords: Readonly<Record<SwitchDrop, string>> = {
  noRoute: 'the switch has no route to its destination',
  ownPort: 'its route leads back to the port by which it came',
  hoqLife: 'it was the first of its input for longer than HOQLife',
  vlStalled:
    'its lane was stalled there: the packets before it had been the first of their inputs for longer than HOQLife',
  switchLifetime: 'it had been in the switch for longer than LifeTimeValue',
  linkLocal: 'its address is not forwarded',
  noLane: 'its service level has no lane there',
  inboundPkey: 'the port by which it came does not accept its P_Key',
  outboundPkey: 'the port by which it was to leave does not accept its P_Key',
  noRoom: 'the shared buffer has no room',
  queueFull: 'its queue has reached alpha × free',
  pauseWatchdog: 'a pause did not end',
  wrongFcs: 'its frame check sequence was wrong, and it had not begun to leave (cut-through)',
};

/** PSN of a packet; 0 for anything else. */
function flagsOf({ kind, values }: TimelineRecord): number {
  if (kind === 'packet') return values[4]!;
  return kind === 'frame' ? values[1]! : 0;
}

function whatOf({ kind, values }: TimelineRecord): string {
  if (kind === 'frame') return `${frameProtocols[values[2]!]}, ${values[0]} bytes`;
  return packetText(values);
}

function packetText([opcode = 0, destinationQpn = 0, psn = 0, payloadBytes = 0]: readonly number[]): string {
  if (opcode === noOpcode) return 'a frame';
  return `${opcodeRow(opcode)?.name ?? hex(opcode)} to QP ${hex(destinationQpn)}, PSN ${psn}, ${payloadBytes} bytes`;
}

/** Signalled requests without a completion at the end of a run, with the known facts about each. */
export function unfinishedOf(timeline: Timeline, postedAt: PostedAt): readonly Unfinished[] {
  const run = runOf(timeline);
  const { records } = run;
  const keyOf = (record: TimelineRecord): string =>
    `${nodeOf(record)} ${record.values[0]} ${record.values[1]}`;
  // A life record begins at the instant of its post and may precede it: so ends are counted first. Requests of one WQE
  // end in order.
  const ends = new Map<string, number>();
  for (const record of records) {
    const isEnd =
      record.kind === 'operation' || (record.kind === 'errorCompletion' && record.values[3] === 1);
    if (isEnd) ends.set(keyOf(record), (ends.get(keyOf(record)) ?? 0) + 1);
  }
  return records.flatMap((record, place) => {
    // Programs do not wait for frames of the kernel.
    if (record.kind !== 'posted' || record.values[2] === frameOperation) return [];
    const left = ends.get(keyOf(record)) ?? 0;
    if (left === 0) return [unfinished(run, place, postedAt)];
    ends.set(keyOf(record), left - 1);
    return [];
  });
}

function unfinished(run: Run, place: number, postedAt: PostedAt): Unfinished {
  const { records } = run;
  const record = records[place]!;
  const since = records.slice(place);
  const [qpn = 0, wqeCounter = 0, opcode = 0, ordinal = 0] = record.values;
  const node = nodeOf(record);
  const line = postedAt(node, ordinal);
  const { out, whose } = sentBy(new Earlier(run, records.length), since, node, qpn);
  const back = since.filter(
    (packet) => packet.kind === 'packet' && nodeOf(packet) === node && packet.values[1] === qpn,
  );
  return {
    node,
    qpn,
    wqeCounter,
    operation: operationNames[opcode] ?? hex(opcode),
    ordinal,
    postedPs: Number(record.atPs),
    ...(line === undefined ? {} : { postedAt: line }),
    reasons: [
      {
        where: `hca${node}`,
        atPs: Number(record.atPs),
        text: `since the post ${out.length} packets${whose} left host ${node}, ${back.length} came back to its QP`,
      },
    ],
  };
}
