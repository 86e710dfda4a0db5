/**
 * A packet of a reliable connection as an observer of the cable reads it: a request or a response. Source: IBTA vol 1,
 * 5.2.1, 7.7, 8.3, 9.2 to 9.3.
 */
import { packetIn } from '../ethernet/frame.ts';

export interface TransportPacket {
  /** Destination LID or MAC, the latter in hexadecimal. */
  readonly destination: string;
  /** The operation within its service: the lower five bits of the opcode. */
  readonly operation: number;
  readonly destinationQpn: number;
  readonly psn: number;
  /** Syndrome of a response with an AETH; -1 of other packets. */
  readonly syndrome: number;
  readonly msn: number;
  /** Bytes that a READ requests; 0 of other packets. */
  readonly wantedBytes: number;
}

/** Services by the upper three bits of the opcode, and bytes that precede the extended headers in their requests. */
const reliableServices: Readonly<Record<number, number>> = { 0: 0, 5: 4 };

const baseBytes = 12;
const icrcBytes = 4;
const erfHeaderBytes = 16;
const localRouteBytes = 8;
const globalRouteBytes = 40;
/** Offset of the length in a RETH. */
const lengthPlace = 12;

export const operations = {
  readRequest: 12,
  readFirst: 13,
  readMiddle: 14,
  readLast: 15,
  readOnly: 16,
  acknowledge: 17,
  atomicAcknowledge: 18,
} as const;
const { readRequest, readFirst, readMiddle, atomicAcknowledge } = operations;

export const isAnswer = (operation: number): boolean =>
  operation >= readFirst && operation <= atomicAcknowledge;
/** FETCH_ADD, COMPARE_SWAP, and the card's own masked ones (docs/how-to/wire.md). */
export const isAtomic = (operation: number): boolean =>
  operation === 19 || operation === 20 || operation === 24 || operation === 25;
/** True for LAST and ONLY of SENDs and WRITEs, with or without further headers, and for requests of one packet. */
export const endsMessage = (operation: number): boolean => ![0, 1, 6, 7].includes(operation);

export const psnCount = 2 ** 24;

/** PSNs that a request takes: of a READ as many as its answer has packets. */
export const packetsOf = ({ operation, wantedBytes }: TransportPacket, mtuBytes: number): number =>
  operation === readRequest ? Math.max(1, Math.ceil(wantedBytes / mtuBytes)) : 1;

/**
 * @returns undefined for other packets than those of RC or XRC, and for a frame whose ICRC is wrong: a fault has
 * damaged it, and its receiver drops it
 */
export function transportPacketIn(bytes: Uint8Array, isEthernet: boolean): TransportPacket | undefined {
  return isEthernet ? inFrame(bytes) : inRecord(bytes);
}

function inFrame(bytes: Uint8Array): TransportPacket | undefined {
  const packet = packetIn(bytes);
  if (packet?.opcode === undefined || !packet.isIcrcRight) return undefined;
  return packetAt(bytes, packet.base, Buffer.from(bytes.subarray(0, 6)).toString('hex'));
}

/** A record of the extensible record format: its header, then a packet from its LRH on. */
function inRecord(bytes: Uint8Array): TransportPacket | undefined {
  const lrh = erfHeaderBytes;
  const nextHeader = bytes[lrh + 1]! & 3;
  if (nextHeader < 2) return undefined;
  const destination = String(bytes[lrh + 2]! * 256 + bytes[lrh + 3]!);
  const base = lrh + localRouteBytes + (nextHeader === 3 ? globalRouteBytes : 0);
  return packetAt(bytes, base, destination);
}

function packetAt(bytes: Uint8Array, base: number, destination: string): TransportPacket | undefined {
  if (bytes.length < base + baseBytes + icrcBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const code = view.getUint8(base);
  const ownBytes = reliableServices[code >> 5];
  if (ownBytes === undefined) return undefined;
  const operation = code & 0x1f;
  const hasAeth = isAnswer(operation) && operation !== readMiddle;
  const aeth = hasAeth ? view.getUint32(base + baseBytes) : 0;
  const wantedBytes =
    operation === readRequest ? view.getUint32(base + baseBytes + ownBytes + lengthPlace) : 0;
  return {
    destination,
    operation,
    destinationQpn: view.getUint32(base + 4) & 0xff_ffff,
    psn: view.getUint32(base + 8) & 0xff_ffff,
    syndrome: hasAeth ? aeth >>> 24 : -1,
    msn: aeth & 0xff_ffff,
    wantedBytes,
  };
}
