/**
 * The headers of a MAD's packet on Ethernet, as software writes them into the WQE of QP1: Ethernet, GRH or IP and UDP, BTH,
 * DETH. The port appends the ICRC and the FCS and sends all else as written here. Driver rooms do not import `wire/`; specs
 * hold these bytes to its decoder and to a capture of Soft-RoCE.
 *
 *     version 1   destination · source · 8915 · GRH 40 ─────────────────┬─ BTH 12 · DETH 8
 *     version 2   destination · source · 0800 · IPv4 20 · UDP 8 ────────┘
 *
 * Sources: IBTA vol 1, 8.3, 9.2, 9.3.2, annexes A16, A17; Linux 6.1, mlx4_ib qp.c build_mlx_header.
 */
import {
  EtherType,
  generalServicesQkey,
  generalServicesQpn,
  IpProtocol,
  ipv4Header,
  ipv6Header,
  madBytes,
  udpHeader,
} from '../../abi/index.ts';
import { bits32, layout, u8, u16, u32, viewOf } from '../../base/index.ts';
import { ipv4OfGid, isIpv4Gid } from '../gid.ts';

const transport = layout(
  'transport headers of a MAD',
  { sizeBytes: 20, byteOrder: 'big', source: 'IBTA vol 1, 9.2, 9.3.2' },
  {
    opcode: u8(0),
    partitionKey: u16(2),
    destinationQp: bits32(4, 23, 0),
    psn: bits32(8, 23, 0),
    queueKey: u32(12),
    sourceQp: bits32(16, 23, 0),
  },
);

const macBytes = 6;
const ethernetHeaderBytes = 14;
const icrcBytes = 4;
const udSendOnly = 0x64;
const defaultPkey = 0xffff;
const nextIsBth = 0x1b;
const roceUdpPort = 4791;
/** UDP source port of all datagrams of QP1 (MLX4_ROCEV2_QP1_SPORT). */
const udpSourcePort = 0xc000;
const ipv4Plain = 0x45;
const doNotFragment = 0x4000;
const payloadBytes = transport.sizeBytes + madBytes + icrcBytes;

/** Source and destination. MACs have 6 bytes, GIDs 16. */
export interface RoceHeaderParts {
  readonly sourceMac: Uint8Array;
  readonly destinationMac: Uint8Array;
  readonly sourceGid: Uint8Array;
  readonly destinationGid: Uint8Array;
  readonly hopLimit: number;
  readonly psn: number;
  /** Whether version 2. */
  readonly isRoutable: boolean;
}

/** 74 bytes of version 1, 62 of version 2 over IPv4, 82 over IPv6. */
export function roceManagementHeaders(parts: RoceHeaderParts): Uint8Array {
  const network = networkHeaders(parts);
  const bytes = new Uint8Array(ethernetHeaderBytes + network.bytes.length + transport.sizeBytes);
  bytes.set(parts.destinationMac);
  bytes.set(parts.sourceMac, macBytes);
  viewOf(bytes).setUint16(2 * macBytes, network.etherType);
  bytes.set(network.bytes, ethernetHeaderBytes);
  const values = {
    opcode: udSendOnly,
    partitionKey: defaultPkey,
    destinationQp: generalServicesQpn,
    psn: parts.psn,
    queueKey: generalServicesQkey,
    sourceQp: generalServicesQpn,
  };
  transport.encodeInto(values, bytes, ethernetHeaderBytes + network.bytes.length);
  return bytes;
}

function networkHeaders(parts: RoceHeaderParts): { readonly etherType: number; readonly bytes: Uint8Array } {
  if (!parts.isRoutable) return { etherType: EtherType.ROCE, bytes: sixOf(parts, nextIsBth, payloadBytes) };
  const udpBytes = udpHeader.sizeBytes + payloadBytes;
  const udp = udpHeader.encode({
    sourcePort: udpSourcePort,
    destinationPort: roceUdpPort,
    length: udpBytes,
  });
  const isIpv4 = isIpv4Gid(parts.sourceGid);
  const ip = isIpv4 ? fourOf(parts, udpBytes) : sixOf(parts, IpProtocol.UDP, udpBytes);
  return { etherType: isIpv4 ? EtherType.IPV4 : EtherType.IPV6, bytes: Uint8Array.of(...ip, ...udp) };
}

/** A GRH and an IPv6 header share one format. */
const sixOf = (
  { sourceGid, destinationGid, hopLimit }: RoceHeaderParts,
  nextHeader: number,
  payloadLength: number,
): Uint8Array =>
  ipv6Header.encode({
    version: 6,
    payloadLength,
    nextHeader,
    hopLimit,
    source: sourceGid,
    destination: destinationGid,
  });

function fourOf({ sourceGid, destinationGid, hopLimit }: RoceHeaderParts, behindBytes: number): Uint8Array {
  const bytes = ipv4Header.encode({
    versionAndLength: ipv4Plain,
    totalLength: ipv4Header.sizeBytes + behindBytes,
    fragment: doNotFragment,
    timeToLive: hopLimit,
    protocol: IpProtocol.UDP,
    source: numberOfIpv4(sourceGid),
    destination: numberOfIpv4(destinationGid),
  });
  ipv4Header.fields.checksum.set(viewOf(bytes), 0, headerChecksum(bytes));
  return bytes;
}

const numberOfIpv4 = (gid: Uint8Array): number =>
  ipv4OfGid(gid)
    .split('.')
    .reduce((number, part) => number * 256 + Number(part), 0);

/** Checksum of RFC 1071 over a header whose own checksum is 0. */
function headerChecksum(header: Uint8Array): number {
  const view = viewOf(header);
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += view.getUint16(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

const isSix = (header: Uint8Array): boolean => header[0]! >>> 4 === 6;

/** Whether a received MAD arrived by version 2, from the 40 bytes before it: after a GRH the transport header follows immediately. */
export const isRoutableHeader = (header: Uint8Array): boolean =>
  !isSix(header) || ipv6Header.fields.nextHeader.get(viewOf(header), 0) !== nextIsBth;

/** The sender's GID in the 40 bytes before a received MAD: a GRH, an IPv6 header, or an IPv4 header after 20 unused bytes. */
export function sourceGidOf(header: Uint8Array): Uint8Array {
  if (isSix(header)) {
    const { offset } = ipv6Header.fields.source.field;
    return header.slice(offset, offset + 16);
  }
  const gid = new Uint8Array(16);
  const view = viewOf(gid);
  view.setUint16(10, 0xffff);
  const ipv4At = header.length - ipv4Header.sizeBytes;
  view.setUint32(12, ipv4Header.fields.source.get(viewOf(header), ipv4At));
  return gid;
}
