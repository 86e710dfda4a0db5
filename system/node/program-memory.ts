/**
 * A process's memory as its programs use it: whole ranges at user addresses, across page boundaries. Access costs no
 * cycles; a program charges what its work is worth.
 */
import { ConfigurationError, InvariantError } from '../../base/assert.ts';
import type { ProcessMemory } from '../../host/index.ts';

export class ProgramMemory {
  /** The same memory as the verbs library and the driver see it. */
  readonly process: ProcessMemory;

  constructor(process: ProcessMemory) {
    this.process = process;
  }

  /** Maps anonymous pages. @throws InvariantError when the host is out of memory */
  map(lengthBytes: number): number {
    const address = this.process.map(lengthBytes);
    if (address < 0) throw new InvariantError('mapped bytes', lengthBytes, 'what the host has free');
    return address;
  }

  unmap(address: number, lengthBytes: number): void {
    this.process.unmap(address, lengthBytes);
  }

  /** Copies of the bytes of [address, address + lengthBytes). */
  read(address: number, lengthBytes: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(lengthBytes);
    this.readInto(address, bytes);
    return bytes;
  }

  /** Fills `target` from memory. */
  readInto(address: number, target: Uint8Array): void {
    if (!this.process.space.read(address, target)) throw outside('read', address, target.length);
  }

  write(address: number, bytes: Uint8Array): void {
    if (!this.process.space.write(address, bytes)) throw outside('written', address, bytes.length);
  }

  /** A little-endian 64-bit word, as an aligned load of a program would see it. */
  readUint64(address: number): bigint {
    return new DataView(this.read(address, 8).buffer).getBigUint64(0, true);
  }

  writeUint64(address: number, value: bigint): void {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, value, true);
    this.write(address, bytes);
  }
}

function outside(what: string, address: number, lengthBytes: number): ConfigurationError {
  return new ConfigurationError(
    `${lengthBytes} bytes ${what} at`,
    `0x${address.toString(16)}`,
    'memory that the process has mapped',
  );
}
