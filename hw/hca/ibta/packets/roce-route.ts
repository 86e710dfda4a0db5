/**
 * Headers that precede the BTH in packets of an Ethernet port, in the form of their records (wire/packet.ts). They are
 * built from the path of a connected QP or from the address vector of a datagram.
 *
 *     network header   version 1: GRH; version 2: IPv6 header, or 20 zeros and an IPv4 header if the source GID is an IPv4 address
 *     route            destination MAC, source MAC by its index in the port's table, tag; of version 2 the UDP source port
 *
 * Sources: interface sheet 5.1.1, 7.4, 7.5; IBTA vol 1, annexes A16 and A17.
 */
import { addressPath, IpProtocol, ipv4Header, qpc, RoceMode } from '../../../../abi/index.ts';
import { MAC_BYTES, viewOf } from '../../../../base/index.ts';
import {
  GRH_BYTES,
  grh,
  ipv4Checksum,
  isIpv4Route,
  roceRoute,
  roceRoutePlace,
} from '../../../../wire/index.ts';
import type { QpSlot, QpTable } from '../../objects/index.ts';
import { buildGrh, isMappedGid, UNCOUNTED_BYTES } from './grh.ts';
import type { PortAddress, RoceTables } from './port-address.ts';

const path = addressPath.fields;
const route = roceRoute.fields;
const ipv4 = ipv4Header.fields;
const context = qpc.fields;

/** Offset of the IPv4 header within the bytes of a GRH. */
const IPV4_PLACE = GRH_BYTES - ipv4Header.sizeBytes;
const IPV4_PLAIN = 0x45;
const DO_NOT_FRAGMENT = 0x4000;
const UDP_HEADER_BYTES = 8;
const PRIORITY_SHIFT = 13;
/** Value instead of a tag's control information. */
export const NO_TAG = -1;

/**
 * Inputs of a route: the bytes that hold a path or vector and the destination MAC, and the fields that come from
 * elsewhere.
 */
export interface RoceRouteParts {
  readonly from: Uint8Array;
  readonly path: number;
  readonly mac: number;
  readonly sourceMac: number;
  /** Control information, or {@link NO_TAG}. */
  readonly tag: number;
  /** Version 2. */
  readonly isRoutable: boolean;
  readonly udpSourcePort: number;
}

/** Priority of the tag; 0 without one. */
export const priorityOf = ({ tag }: RoceRouteParts): number => (tag === NO_TAG ? 0 : tag >>> PRIORITY_SHIFT);

/** The same route with this priority in its tag, if it has one. */
export const withPriority = (parts: RoceRouteParts, priority: number): RoceRouteParts =>
  parts.tag === NO_TAG
    ? parts
    : { ...parts, tag: (priority << PRIORITY_SHIFT) | (parts.tag & ((1 << PRIORITY_SHIFT) - 1)) };

/** Returns the route parts of a connected QP. */
export function connectedRouteOf(qps: QpTable, slot: QpSlot, tables: RoceTables): RoceRouteParts {
  const { bytes, view } = qps;
  const at = qps.offsetOf(slot);
  const from = qps.pathOf(slot);
  const vlanId =
    path.forceVlan.get(view, from) === 1 ? tables.vlans[path.vlanIndex.get(view, from)]! : NO_TAG;
  const priority = (path.scheduleQueue.get(view, from) >>> 3) & 7;
  return {
    from: bytes,
    path: from,
    mac: from + path.destinationMac.field.offset,
    sourceMac: sourceMacOf(qps, slot, tables),
    tag: vlanId === NO_TAG ? NO_TAG : (priority << PRIORITY_SHIFT) | vlanId,
    isRoutable: context.roceMode.get(view, at) === RoceMode.V2,
    udpSourcePort: udpSourcePortOf(qps, slot),
  };
}

/**
 * Returns the source MAC by the index in the QP's path, for datagrams too: Linux leaves the index in their vectors
 * unset.
 */
export function sourceMacOf(qps: QpTable, slot: QpSlot, { macs }: RoceTables): number {
  return macs[path.sourcePathBits.get(qps.view, qps.pathOf(slot))] ?? 0;
}

export const udpSourcePortOf = (qps: QpTable, slot: QpSlot): number =>
  context.roceEntropy.get(qps.view, qps.offsetOf(slot));

