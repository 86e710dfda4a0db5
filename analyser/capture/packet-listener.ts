/**
 * Follows the messages of a connection from captured packets alone: requests, acknowledgements, gaps and
 * retransmissions.
 *
 * A packet names only its destination QP. A flow is the packets from one port to one QP of another port. The first
 * answer to a PSN that is open in exactly one flow joins the two flows into a connection. Only packets are used, so
 * captures of third-party endpoints read alike. Source: IBTA vol 1, 9.7.
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
import { hex } from './address-text.ts';
import {
  type AwaitedResponses,
  MTU_MIN_BYTES,
  psnRange,
  type ReadRange,
  RequestBudget,
} from './awaited-responses.ts';
import { Flow, type FlowBudget } from './flow.ts';
import { madWords } from './mad-words.ts';
import type { Conversation, Line, LineBudget, TalkLines } from './talk.ts';
import { UnansweredFlows } from './unanswered-flows.ts';

/** A packet of a capture, with the facts that a conversation needs. */
export interface CapturedPacket {
  /** Number in the file, from 1. */
  readonly number: number;
  readonly timePs: bigint;
  /** Addresses of the ports: LIDs, or IP addresses. */
  readonly from: string;
  readonly to: string;
  /** Number of the network in which the addresses are valid. */
  readonly network: number;
  readonly packet: WirePacket;
  readonly note: string;
}

const nakWords: Readonly<Record<number, string>> = {
  [NakCode.PSN_SEQUENCE_ERROR]: 'NAK, PSN sequence error: a packet is missing',
  [NakCode.INVALID_REQUEST]: 'NAK, invalid request',
  [NakCode.REMOTE_ACCESS_ERROR]: 'NAK, remote access error',
  [NakCode.REMOTE_OPERATIONAL_ERROR]: 'NAK, remote operational error',
  [NakCode.INVALID_RD_REQUEST]: 'NAK, invalid RD request',
};

/** Greatest number of followed flows: below 2^17, for {@link UnansweredFlows}. Packets of further flows are counted. */
const FLOWS_MAX = 100_000;
/** PSNs of a READ whose length the capture has cut. */
const CUT_READ_PSNS = 0x3f_ffff;

/** A line of a conversation, which a further sighting of its packet may extend. */
export interface Said {
  remark(words: string): void;
}

const nothingSaid: Said = { remark: () => undefined };

export class PacketListener {
  /** Packets of flows beyond the followed ones. */
  unfollowed = 0;
  readonly #budget: FlowBudget;
  /** Flows of each network, by ports, QP and service. */
  readonly #networks = new Map<number, Map<string, Flow>>();
  #flowCount = 0;
  readonly #unanswered = new UnansweredFlows();

  constructor(lines: LineBudget) {
    this.#budget = { lines, requests: new RequestBudget() };
  }

  take(captured: CapturedPacket): Said {
    const { bth, isIcrcRight, isVcrcRight } = captured.packet;
    const row = opcodeRow(bth.opcode)!;
    const flow = this.#flowOf(captured, row.service);
    if (flow === undefined) {
      this.unfollowed++;
      return nothingSaid;
    }
    if (!isIcrcRight || !isVcrcRight) {
      flow.talk.lines.count('damaged');
      const words = `damaged: wrong ${isIcrcRight ? 'VCRC' : 'ICRC'}; a receiver drops it`;
      return this.#say(flow, captured, words, true);
    }
    if (row.service === 'CNP') return this.#say(flow, captured, 'congestion notification', true);
    if (!row.isRequest) return this.#answer(flow, captured);
    if (row.service === 'UD') return this.#say(flow, captured, requestWords(captured.packet), false);
    return this.#request(flow, captured);
  }

  /** Merges two networks that turn out to be one. The cost is proportional to the flows of `from`. */
  joinNetworks(from: number, into: number): void {
    const moved = this.#networks.get(from) ?? new Map<string, Flow>();
    this.#networks.delete(from);
    const flows = this.#flowsOf(into);
    for (const [key, flow] of moved) {
      flow.network = into;
      flow.unansweredIn?.update(flow);
      const known = flows.get(key);
      if (known === undefined) flows.set(key, flow);
      else if (flow.isEmpty) known.talk.lines.absorb(flow.talk.lines, known.talk.first !== known);
      // Its key no longer finds it, and its lines remain a conversation of their own.
      else flows.set(`${key} of network ${from}`, flow);
    }
  }

