/**
 * Linux' Soft-iWARP as the second source: every FPDU of its captures is made again by our sender from the fields that this spec reads, and is
 * read by our receiver. The decoder here shares no code with either; CRCs are the analyser's.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCapture } from '../../analyser/capture/capture-reader.ts';
import { crc32c as judgeCrc } from '../../analyser/capture/iwarp/crc32c.ts';
import { toHex, viewOf } from '../../base/index.ts';
import {
  IwarpError,
  OutboundMessage,
  parseMpaFrame,
  RdmapOpcode,
  RdmapReceiver,
  RdmapSender,
  ReadRequest,
  ReadyMessage,
} from './index.ts';
import { RecordingOwner } from './testing/recording-owner.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.startsWith('siw-'));

interface Segment {
  readonly isFromClient: boolean;
  readonly sequence: number;
  readonly payload: Uint8Array;
}

/** TCP segments with payload of a capture of Ethernet and IPv4, in order of time. */
function segmentsOf(name: string): Segment[] {
  const { frames } = readCapture(readFileSync(new URL(name, folder)));
  let clientPort = -1;
  return frames.flatMap(({ bytes }) => {
    const view = viewOf(bytes);
    if (view.getUint16(12) !== 0x0800 || bytes[23] !== 6) return [];
    const tcp = 14 + (bytes[14]! & 15) * 4;
    if (clientPort < 0) clientPort = view.getUint16(tcp);
    const from = tcp + (bytes[tcp + 12]! >> 4) * 4;
    const to = 14 + view.getUint16(16);
    if (from === to) return [];
    const isFromClient = view.getUint16(tcp) === clientPort;
    return [{ isFromClient, sequence: view.getUint32(tcp + 4), payload: bytes.slice(from, to) }];
  });
}

/**
 * Returns the bytes of both directions in the order in which a receiver gets them: lost bytes follow when they are
 * retransmitted.
 */
function streamsOf(segments: readonly Segment[]): Segment[] {
  const next = new Map<boolean, number>();
  const kept: Segment[] = [];
  const inOrder: Segment[] = [];
  for (const segment of segments) {
    kept.push(segment);
    for (let found = true; found; ) {
      const index = kept.findIndex(
        ({ isFromClient, sequence }) => (next.get(isFromClient) ?? sequence) === sequence,
      );
      found = index >= 0;
      if (!found) break;
      const [{ isFromClient, sequence, payload }] = kept.splice(index, 1) as [Segment];
      next.set(isFromClient, (sequence + payload.length) >>> 0);
      inOrder.push({ isFromClient, sequence, payload });
    }
  }
  return inOrder;
}

interface Message {
  readonly opcode: number;
  readonly fpdus: Uint8Array[];
  readonly payload: number[];
  readonly view: DataView;
}

/** FPDUs of a direction, one to a segment of TCP as siw sends them, as messages. */
function messagesOf(fpdus: readonly Uint8Array[]): Message[] {
  const messages: Message[] = [];
  let open: Message | undefined;
  for (const fpdu of fpdus) {
    const view = viewOf(fpdu);
    const control = fpdu[2]!;
    const isTagged = (control & 0x80) !== 0;
    open ??= { opcode: fpdu[3]! & 15, fpdus: [], payload: [], view };
    open.fpdus.push(fpdu);
    open.payload.push(...fpdu.subarray(2 + (isTagged ? 14 : 18), 2 + view.getUint16(0)));
    if ((control & 0x40) === 0) continue;
    messages.push(open);
    open = undefined;
  }
  return messages;
}

/** siw leaves bytes of its memory in the pad, which RFC 5044 wants to be zero: the FPDU as it should be. */
function withZeroPad(fpdu: Uint8Array, usesCrc: boolean): Uint8Array {
  const fixed = Uint8Array.from(fpdu);
  const end = 2 + viewOf(fixed).getUint16(0);
  fixed.fill(0, end, fixed.length - 4);
  if (usesCrc) viewOf(fixed).setUint32(fixed.length - 4, judgeCrc(fixed.subarray(0, fixed.length - 4)), true);
  return fixed;
}

const high = (view: DataView, at: number): number => view.getUint32(at);
const offsetAt = (view: DataView, at: number): number => high(view, at) * 2 ** 32 + view.getUint32(at + 4);

/** Makes a message again by our sender. */
function remake(sender: RdmapSender, { opcode, payload, view }: Message, segmentBytes: number): Uint8Array[] {
  const target = new Uint8Array(9000);
  const bytes = Uint8Array.from(payload);
  if (opcode === RdmapOpcode.READ_REQUEST) {
    const fields = viewOf(bytes);
    const request = new ReadRequest();
    request.sinkTag = fields.getUint32(0);
    request.sinkOffset = offsetAt(fields, 4);
    request.lengthBytes = fields.getUint32(12);
    request.sourceTag = fields.getUint32(16);
    request.sourceOffset = offsetAt(fields, 20);
    return [target.slice(0, sender.writeReadRequest(target, 0, request))];
  }
  const message = new OutboundMessage();
  if ((view.getUint8(2) & 0x80) !== 0) {
    sender.beginTagged(message, opcode, view.getUint32(4), offsetAt(view, 8), 0, bytes.length);
  } else {
    sender.beginSend(message, opcode, view.getUint32(4), bytes.length);
    if (opcode === RdmapOpcode.TERMINATE) {
      message.queue = 2;
      message.message = 1;
    }
  }
  const made: Uint8Array[] = [];
  while (!message.isWritten) {
    const count = sender.nextPayloadBytes(message, segmentBytes);
    const length = sender.writeSegment(message, target, 0, bytes, message.writtenBytes, count);
    made.push(target.slice(0, length));
  }
  return made;
}

