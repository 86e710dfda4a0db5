/** QUERY_ADAPTER (0x006), out box. Source: interface sheet 3.9. */

import { bytes, layout, u8, u16 } from '../base/index.ts';

export const queryAdapter = layout(
  'QUERY_ADAPTER',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.9' },
  {
    interruptPin: u8(0x10, 'INTx pin number for the clear-interrupt register'),
    vsdVendorId: u16(0x1e),
    vsd: bytes(0x20, 0xd0, 'vendor specific data'),
    boardId: bytes(0xf0, 16, 'PSID, each 4-byte group reversed'),
  },
);

/** A board id as the firmware stores it: at most 16 ASCII characters, each group of four reversed. */
export function boardIdBytes(psid: string): Uint8Array {
  const plain = new TextEncoder().encode(psid.padEnd(16, '\0').slice(0, 16));
  return plain.map((_, at) => plain[(at & ~3) + 3 - (at & 3)]!);
}

/** The text of a stored board id. */
export function boardIdText(stored: Uint8Array): string {
  const plain = stored.map((_, at) => stored[(at & ~3) + 3 - (at & 3)]!);
  return new TextDecoder().decode(plain).replace(/\0+$/, '');
}
