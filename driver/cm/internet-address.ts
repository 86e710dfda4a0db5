/**
 * Addresses of IP as programs write them and as GIDs have them: 16 bytes, an IPv4 address mapped into IPv6 (RFC 4291, 2.5.5.2).
 * Text of IPv6 is read by RFC 4291, 2.2, and written by RFC 5952; a scope behind % is read over, since a host has one link.
 */
import { viewOf } from '../../base/index.ts';
import { gidOfIpv4, ipv4OfGid, isIpv4Gid } from '../gid.ts';
import { require } from '../kernel-error.ts';
import type { SocketAddress } from '../rdma-cm.ts';

const groupCount = 8;

/** Any address of this host: of IPv4, and of either kind. */
export const anyIpv4 = '0.0.0.0';
export const anyIpv6 = '::';

function ipv4Of(text: string): Uint8Array | undefined {
  const parts = text.split('.');
  const isAddress = parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256);
  return isAddress ? gidOfIpv4(text) : undefined;
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));

function ipv6Of(text: string): Uint8Array | undefined {
  const [bare = '', ...scopes] = text.split('%');
  const halves = bare.split('::').map(groupsOf);
  const [before = [], after = []] = halves;
  const leftOut = groupCount - before.length - after.length;
  const isWhole = halves.length === 2 ? leftOut > 0 : halves.length === 1 && leftOut === 0;
  const groups = [...before, ...Array<string>(isWhole ? leftOut : 0).fill('0'), ...after];
  if (!isWhole || scopes.length > 1 || !groups.every((group) => /^[\da-f]{1,4}$/i.test(group)))
    return undefined;
  const bytes = new Uint8Array(2 * groupCount);
  const view = viewOf(bytes);
  groups.forEach((group, at) => {
    view.setUint16(2 * at, Number.parseInt(group, 16));
  });
  return bytes;
}

/** The 16 bytes of an address; undefined where the text is none. */
const bytesOfAddress = (text: string): Uint8Array | undefined =>
  text.includes(':') ? ipv6Of(text) : ipv4Of(text);

/** An address that has been checked, as a GID. */
export const gidOfAddress = (text: string): Uint8Array => bytesOfAddress(text)!;

/** The address of a GID as text. */
export function textOfGid(gid: Uint8Array): string {
  if (isIpv4Gid(gid)) return ipv4OfGid(gid);
  const view = viewOf(gid);
  const groups = Array.from({ length: groupCount }, (_, at) => view.getUint16(2 * at).toString(16)).join(':');
  // The longest run of two and more zeros is left out, of equals the first.
  const runs = [...groups.matchAll(/(?<=^|:)0(?::0)+(?=:|$)/g)];
  const [longest] = runs.toSorted(([left], [right]) => right.length - left.length);
  if (longest === undefined) return groups;
  const end = longest.index + longest[0].length;
  return `${groups.slice(0, longest.index).replace(/:$/, '')}::${groups.slice(end).replace(/^:/, '')}`;
}

/** Whether both are of IPv4, or both of IPv6. */
export const isIpv4Address = (text: string): boolean => !text.includes(':');

/** @throws KernelError EINVAL unless it is an address of IPv4 or IPv6 with a port */
export function requireAddress(field: string, { sinAddr, sinPort }: SocketAddress): void {
  const bytes = typeof sinAddr === 'string' ? bytesOfAddress(sinAddr) : undefined;
  require(bytes !== undefined, `${field}.sinAddr is ${String(sinAddr)}, expected an IPv4 or IPv6 address`);
  require(Number.isInteger(sinPort) &&
    sinPort >= 0 &&
    sinPort <= 0xffff, `${field}.sinPort is ${String(sinPort)}, expected 0 to 65535`);
}

/** The same address as it is written here. */
export const plainAddress = ({ sinAddr, sinPort }: SocketAddress): SocketAddress => ({
  sinAddr: textOfGid(gidOfAddress(sinAddr)),
  sinPort,
});
