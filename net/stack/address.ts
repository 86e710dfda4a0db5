/**
 * Addresses of hosts: of IPv4 a number, its first byte the highest, of IPv6 an object with its 16 bytes. What text of them is, and that an
 * IPv4 address is written as one of IPv6 where it must be (::ffff:10.0.0.1), is for the sockets.
 */
import { toHex } from '../../base/index.ts';
import {
  bytesOfAddress,
  gidOfMac,
  macOfBytes,
  solicitedNode,
  textOfGid,
} from '../../driver/network/index.ts';

const linkLocalPrefix = 0xfe80;
const linkLocalMask = 0xffc0;
const groupByte = 0xff;

export class Ipv6Address {
  readonly bytes: Uint8Array;
  /** In base 16: two of the same bytes have the same. */
  readonly key: string;

  /** @param bytes 16, which it keeps */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.key = toHex(bytes);
  }

  /** fe80::/10 (RFC 4291, 2.5.6): of one link only. */
  get isLinkLocal(): boolean {
    return (((this.bytes[0]! << 8) | this.bytes[1]!) & linkLocalMask) === linkLocalPrefix;
  }

  get isGroup(): boolean {
    return this.bytes[0] === groupByte;
  }

  /** `::`, of a host that has none yet; as a local address, any. */
  get isUnspecified(): boolean {
    return this.key === unspecifiedKey;
  }

  /** `::1`. */
  get isLoopback(): boolean {
    return this.key === loopbackKey;
  }

  /** Whether it begins as another does. */
  sharesPrefix(other: Ipv6Address, bits: number): boolean {
    const whole = Math.floor(bits / 8);
    const mask = 0xff & ~(0xff >> (bits % 8));
    const isSame = this.bytes.subarray(0, whole).every((byte, at) => byte === other.bytes[at]);
    return isSame && (mask === 0 || ((this.bytes[whole]! ^ other.bytes[whole]!) & mask) === 0);
  }

  /** By RFC 5952. */
  toString(): string {
    return textOfGid(this.bytes);
  }
}

const unspecifiedKey = '0'.repeat(32);
const loopbackKey = '1'.padStart(32, '0');

export type IpAddress = number | Ipv6Address;

export const isSameAddress = (left: IpAddress, right: IpAddress): boolean =>
  typeof left === 'number' || typeof right === 'number' ? left === right : left.key === right.key;

/** What names an address in a table. */
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

/** The address of IPv6 that a text is, by RFC 4291, 2.2; undefined where it is none. Dots may stand in an IPv4 address of its own only. */
export function ipv6Of(text: string): Ipv6Address | undefined {
  const isMapped = text.startsWith(mappedText) && text.includes('.');
  const bytes = isMapped
    ? bytesOfAddress(text.slice(mappedText.length))
    : text.includes(':')
      ? bytesOfAddress(text)
      : undefined;
  return bytes === undefined ? undefined : new Ipv6Address(bytes);
}

/** The link-local address that a MAC makes: its modified EUI-64 (RFC 4291, appendix A; RFC 2464, 5). */
export const linkLocalOf = (mac: Uint8Array): Ipv6Address => new Ipv6Address(gidOfMac(macOfBytes(mac)));

/** The group in which those are whose address ends as this one (RFC 4291, 2.7.1). */
export const solicitedNodeOf = (address: Ipv6Address): Ipv6Address =>
  new Ipv6Address(solicitedNode(address.bytes));
