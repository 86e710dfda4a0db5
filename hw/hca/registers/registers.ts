/**
 * BAR0 behind the PCIe function: what the registers of the HCA do when they are read and written.
 *
 * The map itself is data (abi/bar-map.ts); each register's effect is a method here. All registers are big-endian dwords
 * and take accesses of exactly one aligned dword: anything else reads zero or is dropped, and is counted. Offsets between
 * registers read 0 and ignore writes. Source: interface sheet 2.
 */
import { bar0 } from '../../../abi/bar-map.ts';
import { fieldOf } from '../../../base/index.ts';
import { type ProtocolViolations, violation } from '../statistics/index.ts';
import type { CommandRegister } from './command-register.ts';

const registers = bar0.registers;
const { trigger: resetTrigger } = registers.reset.fields;
type RegisterName = keyof typeof registers;

/** What registers set off outside themselves. */
export interface ControlRegisterPorts {
  readonly control: {
    /** A full reset of the device was triggered. */
    deviceReset(cycle: number): void;
  };
  readonly moderation: {
    /** INTx: software has seen the interrupts of the pins in the mask. */
    clearPin(cycle: number): void;
  };
}

/** Returned by a semaphore that somebody holds: any value but 0. */
const HELD = 1;

export class ControlRegisters {
  readonly #hcr: CommandRegister;
  readonly #violations: ProtocolViolations;
  #ports!: ControlRegisterPorts;
  readonly #interruptPin: number;
  /** Faults to inject: the register reads as taken, whoever gives it back. */
  isOwnerStuck = false;
  isSemaphoreStuck = false;
  /** Told of each reset that software triggers, after it took place. */
  onReset: ((cycle: number) => void) | undefined;
  #isOwned = false;
  #isSemaphoreHeld = false;
  #crSpaceAccess = 0;
  /** Cycles before the epoch, which the clock register counts too. */
  epochCycles = 0;
  readonly #catastrophicDwords = new Uint32Array(registers.catastrophicBuffer.sizeBytes / 4);

  constructor(hcr: CommandRegister, violations: ProtocolViolations, interruptPin: number) {
    this.#hcr = hcr;
    this.#violations = violations;
    this.#interruptPin = interruptPin;
  }

  connect(ports: ControlRegisterPorts): void {
    this.#ports = ports;
  }

  /** A fatal error of the firmware: Linux finds the code within 5 s and resets the device. */
  setCatastrophicError(code: number): void {
    this.#catastrophicDwords[0] = code;
  }

  /** Reads `lengthBytes` at `offset` of BAR0 into the beginning of `into`, in memory order. */
  read(offset: number, lengthBytes: number, into: DataView, cycle: number): void {
    for (let at = 0; at < lengthBytes; at++) into.setUint8(at, 0);
    const name = bar0.nameAt(offset);
    if (name === undefined || lengthBytes === 0) return;
    if (this.#isOneDword(offset, lengthBytes)) into.setUint32(0, this.#readDword(name, offset, cycle));
  }

  /** Writes bytes in memory order at `offset` of BAR0. */
  write(offset: number, bytes: DataView, byteOffset: number, lengthBytes: number, cycle: number): void {
    const name = bar0.nameAt(offset);
    if (name === undefined || lengthBytes === 0) return;
    if (this.#isOneDword(offset, lengthBytes))
      this.#writeDword(name, offset, bytes.getUint32(byteOffset), cycle);
  }

  reset(): void {
    this.#hcr.reset();
    this.#isOwned = false;
    this.#isSemaphoreHeld = false;
    this.#crSpaceAccess = 0;
    this.#catastrophicDwords.fill(0);
  }

  #isOneDword(offset: number, lengthBytes: number): boolean {
    if (lengthBytes === 4 && offset % 4 === 0) return true;
    this.#violations.count(violation.registerAccessSize);
    return false;
  }

  #readDword(name: RegisterName, offset: number, cycle: number): number {
    const at = offset - registers[name].offset;
    switch (name) {
      case 'hcr':
        return this.#hcr.readDword(at);
      case 'owner':
        return this.#acquireOwner();
      case 'semaphore':
        return this.#acquireSemaphore();
      case 'clock':
        return at === 0
          ? Math.floor((this.epochCycles + cycle) / 0x1_0000_0000)
          : (this.epochCycles + cycle) >>> 0;
      case 'catastrophicBuffer':
        return this.#catastrophicDwords[at / 4]!;
      case 'crSpaceAccess':
        return this.#crSpaceAccess;
      case 'reset':
      case 'clearInterrupt':
      case 'msixTable':
      case 'msixPending':
        return 0;
    }
  }

  #writeDword(name: RegisterName, offset: number, value: number, cycle: number): void {
    const at = offset - registers[name].offset;
    switch (name) {
      case 'hcr':
        this.#hcr.writeDword(at, value, cycle);
        return;
      case 'owner':
        if (value === 0) this.#isOwned = false;
        return;
      case 'semaphore':
        this.#isSemaphoreHeld = false;
        return;
      case 'reset':
        if (fieldOf(value, resetTrigger!) === 0) return;
        this.#ports.control.deviceReset(cycle);
        this.onReset?.(cycle);
        return;
      case 'clearInterrupt':
        this.#clearInterrupt(at, value, cycle);
        return;
      case 'crSpaceAccess':
        this.#crSpaceAccess = value;
        return;
      case 'clock':
      case 'catastrophicBuffer':
        this.#violations.count(violation.registerReadOnlyWrite);
        return;
      case 'msixTable': // the PCIe function's, which answers these itself
      case 'msixPending':
        return;
    }
  }

  #acquireOwner(): number {
    if (this.isOwnerStuck) return HELD;
    const before = this.#isOwned;
    this.#isOwned = true;
    return before ? HELD : 0;
  }

  #acquireSemaphore(): number {
    if (this.isSemaphoreStuck) return HELD;
    const before = this.#isSemaphoreHeld;
    this.#isSemaphoreHeld = true;
    return before ? HELD : 0;
  }

  /** Pins 0 to 31 are bits of the second dword, 32 to 63 of the first. */
  #clearInterrupt(at: number, value: number, cycle: number): void {
    const firstPin = at === 0 ? 32 : 0;
    const bit = this.#interruptPin - firstPin;
    if (bit >= 0 && bit < 32 && ((value >>> bit) & 1) === 1) this.#ports.moderation.clearPin(cycle);
  }
}