/** Writes the network header to `grhAt` of `into`. */
export function buildNetworkHeader(
  { from, path: at, isRoutable }: RoceRouteParts,
  address: PortAddress,
  into: Uint8Array,
  grhAt: number,
): void {
  buildGrh(from, at, address, into, grhAt);
  if (!isRoutable) return;
  if (isMappedGid(into, grhAt + grh.fields.sourceGid.field.offset)) turnIntoIpv4(into, grhAt);
  else into[grhAt + grh.fields.nextHeader.wordOffset] = IpProtocol.UDP;
}

/** Writes the rest to `place` of `into`. */
export function buildRoute(parts: RoceRouteParts, into: Uint8Array, place: number): void {
  const { from, mac, sourceMac, tag, isRoutable, udpSourcePort } = parts;
  const view = viewOf(into);
  into.fill(0, place, place + roceRoute.sizeBytes);
  for (let byte = 0; byte < MAC_BYTES; byte++) into[place + byte] = from[mac + byte]!;
  // An empty place of the table has none.
  if (sourceMac > 0) {
    view.setUint16(place + MAC_BYTES, Math.floor(sourceMac / 2 ** 32));
    view.setUint32(place + MAC_BYTES + 2, sourceMac % 2 ** 32);
  }
  if (tag !== NO_TAG) {
    route.hasTag.set(view, place, 1);
    route.vlanTag.set(view, place, tag);
  }
  if (!isRoutable) return;
  route.isRoutable.set(view, place, 1);
  route.udpSourcePort.set(view, place, udpSourcePort);
}

/** Turns a GRH between IPv4 addresses into zeros and an IPv4 header. Both end with the destination address. */
function turnIntoIpv4(into: Uint8Array, at: number): void {
  const view = viewOf(into);
  const source = view.getUint32(at + grh.fields.destinationGid.field.offset - 4);
  const trafficClass = grh.fields.trafficClass.get(view, at);
  const hopLimit = grh.fields.hopLimit.get(view, at);
  const header = at + IPV4_PLACE;
  into.fill(0, at, header + ipv4.source.wordOffset);
  ipv4.versionAndLength.set(view, header, IPV4_PLAIN);
  setIpv4TrafficClass(view, header, trafficClass);
  ipv4.fragment.set(view, header, DO_NOT_FRAGMENT);
  ipv4.timeToLive.set(view, header, hopLimit);
  ipv4.protocol.set(view, header, IpProtocol.UDP);
  ipv4.source.set(view, header, source);
}

/** The traffic class of a network header of version 2: DSCP and ECN. */
export function trafficClassIn(bytes: Uint8Array, at: number): number {
  const view = viewOf(bytes);
  if (!isIpv4Route(bytes, at)) return grh.fields.trafficClass.get(view, at);
  const header = at + IPV4_PLACE;
  return (ipv4.differentiatedServices.get(view, header) << 2) | ipv4.ecn.get(view, header);
}

/** Replaces it; the checksum of an IPv4 header is filled in later ({@link setRouteLength}). */
export function setTrafficClass(bytes: Uint8Array, at: number, trafficClass: number): void {
  const view = viewOf(bytes);
  if (!isIpv4Route(bytes, at)) return grh.fields.trafficClass.set(view, at, trafficClass);
  setIpv4TrafficClass(view, at + IPV4_PLACE, trafficClass);
}

function setIpv4TrafficClass(view: DataView, header: number, trafficClass: number): void {
  ipv4.differentiatedServices.set(view, header, trafficClass >>> 2);
  ipv4.ecn.set(view, header, trafficClass & 3);
}

/**
 * Fills in the payload length after the network header of a packet of this many bytes, counted as InfiniBand does with
 * a GRH.
 */
export function setRouteLength(bytes: Uint8Array, grhAt: number, packetBytes: number): void {
  const view = viewOf(bytes);
  const transportBytes = packetBytes - UNCOUNTED_BYTES;
  if (isIpv4Route(bytes, grhAt)) {
    const header = grhAt + IPV4_PLACE;
    ipv4.totalLength.set(view, header, ipv4Header.sizeBytes + UDP_HEADER_BYTES + transportBytes);
    ipv4.checksum.set(view, header, ipv4Checksum(view, header));
    return;
  }
  const isRoutable = route.isRoutable.get(view, roceRoutePlace(grhAt)) === 1;
  grh.fields.payloadLength.set(view, grhAt, transportBytes + (isRoutable ? UDP_HEADER_BYTES : 0));
}
