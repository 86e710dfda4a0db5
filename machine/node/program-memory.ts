/**
 * A process's memory from the view of its programs: whole ranges at user addresses, across page boundaries, through the
 * MMU.
 *
 * The bytes themselves cost no cycles (a program charges its own work); faults, page-table walks and copies on write
 * do. `read` and `write` complete at once: if a page must be read from the swap or file device, the core stalls (cause
 * `swapWait`). `touch`, `load` and `store` yield the core instead. An address or length that is not a non-negative
 * integer is a ConfigurationError.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import {
  type Advice,
  type CoreThread,
  type FixedMode,
  type MapError,
  type MapOptions,
  ProcessKilledError,
  type ProcessMemory,
} from '../../host/index.ts';
import type { ProgramAccess, RaceWatch } from './race-watch.ts';

export class ProgramMemory {
  /** The memory as the verbs library and the driver see it. */
  readonly process: ProcessMemory;
  readonly #cpu: CoreThread;
  readonly #races: RaceWatch | undefined;

  constructor(process: ProcessMemory, cpu: CoreThread, races?: RaceWatch) {
    this.process = process;
    this.#cpu = cpu;
    this.#races = races;
  }

  /**
   * Maps memory, by default anonymous pages allocated on first touch.
   * @throws InvariantError if the host has too little memory
   */
  map(lengthBytes: number, options: MapOptions = {}): number {
    checkWhole('lengthBytes', lengthBytes);
    const address = this.process.mapWith(lengthBytes, options);
    if (address < 0) throw new InvariantError('mapped bytes', lengthBytes, 'at most the host’s free memory');
    return address;
  }

  /** mmap(2) with MAP_FIXED, or MAP_FIXED_NOREPLACE. @returns the address, or an errno */
  mapFixed(
    address: number,
    lengthBytes: number,
    options: MapOptions = {},
    mode: FixedMode = 'replace',
  ): number | MapError {
    if (mode === 'replace') this.#watch('remap', address, lengthBytes);
    else checkRange(address, lengthBytes);
    return this.process.space.mapFixed(address, lengthBytes, options, mode);
  }

  unmap(address: number, lengthBytes: number): void {
    this.#watch('unmap', address, lengthBytes);
    this.process.unmap(address, lengthBytes);
  }

  /** mremap(2): a larger or smaller mapping, at another address if necessary and allowed. Huge pages stay whole and are not extended. */
  remap(
    address: number,
    oldLengthBytes: number,
    newLengthBytes: number,
    mayMove: boolean,
  ): number | 'EFAULT' | 'EINVAL' | 'ENOMEM' {
    checkWhole('newLengthBytes', newLengthBytes);
    this.#watch('remap', address, oldLengthBytes);
    return this.process.space.remap(address, oldLengthBytes, newLengthBytes, mayMove);
  }

  /**
   * mprotect(2).
   * @returns false if some page is not mapped
   */
  protect(address: number, lengthBytes: number, access: 'read' | 'readWrite'): boolean {
    this.#watch('protect', address, lengthBytes);
    return this.process.space.protect(address, lengthBytes, access);
  }

  /** madvise(2). @returns an errno, or undefined */
  advise(address: number, lengthBytes: number, advice: Advice): 'EINVAL' | 'ENOMEM' | undefined {
    if (advice === 'dontNeed') this.#watch('dontNeed', address, lengthBytes);
    else checkRange(address, lengthBytes);
    return this.process.space.advise(address, lengthBytes, advice);
  }

  /** Returns a copy of the bytes of [address, address + lengthBytes). */
  read(address: number, lengthBytes: number): Uint8Array<ArrayBuffer> {
    checkWhole('lengthBytes', lengthBytes);
    const bytes = new Uint8Array(lengthBytes);
    this.readInto(address, bytes);
    return bytes;
  }

  /** Fills `target` from memory. */
  readInto(address: number, target: Uint8Array): void {
    this.#watch('read', address, target.length);
    if (!this.process.space.read(address, target)) throw this.#outside('read', address, target.length);
  }

  write(address: number, bytes: Uint8Array): void {
    this.#watch('write', address, bytes.length);
    if (!this.process.space.write(address, bytes)) throw this.#outside('written', address, bytes.length);
  }

  /** Makes every page of a range present, for reading or for writing, and yields the core while devices work. */
  async touch(address: number, lengthBytes: number, access: 'read' | 'write'): Promise<void> {
    checkRange(address, lengthBytes);
    const isThere = await this.process.touch(this.#cpu, address, lengthBytes, access === 'write');
    if (!isThere) throw this.#outside('touched', address, lengthBytes);
  }

  /** {@link readInto}, but yields the core while a page is loaded. */
  async load(address: number, target: Uint8Array): Promise<void> {
    this.#watch('read', address, target.length);
    const isThere = await this.process.load(this.#cpu, address, target);
    if (!isThere) throw this.#outside('read', address, target.length);
  }

  /** {@link write}, but yields the core while a page is loaded. */
  async store(address: number, bytes: Uint8Array): Promise<void> {
    this.#watch('write', address, bytes.length);
    const isThere = await this.process.store(this.#cpu, address, bytes);
    if (!isThere) throw this.#outside('written', address, bytes.length);
  }

  /** Reads a little-endian 64-bit word as an aligned load of a program does. */
  readUint64(address: number): bigint {
    return new DataView(this.read(address, 8).buffer).getBigUint64(0, true);
  }

  writeUint64(address: number, value: bigint): void {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, value, true);
    this.write(address, bytes);
  }

  #watch(access: ProgramAccess, address: number, lengthBytes: number): void {
    checkRange(address, lengthBytes);
    if (this.#races === undefined) return;
    this.#races.accessed(this.#cpu, this.process.processId, access, address, lengthBytes);
  }

  #outside(what: string, address: number, lengthBytes: number): Error {
    const { space } = this.process;
    if (space.isKilled) return new ProcessKilledError(this.#cpu.name, 'out of memory');
    if (what === 'written' ? space.isWritable(address, lengthBytes) : space.isMapped(address, lengthBytes))
      return new ConfigurationError(
        `memory for ${lengthBytes} bytes ${what}`,
        'none',
        'more of host.memory.sizeMib or host.swap.sizeMib',
      );
    return new ConfigurationError(
      `${lengthBytes} bytes ${what} at`,
      `0x${address.toString(16)}`,
      'memory that the process has mapped',
    );
  }
}

function checkRange(address: number, lengthBytes: number): void {
  checkWhole('address', address);
  checkWhole('lengthBytes', lengthBytes);
}

function checkWhole(field: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new ConfigurationError(field, value, 'a whole number from 0 to 2^53 - 1');
}
