/**
 * Bit errors that faults cause on the cable: which bit of a packet they flip. It depends on the packet alone, so that the same
 * bit is flipped in every run, in every form of packets, and at both ends. The bit flipped under a right VCRC depends only on
 * fields that no switch changes, so that all cables of a path carry the same wrong bytes.
 */
import { viewOf } from '../base/index.ts';
import { variantCrc } from './crc.ts';
import { ETHERNET_HEADER_BYTES } from './ethernet-sizing.ts';
import { payloadIn } from './frame-parts.ts';
import { bth, GRH_BYTES, ICRC_BYTES, lrh, VCRC_BYTES } from './headers.ts';
import { transportHeaderBytes } from './opcodes.ts';
import { roceTransportIn } from './roce-bytes.ts';

/** Position of a bit error. */
export const DamagePlace = { ANYWHERE: 0, HEADER: 1, PAYLOAD: 2 } as const;

/** The byte of the BTH that no ICRC covers. */
const UNCOVERED_PLACE = bth.fields.fecn.wordOffset;
const BITS_PER_BYTE = 8;

/**
 * Flips one bit of the packet of `packetBytes` at `at`.
 * @param isInside the error occurred within a switch, which sends a right VCRC over the damaged packet: only the ICRC is wrong
 */
export function damagePacket(
  bytes: Uint8Array,
  at: number,
  packetBytes: number,
  place: number,
  isInside: boolean,
): void {
  const hasGrh = (bytes[at + 1]! & 3) === 3;
  const base = at + lrh.sizeBytes + (hasGrh ? GRH_BYTES : 0);
  const icrcAt = at + packetBytes - VCRC_BYTES - ICRC_BYTES;
  // A CRC selects the bit: as good as random, and a function of the packet alone. The ICRC leaves out lane and marks.
  const lot = isInside ? viewOf(bytes).getUint32(icrcAt, true) : variantCrc(bytes, at, icrcAt + ICRC_BYTES);
  damageTransport(bytes, { base, icrc: icrcAt }, place, lot);
  if (!isInside) return;
  const vcrcAt = icrcAt + ICRC_BYTES;
  const vcrc = variantCrc(bytes, at, vcrcAt);
  bytes[vcrcAt] = vcrc & 0xff;
  bytes[vcrcAt + 1] = vcrc >> 8;
}

/**
 * Flips one bit of the frame of `frameBytes`, without FCS, at `at`: with RoCE in the transport's headers and payload, in
 * other frames after the type, whose headers end at the payload of TCP or UDP.
 */
export function damageFrame(bytes: Uint8Array, at: number, frameBytes: number, place: number): void {
  const end = at + frameBytes;
  const lot = variantCrc(bytes, at, end);
  const transport = roceTransportIn(bytes, at, frameBytes);
  if (transport !== undefined) return damageTransport(bytes, transport, place, lot);
  if (frameBytes <= ETHERNET_HEADER_BYTES) return;
  const header = at + ETHERNET_HEADER_BYTES;
  if (place === DamagePlace.ANYWHERE) return flipBit(bytes, header, end, lot);
  const payload = payloadIn(bytes, at, frameBytes);
  if (place === DamagePlace.HEADER) flipBit(bytes, header, payload.first, lot);
  else flipBit(bytes, payload.first, payload.end, lot);
}

/** Whether the frame has bytes at this place: {@link damageFrame} flips a bit of no other. The ICRC of RoCE is in its payload. */
export function hasDamagePlace(bytes: Uint8Array, at: number, frameBytes: number, place: number): boolean {
  if (place !== DamagePlace.PAYLOAD || roceTransportIn(bytes, at, frameBytes) !== undefined) return true;
  const { first, end } = payloadIn(bytes, at, frameBytes);
  return end > first;
}

/** @param transport offsets of BTH and ICRC */
function damageTransport(
  bytes: Uint8Array,
  { base, icrc }: { readonly base: number; readonly icrc: number },
  place: number,
  lot: number,
): void {
  const payload = Math.min(base + transportHeaderBytes(bytes[base]!), icrc);
  const first = place === DamagePlace.PAYLOAD ? payload : base;
  const end = place === DamagePlace.HEADER ? payload : icrc + ICRC_BYTES;
  flipBit(bytes, first, end, lot, base + UNCOVERED_PLACE);
}

function flipBit(bytes: Uint8Array, first: number, end: number, lot: number, spared = -1): void {
  const struck = first + (Math.floor(lot / BITS_PER_BYTE) % (end - first));
  bytes[struck === spared ? struck + 1 : struck]! ^= 1 << (lot % BITS_PER_BYTE);
}
