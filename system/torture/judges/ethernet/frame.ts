/**
 * A frame as a stranger on the cable reads it: MACs, and of a packet of RoCE its addresses, its headers and what they say of its length.
 * Source: IEEE 802.3-2018, 3.2; RFC 791, 768, 8200; IBTA vol 1, 8.3, 9.2 to 9.4, annexes A16 and A17.
 */
import { icrcOf, type NetworkHeader } from './icrc.ts';

export interface RocePacket {
  readonly kind: NetworkHeader;
  readonly sourceGid: string;
  readonly destinationGid: string;
  /** Or time to live. */
  readonly hopLimit: number;
  /** Name as reports have it; undefined: no such opcode. */
  readonly opcode: string | undefined;
  /** Place of its BTH in the frame. */
  readonly base: number;
  readonly destinationQpn: number;
  readonly psn: number;
  readonly payloadBytes: number;
  readonly padBytes: number;
  /** Bytes of the frame that the packet needs, without FCS. */
  readonly endBytes: number;
  readonly isIcrcRight: boolean;
  /** What the headers contradict each other in. */
  readonly wrong: readonly string[];
}

const etherTypes = { roce: 0x8915, ipv4: 0x0800, ipv6: 0x86dd, arp: 0x0806, control: 0x8808 } as const;
const ethernetBytes = 14;
const baseBytes = 12;
const icrcBytes = 4;
const udpBytes = 8;
const udpPort = 4791;
const nextHeaderBth = 0x1b;
const nextHeaderUdp = 17;
/** IANA's dynamic ports, of which packets of a queue pair that has been ready to send take one (annex A17.9.2); of others it is 0. */
const firstDynamicPort = 0xc000;

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const typeOf = (bytes: Uint8Array): number => bytes[12]! * 256 + bytes[13]!;
export const isControl = (bytes: Uint8Array): boolean => typeOf(bytes) === etherTypes.control;
export const destinationOf = (bytes: Uint8Array): string => hexOf(bytes.subarray(0, 6));
export const sourceOf = (bytes: Uint8Array): string => hexOf(bytes.subarray(6, 12));

/** Bytes of the extended headers behind the BTH, by the operation's number in its service (9.2, table 38). */
const extendedBytes: Readonly<Record<number, readonly [name: string, bytes: number]>> = {
  0: ['SEND_FIRST', 0],
  1: ['SEND_MIDDLE', 0],
  2: ['SEND_LAST', 0],
  3: ['SEND_LAST_WITH_IMMEDIATE', 4],
  4: ['SEND_ONLY', 0],
  5: ['SEND_ONLY_WITH_IMMEDIATE', 4],
  6: ['RDMA_WRITE_FIRST', 16],
  7: ['RDMA_WRITE_MIDDLE', 0],
  8: ['RDMA_WRITE_LAST', 0],
  9: ['RDMA_WRITE_LAST_WITH_IMMEDIATE', 4],
  10: ['RDMA_WRITE_ONLY', 16],
  11: ['RDMA_WRITE_ONLY_WITH_IMMEDIATE', 20],
  12: ['RDMA_READ_REQUEST', 16],
  13: ['RDMA_READ_RESPONSE_FIRST', 4],
  14: ['RDMA_READ_RESPONSE_MIDDLE', 0],
  15: ['RDMA_READ_RESPONSE_LAST', 4],
  16: ['RDMA_READ_RESPONSE_ONLY', 4],
  17: ['ACKNOWLEDGE', 4],
  18: ['ATOMIC_ACKNOWLEDGE', 12],
  19: ['COMPARE_SWAP', 28],
  20: ['FETCH_ADD', 28],
  22: ['SEND_LAST_WITH_INVALIDATE', 4],
  23: ['SEND_ONLY_WITH_INVALIDATE', 4],
  // The card's own (docs/wire.md): address, key, swap, compare and two masks; address, key, addend and boundaries.
  24: ['MASKED_COMPARE_SWAP', 44],
  25: ['MASKED_FETCH_ADD', 28],
};
/** Of the upper three bits of the opcode: name, and what its requests have first. */
const services: Readonly<Record<number, readonly [name: string, bytes: number]>> = {
  0: ['RC', 0],
  1: ['UC', 0],
  3: ['UD', 8],
  5: ['XRC', 4],
};
const isResponse = (operation: number): boolean => operation >= 0x0d && operation <= 0x12;

