/**
 * The messages of both directions of a stream at one of its ends, as a stranger reads them from DDP segments.
 *
 *     segments ─► queue, MSN, MO │ STag, offset ─► messages, cut by the L flag ─► READs answered in order, no more than ORD ─► Terminate last
 *
 * Sources: RFC 5041, 4 and 5; RFC 5040, 4 and 5; RFC 6581, 9.
 */
import type { Fpdu } from './mpa.ts';

const opcodes = [
  'WRITE',
  'READ_REQUEST',
  'READ_RESPONSE',
  'SEND',
  'SEND_INV',
  'SEND_SE',
  'SEND_SE_INV',
  'TERMINATE',
] as const;
type Opcode = (typeof opcodes)[number];

/** Queue of each untagged message. */
const queueOf: Readonly<Partial<Record<Opcode, number>>> = {
  ...{ SEND: 0, SEND_INV: 0, SEND_SE: 0, SEND_SE_INV: 0 },
  ...{ READ_REQUEST: 1, TERMINATE: 2 },
};

const taggedBytes = 14;
const untaggedBytes = 18;
const readRequestBytes = 28;

interface Segment {
  readonly opcode: Opcode;
  readonly isTagged: boolean;
  readonly isLast: boolean;
  readonly tag: number;
  readonly offset: bigint;
  readonly queue: number;
  readonly number: number;
  readonly messageOffset: number;
  readonly payload: Uint8Array;
}

