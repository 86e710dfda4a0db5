/**
 * A frame as an observer of the cable reads it (analyser/independent): MACs, and for a packet of RoCE its addresses,
 * the length in its headers, and contradictions. Source: IEEE 802.3-2018, 3.2; IBTA vol 1, annexes A16 and A17.
 */
import {
  destinationGid,
  headerOf,
  type IndependentPacket,
  isRight,
  type PacketForm,
  readFrame,
  sourceGid,
} from '../../../analyser/independent/index.ts';

export interface RocePacket {
  readonly form: PacketForm;
  readonly sourceGid: string;
  readonly destinationGid: string;
  /** Hop limit, or time to live. */
  readonly hopLimit: number;
  /** Name as reports have it; undefined: no such opcode. */
  readonly opcode: string | undefined;
  /** Offset of the BTH in the frame. */
  readonly base: number;
  readonly destinationQpn: number;
  readonly psn: number;
  readonly payloadBytes: number;
  /** Bytes of the frame that the packet needs, without FCS. */
  readonly endBytes: number;
  readonly isIcrcRight: boolean;
  /** Contradictions among the headers. */
  readonly wrong: readonly string[];
}

const etherTypes = { ipv6: 0x86dd, arp: 0x0806, control: 0x8808 } as const;
/**
 * First of IANA's dynamic ports; packets of a queue pair that has been ready to send use one of them (annex A17.9.2),
 * others use 0.
 */
const firstDynamicPort = 0xc000;

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const typeOf = (bytes: Uint8Array): number => bytes[12]! * 256 + bytes[13]!;
export const isControl = (bytes: Uint8Array): boolean => typeOf(bytes) === etherTypes.control;
export const isToGroupMac = (bytes: Uint8Array): boolean => (bytes[0]! & 1) === 1;
export const destinationOf = (bytes: Uint8Array): string => hexOf(bytes.subarray(0, 6));
export const sourceOf = (bytes: Uint8Array): string => hexOf(bytes.subarray(6, 12));

/** Returns the RoCE packet; undefined for other frames, and for a cut frame. */
export function packetIn(bytes: Uint8Array): RocePacket | undefined {
  const packet = readFrame(bytes);
  if (packet === undefined || typeof packet === 'string') return undefined;
  const { form, operation, base, payload, payloadEnd, end, icrc, wrong } = packet;
  const bth = headerOf(packet, 'BTH')!.numbers;
  const port = headerOf(packet, 'UDP')?.numbers['sourcePort'] ?? 0;
  const isStrangePort = port !== 0 && port < firstDynamicPort;
  return {
    form,
    sourceGid: sourceGid(packet)!,
    destinationGid: destinationGid(packet)!,
    hopLimit: hopLimitOf(packet),
    opcode: operation?.name,
    base,
    destinationQpn: bth['destinationQp']!,
    psn: bth['psn']!,
    payloadBytes: payloadEnd - payload,
    endBytes: end,
    isIcrcRight: isRight(icrc),
    wrong: isStrangePort ? [...wrong, `it comes from UDP port ${port}`] : wrong,
  };
}

function hopLimitOf(packet: IndependentPacket): number {
  const network = headerOf(packet, 'GRH') ?? headerOf(packet, 'IPV6');
  return network?.numbers['hopLimit'] ?? headerOf(packet, 'IPV4')!.numbers['timeToLive']!;
}

const icmpV6 = 58;

/** Whether a frame is one by which hosts find each other: of ARP (RFC 826) or of Neighbor Discovery (RFC 4861). */
export const isOfNeighbours = (bytes: Uint8Array): boolean =>
  typeOf(bytes) === etherTypes.arp || (typeOf(bytes) === etherTypes.ipv6 && bytes[20] === icmpV6);

/** Packets that fill the path MTU: the first and those in the middle of a message. */
export const fillsMtu = (opcode: string): boolean => /_(FIRST|MIDDLE)$/.test(opcode);
