/**
 * The IPv6 header (RFC 8200): packets for this host, and its own. Skips these extension headers: ignorable options (4.2), a
 * routing header without segments left (4.4), a fragment that is the whole packet (RFC 6946). Reassembles no other fragments,
 * and sends none.
 *
 *     ┌ Ethernet 14 ┬ IPv6 40 ┬ (hop-by-hop options) ┬ (others …) ┬ transport … ┐
 */
import { type IpProtocol, ipv6Header } from '../../abi/index.ts';
import { ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { InvariantError } from '../../base/index.ts';
import type { KernelMemory } from '../platform.ts';
import { Ipv6Address, textOfIp } from './address.ts';
import { sumOf } from './checksum.ts';
import type { IpPacket, IpReading } from './ip-packet.ts';
import type { PacketEnds } from './ip-version.ts';
import type { PacketBuffer } from './packet-buffer.ts';

export const ipv6HeaderBytes = ipv6Header.sizeBytes;
const version = 6;
/** Linux: net.ipv6.conf.…hop_limit. */
const hopLimit = 64;
const groupBit = 1;
const addressBytes = 16;
const sourceAt = ipv6Header.fields.source.field.offset;
const destinationAt = ipv6Header.fields.destination.field.offset;

/** Next headers that are extensions (RFC 8200, 4.1). */
const Extension = { HOP_BY_HOP: 0, ROUTING: 43, FRAGMENT: 44, DESTINATION: 60 } as const;
/** Their length is in units of this, and does not count the first unit (a fragment header has no length). */
const extensionUnitBytes = 8;
/** Fragment offset and more-fragments flag. */
const fragmentMask = 0xfff9;
/** The one-byte padding option, which has no length. The two highest bits of an unknown option define the action. */
const padOne = 0;
const padMore = 1;
const optionHeadBytes = 2;
const unknownMask = 0xc0;

/** Addresses whose packets are accepted. */
export interface Ipv6Receiver {
  isOwn(address: Ipv6Address): boolean;
  /** A group of one of its addresses, or the all-nodes group. */
  isOwnGroup(address: Ipv6Address): boolean;
}

type Memory = Pick<KernelMemory, 'bytes' | 'view'>;

/** Parses the headers after that of Ethernet. */
export function readIpv6(
  memory: Memory,
  buffer: PacketBuffer,
  receiver: Ipv6Receiver,
  into: IpPacket,
): IpReading {
  const { bytes, view } = memory;
  const { fields } = ipv6Header;
  const room = buffer.length - ethernetHeaderBytes - ipv6HeaderBytes;
  const at = buffer.physical + ethernetHeaderBytes;
  if (room < 0 || fields.version.get(view, at) !== version) return 'bad';
  const payloadLength = fields.payloadLength.get(view, at);
  if (payloadLength > room) return 'bad';
  const source = new Ipv6Address(bytes.slice(at + sourceAt, at + sourceAt + addressBytes));
  const destination = new Ipv6Address(bytes.slice(at + destinationAt, at + destinationAt + addressBytes));
  into.source = source;
  into.destination = destination;
  into.protocol = fields.nextHeader.get(view, at);
  into.at = at + ipv6HeaderBytes;
  into.payloadBytes = payloadLength;
  into.addressSum = sumOf(bytes, at + sourceAt, 2 * addressBytes);
  const isImpossible =
    source.isGroup || source.isLoopback || destination.isLoopback || destination.isUnspecified;
  if (isImpossible) return 'bad';
  const isToAll = (bytes[buffer.physical]! & groupBit) !== 0;
  const isOurs = destination.isGroup
    ? receiver.isOwnGroup(destination)
    : !isToAll && receiver.isOwn(destination);
  if (!isOurs) return 'foreign';
  return readExtensions(memory, into);
}

/** Skips the extension headers; the packet then holds the data after them. */
function readExtensions({ bytes, view }: Memory, packet: IpPacket): IpReading {
  for (let isFirst = true; ; isFirst = false) {
    const { at, payloadBytes, protocol } = packet;
    const isExtension = Object.values(Extension).some((kind) => kind === protocol);
    if (!isExtension) return 'ours';
    if (payloadBytes < extensionUnitBytes) return 'bad';
    const isFragment = protocol === Extension.FRAGMENT;
    const lengthBytes = (isFragment ? 1 : bytes[at + 1]! + 1) * extensionUnitBytes;
    if (lengthBytes > payloadBytes) return 'bad';
    const segmentsLeft = bytes[at + 3]!;
    if (protocol === Extension.HOP_BY_HOP && !isFirst) return 'bad';
    if (protocol === Extension.ROUTING && segmentsLeft > 0) return 'bad';
    if (isFragment && (view.getUint16(at + 2) & fragmentMask) !== 0) return 'fragment';
    if (protocol === Extension.HOP_BY_HOP || protocol === Extension.DESTINATION) {
      const found = readOptions(bytes, at + optionHeadBytes, at + lengthBytes);
      if (found !== 'ours') return found;
    }
    packet.protocol = bytes[at]!;
    packet.at = at + lengthBytes;
    packet.payloadBytes = payloadBytes - lengthBytes;
  }
}

/** Only padding is recognised (RFC 8200, 4.2). */
function readOptions(bytes: Uint8Array, from: number, end: number): IpReading {
  for (let at = from; at < end; ) {
    const kind = bytes[at]!;
    if (kind === padOne) {
      at++;
      continue;
    }
    const next = at + optionHeadBytes + (at + 1 < end ? bytes[at + 1]! : end);
    if (next > end) return 'bad';
    if (kind !== padMore && (kind & unknownMask) !== 0) return 'option';
    at = next;
  }
  return 'ours';
}

/** Writes the header of one of our packets: see IpVersion. */
export function writeIpv6(
  { bytes, view }: Memory,
  at: number,
  { source, destination }: PacketEnds,
  protocol: (typeof IpProtocol)[keyof typeof IpProtocol],
  payloadBytes: number,
): number {
  if (typeof source === 'number' || typeof destination === 'number')
    throw new InvariantError(
      'ends of a packet of IPv6',
      `${textOfIp(source)}, ${textOfIp(destination)}`,
      'its addresses',
    );
  const { fields } = ipv6Header;
  view.setUint32(at, 0);
  fields.version.set(view, at, version);
  fields.payloadLength.set(view, at, payloadBytes);
  fields.nextHeader.set(view, at, protocol);
  fields.hopLimit.set(view, at, hopLimit);
  bytes.set(source.bytes, at + sourceAt);
  bytes.set(destination.bytes, at + destinationAt);
  return sumOf(bytes, at + sourceAt, 2 * addressBytes);
}
