/**
 * BAR0 of the NIC: the bus's side of its registers. Their access by software is declared (abi/nic/registers.ts) and enforced by
 * the register file; their values and effects are in register-hooks.ts.
 *
 * Registers take accesses of one aligned dword, or of two at once; any other access reads zero or is dropped, and is counted;
 * so is a write without a writable field. While CTRL.RST lasts, writes are dropped.
 */

import { nicBar0 } from '../../abi/nic/index.ts';
import { type Cycles, type PlacedBank, RegisterFile } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { BusMaster } from './bus-master.ts';
import type { DescriptorRing } from './descriptor-ring.ts';
import type { NicCounters } from './nic-counters.ts';
import type { NicInterrupts } from './nic-interrupts.ts';
import type { NicStatistics } from './nic-statistics.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';
import type { ReceiveEngine } from './receive-engine.ts';
import type { ReceiveMac } from './receive-mac.ts';
import { registerHooks } from './register-hooks.ts';
import type { TransmitEngine } from './transmit-engine.ts';
import type { TransmitMac } from './transmit-mac.ts';

const DWORD_BYTES = 4;

/** The blocks that implement the registers. */
export interface RegisterBlocks {
  readonly config: NicConfig;
  readonly counters: NicCounters;
  /** The Ethernet port. */
  readonly port: EthernetPort;
  readonly interrupts: NicInterrupts;
  readonly statistics: NicStatistics;
  readonly transmitRing: DescriptorRing;
  readonly receiveRing: DescriptorRing;
  readonly transmitEngine: TransmitEngine;
  readonly receiveEngine: ReceiveEngine;
  readonly transmitBusMaster: BusMaster;
  readonly receiveBusMaster: BusMaster;
  readonly transmitMac: TransmitMac;
  readonly transmitBuffer: PacketBuffer;
  readonly receiveBuffer: PacketBuffer;
  readonly receiveMac: ReceiveMac;
}

/** The card as a whole, for CTRL.RST. */
export interface ResetByRegister {
  /** True until the reset requested by software has ended. */
  isResetting(cycle: Cycles): boolean;
  resetByRegister(cycle: Cycles): void;
}

export class NicRegisters {
  readonly #blocks: RegisterBlocks;
  readonly #card: ResetByRegister;
  readonly #boardAddress: readonly number[];
  readonly #file = new RegisterFile(nicBar0.sizeBytes);
  readonly #registers: PlacedBank<typeof nicBar0.registers>;

  /** @param boardAddress the 6 bytes of the board's MAC address */
  constructor(blocks: RegisterBlocks, card: ResetByRegister, boardAddress: readonly number[]) {
    this.#blocks = blocks;
    this.#card = card;
    this.#boardAddress = boardAddress;
    this.#registers = this.#file.place(nicBar0, 0, registerHooks(blocks, card));
    this.#initialise();
    this.reset();
  }

  /** Resets all state of this block to that after power-on. */
  reset(): void {
    this.#file.reset();
    const { receiveMac } = this.#blocks;
    receiveMac.address.set(this.#boardAddress);
    receiveMac.isAddressValid = true;
    receiveMac.longBytesMax = this.#registers.value('rlpml');
  }

  /** Stored value of each register, without zeros; its block shows values that are not stored. */
  inspect(): BlockState {
    const state: Record<string, number> = {};
    for (const [name, { offset, sizeBytes }] of Object.entries(nicBar0.registers))
      for (let at = offset; at < offset + sizeBytes; at += DWORD_BYTES) {
        const value = this.#file.stored(at, DWORD_BYTES);
        if (value !== 0) state[sizeBytes === DWORD_BYTES ? name : `${name}+${at - offset}`] = value;
      }
    return state;
  }

  /** Reads at `offset` of BAR0 into the beginning of `into`, which is zero. */
  read(offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    const { counters } = this.#blocks;
    counters.registerReads++;
    if (!this.#isWhole(offset, lengthBytes)) return;
    for (let at = 0; at < lengthBytes; at += DWORD_BYTES) {
      if (this.#file.isClaimed(offset + at))
        into.setUint32(at, this.#file.read(offset + at, DWORD_BYTES, cycle), true);
      else counters.registerAccessErrors++;
    }
  }

  write(offset: number, bytes: DataView, byteOffset: number, lengthBytes: number, cycle: Cycles): void {
    const { counters } = this.#blocks;
    counters.registerWrites++;
    if (!this.#isWhole(offset, lengthBytes)) return;
    for (let at = 0; at < lengthBytes; at += DWORD_BYTES) {
      if (this.#card.isResetting(cycle) && this.#file.isClaimed(offset + at)) continue;
      const value = bytes.getUint32(byteOffset + at, true);
      const answer = this.#file.write(offset + at, DWORD_BYTES, value, cycle);
      if (answer !== 'written') counters.registerAccessErrors++;
    }
  }

  /** Values specific to this card after each reset. */
  #initialise(): void {
    const address = Uint8Array.from([...this.#boardAddress, 0, 0]);
    const view = new DataView(address.buffer);
    const registers = this.#registers;
    const { config } = this.#blocks;
    registers.initialise('pba', 'transmitKib', config.transmitBufferKib);
    registers.initialise('pba', 'receiveKib', config.receiveBufferKib);
    registers.initialise('ral', 'value', view.getUint32(0, true));
    registers.initialise('rah', 'high', view.getUint16(4, true));
    registers.initialise('rah', 'valid', 1);
  }

  #isWhole(offset: number, lengthBytes: number): boolean {
    if ((lengthBytes === DWORD_BYTES || lengthBytes === 2 * DWORD_BYTES) && offset % DWORD_BYTES === 0)
      return true;
    this.#blocks.counters.registerAccessErrors++;
    return false;
  }
}
