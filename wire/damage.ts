/**
 * Bit errors that faults cause on the cable: which bit of a packet they flip. It follows from the packet alone, so that the same bit
 * is flipped in every run, in every form of packets, and at whichever end one looks.
 */
import { variantCrc } from './crc.ts';
import { bth, GRH_BYTES, ICRC_BYTES, lrh, VCRC_BYTES } from './headers.ts';
import { transportHeaderBytes } from './opcodes.ts';

/** Where a bit error strikes. */
export const DamagePlace = { ANYWHERE: 0, HEADER: 1, PAYLOAD: 2 } as const;

/** Of the BTH: the byte that no ICRC covers. */
const UNCOVERED_PLACE = bth.fields.fecn.wordOffset;
const BITS_PER_BYTE = 8;

/**
 * Flips one bit of the packet of `packetBytes` at `at`.
 * @param isInside it happened within a switch, which sends a right VCRC over what it has damaged: only the ICRC is wrong
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
  const payload = Math.min(base + transportHeaderBytes(bytes[base]!), icrcAt);
  const isBehindHeaders = place === DamagePlace.PAYLOAD;
  const first = isBehindHeaders ? payload : base;
  const end = place === DamagePlace.HEADER ? payload : icrcAt + ICRC_BYTES;
  // The lots fall by the CRC: as good as random, and the packet's own.
  const lot = variantCrc(bytes, at, icrcAt + ICRC_BYTES);
  let struck = first + (Math.floor(lot / BITS_PER_BYTE) % (end - first));
  if (struck === base + UNCOVERED_PLACE) struck++;
  bytes[struck]! ^= 1 << (lot % BITS_PER_BYTE);
  if (!isInside) return;
  const vcrcAt = icrcAt + ICRC_BYTES;
  const vcrc = variantCrc(bytes, at, vcrcAt);
  bytes[vcrcAt] = vcrc & 0xff;
  bytes[vcrcAt + 1] = vcrc >> 8;
}