  conversations(): Conversation[] {
    const flows = [...this.#networks.values()].flatMap((network) => [...network.values()]);
    const talks = [...new Set(flows.map(({ talk }) => talk))];
    talks.sort((left, right) => left.first.number - right.first.number);
    return talks.map(({ first, second, lines }) => ({
      service: first.service,
      first: `${first.from}${second === undefined ? '' : ` QP ${second.qp}`}`,
      second: `${first.to} QP ${first.qp}`,
      beganPs: lines.beganPs ?? 0n,
      utterances: lines.sorted(),
      unkept: lines.unkept,
      counts: lines.counts,
    }));
  }

  #flowOf(captured: CapturedPacket, service: string): Flow | undefined {
    const { from, to, network, packet } = captured;
    const key = `${from}>${to}>${packet.bth.destinationQp}>${service}`;
    const flows = this.#flowsOf(network);
    const known = flows.get(key);
    if (known !== undefined || this.#flowCount >= FLOWS_MAX) return known;
    const flow = new Flow(this.#flowCount++, captured, service, this.#budget);
    flows.set(key, flow);
    this.#unanswered.add(flow);
    return flow;
  }

  #flowsOf(network: number): Map<string, Flow> {
    const known = this.#networks.get(network);
    if (known !== undefined) return known;
    const made = new Map<string, Flow>();
    this.#networks.set(network, made);
    return made;
  }

  #request(flow: Flow, captured: CapturedPacket): Said {
    const { packet, number } = captured;
    const { psn } = packet.bth;
    const next = flow.nextPsn ?? psn;
    const distance = psnDistance(psn, next);
    const ahead = distance > 0 && distance <= flow.loosePsns ? 0 : distance;
    if (distance > 0 && ahead === 0) flow.awaited.learnNext(psn);
    const range = rangeOf(packet);
    const repeated = range === undefined ? undefined : flow.awaited.repeat(psn, range, flow.mtuBytes);
    const { taken, loose } = psnsOf(packet, learnedMtu(flow, packet));
    flow.openPsn ??= psn;
    const after = this.#placeOf(flow, psn, next, ahead, repeated);
    if (range !== undefined && repeated === undefined)
      flow.awaited.add(psn, number, range, isReadRequest(packet), flow.mtuBytes);
    flow.unseen.sawPacket();
    flow.talk.lines.count('requests');
    flow.nextPsn ??= next;
    if (repeated === undefined && psnDistance(psnAdd(psn, taken), flow.nextPsn) > 0) {
      flow.advance(psnAdd(psn, taken), loose);
      flow.unansweredIn?.update(flow);
    }
    return this.#say(flow, captured, `${requestWords(packet)}${after}`, after !== '');
  }

  /** Describes where a request stands among earlier ones, and counts it. */
  #placeOf(
    { talk, unseen }: Flow,
    psn: number,
    next: number,
    ahead: number,
    repeated: ReturnType<AwaitedResponses['repeat']>,
  ): string {
    const { lines } = talk;
    if (repeated !== undefined) {
      lines.count('sent again');
      return repeated.atByte === 0
        ? '; sent again'
        : `; resumes the READ of frame ${repeated.number} at byte ${repeated.atByte}`;
    }
    if (ahead > 0) {
      lines.count('gaps');
      unseen.passOver(next, ahead);
      return `; gap: ${psnRange(next, ahead)} not seen`;
    }
    if (ahead === 0) return '';
    const shown = unseen.show(psn);
    if (shown === undefined || shown.isRefused) {
      lines.count('sent again');
      return shown === undefined ? '; sent again' : '; sent again, not seen before';
    }
    lines.count('late');
    return `; late: ${countOf(shown.passedBy, 'later packet was', 'later packets were')} seen before it`;
  }

  #answer(flow: Flow, captured: CapturedPacket): Said {
    const { packet } = captured;
    const { bth, headers } = packet;
    this.#join(flow, bth.psn);
    const asker = flow.answeredBy;
    const { AETH: aeth } = headers;
    const kind = aeth === undefined ? AethKind.ACK : syndromeKind(aeth.syndrome);
    const words = `${answerWords(packet)}${markWords(packet)}`;
    const isRefusal = kind === AethKind.NAK || kind === AethKind.RNR_NAK;
    const after =
      asker === undefined ? [] : isRefusal ? refused(asker, bth.psn) : answered(asker, packet, flow);
    flow.talk.lines.count(isRefusal ? (kind === AethKind.NAK ? 'NAKs' : 'RNR NAKs') : 'answers');
    for (const part of after) if (part.startsWith('gap')) flow.talk.lines.count('gaps');
    return this.#say(flow, captured, [words, ...after].join('; '), isRefusal || after.length > 0);
  }

  /** Finds the flow that this one answers, unless it is known. */
  #join(flow: Flow, psn: number): void {
    if (flow.answeredBy !== undefined) return;
    const found = this.#unanswered.answeredBy(flow, psn);
    if (found === undefined) return;
    flow.answeredBy = found;
    found.answeredBy = flow;
    for (const one of [flow, found]) one.unansweredIn?.remove(one);
    const { talk } = found;
    if (talk.second === undefined && talk !== flow.talk) {
      talk.second = flow;
      talk.lines.absorb(flow.talk.lines, true);
      flow.talk = talk;
    }
  }

  #say(flow: Flow, captured: CapturedPacket, words: string, isTrouble: boolean): Said {
    const { number, timePs, note, packet } = captured;
    const { talk } = flow;
    const all = [words, uncheckedWords(packet), note === '' ? '' : ` (${note})`].join('');
    const line = talk.lines.say({
      ...{ number, timePs, words: all },
      isFromFirst: talk.first === flow,
      isTrouble: isTrouble || note !== '',
    });
    return new SaidLine(talk.lines, line);
  }
}

