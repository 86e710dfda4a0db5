/**
 * Virtual addresses have 64 bits, and numbers are exact to 53. So an address is two numbers: its lower part, and its top, bits
 * 63 to 52. An offset of up to 4 GiB may be added to the lower part and carry it beyond 2^52: together with the top it still
 * determines the address. Programs of this machine have addresses whose top is 0.
 */
import type { VirtualAddress } from './units.ts';

/** Exclusive bound of the lower part: one unit of the top. */
export const ADDRESS_TOP_UNIT = 2 ** 52;
/** Largest top. */
export const ADDRESS_TOP_MAX = 0xfff;
/** Shift of the top in the high one of an address's two words. */
const TOP_SHIFT = 20;
const TWO_32 = 2 ** 32;

/** Bits 51 to 0 of the address whose two words begin at `place`, the high one first. */
export function addressAt(view: DataView, place: number): VirtualAddress {
  return (view.getUint32(place) & 0xf_ffff) * TWO_32 + view.getUint32(place + 4);
}

/** Returns bits 63 to 52 of the address. */
export function addressTopAt(view: DataView, place: number): number {
  return view.getUint16(place) >>> (TOP_SHIFT - 16);
}

/** Writes an address as two words, the high one first; a carry beyond 2^64 is lost, as in any adder of 64 bits. */
export function putAddress(view: DataView, place: number, address: VirtualAddress, top: number): void {
  view.setUint32(place, top * 2 ** TOP_SHIFT + Math.floor(address / TWO_32));
  view.setUint32(place + 4, address % TWO_32);
}

/**
 * Bytes from one address up to another: exact below 2^52. For larger or negative distances the result is inexact, but still at
 * least 2^52 or below 0.
 */
export function addressDistance(
  from: VirtualAddress,
  fromTop: number,
  to: VirtualAddress,
  toTop: number,
): number {
  return to - from + (toTop - fromTop) * ADDRESS_TOP_UNIT;
}

/** Page number of an address in pages of `pageBytes`, a power of two: exact for pages of up to 2^52 bytes. */
export function placeInPage(address: VirtualAddress, top: number, pageBytes: number): number {
  return (address % pageBytes) + ((top * ADDRESS_TOP_UNIT) % pageBytes);
}
