/** The IPv4 header without options (RFC 791): packets for this host, and its own. Sends no fragments, and reassembles none. */
import { type IpProtocol, ipv4Header } from '../../abi/index.ts';
import { ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { InvariantError } from '../../base/index.ts';
import type { KernelMemory } from '../platform.ts';
import { textOfIp } from './address.ts';
import { folded, sumOf } from './checksum.ts';
import type { IpPacket, IpReading } from './ip-packet.ts';
import type { PacketEnds } from './ip-version.ts';
import type { PacketBuffer } from './packet-buffer.ts';

export const ipv4HeaderBytes = ipv4Header.sizeBytes;
const versionAndLength = 0x45;
const timeToLive = 64;
const doNotFragment = 0x4000;
/** The more-fragments flag, and the fragment offset. */
const fragmentMask = 0x3fff;
const groupBit = 1;
/** First address of groups and reserved ranges: never a host (RFC 1122, 3.2.1.3). */
const groupsFrom = 0xe000_0000;
/** Offsets of source and destination in the header. */
const addressesAt = 12;
const addressesBytes = 8;

/** Parses the header after that of Ethernet. */
export function readIpv4(
  { bytes, view }: Pick<KernelMemory, 'bytes' | 'view'>,
  buffer: PacketBuffer,
  ourAddress: number,
  into: IpPacket,
): IpReading {
  const { fields } = ipv4Header;
  const room = buffer.length - ethernetHeaderBytes;
  const at = buffer.physical + ethernetHeaderBytes;
  if (room < ipv4HeaderBytes || fields.versionAndLength.get(view, at) !== versionAndLength) return 'bad';
  const totalBytes = fields.totalLength.get(view, at);
  const isWhole =
    totalBytes >= ipv4HeaderBytes &&
    totalBytes <= room &&
    folded(sumOf(bytes, at, ipv4HeaderBytes)) === 0xffff;
  if (!isWhole) return 'bad';
  const source = fields.source.get(view, at);
  into.source = source;
  into.destination = fields.destination.get(view, at);
  into.protocol = fields.protocol.get(view, at);
  into.at = at + ipv4HeaderBytes;
  into.payloadBytes = totalBytes - ipv4HeaderBytes;
  into.addressSum = sumOf(bytes, at + addressesAt, addressesBytes);
  if (source === 0 || source === ourAddress || source >= groupsFrom) return 'bad';
  const isToAll = (bytes[buffer.physical]! & groupBit) !== 0;
  if (isToAll || into.destination !== ourAddress) return 'foreign';
  return (fields.fragment.get(view, at) & fragmentMask) === 0 ? 'ours' : 'fragment';
}

/** Writes the header of one of our packets: see IpVersion. */
export function writeIpv4(
  { bytes, view }: Pick<KernelMemory, 'bytes' | 'view'>,
  at: number,
  { source, destination }: PacketEnds,
  protocol: (typeof IpProtocol)[keyof typeof IpProtocol],
  payloadBytes: number,
): number {
  if (typeof source !== 'number' || typeof destination !== 'number')
    throw new InvariantError(
      'ends of a packet of IPv4',
      `${textOfIp(source)}, ${textOfIp(destination)}`,
      'its addresses',
    );
  const { fields } = ipv4Header;
  bytes.fill(0, at, at + ipv4HeaderBytes);
  fields.versionAndLength.set(view, at, versionAndLength);
  fields.totalLength.set(view, at, ipv4HeaderBytes + payloadBytes);
  fields.fragment.set(view, at, doNotFragment);
  fields.timeToLive.set(view, at, timeToLive);
  fields.protocol.set(view, at, protocol);
  fields.source.set(view, at, source);
  fields.destination.set(view, at, destination);
  fields.checksum.set(view, at, ~folded(sumOf(bytes, at, ipv4HeaderBytes)) & 0xffff);
  return sumOf(bytes, at + addressesAt, addressesBytes);
}