class SaidLine implements Said {
  readonly #lines: TalkLines;
  readonly #line: Line;

  constructor(lines: TalkLines, line: Line) {
    this.#lines = lines;
    this.#line = line;
  }

  remark(words: string): void {
    this.#lines.remark(this.#line, words);
  }
}

/**
 * Processes a NAK.
 * @returns lines on answers that the NAK shows to be missing
 */
function refused(asker: Flow, psn: number): string[] {
  asker.unseen.refuse(psn);
  return asker.awaited.refused(psn);
}

/**
 * Processes an answer.
 * @returns words on its place, and on answers that it shows to be missing
 */
function answered(asker: Flow, packet: WirePacket, { talk }: Flow): string[] {
  const { bth, headers } = packet;
  const { name } = opcodeRow(bth.opcode)!;
  const isOwnResponse = name.includes('READ_RESPONSE') || headers.AtomicAckETH !== undefined;
  learnFromResponse(asker, packet, name);
  const { gaps, isAsked, place } = isOwnResponse
    ? asker.awaited.response(bth.psn)
    : { gaps: asker.awaited.acknowledged(bth.psn), isAsked: false, place: undefined };
  const isGhost = asker.nextPsn !== undefined && psnDistance(bth.psn, asker.nextPsn) >= asker.loosePsns;
  const acknowledged = psnAdd(bth.psn, 1);
  const isOld = asker.openPsn !== undefined && psnDistance(acknowledged, asker.openPsn) <= 0;
  if (!isOld) asker.openPsn = acknowledged;
  if (place === 'late') {
    talk.lines.count('late');
    return [...gaps, 'late: later responses were seen before it'];
  }
  if (isAsked) return place === 'repeated' ? [...gaps, 'answered before'] : [...gaps];
  if (isGhost) return [...gaps, 'for a request that was not seen'];
  return isOld ? [...gaps, 'answered before'] : [...gaps];
}

/** A response shows the MTU of the path, or that it is the only one. Either tells how many PSNs a READ takes. */
function learnFromResponse(asker: Flow, packet: WirePacket, name: string): void {
  if (!name.includes('READ_RESPONSE')) return;
  const knewMtu = asker.mtuBytes !== undefined;
  const mtuBytes = learnedMtu(asker, packet);
  const next = name.endsWith('ONLY')
    ? asker.awaited.learnOnly(packet.bth.psn)
    : knewMtu || mtuBytes === undefined
      ? undefined
      : asker.awaited.learnMtu(mtuBytes);
  if (next === undefined || asker.nextPsn === undefined) return;
  const ahead = psnDistance(next, asker.nextPsn);
  if (ahead < 0 || ahead > asker.loosePsns) return;
  asker.nextPsn = next;
  asker.loosePsns = 0;
}

