/**
 * A guest's machine at the socket: its memory, mapped and watched, its interrupts, and the registers of the device as its
 * driver reaches them. Both the well-behaved and the rough guests act through it.
 */
import { closeSync } from 'node:fs';
import { bar0 } from '../../../abi/bar-map.ts';
import { type CommandName, Opcode } from '../../../abi/commands.ts';
import { hcr, hcrGoOffset, mailboxBytes, pollingToken } from '../../../abi/hcr.ts';
import { viewOf } from '../../../base/index.ts';
import { type VfioUserClient, writePayload } from '../../../guest/client/client.ts';
import { INTERRUPT_MSIX, REGION_BAR0, REGION_CONFIG } from '../../../guest/device.ts';
import { createEventfd, drainEventfd } from '../../../guest/native/poll.ts';
import { Command, regionAccess } from '../../../guest/vfio-user/protocol.ts';
import { GuestRam } from './guest-ram.ts';
import type { ServedDevice } from './served-device.ts';

export const REGION_BAR2 = REGION_BAR0 + 2;
export const bar0Address = 0xfe00_0000;
export const bar2Address = 0xe000_0000;
/** Of the file; the guest's memory begins at address 0 and is shorter, so that there is something behind it. */
const ramFileBytes = 8 << 20;
export const ramBytes = 7 << 20;
export const vectorCount = 4;
const ramFill = 0x5a;

/** Mailboxes of commands. */
export const inBoxAddress = 0x1000;
export const outBoxAddress = 0x2000;

export interface CommandOptions {
  readonly inputModifier?: number;
  readonly opcodeModifier?: number;
  readonly inBox?: Uint8Array;
  readonly inParam?: number;
  /** Bytes of the out box to read; without them there is none. */
  readonly outBytes?: number;
}

export interface CommandOutcome {
  /** NOT_ENDED: it was still running when the patience was over. */
  readonly status: number;
  readonly out: bigint;
  readonly outBox: Uint8Array;
}

export const NOT_ENDED = -1;
/** Looks at the register while a command runs, a millisecond apart: the longest takes one. */
const usualPatience = 20;
const pollMs = 1;

export class GuestLife {
  readonly device: ServedDevice;
  readonly client: VfioUserClient;
  readonly ram = new GuestRam(ramFileBytes, ramFill);
  readonly eventfds: readonly number[] = Array.from({ length: vectorCount }, createEventfd);
  /** How often the register of commands is looked at before a command is given up. */
  patience = usualPatience;
  /** What each store carries instead of its value, and what is written into memory instead: for guests that go mad. */
  distort: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes;

  constructor(device: ServedDevice) {
    this.device = device;
    this.client = device.connect();
  }

  /** Version, memory, interrupts: what QEMU says before its guest runs. */
  attach(): void {
    this.client.handshake();
    this.map(0, ramBytes, 0);
    this.client.setEventfds(INTERRUPT_MSIX, 0, vectorCount, this.eventfds);
  }

  /** Maps a part of the memory; what the server answers. */
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

  /** Firmware: addresses of the BARs, memory decoding, bus mastering, MSI-X. */
  enable(): void {
    this.writeConfig(0x10, 4, bar0Address);
    this.writeConfig(0x18, 4, bar2Address);
    this.writeConfig(0x04, 2, 6);
    this.writeConfig(0x9e, 2, 0x8000);
  }

  readConfig(offset: number, lengthBytes: number): Uint8Array {
    const bytes = this.client.read(REGION_CONFIG, offset, lengthBytes);
    return typeof bytes === 'number' ? new Uint8Array(0) : bytes;
  }

  writeConfig(offset: number, lengthBytes: number, value: number): void {
    const bytes = Buffer.alloc(lengthBytes);
    bytes.writeUIntLE(value >>> 0, 0, lengthBytes);
    this.client.write(REGION_CONFIG, offset, bytes);
  }

  /** A big-endian register of BAR0; all ones when there is no answer. */
  read32(offset: number): number {
    const bytes = this.client.read(REGION_BAR0, offset, 4);
    return typeof bytes === 'number' || bytes.length < 4 ? 0xffff_ffff : Buffer.from(bytes).readUInt32BE();
  }

  write32(offset: number, value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value >>> 0);
    this.store(REGION_BAR0, offset, bytes);
  }

  /** Posted, as a guest's stores are. */
  store(region: number, offset: number, bytes: Uint8Array): void {
    this.client.post(region, offset, this.distort(bytes));
  }

  /** Into memory. */
  put(address: number, bytes: Uint8Array): void {
    this.ram.write(address, this.distort(bytes));
  }

  /** Posts a command. */
  post(name: CommandName | number, options: CommandOptions = {}): void {
    const { inputModifier = 0, opcodeModifier = 0, inBox, outBytes } = options;
    if (inBox !== undefined) this.put(inBoxAddress, inBox);
    const base = bar0.registers.hcr.offset;
    const image = hcr.encode({
      inParam: BigInt(options.inParam ?? (inBox === undefined ? 0 : inBoxAddress)),
      inputModifier,
      outParam: BigInt(outBytes === undefined ? 0 : outBoxAddress),
      token: pollingToken,
      go: 1,
      toggle: 1 - ((this.read32(base + hcrGoOffset) >>> 21) & 1),
      opcodeModifier,
      opcode: typeof name === 'number' ? name : Opcode[name],
    });
    const view = viewOf(image);
    for (let at = 0; at < hcr.sizeBytes; at += 4) this.write32(base + at, view.getUint32(at));
  }

  /** Posts a command and waits for its end. */
  command(name: CommandName | number, options: CommandOptions = {}): CommandOutcome {
    if (options.outBytes !== undefined) this.ram.write(outBoxAddress, new Uint8Array(mailboxBytes));
    this.post(name, options);
    const base = bar0.registers.hcr.offset;
    let last = this.read32(base + hcrGoOffset);
    for (let look = 0; (last & (1 << 23)) !== 0 && look < this.patience; look++) {
      this.device.pass(pollMs);
      last = this.read32(base + hcrGoOffset);
    }
    const hasEnded = (last & (1 << 23)) === 0;
    return {
      status: hasEnded ? last >>> 24 : NOT_ENDED,
      out: (BigInt(this.read32(base + 12)) << 32n) | BigInt(this.read32(base + 16)),
      outBox: this.ram.read(outBoxAddress, options.outBytes ?? 0),
    };
  }

  /** How often each vector was raised since it was asked last. */
  raised(): number[] {
    return this.eventfds.map(drainEventfd);
  }

  /** A store whose reply is not waited for, with any header: for {@link VfioUserClient.send}. */
  static storeMessage(region: number, offset: number, bytes: Uint8Array): [number, Uint8Array] {
    return [Command.REGION_WRITE, writePayload(region, offset, bytes)];
  }

  static readMessage(region: number, offset: number, count: number): [number, Uint8Array] {
    return [Command.REGION_READ, regionAccess.encode({ offset: BigInt(offset), region, count })];
  }

  /** The guest's machine goes, as by a killed QEMU. */
  leave(): void {
    this.client.close();
    this.device.settle();
    this.ram.forsaken();
  }

  /** Gives back what this process holds of it, whatever has happened. */
  close(): void {
    this.client.close();
    this.ram.close();
    for (const descriptor of this.eventfds) closeSync(descriptor);
  }
}
