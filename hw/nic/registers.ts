/**
 * BAR0 of the NIC: what its registers do when they are read and written. The map is data (abi/nic/registers.ts).
 *
 * Registers take accesses of one aligned dword, or of two at once; anything else reads zero or is dropped, and is
 * counted. While CTRL.RST lasts, writes are dropped. Ring registers of a queue that is on, and PBMODE while frames are on
 * their way, do not change: PROGERR says so.
 */
import { nicBar0, nicBits } from '../../abi/nic/index.ts';
import { withField } from '../../base/registers.ts';
import type { BusMaster } from './bus-master.ts';
import type { NicCounters } from './counters.ts';
import type { DescriptorRing } from './descriptor-ring.ts';
import type { NicInterrupts } from './interrupts.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import type { ReceiveEngine } from './receive-engine.ts';
import type { ReceiveMac } from './receive-mac.ts';
import { RegisterWriter } from './register-writer.ts';
import type { NicStatistics } from './statistics.ts';
import type { TransmitEngine } from './transmit-engine.ts';
import type { TransmitMac } from './transmit-mac.ts';

const R = nicBar0.registers;
export type NicRegisterName = keyof typeof R;
const DWORD_BYTES = 4;
const FOUR_GIB = 0x1_0000_0000;

/** The blocks behind the registers. */
export interface RegisterBlocks {
  readonly counters: NicCounters;
  readonly interrupts: NicInterrupts;
  readonly statistics: NicStatistics;
  readonly transmitRing: DescriptorRing;
  readonly receiveRing: DescriptorRing;
  readonly transmitEngine: TransmitEngine;
  readonly receiveEngine: ReceiveEngine;
  readonly transmitBusMaster: BusMaster;
  readonly receiveBusMaster: BusMaster;
  readonly transmitMac: TransmitMac;
  readonly receiveBuffer: PacketBuffer;
  readonly receiveMac: ReceiveMac;
}

/** What registers set off outside of those blocks. */
export interface RegisterEffects {
  isResetting(cycle: number): boolean;
  isLinkUp(): boolean;
  setLinkEnabled(isEnabled: boolean): void;
  reset(cycle: number): void;
  /** The packet buffer's halves in KiB. */
  readonly transmitKib: number;
  readonly receiveKib: number;
  readonly frameBytesMax: number;
  /** Whether nothing is on its way in a half of the packet buffer. */
  isTransmitIdle(): boolean;
  isReceiveIdle(): boolean;
}

export class NicRegisters {
  readonly #blocks: RegisterBlocks;
  readonly #effects: RegisterEffects;
  readonly #writer: RegisterWriter;
  readonly #boardAddress: readonly number[];

  /** @param boardAddress the 6 bytes of the MAC address that the board has */
  constructor(blocks: RegisterBlocks, effects: RegisterEffects, boardAddress: readonly number[]) {
    this.#blocks = blocks;
    this.#effects = effects;
    this.#boardAddress = boardAddress;
    this.#writer = new RegisterWriter(blocks, effects);
    this.reset();
  }

