/**
 * BAR0: the effects of reads and writes of the registers of the HCA.
 *
 * The accesses of each are declared (abi/bar-map.ts) and enforced by the register file; here are the hooks. All
 * registers are big-endian dwords and take accesses of exactly one aligned dword: anything else reads zero or is dropped, and
 * is counted, and so is a write that finds nothing to write. Offsets between registers read 0 and ignore writes.
 * Source: interface sheet 2.
 */

import { bar0 } from '../../../../abi/index.ts';
import { type Cycles, fieldOf, type PlacedBank, RegisterFile } from '../../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../../sim/index.ts';
import type { CommandSetPorts, RegisterSpace, ResetObserver } from '../../host-interface/index.ts';
import { type ProtocolViolations, violation } from '../../statistics/index.ts';
import type { CommandRegister } from './command-register.ts';

const { trigger: resetTrigger } = bar0.registers.reset.fields;
const DWORD_BYTES = 4;

/** Blocks that registers call. */
export interface ControlRegisterPorts {
  readonly hcr: Pick<CommandRegister, 'readDword' | 'writeDword' | 'inspect' | 'reset'>;
  readonly control: CommandSetPorts['control'];
  readonly moderation: CommandSetPorts['moderation'];
}

export interface ControlRegistersSetup {
  readonly domain: Pick<ClockDomain, 'epochCycles'>;
  readonly violations: ProtocolViolations;
  readonly interruptPin: number;
  readonly hardwareId: number;
}

/** Returned by a semaphore that is held: any value but 0. */
const HELD = 1;

export class ControlRegisters implements RegisterSpace {
  readonly #violations: ProtocolViolations;
  #ports!: ControlRegisterPorts;
  readonly #interruptPin: number;
  readonly #file = new RegisterFile(bar0.sizeBytes);
  readonly #registers: PlacedBank<typeof bar0.registers>;
  /** Faults to inject: the register reads as taken, even after a release. */
  isOwnerStuck = false;
  isSemaphoreStuck = false;
  #resetObserver: ResetObserver | undefined;
  readonly #domain: Pick<ClockDomain, 'epochCycles'>;

  constructor(setup: ControlRegistersSetup) {
    const { domain, violations, interruptPin, hardwareId } = setup;
    this.#domain = domain;
    this.#violations = violations;
    this.#interruptPin = interruptPin;
    this.#registers = this.#file.place(bar0, 0, {
      hcr: {
        read: (_stored, at) => this.#ports.hcr.readDword(at),
        write: (written, at, cycle) => this.#ports.hcr.writeDword(at, written, cycle),
      },
      owner: { read: (stored) => (this.isOwnerStuck ? HELD : stored) },
      semaphore: { read: (stored) => (this.isSemaphoreStuck ? HELD : stored) },
      clock: { read: (_stored, at, cycle) => this.#clock(at, cycle) },
      reset: { write: (written, _at, cycle) => this.#reset(written, cycle) },
      hardwareId: { read: () => hardwareId },
      clearInterrupt: { write: (written, at, cycle) => this.#clearInterrupt(at, written, cycle) },
    });
  }

  connect(ports: ControlRegisterPorts): void {
    this.#ports = ports;
  }

  /** Connects an observer of the resets that software triggers. */
  observeResets(observer: ResetObserver): void {
    this.#resetObserver = observer;
  }

  /** A fatal error of the firmware: Linux finds the code within 5 s and resets the device. */
  setCatastrophicError(code: number): void {
    this.#registers.set('catastrophicBuffer', 'value', code);
  }

  /** Reads `lengthBytes` at `offset` of BAR0 into the beginning of `into`, in memory order. */
  read(offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    for (let at = 0; at < lengthBytes; at++) into.setUint8(at, 0);
    if (this.#isOneRegister(offset, lengthBytes))
      into.setUint32(0, this.#file.read(offset, DWORD_BYTES, cycle));
  }

  /** Writes bytes in memory order at `offset` of BAR0. */
  write(offset: number, bytes: DataView, byteOffset: number, lengthBytes: number, cycle: Cycles): void {
    if (!this.#isOneRegister(offset, lengthBytes)) return;
    const answer = this.#file.write(offset, DWORD_BYTES, bytes.getUint32(byteOffset), cycle);
    if (answer === 'refused') this.#violations.count(violation.registerReadOnlyWrite);
  }

  /** The registers that keep a value. See Block.inspect. */
  inspect(): BlockState {
    const { owner, semaphore, catastrophicBuffer } = bar0.registers;
    const held = Object.entries({ owner, semaphore, catastrophicBuffer }).map(
      ([name, { offset }]) => [name, this.#file.stored(offset, DWORD_BYTES)] as const,
    );
    return { hcr: this.#ports.hcr.inspect(), ...Object.fromEntries(held) };
  }

  reset(): void {
    this.#ports.hcr.reset();
    this.#file.reset();
  }

  /** Whether the access covers exactly one register's dword; other accesses to registers are counted. */
  #isOneRegister(offset: number, lengthBytes: number): boolean {
    if (!this.#file.isClaimed(offset) || lengthBytes === 0) return false;
    if (lengthBytes === DWORD_BYTES && offset % DWORD_BYTES === 0) return true;
    this.#violations.count(violation.registerAccessSize);
    return false;
  }

  #clock(at: number, cycle: Cycles): number {
    const cycles = this.#domain.epochCycles + cycle;
    return at === 0 ? Math.floor(cycles / 0x1_0000_0000) : cycles >>> 0;
  }

  #reset(written: number, cycle: Cycles): void {
    if (fieldOf(written, resetTrigger) === 0) return;
    this.#ports.control.deviceReset(cycle);
    this.#resetObserver?.resetWritten(cycle);
  }

  /** Pins 0 to 31 are bits of the second dword, 32 to 63 of the first. */
  #clearInterrupt(at: number, value: number, cycle: Cycles): void {
    const firstPin = at === 0 ? 32 : 0;
    const bit = this.#interruptPin - firstPin;
    if (bit >= 0 && bit < 32 && ((value >>> bit) & 1) === 1) this.#ports.moderation.clearPin(cycle);
  }
}
