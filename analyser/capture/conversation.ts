/**
 * What passes over a connection, from captured packets alone: requests, acknowledgements, gaps, and what is sent again.
 *
 * A packet names only the QP it is for. A flow is what goes from one port to one QP of another; the flow that answers it is found by the
 * first answer for a PSN that is open in it and in no other: then the two are one connection. Nothing but the packets is looked at, so
 * captures of strangers read alike. Source: IBTA vol 1, 9.7.
 */

import {
  AethKind,
  NakCode,
  opcodeRow,
  psnAdd,
  psnDistance,
  rnrTimerPsByCode,
  syndromeKind,
  syndromeValue,
  type WirePacket,
} from '../../wire/index.ts';
import { cmWords } from './cm-words.ts';

/** A packet of a capture, as far as a conversation needs it. */
export interface CapturedPacket {
  /** Number in the file, from 1. */
  readonly number: number;
  readonly timePs: bigint;
  /** Addresses of the ports: LIDs, or IP addresses. */
  readonly from: string;
  readonly to: string;
  readonly packet: WirePacket;
  readonly note: string;
}

export interface Utterance {
  readonly number: number;
  readonly timePs: bigint;
  /** True of the side whose requests opened the connection. */
  readonly isFromFirst: boolean;
  readonly words: string;
  /** Something went wrong, or makes up for what did. */
  readonly isTrouble: boolean;
}

export interface Conversation {
  readonly service: string;
  /** Port and QP of each side; the QP of a side that no packet has addressed is not known. */
  readonly first: string;
  readonly second: string;
  readonly utterances: readonly Utterance[];
  readonly counts: Readonly<Record<string, number>>;
}

const nakWords: Readonly<Record<number, string>> = {
  [NakCode.PSN_SEQUENCE_ERROR]: 'NAK, PSN sequence error: a packet is missing',
  [NakCode.INVALID_REQUEST]: 'NAK, invalid request',
  [NakCode.REMOTE_ACCESS_ERROR]: 'NAK, remote access error',
  [NakCode.REMOTE_OPERATIONAL_ERROR]: 'NAK, remote operational error',
  [NakCode.INVALID_RD_REQUEST]: 'NAK, invalid RD request',
};

/** What goes from a port to one QP of another. */
class Flow {
  readonly from: string;
  readonly to: string;
  readonly qp: number;
  readonly service: string;
  /** Requests: PSN that comes next, and the oldest that nothing has answered. */
  nextPsn: number | undefined;
  openPsn: number | undefined;
  /** PSNs beyond {@link nextPsn} that a READ may have taken: how many is only known when the path's MTU is. */
  loosePsns = 0;
  /** Payload of a packet that is not its message's last. */
  mtuBytes: number | undefined;
  answeredBy: Flow | undefined;
  talk: Talk;

  constructor(from: string, to: string, qp: number, service: string) {
    this.from = from;
    this.to = to;
    this.qp = qp;
    this.service = service;
    this.talk = new Talk(this);
  }
}

/** A connection as it is put together: of one flow, or of two. */
class Talk {
  readonly first: Flow;
  second: Flow | undefined;
  utterances: Utterance[] = [];
  readonly counts: Record<string, number> = {};

  constructor(first: Flow) {
    this.first = first;
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }
}

/** The conversations of a capture, in the order in which they began. */
export function conversationsOf(packets: Iterable<CapturedPacket>): Conversation[] {
  const listener = new Listener();
  for (const packet of packets) listener.take(packet);
  return listener.conversations();
}

class Listener {
  readonly #flows = new Map<string, Flow>();

  take(captured: CapturedPacket): void {
    const { bth, isIcrcRight, isVcrcRight } = captured.packet;
    const row = opcodeRow(bth.opcode)!;
    const flow = this.#flowOf(captured, row.service);
    if (!isIcrcRight || !isVcrcRight) {
      this.#say(flow, captured, `damaged: wrong ${isIcrcRight ? 'VCRC' : 'ICRC'}; a receiver drops it`, true);
      flow.talk.count('damaged');
      return;
    }
    if (row.service === 'CNP') this.#say(flow, captured, 'congestion notification', true);
    else if (!row.isRequest) this.#answer(flow, captured);
    else if (row.service === 'UD') this.#say(flow, captured, requestWords(captured.packet), false);
    else this.#request(flow, captured);
  }