  /** Everything that is kept here as after power-on. */
  reset(): void {
    this.#writer.reset();
    const { receiveMac } = this.#blocks;
    receiveMac.address.set(this.#boardAddress);
    receiveMac.isAddressValid = true;
    receiveMac.longBytesMax = R.rlpml.resetValue;
    this.#writer.rah = withField(0, nicBits.rah.valid, 1);
  }

  /** Reads at `offset` of BAR0 into the beginning of `into`, which is zero. */
  read(offset: number, lengthBytes: number, into: DataView, cycle: number): void {
    this.#blocks.counters.registerReads++;
    if (!this.#isWhole(offset, lengthBytes)) return;
    for (let at = 0; at < lengthBytes; at += DWORD_BYTES) {
      const name = nameByDword[(offset + at) / DWORD_BYTES];
      if (name !== undefined)
        into.setUint32(at, this.#readDword(name, offset + at - R[name].offset, cycle), true);
      else this.#blocks.counters.registerAccessErrors++;
    }
  }

  write(offset: number, bytes: DataView, byteOffset: number, lengthBytes: number, cycle: number): void {
    this.#blocks.counters.registerWrites++;
    if (!this.#isWhole(offset, lengthBytes)) return;
    for (let at = 0; at < lengthBytes; at += DWORD_BYTES) {
      const name = nameByDword[(offset + at) / DWORD_BYTES];
      if (name === undefined) this.#blocks.counters.registerAccessErrors++;
      else if (!this.#effects.isResetting(cycle)) {
        const value = bytes.getUint32(byteOffset + at, true);
        this.#writer.write(name, offset + at - R[name].offset, value, cycle);
      }
    }
  }

  #isWhole(offset: number, lengthBytes: number): boolean {
    if ((lengthBytes === DWORD_BYTES || lengthBytes === 2 * DWORD_BYTES) && offset % DWORD_BYTES === 0)
      return true;
    this.#blocks.counters.registerAccessErrors++;
    return false;
  }

  #readDword(name: NicRegisterName, at: number, cycle: number): number {
    const { interrupts, statistics } = this.#blocks;
    switch (name) {
      case 'ctrl':
        return withField(this.#writer.ctrl, nicBits.ctrl.reset, this.#effects.isResetting(cycle) ? 1 : 0);
      case 'status':
        return withField(1, nicBits.status.linkUp, this.#effects.isLinkUp() ? 1 : 0);
      case 'icr':
        return interrupts.readCauses(cycle);
      case 'ims':
        return interrupts.mask;
      case 'eiac':
        return interrupts.autoClear;
      case 'iam':
        return interrupts.autoMask;
      case 'ivar':
        return interrupts.vectors;
      case 'eitr':
        return interrupts.eitr[at / DWORD_BYTES]!;
      case 'eict':
        return interrupts.eict[at / DWORD_BYTES]!;
      case 'rctl':
        return this.#writer.rctl;
      case 'tctl':
        return this.#writer.tctl;
      default:
        return statistics.read(name) ?? this.#readQueue(name) ?? this.#readRest(name);
    }
  }

  #readQueue(name: NicRegisterName): number | undefined {
    const { transmitRing: tx, receiveRing: rx, receiveEngine } = this.#blocks;
    switch (name) {
      case 'rdbal':
        return rx.baseLow;
      case 'rdbah':
        return rx.baseHigh;
      case 'rdlen':
        return rx.lengthBytes;
      case 'rdh':
        return rx.head;
      case 'rdt':
        return rx.tail;
      case 'rxdctl':
        return queueControlOf(rx);
      case 'rxbuf':
        return receiveEngine.bufferBytes;
      case 'rxmin':
        return receiveEngine.lowWater;
      case 'tdbal':
        return tx.baseLow;
      case 'tdbah':
        return tx.baseHigh;
      case 'tdlen':
        return tx.lengthBytes;
      case 'tdh':
        return tx.head;
      case 'tdt':
        return tx.tail;
      case 'txdctl':
        return queueControlOf(tx);
      default:
        return undefined;
    }
  }

  #readRest(name: NicRegisterName): number {
    const { receiveMac, transmitMac, receiveEngine, transmitBusMaster, receiveBusMaster } = this.#blocks;
    const { transmitKib, receiveKib } = this.#effects;
    if (name.startsWith('txdma')) return engineRegister(transmitBusMaster, name.slice('txdma'.length));
    if (name.startsWith('rxdma')) return engineRegister(receiveBusMaster, name.slice('rxdma'.length));
    switch (name) {
      case 'pba':
        return ((transmitKib << 16) | receiveKib) >>> 0;
      case 'rxcsum':
        return receiveEngine.checksumStart;
      case 'rlpml':
        return receiveMac.longBytesMax;
      case 'ral':
        return dwordOf(receiveMac.address, 0);
      case 'rah':
        return withField(
          this.#writer.rah,
          nicBits.rah.high,
          receiveMac.address[4]! | (receiveMac.address[5]! << 8),
        );
      case 'pbmode':
        return (transmitMac.isProgrammed ? 1 : 0) | (receiveEngine.isProgrammed ? 2 : 0);
      case 'piotx':
        return withField(this.#writer.piotx, nicBits.piotx.go, transmitMac.hasProgrammedRoom ? 0 : 1);
      case 'piotxCount':
        return transmitMac.programmedCount;
      case 'piorx':
        return receiveEngine.showsFrame ? this.#frameShown() : 0;
      default:
        return 0;
    }
  }

  #frameShown(): number {
    const { receiveBuffer } = this.#blocks;
    const { length, offset, valid } = nicBits.piorx;
    const value = withField(0, length, receiveBuffer.bytesOf(0));
    return withField(withField(value, offset, receiveBuffer.placeOf(0) / DWORD_BYTES), valid, 1);
  }
}

/** Names by dword of BAR0: every doorbell is looked up here. */
const nameByDword: (NicRegisterName | undefined)[] = [];
for (const [name, { offset, sizeBytes }] of Object.entries(R)) {
  for (let at = 0; at < sizeBytes; at += DWORD_BYTES) {
    nameByDword[(offset + at) / DWORD_BYTES] = name as NicRegisterName;
  }
}

function queueControlOf(ring: DescriptorRing): number {
  const { prefetch, fault, enable } = nicBits.queueControl;
  const value = withField(withField(0, prefetch, ring.prefetch), fault, ring.isFaulty ? 1 : 0);
  return withField(value, enable, ring.isEnabled ? 1 : 0);
}

function engineRegister(engine: BusMaster, name: string): number {
  const { busy, error } = nicBits.engineStatus;
  switch (name) {
    case 'AddressLow':
      return engine.address % FOUR_GIB;
    case 'AddressHigh':
      return Math.floor(engine.address / FOUR_GIB);
    case 'Count':
      return engine.wordsLeft;
    case 'Buffer':
      return engine.place;
    default:
      return withField(withField(0, busy, engine.isBusy ? 1 : 0), error, engine.error);
  }
}

function dwordOf(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}
