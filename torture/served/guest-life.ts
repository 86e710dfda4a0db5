/**
 * A guest's machine at the socket: its memory, mapped and watched, its interrupts, and the registers of the device as its
 * driver reaches them. Both the well-behaved and the rough guests act through it.
 */
import { closeSync } from 'node:fs';
import * as abi from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import {
  createEventfd,
  drainEventfd,
  INTERRUPT_MSIX,
  REGION_BAR0,
  REGION_CONFIG,
  type VfioUserClient,
} from '../../guests/slot/index.ts';
import { GuestRam } from './guest-ram.ts';
import type { ServedDevice } from './served-device.ts';

export const REGION_BAR2 = REGION_BAR0 + 2;
const bar0Address = 0xfe00_0000;
const bar2Address = 0xe000_0000;
/** Size of the file, which is longer than the guest's memory from address 0 on: the rest belongs to a bystander. */
const ramFileBytes = 8 << 20;
export const ramBytes = 7 << 20;
const vectorCount = 4;
const ramFill = 0x5a;
/** Size of the pieces in which memory is mapped at first, so that some can be unmapped while others stay. */
const pieceBytes = 1 << 20;
export const initialMappings: readonly { readonly address: number; readonly sizeBytes: number }[] =
  Array.from({ length: ramBytes / pieceBytes }, (_, piece) => ({
    address: piece * pieceBytes,
    sizeBytes: pieceBytes,
  }));

/** Mailboxes of commands. */
export const inBoxAddress = 0x1000;
const outBoxAddress = 0x2000;

export interface CommandOptions {
  readonly inputModifier?: number;
  readonly opcodeModifier?: number;
  readonly inBox?: Uint8Array;
  readonly inParam?: number;
  /** Bytes of the out box to read; omitted: the command has no out box. */
  readonly outBytes?: number;
}

export interface CommandOutcome {
  /** NOT_ENDED: it was still running when the patience was over. UNREACHABLE: the register was not there. */
  readonly status: number;
  readonly out: bigint;
  readonly outBox: Uint8Array;
}

export const NOT_ENDED = -1;
/** The register reads all ones: no device answers. */
export const UNREACHABLE = -2;
const hcrImage = new Uint8Array(abi.hcr.sizeBytes);
const hcrView = viewOf(hcrImage);
const noBox = new Uint8Array(abi.mailboxBytes);
/** Polls of the register while a command runs, a millisecond apart: the longest takes one. */
const usualPatience = 20;
const pollMs = 1;

/** A number as doorbells and records have it. */
export function word32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  viewOf(bytes).setUint32(0, value);
  return bytes;
}

export class GuestLife {
  readonly device: ServedDevice;
  readonly client: VfioUserClient;
  readonly ram = new GuestRam(ramFileBytes, ramFill);
  readonly eventfds: readonly number[] = Array.from({ length: vectorCount }, createEventfd);
  /** Toggle bit of the next command in the HCR; undefined: read the register. */
  #nextToggle: number | undefined;
  /** Number of polls of the command register before a command is abandoned. */
  patience = usualPatience;
  /** Replaces the bytes of each store and of each write to memory, for guests that go mad. */
  distort: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes;

  constructor(device: ServedDevice) {
    this.device = device;
    this.client = device.connect();
  }

  /** Sends version, memory and interrupts, as QEMU does before its guest runs. */
  attach(): void {
    this.client.handshake();
    for (const { address, sizeBytes } of initialMappings) this.map(address, sizeBytes, address);
    this.client.setEventfds(INTERRUPT_MSIX, 0, vectorCount, this.eventfds);
  }

  /** Maps a part of the memory; returns the server's answer. */
  map(address: number, sizeBytes: number, fileOffset: number, writable = 1): number {
    const errno = this.client.map(
      {
        address: BigInt(address),
        sizeBytes: BigInt(sizeBytes),
        readable: 1,
        writable,
        fileOffset: BigInt(fileOffset),
      },
      this.ram.descriptor,
    );
    if (errno === 0 && writable === 1) this.ram.mapped(fileOffset, sizeBytes);
    return errno;
  }

  /** Firmware: power on, addresses of the BARs, memory decoding, bus mastering, MSI-X. */
  enable(): void {
    this.writeConfig(0x44, 2, 0);
    for (const [at, address] of [bar0Address, bar2Address].entries()) {
      this.writeConfig(0x10 + 8 * at, 4, address);
      this.writeConfig(0x14 + 8 * at, 4, 0);
    }
    this.writeConfig(0x04, 2, 6);
    this.writeConfig(0x9e, 2, 0x8000);
    this.forgetToggle();
  }

