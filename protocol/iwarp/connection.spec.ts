/**
 * Two cards with a connection that kernels have opened: RDMAP over DDP over MPA over TCP, over a link that loses, doubles and delays segments.
 * This is also the shape of a card's code: one TcpConnection, one RdmapSender, one RdmapReceiver and one state for each connection.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  carryOn,
  deadlinesDue,
  type EstablishedState,
  Flag,
  noTcpCounts,
  output,
  plainTcp,
  type SegmentFields,
  segmentArrived,
  sequenceAdd,
  TcpConnection,
} from '../tcp/index.ts';
import { type Fate, Link, limits } from '../tcp/testing/card-link.ts';
import {
  agreementOfReply,
  concludeReply,
  encodeMpaFrame,
  type MpaAgreement,
  type MpaParameters,
  OutboundMessage,
  PlacingStream,
  parseMpaFrame,
  type QuotedSegment,
  RdmapOpcode,
  RdmapReceiver,
  RdmapSender,
  ReadRequest,
  ReadyMessage,
  replyOf,
  requestOf,
  type SegmentBuffer,
  type SegmentHeader,
  type StreamState,
  stateAfter,
} from './index.ts';
import { RecordingOwner } from './testing/recording-owner.ts';

const second = 1e12;
const segmentBytes = 1448;
const extensions = { ...plainTcp, hasSack: true, hasTimestamps: true };

interface Slot extends SegmentBuffer {
  length: number;
}

const emptySlot = (): Slot => ({ sequence: 0, length: 0, isSent: false, bytes: new Uint8Array(0), start: 0 });

/** The TCP of an end. The segments are buffers that a sender has written FPDUs to. */
class End extends TcpConnection<undefined, Slot> {
  readonly room = 64;
  readonly hasSendRoom = true;
  readonly received: PlacingStream<Slot>;
  readonly #link: Link;
  readonly #peer: () => End;

  constructor(link: Link, peer: () => End, receiver: RdmapReceiver) {
    super({
      limits,
      extensions,
      counts: noTcpCounts(),
      initialSequence: 0,
      isPassive: false,
      segmentBytes,
      defaultSegmentBytes: 536,
    });
    this.#link = link;
    this.#peer = peer;
    this.received = new PlacingStream<Slot>(0, { keptMax: 16, unreadMax: 0, release: () => undefined });
    this.received.attach(receiver.reader);
    this.receiveLimitBytes = 0x4_0000;
  }

  queue(bytes: Uint8Array): void {
    this.sendQueue.push({ sequence: this.queueEnd, length: bytes.length, isSent: false, bytes, start: 0 });
    this.queueEnd = sequenceAdd(this.queueEnd, bytes.length);
  }

  nowPs(): number {
    return this.#link.nowPs;
  }

  isHeld(): boolean {
    return false;
  }

  sendData(_actor: undefined, fields: SegmentFields, slot: Slot): boolean {
    const payload = { ...slot };
    this.#link.carry(fields, slot.length, (segment) => {
      const peer = this.#peer();
      if (peer.state !== 'CLOSED') segmentArrived(undefined, peer, segment, { ...payload });
    });
    return true;
  }

  sendControl(actor: undefined, fields: SegmentFields): boolean {
    return this.sendData(actor, fields, emptySlot());
  }

  takeBuffer(): Slot {
    return emptySlot();
  }

  deadlineChanged(): void {
    this.#link.at(this.deadlinePs, () => deadlinesDue(undefined, this));
  }

  established(): boolean {
    return true;
  }

  allocated(): void {}
  freed(): void {}
  copied(): void {}
  release(): void {}
  discard(): void {}
  pathConfirmed(): void {}
  readable(): void {}
  writable(): void {}
  throttle(): void {}
  timeWaits(): void {}
  forget(): void {}
}

/** An end of a stream: serves READs from a region, and sends a Terminate after an error. */
class Card extends RecordingOwner {
  readonly receiver: RdmapReceiver;
  readonly sender: RdmapSender;
  readonly tcp: End;
  state: StreamState = stateAfter('IDLE', 'established');

  constructor(link: Link, peer: () => Card, agreement: MpaAgreement, awaitedReady: number) {
    super();
    const { usesCrc, sendsMarkers, receivesMarkers, inboundReads, outboundReads } = agreement;
    this.receiver = new RdmapReceiver(this, {
      ...{ hasMarkers: receivesMarkers, usesCrc, inboundReads, outboundReads },
      ...{ hasExtensions: false, awaitedReady, earlySegmentsMax: 32 },
    });
    this.sender = new RdmapSender({ hasMarkers: sendsMarkers, usesCrc, effectiveSegmentBytes: segmentBytes });
    this.tcp = new End(link, () => peer().tcp, this.receiver);
    this.postedBytes = 8192;
    this.regions.set(1, { base: 0, baseTop: 0, bytes: new Uint8Array(16_384) });
  }

