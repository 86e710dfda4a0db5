/** MAC addresses (IEEE 802, 8.2): numbers of 48 bits, and their bytes in the order of a frame. */

export const MAC_BYTES = 6;

/** The 6 bytes of a MAC. */
export function macBytesOf(mac: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(mac));
  return new Uint8Array(view.buffer, 2, MAC_BYTES);
}

/** The MAC whose bytes begin here; later bytes are ignored. */
export const macOfBytes = (bytes: Uint8Array): number =>
  bytes.subarray(0, MAC_BYTES).reduce((mac, byte) => mac * 256 + byte, 0);