interface Direction {
  readonly owner: RecordingOwner;
  receiver: RdmapReceiver | undefined;
  sender: RdmapSender | undefined;
  usesCrc: boolean;
  readonly fpdus: Uint8Array[];
}

/** Plays a capture into receivers of both sides. */
function play(name: string): {
  client: Direction;
  server: Direction;
  segmentBytes: number;
  isPeerToPeer: boolean;
} {
  const direction = (): Direction => ({
    owner: new RecordingOwner(),
    receiver: undefined,
    sender: undefined,
    usesCrc: false,
    fpdus: [],
  });
  const client = direction();
  const server = direction();
  let isPeerToPeer = false;
  for (const { isFromClient, payload } of streamsOf(segmentsOf(name))) {
    const [from, opposite] = isFromClient ? [client, server] : [server, client];
    if (from.receiver === undefined) {
      const parsed = parseMpaFrame(payload, !isFromClient);
      if (parsed.kind !== 'frame') throw new Error(`${name}: ${parsed.kind}`);
      expect([parsed.frame.revision, parsed.frame.wantsMarkers]).toEqual([2, false]);
      isPeerToPeer = parsed.frame.enhanced!.isPeerToPeer;
      from.usesCrc = parsed.frame.wantsCrc;
      from.owner.openBytes = 16_384;
      from.owner.postedBytes = 8192;
      from.receiver = new RdmapReceiver(from.owner, {
        hasMarkers: false,
        usesCrc: from.usesCrc,
        inboundReads: 4,
        outboundReads: 4,
        hasExtensions: false,
        awaitedReady: isFromClient && isPeerToPeer ? ReadyMessage.WRITE : ReadyMessage.NONE,
        earlySegmentsMax: 0,
      });
      continue;
    }
    from.fpdus.push(payload);
    const view = viewOf(payload);
    if ((payload[3]! & 15) === RdmapOpcode.READ_REQUEST)
      opposite.receiver!.outstanding.addRead(view.getUint32(20), offsetAt(view, 24), 0, view.getUint32(32));
    from.receiver.reader.take(payload, 0, payload.length);
    if ((payload[3]! & 15) === RdmapOpcode.READ_RESPONSE && (payload[2]! & 0x40) !== 0)
      opposite.receiver!.requestServed();
  }
  return { client, server, segmentBytes: name.includes('mtu4500') ? 4448 : 1448, isPeerToPeer };
}

describe.each(names.filter((name) => !name.includes('no-listener')))('%s', (name) => {
  const { client, server, segmentBytes } = play(name);
  const directions = [client, server];

  it('RFC 5040, 5041, 5044: every FPDU is made again from its fields', () => {
    let count = 0;
    for (const { fpdus, usesCrc } of directions) {
      const sender = new RdmapSender({ hasMarkers: false, usesCrc, effectiveSegmentBytes: segmentBytes });
      for (const message of messagesOf(fpdus)) {
        const made = remake(sender, message, segmentBytes);
        expect(made.map(toHex)).toEqual(message.fpdus.map((fpdu) => toHex(withZeroPad(fpdu, usesCrc))));
        count += made.length;
      }
    }
    expect(count).toBeGreaterThan(1);
  });

  it('RFC 5040, 5041, 5044: every FPDU is read, and its payload is placed', () => {
    for (const { owner, fpdus } of directions) {
      expect(owner.failure).toBeUndefined();
      const wanted = fpdus.flatMap((fpdu) => {
        const [control, opcode] = [fpdu[2]!, fpdu[3]! & 15];
        const payload = fpdu.subarray((control & 0x80) !== 0 ? 16 : 20, 2 + viewOf(fpdu).getUint16(0));
        const isPlaced = opcode !== RdmapOpcode.READ_REQUEST && opcode !== RdmapOpcode.TERMINATE;
        return isPlaced && payload.length > 0 ? [toHex(payload)] : [];
      });
      expect(owner.placed).toEqual(wanted);
      expect(owner.log).toHaveLength(messagesOf(fpdus).length);
    }
  });
});

describe('siw', () => {
  it.each([
    ['siw-terminate-write-stag-crc-ipv4.pcap', IwarpError.TAGGED_STAG_INVALID, 0x64],
    ['siw-terminate-write-stag-nocrc-ipv4.pcap', IwarpError.TAGGED_STAG_INVALID, 0x64],
    ['siw-terminate-read-stag-nocrc-ipv4.pcap', IwarpError.PROTECTION_STAG_INVALID, 0],
  ])('has nibbles and flags of its Terminate swapped, which is read: %s', (name, error, segmentBytes) => {
    expect(play(name).server.owner.notice).toEqual({ error, isMirrored: true, segmentBytes });
  });

  it('RFC 6581, 4.3: begins peer-to-peer mode with a WRITE without payload', () => {
    const { client, isPeerToPeer } = play('siw-p2p-crc-mtu4500-ipv4.pcap');
    expect(isPeerToPeer).toBe(true);
    expect(client.owner.log[0]).toBe('ready');
  });
});
