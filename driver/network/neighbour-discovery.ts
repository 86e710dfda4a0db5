/**
 * Neighbor solicitations and advertisements of IPv6, in frames without FCS.
 *
 *     destination · source · 86dd · IPv6 40, hop limit 255 · type 135 or 136 · checksum · flags · target 16 · option: MAC
 *
 * A solicitation goes to the group of the address that it asks for, with the sender's MAC; an advertisement answers with the
 * target's. Messages that violate RFC 4861, 7.1, are dropped. Sources: RFC 4861, 4.3, 4.4, 4.6.1, 7.1, 7.2; RFC 4291, 2.7.1;
 * RFC 4443, 2.3.
 */
import { EtherType, IpProtocol, ipv6Header } from '../../abi/index.ts';
import { bits32, bytes as byteField, bytesEqual, layout, u8, u16, viewOf } from '../../base/index.ts';
import { ethernetHeader, isGroupMac, macOfIpv6Group } from './ethernet-header.ts';
import { internetChecksumOf, internetSum } from './internet-checksum.ts';

const MessageType = { SOLICITATION: 135, ADVERTISEMENT: 136 } as const;
const OptionType = { SOURCE_MAC: 1, TARGET_MAC: 2 } as const;
/** Accepts packets of neighbours only: a router would have decremented the limit. */
const localHopLimit = 255;
const optionUnitBytes = 8;

const message = layout(
  'neighbor discovery message',
  { sizeBytes: 24, byteOrder: 'big', source: 'RFC 4861, 4.3 and 4.4' },
  {
    type: u8(0),
    code: u8(1),
    checksum: u16(2),
    isRouter: bits32(4, 31, 31),
    isSolicited: bits32(4, 30, 30),
    overrides: bits32(4, 29, 29),
    target: byteField(8, 16),
  },
);

const macOption = layout(
  'link-layer address option',
  { sizeBytes: optionUnitBytes, byteOrder: 'big', source: 'RFC 4861, 4.6.1; RFC 2464, 6' },
  { type: u8(0), units: u8(1, 'of 8 bytes'), mac: byteField(2, 6) },
);

const headersBytes = ethernetHeader.sizeBytes + ipv6Header.sizeBytes;

