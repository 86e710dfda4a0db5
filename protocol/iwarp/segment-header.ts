/**
 * The header of a DDP segment with RDMAP's control byte, as fields: one object is reused for many segments. An offset of 64 bits is two
 * numbers, as base/address.ts explains.
 */
import { addressAt, addressTopAt, putAddress, type Wide } from '../../base/index.ts';
import { RdmapOpcode, taggedHeader, untaggedHeader } from './formats.ts';

/** Version of DDP and of RDMAP that RFC 5040 and RFC 5041 define. */
export const IWARP_VERSION = 1;

export class SegmentHeader {
  opcode: number = RdmapOpcode.SEND;
  isTagged = false;
  /** True for the last segment of its message. */
  isLast = false;
  ddpVersion: number = IWARP_VERSION;
  rdmapVersion: number = IWARP_VERSION;
  /** STag of a tagged segment; of an untagged one the STag to invalidate, or 0. */
  steeringTag = 0;
  /** Tagged offset: bits 51 to 0, and above them {@link offsetTop}. */
  offset: Wide = 0;
  offsetTop = 0;
  /** Fields of an untagged segment: queue number, message sequence number, message offset. */
  queue = 0;
  message = 0;
  messageOffset = 0;

  get bytes(): number {
    return this.isTagged ? taggedHeader.sizeBytes : untaggedHeader.sizeBytes;
  }
}

/** Writes the header at `at`; reserved bits are 0. */
export function writeSegmentHeader(view: DataView, at: number, header: SegmentHeader): void {
  const common = untaggedHeader.fields;
  view.setUint16(at, 0);
  common.isTagged.set(view, at, header.isTagged ? 1 : 0);
  common.isLast.set(view, at, header.isLast ? 1 : 0);
  common.ddpVersion.set(view, at, header.ddpVersion);
  common.rdmapVersion.set(view, at, header.rdmapVersion);
  common.opcode.set(view, at, header.opcode);
  if (header.isTagged) {
    const { steeringTag, offset } = taggedHeader.fields;
    steeringTag.set(view, at, header.steeringTag);
    putAddress(view, at + offset.wordOffset, header.offset, header.offsetTop);
    return;
  }
  common.invalidated.set(view, at, header.steeringTag);
  common.queue.set(view, at, header.queue);
  common.message.set(view, at, header.message);
  common.messageOffset.set(view, at, header.messageOffset);
}

/**
 * Reads the header at `at`.
 * @param lengthBytes of the segment
 * @returns false if the segment is shorter than its header
 */
export function readSegmentHeader(
  view: DataView,
  at: number,
  lengthBytes: number,
  into: SegmentHeader,
): boolean {
  if (lengthBytes < taggedHeader.sizeBytes) return false;
  const common = untaggedHeader.fields;
  into.isTagged = common.isTagged.get(view, at) === 1;
  into.isLast = common.isLast.get(view, at) === 1;
  into.ddpVersion = common.ddpVersion.get(view, at);
  into.rdmapVersion = common.rdmapVersion.get(view, at);
  into.opcode = common.opcode.get(view, at);
  into.steeringTag = common.invalidated.get(view, at);
  if (into.isTagged) {
    const { wordOffset } = taggedHeader.fields.offset;
    into.offset = addressAt(view, at + wordOffset);
    into.offsetTop = addressTopAt(view, at + wordOffset);
    return true;
  }
  if (lengthBytes < untaggedHeader.sizeBytes) return false;
  into.queue = common.queue.get(view, at);
  into.message = common.message.get(view, at);
  into.messageOffset = common.messageOffset.get(view, at);
  return true;
}
