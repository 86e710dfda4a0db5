/**
 * The part of a transfer that one TLP may carry.
 *
 * A TLP's Length counts whole dwords, including partly enabled ones, and is bounded by Max_Payload_Size (writes) or
 * Max_Read_Request_Size (reads); it may not cross a 4 KiB boundary (PCIe Base 3.0, 2.2.2 and 2.2.7). So a piece that begins
 * inside a dword is shorter by the bytes before it: a read of 512 bytes at offset 1 spans 129 dwords.
 */
import type { BusAddress } from '../../base/index.ts';

export function firstTlpBytes(address: BusAddress, lengthBytes: number, limitBytes: number): number {
  const pageOffset = address & 4095;
  const inPage = 4096 - pageOffset;
  const inTlp = limitBytes - (pageOffset & 3);
  const bytes = inTlp < inPage ? inTlp : inPage;
  return bytes < lengthBytes ? bytes : lengthBytes;
}

/** TLPs of a transfer. */
export function tlpCountOf(address: BusAddress, lengthBytes: number, limitBytes: number): number {
  let count = 0;
  for (let done = 0; done < lengthBytes; count++)
    done += firstTlpBytes(address + done, lengthBytes - done, limitBytes);
  return count;
}
