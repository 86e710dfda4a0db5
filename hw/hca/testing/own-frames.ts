/**
 * Frames of TCP and UDP over IP, made and taken apart by code that shares nothing with the device: checksums are remainders of one large
 * number by 65535, which is what a ones' complement sum is (RFC 1071).
 */
import { frameOf, MAC_B } from './rings.ts';

const MODULUS = 0xffffn;

const bigOf = (bytes: Uint8Array): bigint =>
  bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

/** The ones' complement sum of words, the last one filled up with a zero; 0 and ffff are one number, of which ffff is given. */
export function ownSum(...parts: readonly Uint8Array[]): number {
  const even = parts.map((part) => bigOf(part) << (part.length % 2 === 1 ? 8n : 0n));
  const sum = even.reduce((total, part) => total + part, 0n);
  const rest = Number(sum % MODULUS);
  return rest === 0 && sum > 0n ? 0xffff : rest;
}

const ownChecksum = (...parts: readonly Uint8Array[]): number => 0xffff - ownSum(...parts);

export const u16 = (value: number): Uint8Array => Uint8Array.of((value >>> 8) & 0xff, value & 0xff);
export const joined = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(Buffer.concat(parts));

/** A packet as its sender builds it. */
export interface OwnPacket {
  readonly isIpv4: boolean;
  readonly protocol: number;
  readonly identification?: number;
  /** Options of IPv4, in words, or a complete extension header of IPv6. */
  readonly options?: Uint8Array;
  /** Bits and place of a fragment of IPv4. */
  readonly fragment?: number;
  readonly addresses: Uint8Array;
  /** Header of the transport with 0 in its checksum field, and the bytes that follow it. */
  readonly transport: Uint8Array;
  /** Place of that checksum in it; left out: none. */
  readonly checksumPlace?: number;
}

const none = new Uint8Array(0);

/** The bytes of the packet, all lengths and checksums right. */
export function ownPacketBytes(packet: OwnPacket): Uint8Array {
  const { isIpv4, protocol, identification = 0, options = none, fragment = 0, addresses } = packet;
  const transport = ownTransportBytes(packet);
  if (!isIpv4) {
    const next = options.length > 0 ? 60 : protocol;
    const head = Uint8Array.of(0x60, 0, 0, 0, ...u16(options.length + transport.length), next, 64);
    return joined(head, addresses, options, transport);
  }
  const headerBytes = 20 + options.length;
  const first = joined(
    Uint8Array.of(0x40 | (headerBytes / 4), 0),
    u16(headerBytes + transport.length),
    u16(identification),
    u16(fragment),
    Uint8Array.of(64, protocol),
  );
  const rest = joined(addresses, options);
  return joined(first, u16(ownChecksum(first, rest)), rest, transport);
}

function ownTransportBytes({ protocol, addresses, transport, checksumPlace }: OwnPacket): Uint8Array {
  if (checksumPlace === undefined) return transport;
  const pseudo = [addresses, u16(protocol), u16(transport.length)];
  const bytes = transport.slice();
  bytes.set(u16(ownChecksum(...pseudo, transport)), checksumPlace);
  return bytes;
}

/** A header of TCP and its options, without checksum. */
export function ownTcpHeader(sequence: number, flags: number, options: Uint8Array = none): Uint8Array {
  const words = 5 + options.length / 4;
  return joined(
    Uint8Array.of(0x13, 0x89, 0xc0, 0x01),
    u16(sequence >>> 16),
    u16(sequence & 0xffff),
    Uint8Array.of(1, 2, 3, 4, words << 4, flags, 0x7f, 0xff, 0, 0, 0, 0),
    options,
  );
}

export const TCP_CHECKSUM_PLACE = 16;
export const UDP_CHECKSUM_PLACE = 6;

/** A datagram of UDP without checksum. */
export const ownUdp = (data: Uint8Array): Uint8Array =>
  joined(Uint8Array.of(0x27, 0x10, 0x27, 0x11), u16(8 + data.length), u16(0), data);

/** Puts the packet into a frame to b, after a customer tag if given. */
export function ownFrame(packet: Uint8Array, isIpv4: boolean, tag?: number): Uint8Array {
  const type = isIpv4 ? 0x0800 : 0x86dd;
  if (tag === undefined) return frameOf(MAC_B, packet, undefined, type);
  return frameOf(MAC_B, joined(u16(tag), u16(type), packet), undefined, 0x8100);
}
