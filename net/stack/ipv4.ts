/**
 * The header of IPv4 without options (RFC 791): what is for us, and what we send. Nothing is fragmented, and fragments are not put
 * together.
 */
import { type IpProtocol, ipv4Header } from '../../abi/index.ts';
import { ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { folded, sumOf } from './checksum.ts';
import type { StackEnvironment } from './environment.ts';
import { ipv4HeaderBytes } from './headers.ts';
import type { PacketBuffer } from './packet-buffer.ts';

const versionAndLength = 0x45;
const timeToLive = 64;
const doNotFragment = 0x4000;
/** Flag of more fragments, and the place of this one. */
const fragmentMask = 0x3fff;
const groupBit = 1;
/** First of the addresses of groups, and of what is reserved: none of a host (RFC 1122, 3.2.1.3). */
const groupsFrom = 0xe000_0000;

/** A packet that is for us; one object, reused. */
export interface Ipv4Packet {
  source: number;
  protocol: number;
  /** Where in memory what is behind the header begins, and its bytes. */
  at: number;
  payloadBytes: number;
}

export const newPacket = (): Ipv4Packet => ({ source: 0, protocol: 0, at: 0, payloadBytes: 0 });

/** What a packet is: `foreign`: to another address, or to all. */
export type Ipv4Reading = 'ours' | 'bad' | 'foreign' | 'fragment';

/** Reads the header behind that of Ethernet. */
export function readIpv4(
  bytes: Uint8Array,
  view: DataView,
  buffer: PacketBuffer,
  ourAddress: number,
  into: Ipv4Packet,
): Ipv4Reading {
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
  into.source = fields.source.get(view, at);
  into.protocol = fields.protocol.get(view, at);
  into.at = at + ipv4HeaderBytes;
  into.payloadBytes = totalBytes - ipv4HeaderBytes;
  if (into.source === 0 || into.source === ourAddress || into.source >= groupsFrom) return 'bad';
  const isToAll = (bytes[buffer.physical]! & groupBit) !== 0;
  if (isToAll || fields.destination.get(view, at) !== ourAddress) return 'foreign';
  return (fields.fragment.get(view, at) & fragmentMask) === 0 ? 'ours' : 'fragment';
}

/** Writes the header of a packet of ours. */
export function writeIpv4(
  environment: StackEnvironment,
  at: number,
  protocol: (typeof IpProtocol)[keyof typeof IpProtocol],
  destination: number,
  payloadBytes: number,
): void {
  const { bytes, view } = environment.platform.memory;
  const { fields } = ipv4Header;
  bytes.fill(0, at, at + ipv4HeaderBytes);
  fields.versionAndLength.set(view, at, versionAndLength);
  fields.totalLength.set(view, at, ipv4HeaderBytes + payloadBytes);
  fields.fragment.set(view, at, doNotFragment);
  fields.timeToLive.set(view, at, timeToLive);
  fields.protocol.set(view, at, protocol);
  fields.source.set(view, at, environment.address);
  fields.destination.set(view, at, destination);
  fields.checksum.set(view, at, ~folded(sumOf(bytes, at, ipv4HeaderBytes)) & 0xffff);
}
