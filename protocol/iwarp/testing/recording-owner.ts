/** An owner of a stream for specs: memory by STag, receive buffers by number, and a log of deliveries. */
import { addressDistance, toHex } from '../../../base/index.ts';
import {
  type AtomicRequest,
  type AtomicResponse,
  IwarpError,
  layerOf,
  NO_ERROR,
  type Operand,
  type QuotedSegment,
  type ReadRequest,
  type SegmentHeader,
  type StreamOwner,
  type TerminateNotice,
} from '../index.ts';

interface Region {
  readonly base: number;
  readonly baseTop: number;
  readonly bytes: Uint8Array;
}

export class RecordingOwner implements StreamOwner {
  readonly regions = new Map<number, Region>();
  /** Receive buffers by MSN. */
  readonly receives = new Map<number, Uint8Array>();
  /** Length of a receive buffer that is posted when its message arrives; −1: only those of {@link receives}. */
  postedBytes = -1;
  /** An STag that is not known gets a region of this length, from the first offset on; 0: it is refused. */
  openBytes = 0;
  /** STags that SEND with invalidate may name. */
  readonly invalidatable = new Set<number>();
  readonly log: string[] = [];
  failure: { readonly error: number; readonly quotedBytes: string } | undefined;
  notice: { readonly error: number; readonly isMirrored: boolean; readonly segmentBytes: number } | undefined;
  /** Payload of each placement, in order. */
  readonly placed: string[] = [];

  checkTagged(header: SegmentHeader, lengthBytes: number): number {
    const { steeringTag, offset, offsetTop } = header;
    if (!this.regions.has(steeringTag) && this.openBytes > 0)
      this.regions.set(steeringTag, {
        base: offset,
        baseTop: offsetTop,
        bytes: new Uint8Array(this.openBytes),
      });
    const region = this.regions.get(steeringTag);
    if (region === undefined) return IwarpError.TAGGED_STAG_INVALID;
    const from = placeIn(region, header);
    return from < 0 || from + lengthBytes > region.bytes.length ? IwarpError.TAGGED_BOUNDS : NO_ERROR;
  }

  placeTagged(header: SegmentHeader, bytes: Uint8Array, at: number, lengthBytes: number): void {
    const region = this.regions.get(header.steeringTag)!;
    region.bytes.set(bytes.subarray(at, at + lengthBytes), placeIn(region, header));
    this.placed.push(toHex(bytes.subarray(at, at + lengthBytes)));
  }

  /** The log of placements has it since its arrival. */
  taggedReached(): void {}

  receiveBufferBytes(message: number): number {
    if (!this.receives.has(message) && this.postedBytes >= 0)
      this.receives.set(message, new Uint8Array(this.postedBytes));
    return this.receives.get(message)?.length ?? -1;
  }

  placeReceive(
    { message, messageOffset }: SegmentHeader,
    bytes: Uint8Array,
    at: number,
    lengthBytes: number,
  ): void {
    this.receives.get(message)!.set(bytes.subarray(at, at + lengthBytes), messageOffset);
    this.placed.push(toHex(bytes.subarray(at, at + lengthBytes)));
  }

  writeArrived({ steeringTag }: SegmentHeader): void {
    this.log.push(`write ${steeringTag}`);
  }

  sendArrived({ opcode, message, steeringTag }: SegmentHeader, lengthBytes: number): number {
    const bytes = this.receives.get(message)?.subarray(0, lengthBytes) ?? new Uint8Array(0);
    this.log.push(`send ${opcode} ${message} ${toHex(bytes)}`);
    const invalidates = opcode === 4 || opcode === 6;
    return invalidates && !this.invalidatable.has(steeringTag)
      ? IwarpError.PROTECTION_CANNOT_INVALIDATE
      : NO_ERROR;
  }

  immediateArrived({ opcode, message }: SegmentHeader, { high, low }: Operand): void {
    this.log.push(`immediate ${opcode} ${message} ${high} ${low}`);
  }

  readRequested({ message }: SegmentHeader, request: ReadRequest): void {
    this.log.push(
      `read ${message} ${request.lengthBytes} ${request.sourceTag} ${request.sourceOffset} ${request.sinkTag} ${request.sinkOffset}`,
    );
  }

  atomicRequested(
    { message }: SegmentHeader,
    { operation, requestId, data, compareData }: AtomicRequest,
  ): void {
    this.log.push(`atomic ${message} ${operation} ${requestId} ${data.low} ${compareData.low}`);
  }

  readCompleted(): void {
    this.log.push('read completed');
  }

  atomicCompleted(_header: SegmentHeader, { requestId, original }: AtomicResponse): void {
    this.log.push(`atomic completed ${requestId} ${original.high} ${original.low}`);
  }

  terminateArrived({ error, isMirrored, quoted }: TerminateNotice): void {
    this.log.push(`terminate of layer ${layerOf(error)}`);
    this.notice = { error, isMirrored, segmentBytes: quoted.segmentBytes };
  }

  readyArrived(): void {
    this.log.push('ready');
  }

  streamFailed(error: number, { bytes, headerBytes }: QuotedSegment): void {
    this.failure = { error, quotedBytes: toHex(bytes.subarray(0, headerBytes)) };
  }
}

const placeIn = ({ base, baseTop }: Region, { offset, offsetTop }: SegmentHeader): number =>
  addressDistance(base, baseTop, offset, offsetTop);