  readConfig(offset: number, lengthBytes: number): Uint8Array {
    const bytes = this.client.read(REGION_CONFIG, offset, lengthBytes);
    return typeof bytes === 'number' ? new Uint8Array(0) : bytes;
  }

  writeConfig(offset: number, lengthBytes: number, value: number): void {
    const bytes = Buffer.alloc(lengthBytes);
    bytes.writeUIntLE(value >>> 0, 0, lengthBytes);
    this.client.post(REGION_CONFIG, offset, bytes);
  }

  /** A big-endian register of BAR0; all ones when there is no answer. */
  read32(offset: number): number {
    const bytes = this.client.read(REGION_BAR0, offset, 4);
    return typeof bytes === 'number' || bytes.length < 4 ? 0xffff_ffff : Buffer.from(bytes).readUInt32BE();
  }

  write32(offset: number, value: number): void {
    this.store(REGION_BAR0, offset, word32(value));
  }

  /** Posted, as a guest's stores are. */
  store(region: number, offset: number, bytes: Uint8Array): void {
    this.client.post(region, offset, this.distort(bytes));
  }

  /** Into memory. */
  put(address: number, bytes: Uint8Array): void {
    this.ram.write(address, this.distort(bytes));
  }

  /** The toggle bit of the HCR may have changed by other means than commands. */
  forgetToggle(): void {
    this.#nextToggle = undefined;
  }

  /** Posts a command. */
  post(name: abi.CommandName | number, options: CommandOptions = {}): void {
    const { inputModifier = 0, opcodeModifier = 0, inBox, outBytes } = options;
    if (inBox !== undefined) this.put(inBoxAddress, inBox);
    const base = abi.bar0.registers.hcr.offset;
    const toggle = this.#nextToggle ?? 1 - ((this.read32(base + abi.hcrGoOffset) >>> 21) & 1);
    this.#nextToggle = 1 - toggle;
    const { fields } = abi.hcr;
    fields.inParam.setNumber(hcrView, 0, options.inParam ?? (inBox === undefined ? 0 : inBoxAddress));
    fields.inputModifier.set(hcrView, 0, inputModifier);
    fields.outParam.setNumber(hcrView, 0, outBytes === undefined ? 0 : outBoxAddress);
    fields.token.set(hcrView, 0, abi.pollingToken);
    fields.go.set(hcrView, 0, 1);
    fields.toggle.set(hcrView, 0, toggle);
    fields.opcodeModifier.set(hcrView, 0, opcodeModifier);
    fields.opcode.set(hcrView, 0, typeof name === 'number' ? name : abi.Opcode[name]);
    for (let at = 0; at < abi.hcr.sizeBytes; at += 4)
      this.client.postLater(REGION_BAR0, base + at, this.distort(hcrImage.subarray(at, at + 4)));
    this.client.flush();
  }

  /** Posts a command and waits for its end. */
  command(name: abi.CommandName | number, options: CommandOptions = {}): CommandOutcome {
    if (options.outBytes !== undefined) this.ram.write(outBoxAddress, noBox);
    const status = this.statusOf(name, options);
    const base = abi.bar0.registers.hcr.offset;
    return {
      status,
      out: (BigInt(this.read32(base + 12)) << 32n) | BigInt(this.read32(base + 16)),
      outBox: this.ram.read(outBoxAddress, options.outBytes ?? 0),
    };
  }

  /** Posts a command and waits for its end; its status alone, {@link NOT_ENDED} or {@link UNREACHABLE}. */
  statusOf(name: abi.CommandName | number, options: CommandOptions = {}): number {
    this.post(name, options);
    this.device.turn();
    const goAddress = abi.bar0.registers.hcr.offset + abi.hcrGoOffset;
    let last = this.read32(goAddress);
    for (let look = 0; (last & (1 << 23)) !== 0 && last !== 0xffff_ffff && look < this.patience; look++) {
      this.device.pass(pollMs);
      last = this.read32(goAddress);
    }
    if ((last & (1 << 23)) === 0) return last >>> 24;
    this.forgetToggle();
    return last === 0xffff_ffff ? UNREACHABLE : NOT_ENDED;
  }

  /** All that was sent is carried out; its answers are no longer awaited. */
  synchronise(): void {
    if (!this.client.hasUnanswered) return;
    this.client.flush();
    this.device.settle();
    this.client.forget();
  }

  /** Returns how often each vector was raised since the last call. */
  raised(): number[] {
    return this.eventfds.map(drainEventfd);
  }

  /** Closes the connection as a killed QEMU does. */
  leave(): void {
    this.client.close();
    this.device.settle();
    this.ram.forsaken();
  }

  /** Releases this process's resources of it, whatever has happened. */
  close(): void {
    this.client.close();
    this.ram.close();
    for (const descriptor of this.eventfds) closeSync(descriptor);
  }
}