/** A whole message. */
export interface Message {
  readonly opcode: Opcode;
  /** STag and offset of a tagged one; the invalidated STag. */
  readonly tag: number;
  readonly offset: bigint;
  readonly lengthBytes: number;
  /** Payload of the last segment. */
  readonly payload: Uint8Array;
  /** Places of its first FPDU and after its last one. */
  readonly from: number;
  readonly end: number;
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

function segmentOf(bytes: Uint8Array, wrong: string[]): Segment | undefined {
  const isTagged = (bytes[0]! & 0x80) !== 0;
  const headerBytes = isTagged ? taggedBytes : untaggedBytes;
  if (bytes.length < headerBytes) {
    wrong.push(`a DDP segment of ${bytes.length} bytes`);
    return undefined;
  }
  const [ddp, rdmap] = [bytes[0]!, bytes[1]!];
  const opcode = opcodes[rdmap & 0xf];
  if ((ddp & 3) !== 1 || rdmap >> 6 !== 1)
    wrong.push(`versions of DDP and RDMAP ${ddp & 3} and ${rdmap >> 6}`);
  if ((ddp & 0x3c) !== 0 || (rdmap & 0x30) !== 0) wrong.push('reserved bits of a DDP header');
  if (opcode === undefined) {
    wrong.push(`opcode ${rdmap & 0xf} of RDMAP`);
    return undefined;
  }
  const view = viewOf(bytes);
  return {
    opcode,
    isTagged,
    isLast: (ddp & 0x40) !== 0,
    tag: view.getUint32(2),
    offset: isTagged ? view.getBigUint64(6) : 0n,
    queue: isTagged ? -1 : view.getUint32(6),
    number: isTagged ? 0 : view.getUint32(10),
    messageOffset: isTagged ? 0 : view.getUint32(14),
    payload: bytes.subarray(headerBytes),
  };
}

/** Part of a message of which more segments are to come. */
interface Begun {
  readonly first: Segment;
  readonly from: number;
  lengthBytes: number;
}

/** Returns the messages of one direction, and adds contradictions of RFC 5041 to `wrong`. */
export function messagesOf(fpdus: readonly Fpdu[], wrong: string[]): Message[] {
  const messages: Message[] = [];
  /** By queue, and of tagged messages by opcode: those of one are not mixed. */
  const begun = new Map<number | string, Begun>();
  const numbers = [1, 1, 1];
  for (const { segment: bytes, from, end } of fpdus) {
    const segment = segmentOf(bytes, wrong);
    if (segment === undefined) break;
    const { opcode, isTagged, queue, tag, offset, payload } = segment;
    if (messages.at(-1)?.opcode === 'TERMINATE') wrong.push(`${opcode} after a Terminate`);
    if (isTagged !== (queueOf[opcode] === undefined) || (!isTagged && queue !== queueOf[opcode]))
      wrong.push(`${opcode} ${isTagged ? 'with a tag' : `in queue ${queue}`}`);
    const chain = isTagged ? opcode : queue;
    const before = begun.get(chain);
    const lengthBytes = before?.lengthBytes ?? 0;
    if (isTagged) {
      if (
        before !== undefined &&
        (tag !== before.first.tag || offset !== before.first.offset + BigInt(lengthBytes))
      )
        wrong.push(`${opcode} continues at ${tag.toString(16)}:${offset.toString(16)}`);
    } else {
      if (segment.number !== numbers[queue])
        wrong.push(`MSN ${segment.number} of queue ${queue}, due ${numbers[queue]}`);
      if (segment.messageOffset !== lengthBytes)
        wrong.push(`MO ${segment.messageOffset}, due ${lengthBytes}`);
      if (before !== undefined && opcode !== before.first.opcode)
        wrong.push(`${opcode} continues ${before.first.opcode}`);
      const hasTag = opcode === 'SEND_INV' || opcode === 'SEND_SE_INV';
      if (!hasTag && tag !== 0) wrong.push(`${opcode} that invalidates`);
    }
    if (wrong.length > 0) {
      wrong[0] = `${wrong[0]} in the FPDU at place ${from}`;
      break;
    }
    const of = before ?? { first: segment, from, lengthBytes: 0 };
    of.lengthBytes += payload.length;
    if (!segment.isLast) {
      begun.set(chain, of);
      continue;
    }
    begun.delete(chain);
    if (!isTagged) numbers[queue]!++;
    const { tag: firstTag, offset: firstOffset } = of.first;
    messages.push({
      opcode,
      tag: firstTag,
      offset: firstOffset,
      lengthBytes: of.lengthBytes,
      payload,
      from: of.from,
      end,
    });
  }
  return messages;
}

/** Times at one end: when bytes up to a place had left it, or had arrived. */
export interface Timed {
  readonly messages: readonly Message[];
  completePs(end: number): bigint;
}

/** READs of one end and their responses. @param outboundReads ORD as agreed; undefined if nothing was */
export function judgeReads(asked: Timed, answered: Timed, outboundReads: number | undefined): string[] {
  const requests = asked.messages.filter(({ opcode }) => opcode === 'READ_REQUEST');
  const responses = answered.messages.filter(({ opcode }) => opcode === 'READ_RESPONSE');
  if (responses.length > requests.length)
    return [`${responses.length} READ responses of ${requests.length} requests`];
  for (const [at, request] of requests.entries()) {
    if (request.lengthBytes !== readRequestBytes) return [`a READ request of ${request.lengthBytes} bytes`];
    const sentPs = asked.completePs(request.end);
    const waiting = requests
      .slice(0, at)
      .filter(
        (_, earlier) =>
          responses[earlier] === undefined || answered.completePs(responses[earlier].end) > sentPs,
      );
    if (outboundReads !== undefined && waiting.length >= outboundReads)
      return [`READ ${at} leaves with ${waiting.length} outstanding, and ORD is ${outboundReads}`];
    const response = responses[at];
    if (response === undefined) continue;
    const view = viewOf(request.payload);
    const [tag, offset, lengthBytes] = [view.getUint32(0), view.getBigUint64(4), view.getUint32(12)];
    if (response.lengthBytes !== lengthBytes)
      return [`READ ${at} of ${lengthBytes} bytes is answered by ${response.lengthBytes}`];
    // STag and offset of a message without payload are not checked (RFC 5041, 5.2).
    if (lengthBytes > 0 && (response.tag !== tag || response.offset !== offset))
      return [
        `the response of READ ${at} goes to ${response.tag.toString(16)}:${response.offset.toString(16)}`,
      ];
  }
  return [];
}

/** At the responder: each response leaves after its request has arrived. */
export function judgeResponses(asked: Timed, answered: Timed): string[] {
  const requests = asked.messages.filter(({ opcode }) => opcode === 'READ_REQUEST');
  const responses = answered.messages.filter(({ opcode }) => opcode === 'READ_RESPONSE');
  const early = responses.findIndex(
    ({ end }, at) =>
      requests[at] === undefined || answered.completePs(end) < asked.completePs(requests[at].end),
  );
  return early < 0 ? [] : [`READ response ${early} leaves before its request has arrived`];
}

/** Layers, error types and the greatest known codes: RFC 5040, 4.8, with RFC 5041, 7, and RFC 5044, 8, RFC 6581, 10. */
const isKnownError = (layer: number, type: number, code: number): boolean => {
  if (layer === 0) {
    if (type === 0) return code === 0;
    if (type === 1) return code <= 4 || code === 9 || code === 0xff;
    return type === 2 && ((code >= 5 && code <= 9) || code === 0xff);
  }
  if (layer === 1) {
    if (type === 0) return code === 0;
    if (type === 1) return code <= 4;
    return type === 2 && code >= 1 && code <= 6;
  }
  return layer === 2 && type === 0 && code >= 1 && code <= 7;
};

/**
 * The Terminate that an end sent: its error, and the headers that it quotes, which are those of a segment that had arrived there.
 * @param arrived FPDUs that had arrived
 */
export function judgeTerminate({ payload }: Message, arrived: readonly Fpdu[]): string[] {
  if (payload.length < 4) return [`a Terminate of ${payload.length} bytes`];
  const [layer, type, code] = [payload[0]! >> 4, payload[0]! & 0xf, payload[1]!];
  const [hasLength, hasDdp, hasRead] = [0x80, 0x40, 0x20].map((bit) => (payload[2]! & bit) !== 0);
  const name = `a Terminate of layer ${layer}, type ${type}, code ${code}`;
  if (!isKnownError(layer, type, code)) return [`${name}, which no document defines`];
  if ((payload[2]! & 0x1f) !== 0 || payload[3] !== 0) return [`${name} with reserved bits`];
  // Figure 10: errors of remote access and operation, and all of DDP's that concern a segment, quote it.
  const isOfSegment = layer < 2 && type > 0;
  if (hasDdp !== hasLength || (hasDdp && !isOfSegment) || (hasRead && !(hasDdp && layer === 0)))
    return [`${name} with the flags ${payload[2]! >> 5}`];
  if (isOfSegment && !hasDdp) return [`${name} without the header of its segment`];
  if (!hasDdp) return payload.length === 4 ? [] : [`${name} of ${payload.length} bytes`];
  const isTagged = (payload[6]! & 0x80) !== 0;
  const headerBytes = isTagged ? taggedBytes : untaggedBytes;
  const due = 6 + headerBytes + (hasRead ? readRequestBytes : 0);
  if (payload.length !== due) return [`${name} of ${payload.length} bytes, due ${due}`];
  if (layer === 1 && isTagged !== (type === 1)) return [`${name} of a segment of the other kind`];
  const quotedBytes = viewOf(payload).getUint16(4);
  const header = payload.subarray(6, 6 + headerBytes);
  const isQuoted = ({ segment }: Fpdu): boolean =>
    segment.length === quotedBytes && header.every((byte, at) => segment[at] === byte);
  const quoted = arrived.filter(isQuoted);
  if (quoted.length === 0) return [`${name} quotes a segment of ${quotedBytes} bytes that has not arrived`];
  if (!hasRead) return [];
  // A READ that was served in part is quoted with its remaining bytes.
  const view = viewOf(payload);
  const read = 6 + untaggedBytes;
  const isRead = quoted.some(({ segment }) => {
    const asked = viewOf(segment);
    return (
      view.getUint32(read) === asked.getUint32(untaggedBytes) &&
      view.getUint32(read + 16) === asked.getUint32(untaggedBytes + 16) &&
      view.getUint32(read + 12) <= asked.getUint32(untaggedBytes + 12)
    );
  });
  return isRead ? [] : [`${name} quotes a READ that has not arrived`];
}