/** Undefined of a frame that is no packet of RoCE. */
export function packetIn(bytes: Uint8Array): RocePacket | undefined {
  const type = typeOf(bytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (type === etherTypes.roce) return routedByGrh(bytes, view);
  const isIpv4 = type === etherTypes.ipv4;
  if (!isIpv4 && type !== etherTypes.ipv6) return undefined;
  const udp = ethernetBytes + (isIpv4 ? 20 : 40);
  if (bytes.length < udp + udpBytes + baseBytes + icrcBytes) return undefined;
  return view.getUint16(udp + 2) === udpPort ? routedByIp(bytes, view, isIpv4, udp) : undefined;
}

function routedByGrh(bytes: Uint8Array, view: DataView): RocePacket {
  const wrong: string[] = [];
  if (view.getUint8(14) >> 4 !== 6) wrong.push('the version of its GRH is not 6');
  if (view.getUint8(20) !== nextHeaderBth) wrong.push('no BTH follows its GRH');
  const base = ethernetBytes + 40;
  const endBytes = base + view.getUint16(18);
  return packetOf(
    bytes,
    view,
    { kind: 'grh', base, endBytes, hopLimit: view.getUint8(21), ...gidsOf(bytes) },
    wrong,
  );
}

const gidsOf = (bytes: Uint8Array): { readonly sourceGid: string; readonly destinationGid: string } => ({
  sourceGid: hexOf(bytes.subarray(22, 38)),
  destinationGid: hexOf(bytes.subarray(38, 54)),
});

function routedByIp(bytes: Uint8Array, view: DataView, isIpv4: boolean, udp: number): RocePacket {
  const wrong: string[] = [];
  const base = udp + udpBytes;
  const ipBytes = isIpv4 ? view.getUint16(16) : 40 + view.getUint16(18);
  const endBytes = ethernetBytes + ipBytes;
  if (view.getUint16(udp + 4) !== endBytes - udp)
    wrong.push(`UDP is of ${view.getUint16(udp + 4)} bytes, IP has ${endBytes - udp} for it`);
  if (view.getUint16(udp) !== 0 && view.getUint16(udp) < firstDynamicPort)
    wrong.push(`it comes from UDP port ${view.getUint16(udp)}`);
  if (view.getUint8(isIpv4 ? 23 : 20) !== nextHeaderUdp) wrong.push('its IP header says that no UDP follows');
  if (view.getUint8(14) !== (isIpv4 ? 0x45 : (view.getUint8(14) & 0x0f) | 0x60))
    wrong.push('its IP version is wrong');
  if (isIpv4 && sumOf(view, ethernetBytes, 10) !== 0xffff)
    wrong.push('the checksum of its IPv4 header is wrong');
  const gids = isIpv4
    ? { sourceGid: mapped(bytes.subarray(26, 30)), destinationGid: mapped(bytes.subarray(30, 34)) }
    : gidsOf(bytes);
  const hopLimit = view.getUint8(isIpv4 ? 22 : 21);
  return packetOf(bytes, view, { kind: isIpv4 ? 'ipv4' : 'ipv6', base, endBytes, hopLimit, ...gids }, wrong);
}

/** An IPv4 address as a GID (RFC 4291, 2.5.5.2). */
const mapped = (address: Uint8Array): string => `${'0'.repeat(20)}ffff${hexOf(address)}`;

/** Sum of so many words with the carries (RFC 1071): all ones over a header with its checksum. */
function sumOf(view: DataView, at: number, words: number): number {
  let sum = 0;
  for (let word = 0; word < words; word++) sum += view.getUint16(at + 2 * word);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return sum;
}

type Routed = Pick<RocePacket, 'kind' | 'sourceGid' | 'destinationGid' | 'hopLimit' | 'endBytes'> & {
  readonly base: number;
};

function packetOf(
  bytes: Uint8Array,
  view: DataView,
  { base, ...routed }: Routed,
  wrong: string[],
): RocePacket {
  const { endBytes, kind } = routed;
  const code = view.getUint8(base);
  const operation = code & 0x1f;
  const service = services[code >> 5];
  const row = extendedBytes[operation];
  const isDatagram = code >> 5 === 3;
  const isKnown =
    service !== undefined && row !== undefined && (!isDatagram || operation === 4 || operation === 5);
  const padBytes = (view.getUint8(base + 1) >> 4) & 3;
  const headerBytes = isKnown ? row[1] + (isResponse(operation) ? 0 : service[1]) : 0;
  const payloadBytes = endBytes - icrcBytes - base - baseBytes - headerBytes - padBytes;
  if (!isKnown) wrong.push(`there is no opcode 0x${code.toString(16)}`);
  if (endBytes > bytes.length) wrong.push(`it is of ${bytes.length} bytes, its headers say ${endBytes}`);
  if (payloadBytes < 0) wrong.push(`its headers leave ${payloadBytes} bytes for its payload`);
  if ((payloadBytes + padBytes) % 4 !== 0) wrong.push(`${payloadBytes} bytes are padded with ${padBytes}`);
  if ((view.getUint8(base + 1) & 0x0f) !== 0) wrong.push('the version of its BTH is not 0');
  const isShort = endBytes > bytes.length || endBytes < base + baseBytes + icrcBytes;
  const found = isShort ? 0 : view.getUint32(endBytes - icrcBytes, true);
  const network = ethernetBytes;
  return {
    ...routed,
    base,
    opcode: isKnown ? `${service[0]}_${row[0]}` : undefined,
    destinationQpn: view.getUint32(base + 4) & 0xff_ffff,
    psn: view.getUint32(base + 8) & 0xff_ffff,
    payloadBytes,
    padBytes,
    isIcrcRight: !isShort && icrcOf(bytes, kind, network, base, endBytes - icrcBytes) === found,
    wrong,
  };
}

const icmpV6 = 58;

/** Whether a frame is one by which hosts find each other: of ARP (RFC 826) or of Neighbor Discovery (RFC 4861). */
export const isOfNeighbours = (bytes: Uint8Array): boolean =>
  typeOf(bytes) === etherTypes.arp || (typeOf(bytes) === etherTypes.ipv6 && bytes[20] === icmpV6);

/** Packets that fill the path MTU: the first and those in the middle of a message. */
export const fillsMtu = (opcode: string): boolean => /_(FIRST|MIDDLE)$/.test(opcode);
