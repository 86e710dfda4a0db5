/** The packets of a capture file, with the addresses that their headers name. */
import { decodeEthernet, decodeInfiniband, type WirePacket } from '../../wire/index.ts';
import { ERF_INFINIBAND, erfHeader, LinkType } from './capture-layouts.ts';
import type { Capture } from './capture-reader.ts';
import type { CapturedPacket } from './conversation.ts';

export interface CapturedPackets {
  readonly packets: readonly CapturedPacket[];
  /** Frames of other protocols, and what could not be read, with the reason. */
  readonly otherFrames: number;
  readonly malformed: readonly { readonly number: number; readonly reason: string }[];
  /** Interfaces whose captures did not keep all. */
  readonly incomplete: readonly { readonly name: string; readonly droppedPackets: number }[];
}

/**
 * What there is in a capture. A packet that was seen at both ends of the same cable is taken once, at the first; where that has only what
 * arrived, or only what left, the other end has the other direction.
 */
export function packetsIn({ interfaces, frames }: Capture): CapturedPackets {
  const packets: CapturedPacket[] = [];
  const malformed: { number: number; reason: string }[] = [];
  let otherFrames = 0;
  const listened = frames.find((frame) => isInfiniband(interfaces[frame.interface]!.linkType))?.interface;
  const directions = new Set(
    frames.filter((frame) => frame.interface === listened).map(({ direction }) => direction),
  );
  const [first] = directions;
  const onlyDirection = directions.size === 1 && first !== 'unknown' ? first : undefined;
  frames.forEach((frame, index) => {
    const number = index + 1;
    const { linkType } = interfaces[frame.interface]!;
    if (isInfiniband(linkType) && frame.interface !== listened && frame.direction !== onlyDirection) return;
    const read = readFrame(linkType, frame.bytes);
    if (read.kind === 'other') otherFrames++;
    else if (read.kind === 'malformed') malformed.push({ number, reason: read.reason });
    else
      packets.push({ number, timePs: frame.timePs, ...addressesOf(read), packet: read, note: frame.comment });
  });
  const incomplete = interfaces.filter(({ droppedPackets }) => droppedPackets > 0);
  return { packets, otherFrames, malformed, incomplete };
}

const isInfiniband = (linkType: number): boolean =>
  linkType === LinkType.INFINIBAND || linkType === LinkType.ERF;

/** A frame of one of the link types that carry InfiniBand or RoCE. */
export function readFrame(linkType: number, bytes: Uint8Array): ReturnType<typeof decodeEthernet> {
  if (linkType === LinkType.ETHERNET) return decodeEthernet(bytes);
  if (linkType === LinkType.INFINIBAND) return decodeInfiniband(bytes);
  if (linkType !== LinkType.ERF) return { kind: 'malformed', reason: `link type ${linkType}` };
  const isWhole = bytes.length >= erfHeader.sizeBytes;
  const { type, recordLength } = isWhole ? erfHeader.decode(bytes) : { type: 0, recordLength: 0 };
  if ((type & 0x7f) !== ERF_INFINIBAND) return { kind: 'malformed', reason: `ERF record of type ${type}` };
  if (type !== ERF_INFINIBAND) return { kind: 'malformed', reason: 'ERF record with extension headers' };
  return decodeInfiniband(bytes.slice(erfHeader.sizeBytes, recordLength));
}

function addressesOf({ lrh, grh, ipv4, ipv6 }: WirePacket): { readonly from: string; readonly to: string } {
  if (lrh !== undefined) return { from: `LID ${lrh.sourceLid}`, to: `LID ${lrh.destinationLid}` };
  if (ipv4 !== undefined) return { from: ipv4Text(ipv4.source), to: ipv4Text(ipv4.destination) };
  if (ipv6 !== undefined) return { from: ipv6Text(ipv6.source), to: ipv6Text(ipv6.destination) };
  return { from: ipv6Text(grh!.sourceGid), to: ipv6Text(grh!.destinationGid) };
}

const ipv4Text = (address: number): string =>
  [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');

/** Groups of four digits; the longest run of zeros is left out (RFC 5952). */
function ipv6Text(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bytes[2 * index]! << 8) | bytes[2 * index + 1]!).toString(16),
  );
  const text = groups.join(':');
  const runs = [...text.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].map(([run]) => run);
  const longest = runs.toSorted((left, right) => right.length - left.length)[0];
  return longest === undefined
    ? text
    : text
        .replace(longest, longest.startsWith(':') ? ':' : ':')
        .replace(/^:(?!:)/, '::')
        .replace(/([^:]):$/, '$1::')
        .replace(/([^:]):(?=:)/, '$1:');
}