/** All nodes of the link: ff02::1. */
export const allNodes = Uint8Array.of(0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
/** ff02::1:ff00:0/104 */
const solicitedNodePrefix = Uint8Array.of(0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff);
const unspecified = new Uint8Array(16);

/** The group of all nodes whose address ends in the same three bytes. */
export const solicitedNode = (address: Uint8Array): Uint8Array =>
  Uint8Array.of(...solicitedNodePrefix, ...address.subarray(13));

const isIpv6Group = (address: Uint8Array): boolean => address[0] === 0xff;
const isUnspecified = (address: Uint8Array): boolean => bytesEqual(address, unspecified);

/** The sender or target: 6 bytes and 16. */
export interface Ipv6Station {
  readonly mac: Uint8Array;
  readonly address: Uint8Array;
}

/** Asks the group of an address for its owner, or asks the neighbour itself whether it still has the address (RFC 4861, 7.2.2 and 7.3.3). */
export function neighborSolicitation(own: Ipv6Station, target: Uint8Array, mac?: Uint8Array): Uint8Array {
  const group = solicitedNode(target);
  const to = mac === undefined ? { mac: macOfIpv6Group(group), address: group } : { mac, address: target };
  return frameOf(own, to, { type: MessageType.SOLICITATION, target }, OptionType.SOURCE_MAC);
}

/** Answers a requester; a requester without an own address gets the answer sent to all nodes. */
export function neighborAdvertisement(own: Ipv6Station, asker: Ipv6Station): Uint8Array {
  const isToAll = isUnspecified(asker.address);
  const to = isToAll ? { mac: macOfIpv6Group(allNodes), address: allNodes } : asker;
  const flags = { isSolicited: isToAll ? 0 : 1, overrides: 1 };
  const values = { type: MessageType.ADVERTISEMENT, target: own.address, ...flags };
  return frameOf(own, to, values, OptionType.TARGET_MAC);
}

function frameOf(
  own: Ipv6Station,
  to: Ipv6Station,
  values: { readonly type: number; readonly target: Uint8Array },
  optionType: number,
): Uint8Array {
  const payloadLength = message.sizeBytes + macOption.sizeBytes;
  const frame = new Uint8Array(headersBytes + payloadLength);
  ethernetHeader.encodeInto({ destination: to.mac, source: own.mac, type: EtherType.IPV6 }, frame);
  const header = {
    version: 6,
    payloadLength,
    nextHeader: IpProtocol.ICMPV6,
    hopLimit: localHopLimit,
    source: own.address,
    destination: to.address,
  };
  ipv6Header.encodeInto(header, frame, ethernetHeader.sizeBytes);
  message.encodeInto(values, frame, headersBytes);
  macOption.encodeInto({ type: optionType, units: 1, mac: own.mac }, frame, headersBytes + message.sizeBytes);
  message.fields.checksum.set(viewOf(frame), headersBytes, checksumOf(frame, payloadLength));
  return frame;
}

/** Checksum of a message after an IPv6 header, with its pseudo-header: 0 if the stored checksum is right. */
function checksumOf(frame: Uint8Array, payloadLength: number): number {
  const addressesAt = ethernetHeader.sizeBytes + ipv6Header.fields.source.field.offset;
  const pseudo = payloadLength + IpProtocol.ICMPV6;
  const addresses = internetSum(frame.subarray(addressesAt, headersBytes), pseudo);
  return internetChecksumOf(
    internetSum(frame.subarray(headersBytes, headersBytes + payloadLength), addresses),
  );
}

/** A received solicitation or advertisement. */
export interface NeighborMessage {
  readonly isSolicitation: boolean;
  /** All zeros if the sender has no address yet. */
  readonly source: Uint8Array;
  readonly target: Uint8Array;
  /** The sender's MAC in a solicitation, the target's in an advertisement; undefined where it is left out. */
  readonly mac: Uint8Array | undefined;
  readonly isSolicited: boolean;
  readonly overrides: boolean;
}

/** The message of an IPv6 frame; 'other' for another protocol, 'malformed' for a message that must be dropped. */
export function neighborMessageOf(frame: Uint8Array): NeighborMessage | 'other' | 'malformed' {
  if (frame.length < headersBytes) return 'malformed';
  const header = ipv6Header.decode(frame, ethernetHeader.sizeBytes);
  const { payloadLength, source, destination } = header;
  if (header.version !== 6 || headersBytes + payloadLength > frame.length) return 'malformed';
  if (header.nextHeader !== IpProtocol.ICMPV6 || payloadLength === 0) return 'other';
  const type = frame[headersBytes]!;
  const isSolicitation = type === MessageType.SOLICITATION;
  if (!isSolicitation && type !== MessageType.ADVERTISEMENT) return 'other';
  if (payloadLength < message.sizeBytes) return 'malformed';
  const { code, target, ...flags } = message.decode(frame, headersBytes);
  const isRight =
    header.hopLimit === localHopLimit &&
    code === 0 &&
    checksumOf(frame, payloadLength) === 0 &&
    !isIpv6Group(target) &&
    !isIpv6Group(source);
  if (!isRight) return 'malformed';
  const options = frame.subarray(headersBytes + message.sizeBytes, headersBytes + payloadLength);
  const mac = macIn(options, isSolicitation ? OptionType.SOURCE_MAC : OptionType.TARGET_MAC);
  if (mac === 'malformed') return 'malformed';
  const isAllowed = isSolicitation
    ? !isUnspecified(source) || (mac === undefined && bytesEqual(destination, solicitedNode(target)))
    : flags.isSolicited === 0 || !isIpv6Group(destination);
  if (!isAllowed) return 'malformed';
  const { isSolicited, overrides } = flags;
  return {
    isSolicitation,
    source,
    target,
    mac,
    isSolicited: isSolicited === 1,
    overrides: overrides === 1,
  };
}

/** The MAC among the options; no option may be empty, or longer than the message. */
function macIn(options: Uint8Array, type: number): Uint8Array | undefined | 'malformed' {
  let mac: Uint8Array | undefined;
  for (let at = 0; at < options.length; ) {
    const lengthBytes = (options[at + 1] ?? 0) * optionUnitBytes;
    if (lengthBytes === 0 || at + lengthBytes > options.length) return 'malformed';
    if (options[at] === type) mac ??= macOption.decode(options, at).mac;
    at += lengthBytes;
  }
  return mac !== undefined && isGroupMac(mac) ? 'malformed' : mac;
}