/** PSNs that a request takes, and how many more it may take: a READ takes one PSN per response packet. */
function psnsOf(
  packet: WirePacket,
  mtuBytes: number | undefined,
): { readonly taken: number; readonly loose: number } {
  if (!isReadRequest(packet)) return { taken: 1, loose: 0 };
  const { RETH: reth } = packet.headers;
  if (reth === undefined) return { taken: 1, loose: CUT_READ_PSNS };
  const least = Math.max(1, Math.ceil(reth.dmaLength / (mtuBytes ?? Number.POSITIVE_INFINITY)));
  const most = Math.max(1, Math.ceil(reth.dmaLength / (mtuBytes ?? MTU_MIN_BYTES)));
  return { taken: least, loose: most - least };
}

const isReadRequest = ({ bth }: WirePacket): boolean => opcodeRow(bth.opcode)!.name.endsWith('READ_REQUEST');

/** Memory that a READ or an atomic addresses. */
function rangeOf({ bth, headers }: WirePacket): ReadRange | undefined {
  const { RETH: reth } = headers;
  const atomic = headers.AtomicETH ?? headers.MaskedAtomicETH;
  if (atomic !== undefined) return { address: atomic.virtualAddress, rKey: atomic.rKey, bytes: 0 };
  if (reth === undefined || !opcodeRow(bth.opcode)!.name.endsWith('READ_REQUEST')) return undefined;
  return { address: reth.virtualAddress, rKey: reth.rKey, bytes: reth.dmaLength };
}

/** The path MTU of a flow, as far as a packet of its connection shows it: all packets of a message but the last are full. */
function learnedMtu(flow: Flow, { bth, payloadBytes }: WirePacket): number | undefined {
  const { endsMessage } = opcodeRow(bth.opcode)!;
  if (!endsMessage && payloadBytes >= MTU_MIN_BYTES) flow.mtuBytes = payloadBytes;
  return flow.mtuBytes;
}

const countOf = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

function uncheckedWords({ unchecked, payload, payloadBytes }: WirePacket): string {
  if (unchecked === 'cut') {
    const lost = payloadBytes - payload.length;
    return lost > 0
      ? `; cut by the capture: ${payload.length} of ${payloadBytes} bytes`
      : '; cut by the capture';
  }
  return unchecked === undefined ? '' : '; ICRC not checked: IP has options';
}

/** Words for an opcode: RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE becomes WRITE only with immediate. */
function operationWords(opcode: number): string {
  const { name, service } = opcodeRow(opcode)!;
  const [operation, ...rest] = name
    .slice(service.length + 1)
    .replace('RDMA_', '')
    .split('_');
  return [operation!, ...rest.map((word) => word.toLowerCase())].join(' ');
}

/** A congestion mark: of the BTH, or of the IP header (RFC 3168, 5: 3 is CE). */
function markWords({ bth, ipv4, ipv6 }: WirePacket): string {
  return bth.fecn === 1 || ipv4?.ecn === 3 || ipv6?.ecn === 3 ? ', marked for congestion' : '';
}

function requestWords(packet: WirePacket): string {
  const { bth, headers, payloadBytes } = packet;
  const { RETH: reth, ImmDt: immediate, IETH: invalidated, DETH: deth } = headers;
  const atomic = headers.AtomicETH ?? headers.MaskedAtomicETH;
  const parts = [`${operationWords(bth.opcode)}, PSN ${bth.psn}`];
  const management = madWords(packet);
  if (management !== undefined) parts.push(management);
  if (payloadBytes > 0) parts.push(`${payloadBytes} bytes`);
  if (reth !== undefined)
    parts.push(`${reth.dmaLength} at ${hex(reth.virtualAddress)} key ${hex(reth.rKey)}`);
  if (atomic !== undefined) parts.push(`at ${hex(atomic.virtualAddress)} key ${hex(atomic.rKey)}`);
  if (immediate !== undefined) parts.push(`immediate ${hex(immediate.immediate)}`);
  if (invalidated !== undefined) parts.push(`invalidates key ${hex(invalidated.rKey)}`);
  if (deth !== undefined) parts.push(`from QP ${deth.sourceQp} Q_Key ${hex(deth.queueKey)}`);
  if (bth.solicitedEvent === 1) parts.push('solicited');
  return `${parts.join(', ')}${markWords(packet)}`;
}

function answerWords({ bth, headers, payloadBytes }: WirePacket): string {
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
  if (opcodeRow(bth.opcode)!.name.endsWith('ACKNOWLEDGE')) return `ACK of all to ${psn}`;
  return `${operationWords(bth.opcode)}, ${psn}, ${payloadBytes} bytes`;
}