  conversations(): Conversation[] {
    const talks = new Set([...this.#flows.values()].map(({ talk }) => talk));
    return [...talks].map(({ first, second, utterances, counts }) => ({
      service: first.service,
      first: `${first.from}${second === undefined ? '' : ` QP ${second.qp}`}`,
      second: `${first.to} QP ${first.qp}`,
      utterances: utterances.toSorted((left, right) => left.number - right.number),
      counts,
    }));
  }

  #flowOf({ from, to, packet }: CapturedPacket, service: string): Flow {
    const key = `${from}>${to}>${packet.bth.destinationQp}>${service}`;
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      flow = new Flow(from, to, packet.bth.destinationQp, service);
      this.#flows.set(key, flow);
    }
    return flow;
  }

  #request(flow: Flow, captured: CapturedPacket): void {
    const { psn } = captured.packet.bth;
    const words = requestWords(captured.packet);
    const next = flow.nextPsn ?? psn;
    const distance = psnDistance(psn, next);
    const ahead = distance > 0 && distance <= flow.loosePsns ? 0 : distance;
    const { taken, loose } = psnsOf(captured.packet, learnedMtu(flow, captured.packet));
    flow.openPsn ??= psn;
    if (ahead > 0) {
      flow.talk.count('gaps');
      this.#say(flow, captured, `${words}; gap: ${psnRange(next, ahead)} not seen`, true);
    } else if (ahead < 0) {
      flow.talk.count('sent again');
      this.#say(flow, captured, `${words}; sent again`, true);
    } else this.#say(flow, captured, words, false);
    flow.talk.count('requests');
    flow.nextPsn ??= next;
    if (psnDistance(psnAdd(psn, taken), flow.nextPsn) <= 0) return;
    flow.nextPsn = psnAdd(psn, taken);
    flow.loosePsns = loose;
  }

  #answer(flow: Flow, captured: CapturedPacket): void {
    const { bth, headers } = captured.packet;
    this.#join(flow, bth.psn);
    const asker = flow.answeredBy;
    if (asker !== undefined) learnedMtu(asker, captured.packet);
    const { AETH: aeth } = headers;
    const kind = aeth === undefined ? AethKind.ACK : syndromeKind(aeth.syndrome);
    const words = `${answerWords(captured.packet)}${markWords(captured.packet)}`;
    if (kind === AethKind.NAK || kind === AethKind.RNR_NAK) {
      flow.talk.count(kind === AethKind.NAK ? 'NAKs' : 'RNR NAKs');
      this.#say(flow, captured, words, true);
      return;
    }
    const isGhost = asker?.nextPsn !== undefined && psnDistance(bth.psn, asker.nextPsn) >= asker.loosePsns;
    const acknowledged = psnAdd(bth.psn, 1);
    const isOld = asker?.openPsn !== undefined && psnDistance(acknowledged, asker.openPsn) <= 0;
    const after = isGhost ? '; for a request that was not seen' : isOld ? '; answered before' : '';
    if (asker !== undefined && !isOld) asker.openPsn = acknowledged;
    flow.talk.count('answers');
    this.#say(flow, captured, words + after, after !== '');
  }

  /** Finds the flow that this one answers: of the other direction, with this PSN among those sent, and not answered by another. */
  #join(flow: Flow, psn: number): void {
    if (flow.answeredBy !== undefined) return;
    const asked = [...this.#flows.values()].filter(
      (other) =>
        other.from === flow.to &&
        other.to === flow.from &&
        other.service === flow.service &&
        (other.answeredBy === undefined || other.answeredBy === flow) &&
        other.openPsn !== undefined &&
        psnDistance(psn, other.openPsn) >= 0 &&
        psnDistance(psn, other.nextPsn ?? psn) < other.loosePsns,
    );
    const [found] = asked;
    if (found === undefined || asked.length > 1) return;
    flow.answeredBy = found;
    found.answeredBy = flow;
    const { talk } = found;
    if (talk.second === undefined && talk !== flow.talk) {
      talk.second = flow;
      for (const utterance of flow.talk.utterances)
        talk.utterances.push({ ...utterance, isFromFirst: false });
      for (const [what, count] of Object.entries(flow.talk.counts))
        talk.counts[what] = (talk.counts[what] ?? 0) + count;
      flow.talk = talk;
    }
  }

  #say(flow: Flow, { number, timePs, note }: CapturedPacket, words: string, isTrouble: boolean): void {
    const isFromFirst = flow.talk.first === flow;
    const all = note === '' ? words : `${words} (${note})`;
    flow.talk.utterances.push({
      number,
      timePs,
      isFromFirst,
      words: all,
      isTrouble: isTrouble || note !== '',
    });
  }
}

