/**
 * Text of addresses of IP, and the 16 bytes that GIDs have of them: an IPv4 address is mapped into IPv6 (RFC 4291, 2.5.5.2).
 * Text of IPv6 is read by RFC 4291, 2.2, and written by RFC 5952; callers check the zone after % (RFC 4007, 11.2).
 */
import { viewOf } from '../base/index.ts';
import { gidOfIpv4, ipv4OfGid, isIpv4Gid } from './gid.ts';

const groupCount = 8;

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

/** The 16 bytes of an address; undefined if the text is not an address. */
export const bytesOfAddress = (text: string): Uint8Array | undefined =>
  text.includes(':') ? ipv6Of(text) : ipv4Of(text);

/** The address of a GID as text. */
export function textOfGid(gid: Uint8Array): string {
  if (isIpv4Gid(gid)) return ipv4OfGid(gid);
  const view = viewOf(gid);
  const groups = Array.from({ length: groupCount }, (_, at) => view.getUint16(2 * at).toString(16)).join(':');
  // The longest run of two or more zeros is left out; of equally long runs, the first.
  const runs = [...groups.matchAll(/(?<=^|:)0(?::0)+(?=:|$)/g)];
  const [longest] = runs.toSorted(([left], [right]) => right.length - left.length);
  if (longest === undefined) return groups;
  const end = longest.index + longest[0].length;
  return `${groups.slice(0, longest.index).replace(/:$/, '')}::${groups.slice(end).replace(/^:/, '')}`;
}
