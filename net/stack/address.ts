/**
 * Addresses of hosts: a number for IPv4, first byte highest; an object with 16 bytes for IPv6. The sockets handle their text,
 * and IPv4 addresses written as IPv6 (::ffff:10.0.0.1).
 */
import { macOfBytes, toHex } from '../../base/index.ts';
import { bytesOfAddress, gidOfMac, solicitedNode, textOfGid } from '../../driver/network/index.ts';

const linkLocalPrefix = 0xfe80;
const linkLocalMask = 0xffc0;
const groupByte = 0xff;

export class Ipv6Address {
  readonly bytes: Uint8Array;
  /** The address in base 16: equal bytes give equal text. */
  readonly key: string;

  /** @param bytes 16, which it keeps */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.key = toHex(bytes);
  }

  /** fe80::/10 (RFC 4291, 2.5.6): valid on one link only. */
  get isLinkLocal(): boolean {
    return (((this.bytes[0]! << 8) | this.bytes[1]!) & linkLocalMask) === linkLocalPrefix;
  }

  get isGroup(): boolean {
    return this.bytes[0] === groupByte;
  }

  /** `::`, for a host without an address yet; as a local address, any. */
  get isUnspecified(): boolean {
    return this.key === unspecifiedKey;
  }

  /** True for `::1`. */
  get isLoopback(): boolean {
    return this.key === loopbackKey;
  }

  /** Whether both addresses begin with the same bits. */
  sharesPrefix(other: Ipv6Address, bits: number): boolean {
    const whole = Math.floor(bits / 8);
    const mask = 0xff & ~(0xff >> (bits % 8));
    const isSame = this.bytes.subarray(0, whole).every((byte, at) => byte === other.bytes[at]);
    return isSame && (mask === 0 || ((this.bytes[whole]! ^ other.bytes[whole]!) & mask) === 0);
  }

  /** Text by RFC 5952. */
  toString(): string {
    return textOfGid(this.bytes);
  }
}

const unspecifiedKey = '0'.repeat(32);
const loopbackKey = '1'.padStart(32, '0');

export type IpAddress = number | Ipv6Address;

export const isSameAddress = (left: IpAddress, right: IpAddress): boolean =>
  typeof left === 'number' || typeof right === 'number' ? left === right : left.key === right.key;

/** Key of an address in a table. */
export const keyOfAddress = (address: IpAddress): number | string =>
  typeof address === 'number' ? address : address.key;

/** 4 bytes, or 16. */
export const bytesOfIp = (address: IpAddress): Uint8Array =>
  typeof address === 'number'
    ? Uint8Array.of(address >>> 24, address >>> 16, address >>> 8, address)
    : address.bytes;

export const textOfIp = (address: IpAddress): string =>
  typeof address === 'number' ? bytesOfIp(address).join('.') : address.toString();

const mappedText = '::ffff:';

/** Parses an IPv6 address by RFC 4291, 2.2; undefined if the text is not one. Dots are allowed only in an embedded IPv4 address. */
export function ipv6Of(text: string): Ipv6Address | undefined {
  const isMapped = text.startsWith(mappedText) && text.includes('.');
  const bytes = isMapped
    ? bytesOfAddress(text.slice(mappedText.length))
    : text.includes(':')
      ? bytesOfAddress(text)
      : undefined;
  return bytes === undefined ? undefined : new Ipv6Address(bytes);
}

/** The link-local address derived from a MAC: its modified EUI-64 (RFC 4291, appendix A; RFC 2464, 5). */
export const linkLocalOf = (mac: Uint8Array): Ipv6Address => new Ipv6Address(gidOfMac(macOfBytes(mac)));

/** The group of all hosts whose address ends like this one (RFC 4291, 2.7.1). */
export const solicitedNodeOf = (address: Ipv6Address): Ipv6Address =>
  new Ipv6Address(solicitedNode(address.bytes));
