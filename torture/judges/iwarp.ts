/**
 * The streams of iWARP on a cable, as a stranger reads them, against the RFCs:
 *
 *     capture of both ends ─► segments (segment.ts) ─► by connection and end: TCP (tcp-end.ts)
 *        ─► bytes of both directions ─► MPA: request, reply, markers, CRCs (mpa.ts) ─► DDP, RDMAP: messages, READs, Terminate (messages.ts)
 *
 * It shares nothing with protocol/, hw/ or the analyser. Sources: RFC 9293, 5040, 5041, 5044, 6581.
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import { isOverIwarp } from '../ethernet-cable.ts';
import type { Played } from '../run-story.ts';
import { type CableEnd, cableEndsOf, copyNote, hasNote, isIntact } from './ethernet/cable-end.ts';
import {
  judgeReads,
  judgeResponses,
  judgeTerminate,
  type Message,
  messagesOf,
  type Timed,
} from './iwarp/messages.ts';
import { type Fpdu, fpdusOf, type MpaFrame, mpaFrameOf } from './iwarp/mpa.ts';
import { type Segment, segmentIn } from './iwarp/segment.ts';
import { TcpEnd, type TcpRules } from './iwarp/tcp-end.ts';
import { traitsOf } from './scene-traits.ts';

/** Later findings mostly repeat the first. */
const findingsMax = 3;
/** Beyond the delay of an ACK itself: turns at the port, the engine, contexts in host memory. */
const ackSlackPs = BigInt(psPerMs);

export function judgeIwarp(played: Played): string[] {
  const { story, capture, lastPs } = played;
  if (!isOverIwarp(story) || capture === undefined) return [];
  const ends = cableEndsOf(capture);
  if (ends.length !== 2 || ends.some(({ isWhole }) => !isWhole)) return [];
  const rules = rulesOf(played);
  return ends
    .flatMap((end) => new CardEnd(end, rules).judge(lastPs).map((what) => `node ${end.node}, ${what}`))
    .slice(0, findingsMax);
}

function rulesOf({ story, report, config, error }: Played): TcpRules {
  const { climate, faults } = story;
  const { iwarp, coreClockMHz } = config.hca;
  const { mtuBytes, gigabitsPerSecond } = config.ethernet;
  const fields = ['port', 'cable', 'device', 'reset', 'catastrophic'];
  const isBroken = climate === 'broken' || faults.some((fault) => fields.some((field) => field in fault));
  const isDropped = report.nodes.some(({ hca }) => (hca.iwarp?.tcp['droppedForRoom'] ?? 0) > 0);
  const framePs = ((mtuBytes + 50) * 8000) / gigabitsPerSecond + (1e6 / coreClockMHz) * iwarp.sendCycles;
  const isLate = faults.some((fault) => ['late', 'reordered'].includes(String(fault['packet'])));
  const hasGaps =
    isBroken || isDropped || isLate || error !== undefined || traitsOf(story).hasResets === true;
  return {
    isDisordered: faults.some((fault) => fault['packet'] === 'reordered'),
    hasGaps,
    // With its right FCS, and a wrong checksum.
    hasDamage: faults.some(({ crc }) => crc === 'icrc'),
    acknowledgePs: BigInt(iwarp.delayedAckUs * psPerUs) + ackSlackPs,
    queuePs: BigInt(Math.ceil((iwarp.transmitFrames + 2) * framePs)) + BigInt(10 * psPerUs),
    timeoutPs: isBroken || isLate ? 0n : BigInt(iwarp.retransmitMinUs * psPerUs),
    initialSegments: iwarp.initialWindowSegments,
  };
}

interface Passed {
  readonly atPs: bigint;
  readonly isSent: boolean;
  readonly segment: Segment;
}

/** All connections at one end of the cable. */
class CardEnd {
  readonly #end: CableEnd;
  readonly #rules: TcpRules;
  /** By addresses and ports: the present connection. */
  readonly #open = new Map<string, TcpEnd>();
  readonly #all: { readonly name: string; readonly end: TcpEnd }[] = [];

  constructor(end: CableEnd, rules: TcpRules) {
    this.#end = end;
    this.#rules = rules;
  }