  write(message: OutboundMessage, payload: Uint8Array): void {
    while (!message.isWritten) {
      const target = new Uint8Array(segmentBytes);
      const count = this.sender.nextPayloadBytes(message, segmentBytes);
      const bytes = this.sender.writeSegment(message, target, 0, payload, message.writtenBytes, count);
      this.tcp.queue(target.subarray(0, bytes));
    }
    output(undefined, this.tcp);
  }

  send(payload: Uint8Array): void {
    const message = new OutboundMessage();
    this.sender.beginSend(message, RdmapOpcode.SEND, 0, payload.length);
    this.write(message, payload);
  }

  writeTo(tag: number, offset: number, payload: Uint8Array): void {
    const message = new OutboundMessage();
    this.sender.beginTagged(message, RdmapOpcode.WRITE, tag, offset, 0, payload.length);
    this.write(message, payload);
  }

  read(sinkOffset: number, sourceTag: number, sourceOffset: number, lengthBytes: number): void {
    const target = new Uint8Array(128);
    const request = Object.assign(new ReadRequest(), {
      sinkTag: 1,
      sinkOffset,
      lengthBytes,
      sourceTag,
      sourceOffset,
    });
    this.receiver.outstanding.addRead(1, sinkOffset, 0, lengthBytes);
    this.tcp.queue(target.subarray(0, this.sender.writeReadRequest(target, 0, request)));
    output(undefined, this.tcp);
  }

  close(): void {
    this.tcp.isFinQueued = true;
    this.tcp.state = this.tcp.state === 'CLOSE_WAIT' ? 'LAST_ACK' : 'FIN_WAIT_1';
    output(undefined, this.tcp);
  }

  override readRequested(header: SegmentHeader, request: ReadRequest): void {
    super.readRequested(header, request);
    const { sourceOffset, lengthBytes, sinkTag, sinkOffset } = request;
    const message = new OutboundMessage();
    const payload = this.regions.get(1)!.bytes.slice(sourceOffset, sourceOffset + lengthBytes);
    this.sender.beginTagged(message, RdmapOpcode.READ_RESPONSE, sinkTag, sinkOffset, 0, lengthBytes);
    this.write(message, payload);
    this.receiver.requestServed();
  }

  override streamFailed(error: number, quoted: QuotedSegment): void {
    super.streamFailed(error, quoted);
    this.state = stateAfter(this.state, 'terminateSent');
    const target = new Uint8Array(128);
    this.tcp.queue(target.subarray(0, this.sender.writeTerminate(target, 0, error, quoted)));
    this.close();
  }

  override terminateArrived(notice: Parameters<RecordingOwner['terminateArrived']>[0]): void {
    super.terminateArrived(notice);
    this.state = stateAfter(this.state, 'terminateArrived');
  }
}

interface Choice {
  readonly wantsMarkers: boolean;
  readonly wantsCrc: boolean;
  readonly isPeerToPeer: boolean;
}

/** Two cards whose kernels have opened TCP and exchanged request and reply. */
function connect(
  choice: Choice,
  fate: (ordinal: number) => Fate = () => 'carried',
): { link: Link; client: Card; server: Card } {
  const own: MpaParameters = {
    ...{ revision: 2, canSendMarkers: true, readyKinds: ReadyMessage.WRITE, ...choice },
    ...{ inboundReads: 4, outboundReads: 4, inboundReadsMax: 4 },
  };
  const none = new Uint8Array(0);
  const asked = encodeMpaFrame(requestOf(own, none));
  const request = parseMpaFrame(asked, false);
  if (request.kind !== 'frame') throw new Error(request.kind);
  const answered = replyOf(own, request.frame, 'accept', none);
  const result = concludeReply(own, request.frame, answered);
  if (result.kind !== 'agreed') throw new Error(result.kind);
  const passive = agreementOfReply(own, request.frame, answered);
  const link = new Link(fate);
  const client: Card = new Card(link, () => server, result.agreement, ReadyMessage.NONE);
  const server: Card = new Card(link, () => client, passive, passive.ready);
  const stateOf = (sendNext: number, receiveNext: number): EstablishedState => ({
    ...{
      sendUnacknowledged: sendNext,
      sendNext,
      receiveNext,
      sendWindow: 0x4_0000,
      sendScale: 7,
      receiveScale: 7,
    },
    ...{ windowEdge: sequenceAdd(receiveNext, 0x4_0000), segmentBytes, hasSack: true, roundTripUs: 0 },
    timestamps: { recent: 5, now: 7 },
  });
  // Both sequence numbers wrap.
  carryOn(client.tcp, stateOf(0xffff_f000, 0xffff_ff00), []);
  carryOn(server.tcp, stateOf(0xffff_ff00, 0xffff_f000), []);
  if (result.agreement.ready === ReadyMessage.WRITE) client.writeTo(1, 0, none);
  return { link, client, server };
}