/** The least MTU of a path, 9.1.2. */
const MTU_MIN_BYTES = 256;

/** PSNs that a request takes, and how many more it may: a READ as many as its answer has packets. */
function psnsOf(
  { headers, bth }: WirePacket,
  mtuBytes: number | undefined,
): { readonly taken: number; readonly loose: number } {
  const { RETH: reth } = headers;
  if (reth === undefined || !opcodeRow(bth.opcode)!.name.endsWith('READ_REQUEST'))
    return { taken: 1, loose: 0 };
  const least = Math.max(1, Math.ceil(reth.dmaLength / (mtuBytes ?? Number.POSITIVE_INFINITY)));
  const most = Math.max(1, Math.ceil(reth.dmaLength / (mtuBytes ?? MTU_MIN_BYTES)));
  return { taken: least, loose: most - least };
}

/** The MTU of a flow's path, as far as a packet of its connection shows it: all but the last of a message are full. */
function learnedMtu(flow: Flow, { bth, payload }: WirePacket): number | undefined {
  const { endsMessage } = opcodeRow(bth.opcode)!;
  if (!endsMessage && payload.length >= MTU_MIN_BYTES) flow.mtuBytes = payload.length;
  return flow.mtuBytes;
}

const psnRange = (first: number, count: number): string =>
  count === 1 ? `PSN ${first}` : `PSN ${first} to ${psnAdd(first, count - 1)}`;

/** Words of an opcode: RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE is WRITE only with immediate. */
function operationWords(opcode: number): string {
  const { name, service } = opcodeRow(opcode)!;
  const [operation, ...rest] = name
    .slice(service.length + 1)
    .replace('RDMA_', '')
    .split('_');
  return [operation!, ...rest.map((word) => word.toLowerCase())].join(' ');
}

/** A mark of congestion: of the BTH, or of the IP header (RFC 3168, 5: 3 is CE). */
function markWords({ bth, ipv4, ipv6 }: WirePacket): string {
  return bth.fecn === 1 || ipv4?.ecn === 3 || ipv6?.ecn === 3 ? ', marked for congestion' : '';
}

function requestWords(packet: WirePacket): string {
  const { bth, headers, payload } = packet;
  const { RETH: reth, ImmDt: immediate, IETH: invalidated, DETH: deth } = headers;
  const atomic = headers.AtomicETH ?? headers.MaskedAtomicETH;
  const parts = [`${operationWords(bth.opcode)}, PSN ${bth.psn}`];
  const management = deth === undefined ? undefined : cmWords(payload);
  if (management !== undefined) parts.push(management);
  if (payload.length > 0) parts.push(`${payload.length} bytes`);
  if (reth !== undefined)
    parts.push(`${reth.dmaLength} at ${hex(reth.virtualAddress)} key ${hex(reth.rKey)}`);
  if (atomic !== undefined) parts.push(`at ${hex(atomic.virtualAddress)} key ${hex(atomic.rKey)}`);
  if (immediate !== undefined) parts.push(`immediate ${hex(immediate.immediate)}`);
  if (invalidated !== undefined) parts.push(`invalidates key ${hex(invalidated.rKey)}`);
  if (deth !== undefined) parts.push(`from QP ${deth.sourceQp} Q_Key ${hex(deth.queueKey)}`);
  if (bth.solicitedEvent === 1) parts.push('solicited');
  return `${parts.join(', ')}${markWords(packet)}`;
}

function answerWords({ bth, headers, payload }: WirePacket): string {
  const { AETH: aeth, AtomicAckETH: result } = headers;
  const psn = `PSN ${bth.psn}`;
  if (aeth !== undefined) {
    const value = syndromeValue(aeth.syndrome);
    if (syndromeKind(aeth.syndrome) === AethKind.RNR_NAK)
      return `RNR NAK, ${psn}: not ready, again after ${rnrTimerPsByCode[value]! / 1e9} ms`;
    if (syndromeKind(aeth.syndrome) === AethKind.NAK)
      return `${nakWords[value] ?? `NAK of reserved code ${value}`}, ${psn}`;
  }
  if (result !== undefined) return `ATOMIC acknowledge, ${psn}, was ${hex(result.originalData)}`;
  const bytes = payload.length === 0 ? '' : `, ${payload.length} bytes`;
  return `${bytes === '' ? 'ACK of all to' : operationWords(bth.opcode)}${bytes === '' ? '' : ','} ${psn}${bytes}`;
}

const hex = (value: number | bigint): string => `0x${value.toString(16)}`;
