/**
 * Congestion marks in frames: a switch marks the IP header of a packet whose sender has declared support, and of no other.
 *
 *     ECN of the header     00 not-ECT: is dropped instead of marked     01, 10 ECT     11 CE: congestion experienced
 *
 * The ICRC of RoCE excludes the field and stays right. The checksum of an IPv4 header is updated
 * incrementally for the new value, so that a wrong one stays wrong. Sources: RFC 3168, 5; RFC 1624, 3; IBTA vol 1, annex A17.
 */
import { ipv4Header, ipv6Header } from '../abi/index.ts';
import { viewOf } from '../base/index.ts';
import { ipHeaderIn, isIpv4At } from './frame-parts.ts';
import { GRH_BYTES } from './headers.ts';
import { roceRoute, roceRoutePlace } from './packet.ts';
import { isIpv4Route } from './roce-bytes.ts';

const NOT_ECT = 0;
const CONGESTION_EXPERIENCED = 3;

const ipv4 = ipv4Header.fields;
const ipv6 = ipv6Header.fields;

/** Whether a switch may mark the frame: its IP header has ECT, or is already marked. */
export function takesCongestionMark(bytes: Uint8Array, at: number, frameBytes: number): boolean {
  const view = viewOf(bytes);
  const header = ipHeaderIn(view, at, frameBytes);
  if (header === -1) return false;
  return (isIpv4At(view, header) ? ipv4 : ipv6).ecn.get(view, header) !== NOT_ECT;
}

/** Whether a received packet was marked, by its network header in the form of records (packet.ts): of RoCE v2, since version 1 has no IP. */
export function isMarkedRoute(bytes: Uint8Array, grhAt: number): boolean {
  const view = viewOf(bytes);
  if (roceRoute.fields.isRoutable.get(view, roceRoutePlace(grhAt)) === 0) return false;
  const ecn = isIpv4Route(bytes, grhAt)
    ? ipv4.ecn.get(view, grhAt + GRH_BYTES - ipv4Header.sizeBytes)
    : ipv6.ecn.get(view, grhAt);
  return ecn === CONGESTION_EXPERIENCED;
}

/** Marks a frame accepted by {@link takesCongestionMark}. */
export function markCongestion(bytes: Uint8Array, at: number, frameBytes: number): void {
  const view = viewOf(bytes);
  const header = ipHeaderIn(view, at, frameBytes);
  if (!isIpv4At(view, header)) return ipv6.ecn.set(view, header, CONGESTION_EXPERIENCED);
  const before = view.getUint16(header);
  ipv4.ecn.set(view, header, CONGESTION_EXPERIENCED);
  const checksum = checksumAfter(ipv4.checksum.get(view, header), before, view.getUint16(header));
  ipv4.checksum.set(view, header, checksum);
}

/** The checksum of a header after one of its words has changed (RFC 1624, equation 3). */
export function checksumAfter(checksum: number, before: number, after: number): number {
  const sum = (~checksum & 0xffff) + (~before & 0xffff) + after;
  const folded = (sum & 0xffff) + (sum >>> 16);
  return ~((folded & 0xffff) + (folded >>> 16)) & 0xffff;
}