const pattern = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, byte) => byte * 7 + seed + (byte >> 7));

const choices: fc.Arbitrary<Choice> = fc.record({
  wantsMarkers: fc.boolean(),
  wantsCrc: fc.boolean(),
  isPeerToPeer: fc.boolean(),
});

describe('a connection of two cards', () => {
  it('RFC 5040, 5: carries WRITEs, SENDs and READs in both directions, whatever happens to their segments', () => {
    const fates = fc.array(
      fc.oneof(
        { weight: 5, arbitrary: fc.constant('carried' as const) },
        { weight: 2, arbitrary: fc.constant('dropped' as const) },
        { weight: 2, arbitrary: fc.constantFrom('doubled' as const, 'late' as const) },
      ),
      { maxLength: 50 },
    );
    const lengths = fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(choices, fates, lengths, (choice, all, sizes) => {
        const { link, client, server } = connect(choice, (ordinal) => all[ordinal - 1] ?? 'carried');
        const source = pattern(16_384, 3);
        server.regions.set(9, { base: 0, baseTop: 0, bytes: new Uint8Array(8192) });
        server.regions.get(1)!.bytes.set(source);
        sizes.forEach((size, index) => {
          client.writeTo(9, index, pattern(size, index));
          client.send(pattern(size, index));
        });
        client.read(0, 1, 100, 6000);
        client.read(8000, 1, 0, 1);
        link.run(600 * second);
        expect([client.failure, server.failure]).toEqual([undefined, undefined]);
        const sends = sizes.map(
          (size, index) => `send 3 ${index + 1} ${Buffer.from(pattern(size, index)).toString('hex')}`,
        );
        expect(server.log.filter((line) => line.startsWith('send'))).toEqual(sends);
        expect(server.log.filter((line) => line.startsWith('write'))).toHaveLength(sizes.length);
        expect(server.log[0] === 'ready').toBe(choice.isPeerToPeer);
        expect(client.log).toEqual(['read completed', 'read completed']);
        const { bytes } = client.regions.get(1)!;
        expect(Buffer.from(bytes.subarray(0, 6000)).equals(source.subarray(100, 6100))).toBe(true);
        expect(bytes[8000]).toBe(source[0]);
      }),
      { numRuns: 120 },
    );
  });

  it('RFC 5041, 5.3: places segments after a lost one before it is sent again, with markers', () => {
    const lost = (ordinal: number): Fate => (ordinal === 2 ? 'dropped' : 'carried');
    const { link, client, server } = connect(
      { wantsMarkers: true, wantsCrc: true, isPeerToPeer: false },
      lost,
    );
    server.regions.set(9, { base: 0, baseTop: 0, bytes: new Uint8Array(8192) });
    client.writeTo(9, 0, pattern(8000, 1));
    link.run(link.nowPs + 15e6);
    const early = server.regions.get(9)!.bytes.slice(3000, 8000);
    expect(server.log).toEqual([]);
    expect(Buffer.from(early).equals(pattern(8000, 1).subarray(3000))).toBe(true);
    link.run(link.nowPs + second);
    expect(server.log).toEqual(['write 9']);
    // SACK has reported what was placed: one segment was sent again.
    expect(client.tcp.counts).toMatchObject({ retransmissions: 1, retransmissionTimeouts: 0 });
    expect(server.tcp.counts.droppedForRoom).toBe(0);
  });

  it('RFC 5040, 6.2: ends by a Terminate that names the error, and FINs of both sides', () => {
    const { link, client, server } = connect({ wantsMarkers: false, wantsCrc: true, isPeerToPeer: false });
    client.writeTo(0xbad, 0, pattern(100, 1));
    link.run(link.nowPs + second);
    expect(client.notice).toEqual({ error: 0x1100, isMirrored: false, segmentBytes: 114 });
    expect([client.state, server.state]).toEqual(['TERMINATE', 'TERMINATE']);
    expect(client.tcp.state).toBe('CLOSE_WAIT');
    client.close();
    link.run(link.nowPs + second);
    expect([client.tcp.state, server.tcp.state]).toEqual(['CLOSED', 'TIME_WAIT']);
    expect(stateAfter(client.state, 'connectionClosed')).toBe('ERROR');
  });

  it('RFC 9293, 3.6: ends in order by FINs between two messages', () => {
    const { link, client, server } = connect({ wantsMarkers: true, wantsCrc: false, isPeerToPeer: true });
    client.send(pattern(3000, 1));
    client.close();
    link.run(link.nowPs + second);
    expect([server.tcp.state, server.receiver.reader.isBetween]).toEqual(['CLOSE_WAIT', true]);
    server.close();
    link.run(link.nowPs + second);
    expect([client.tcp.state, server.tcp.state]).toEqual(['TIME_WAIT', 'CLOSED']);
    expect(link.sent.some(({ flags }) => (flags & Flag.RST) !== 0)).toBe(false);
  });
});
