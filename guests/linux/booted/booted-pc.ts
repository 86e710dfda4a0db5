/**
 * A PC whose Linux has booted, and its form as bytes:
 *
 *     length of the header (4 bytes, little-endian) · header: JSON · v86's state
 */
import type { PcSnapshot } from '../../pc/index.ts';

/** A PC, and what its console has printed so far. */
export interface BootedPc {
  readonly pc: PcSnapshot;
  readonly consoleText: string;
}

const lengthBytes = 4;

export function bytesOfBooted({ pc, consoleText }: BootedPc): Uint8Array<ArrayBuffer> {
  const { state, ...rest } = pc;
  const header = new TextEncoder().encode(JSON.stringify({ pc: rest, consoleText }));
  const bytes = new Uint8Array(lengthBytes + header.length + state.length);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, lengthBytes);
  bytes.set(state, lengthBytes + header.length);
  return bytes;
}

/** The inverse of {@link bytesOfBooted}. */
export function bootedOfBytes(bytes: Uint8Array): BootedPc {
  const headerBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(
    new TextDecoder().decode(bytes.subarray(lengthBytes, lengthBytes + headerBytes)),
  ) as BootedPc;
  return {
    ...header,
    pc: { ...header.pc, state: Uint8Array.from(bytes.subarray(lengthBytes + headerBytes)) },
  };
}