  judge(lastPs: bigint): string[] {
    for (const { atPs, isSent, segment } of this.#passed()) {
      // A receiver drops a segment with a wrong checksum, so that an ACK of it is an ACK of nothing.
      if (segment.wrong.length > 0 && (!isSent || this.#rules.hasDamage)) continue;
      const [here, there] = isSent ? [segment.from, segment.to] : [segment.to, segment.from];
      const name = `${here} to ${there}`;
      const connection = this.#connectionOf(name, segment, isSent);
      const found = [...(isSent ? segment.wrong : [])];
      if (connection === undefined) {
        if (isSent && !segment.isReset && !this.#rules.hasGaps) found.push('it belongs to no connection');
      } else found.push(...(isSent ? connection.sent(segment, atPs) : connection.received(segment, atPs)));
      if (found.length > 0)
        return [
          `connection ${name}, the segment ${isSent ? 'sent' : 'received'} at ${atPs} ps: ${found.join('; ')}`,
        ];
    }
    return this.#all.flatMap(({ name, end }) =>
      [...end.ended(lastPs), ...judgeStreams(end)].map((what) => `connection ${name}: ${what}`),
    );
  }

  /** Returns whole segments that arrived and each segment that left, once, by time; arrivals of an instant precede what leaves at it. */
  #passed(): Passed[] {
    const of = (isSent: boolean): Passed[] =>
      (isSent
        ? this.#end.sent.filter(({ note }) => !hasNote(note, copyNote))
        : this.#end.received.filter(({ note }) => isIntact(note))
      ).flatMap(({ bytes, atPs }) => {
        const segment = segmentIn(bytes);
        return segment === undefined ? [] : [{ atPs, isSent, segment }];
      });
    return [...of(false), ...of(true)].sort((left, right) =>
      left.atPs < right.atPs ? -1 : left.atPs > right.atPs ? 1 : 0,
    );
  }

  /** A SYN without ACK begins a connection where none is open. */
  #connectionOf(name: string, { isSyn, isAck, sequence }: Segment, isSent: boolean): TcpEnd | undefined {
    const known = this.#open.get(name);
    if (!isSyn || isAck) return known;
    const initial = isSent ? known?.own.initial : known?.peer.initial;
    if (known !== undefined && (!known.isOver || initial === sequence)) return known;
    const end = new TcpEnd(isSent, this.#rules);
    this.#open.set(name, end);
    this.#all.push({ name, end });
    return end;
  }
}

/** Agreement of both frames of MPA: RFC 5044, 7.1; RFC 6581, 9. */
interface Agreement {
  readonly isPeerToPeer: boolean;
  readonly hasCrc: boolean;
  readonly outboundReads: number | undefined;
}

function judgeStreams(end: TcpEnd): string[] {
  const wrong: string[] = [];
  const { own, peer, isInitiator } = end;
  const [ownBytes, peerBytes] = [own.stream.bytes, peer.stream.bytes];
  const ownFrame = mpaFrameOf(ownBytes, !isInitiator, wrong);
  // The other end judges the bytes of the peer.
  const peerFrame = mpaFrameOf(peerBytes, isInitiator, []);
  if (ownFrame === undefined || peerFrame === undefined || wrong.length > 0) return wrong;
  const [request, reply] = isInitiator ? [ownFrame, peerFrame] : [peerFrame, ownFrame];
  const agreement = agreementOf(request, reply, isInitiator, wrong);
  if (own.stream.completePs(ownFrame.bytes) < peer.stream.completePs(peerFrame.bytes) && !isInitiator)
    wrong.push('it replies before the request has arrived');
  const { hasCrc } = agreement;
  const sent = fpdusOf(ownBytes, ownFrame.bytes, { hasMarkers: peerFrame.wantsMarkers, hasCrc }, wrong);
  const arrived = fpdusOf(peerBytes, peerFrame.bytes, { hasMarkers: ownFrame.wantsMarkers, hasCrc }, []);
  if (reply.isRejected && sent.length > 0) wrong.push('FPDUs on a connection that was rejected');
  const messages = messagesOf(sent, wrong);
  if (wrong.length > 0) return wrong;
  return judgeMessages(end, { messages, sent, arrived, agreement });
}

function agreementOf(request: MpaFrame, reply: MpaFrame, isInitiator: boolean, wrong: string[]): Agreement {
  if (reply.revision !== request.revision && !reply.isRejected)
    wrong.push(`a reply of revision ${reply.revision} to one of ${request.revision}`);
  if (!reply.isRejected && request.wantsCrc && !reply.wantsCrc)
    wrong.push('a reply without the CRC that was asked for');
  if (!reply.isRejected && reply.reads !== undefined && request.reads !== undefined) {
    if (reply.reads.outbound > request.reads.inbound)
      wrong.push(`a reply with ORD ${reply.reads.outbound} to an IRD of ${request.reads.inbound}`);
    if (reply.isPeerToPeer !== request.isPeerToPeer) wrong.push('a reply with another mode');
  }
  const [mine, theirs] = isInitiator ? [request.reads, reply.reads] : [reply.reads, request.reads];
  return {
    isPeerToPeer: request.isPeerToPeer && reply.isPeerToPeer,
    hasCrc: request.wantsCrc || reply.wantsCrc,
    outboundReads: mine && theirs && Math.min(mine.outbound, theirs.inbound),
  };
}

interface Streams {
  readonly messages: readonly Message[];
  readonly sent: readonly Fpdu[];
  readonly arrived: readonly Fpdu[];
  readonly agreement: Agreement;
}

function judgeMessages(end: TcpEnd, { messages, sent, arrived, agreement }: Streams): string[] {
  const { own, peer, isInitiator } = end;
  const peerMessages = messagesOf(arrived, []);
  const mine: Timed = { messages, completePs: (place) => own.stream.completePs(place) };
  const theirs: Timed = { messages: peerMessages, completePs: (place) => peer.stream.completePs(place) };
  const found = [...judgeReads(mine, theirs, agreement.outboundReads), ...judgeResponses(theirs, mine)];
  const [first] = messages;
  const isReady =
    first === undefined ||
    first.lengthBytes === 0 ||
    first.opcode === 'READ_REQUEST' ||
    first.opcode === 'TERMINATE';
  if (isInitiator && agreement.isPeerToPeer && !isReady)
    found.push('it begins with a message that has payload, in peer-to-peer mode');
  // RFC 5044, 7.1.2: a responder sends nothing before an FPDU of the initiator.
  const [firstSent, firstArrived] = [sent[0], arrived[0]];
  if (
    !isInitiator &&
    firstSent !== undefined &&
    (firstArrived === undefined || mine.completePs(firstSent.end) < theirs.completePs(firstArrived.end))
  )
    found.push('a responder sends an FPDU before it has one of the initiator');
  const terminate = messages.find(({ opcode }) => opcode === 'TERMINATE');
  if (terminate !== undefined) found.push(...judgeTerminate(terminate, arrived));
  return found;
}
