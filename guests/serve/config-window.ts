/**
 * The function's configuration space as a guest reaches it through its machine. Accesses reach the function unchanged, so it
 * holds the guest's values, with two exceptions, which a host's vfio driver makes, too:
 *
 * - the largest payload (MPS) belongs to the platform, which uses the link's maximum: the guest's choice is kept here and read
 *   back, but not passed on;
 * - a function-level reset or a return from D3hot forgets addresses, command register and MSI-X table. The guest's machine
 *   emulates those registers and continues to route accesses by its own copy, and a guest does not rewrite values that still
 *   read correctly; so they are restored after the reset.
 *
 * Sources: Linux drivers/vfio/pci/vfio_pci_config.c (init_pci_cap_exp_perm, vfio_exp_config_write, pci_try_reset_function);
 * QEMU hw/vfio/pci.c (vfio_pci_write_config: every write is passed on, the BARs are emulated besides).
 */
import {
  BAR_REGISTER_COUNT,
  BAR_REGISTER_OFFSET,
  codeOfSize,
  expressCapability,
  msixCapability,
  powerManagementCapability,
  type0Header,
} from '../../abi/pci/index.ts';
import type { FunctionConfig } from '../../hw/pcie/index.ts';
import type { SlotAccess } from './slot-access.ts';
import { bytesInDword } from './slot-access.ts';

export const CONFIG_BYTES = 4096;
const { deviceControl, linkControl, deviceControl2, linkControl2 } = expressCapability.registers;
const payloadField = deviceControl.fields.maxPayloadSize;
const payloadMask = payloadField.mask;
const readRequestField = deviceControl.fields.maxReadRequestSize;
const readRequestMask = readRequestField.mask;
const resetMask = deviceControl.fields.initiateFunctionLevelReset.mask;
const powerControl = powerManagementCapability.registers.controlStatus;
const POWER_STATE_MASK = powerControl.fields.powerState.mask;
const msixControl = msixCapability.registers.control;
const MSIX_ENABLE = msixControl.fields.enable.mask;
const MSIX_FUNCTION_MASK = msixControl.fields.functionMask.mask;
const commandOffset = type0Header.registers.command.offset;
const memoryEnable = type0Header.registers.command.fields.memorySpaceEnable.mask;
/** Address of BAR0 while the platform writes the MSI-X table of a function that the guest has not enabled. */
const PLATFORM_BAR0 = 0x4000_0000;

/** A register that a reset clears and the platform restores: offset and bytes. */
type Kept = readonly [register: number, lengthBytes: number];

/** Sizes that firmware programs into a function: of a payload, and of a read request. */
export interface PlatformSizes {
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
}

export interface ConfigEffects {
  /** The function was reset and its registers restored: the MSI-X table is as after power-on. */
  functionWasReset(): void;
  /** Time enough for a reset to end. */
  waitForReset(): void;
}

export class ConfigWindow {
  readonly #access: SlotAccess;
  readonly #effects: ConfigEffects;
  readonly #deviceControl: number;
  readonly #powerControl: number;
  readonly #msixControl: number;
  readonly #kept: readonly Kept[];
  /** The platform's MPS, in effect; and the guest's, which it reads back. */
  readonly #platformPayload: number;
  /** The read request size set by firmware, in effect; the guest may change it. */
  readonly #firmwareReadRequest: number;
  #guestPayload = 0;

  constructor(
    access: SlotAccess,
    config: FunctionConfig,
    { maxPayloadBytes, maxReadRequestBytes }: PlatformSizes,
    effects: ConfigEffects,
  ) {
    this.#access = access;
    this.#effects = effects;
    const { expressOffset, msixOffset, powerManagementOffset } = config;
    this.#deviceControl = expressOffset + deviceControl.offset;
    this.#powerControl = powerManagementOffset + powerControl.offset;
    this.#msixControl = msixOffset + msixControl.offset;
    this.#platformPayload = codeOfSize(maxPayloadBytes) << payloadField.low;
    this.#firmwareReadRequest = codeOfSize(maxReadRequestBytes) << readRequestField.low;
    const { cacheLineSize, interruptLine } = type0Header.registers;
    // The command register is the last of the header: nothing is decoded before its address is restored.
    this.#kept = [
      ...Array.from({ length: BAR_REGISTER_COUNT }, (_, bar) => [BAR_REGISTER_OFFSET + 4 * bar, 4] as const),
      [cacheLineSize.offset, 1],
      [interruptLine.offset, 1],
      [this.#deviceControl, 2],
      [expressOffset + linkControl.offset, 2],
      [expressOffset + deviceControl2.offset, 2],
      [expressOffset + linkControl2.offset, 2],
      [this.#msixControl, 2],
      [commandOffset, 2],
    ];
  }

  /** Firmware's initialization of a function after power-on reset. */
  powerOn(): void {
    this.#guestPayload = 0;
    const control = this.#access.configRead(this.#deviceControl & ~3) >>> (8 * (this.#deviceControl & 3));
    this.#access.configWrite(
      this.#deviceControl,
      2,
      (control & 0xffff & ~(payloadMask | readRequestMask)) |
        this.#platformPayload |
        this.#firmwareReadRequest,
    );
  }

  read(offset: number, into: Uint8Array): void {
    for (let at = 0; at < into.length; ) {
      const register = (offset + at) & ~3;
      const lengthBytes = bytesInDword(offset + at, into.length - at);
      const value = this.#asGuestSees(register, this.#access.configRead(register));
      for (let byte = 0; byte < lengthBytes; byte++)
        into[at + byte] = value >>> (8 * (((offset + at) & 3) + byte));
      at += lengthBytes;
    }
  }

  write(offset: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const lengthBytes = bytesInDword(offset + at, bytes.length - at);
      let value = 0;
      for (let byte = 0; byte < lengthBytes; byte++) value |= bytes[at + byte]! << (8 * byte);
      this.#writeWithinDword(offset + at, lengthBytes, value);
      at += lengthBytes;
    }
  }

  /** A function-level reset that preserves everything on which the guest's machine relies. */
  resetFunction(): void {
    const control = this.#read16(this.#deviceControl);
    this.#throughReset(() => this.#access.configWrite(this.#deviceControl, 2, control | resetMask));
  }

  /**
   * Switches MSI-X on without function mask, or off, unless it already is.
   * @returns whether anything had to be done
   */
  setMsixEnabled(isEnabled: boolean): boolean {
    const control = this.#read16(this.#msixControl);
    if (((control & MSIX_ENABLE) !== 0) === isEnabled) return false;
    const others = control & ~(MSIX_ENABLE | MSIX_FUNCTION_MASK);
    this.#access.configWrite(this.#msixControl, 2, isEnabled ? others | MSIX_ENABLE : others);
    return true;
  }

  /** Lets the platform store into BAR0: at the guest's address, or temporarily at an unused one. */
  withMemory(store: (bar0: number) => void): void {
    const command = this.#read16(commandOffset);
    const address = this.barAddress(0);
    if ((command & memoryEnable) !== 0 && address > 0) {
      store(address);
      return;
    }
    const low = this.#access.configRead(BAR_REGISTER_OFFSET);
    const high = this.#access.configRead(BAR_REGISTER_OFFSET + 4);
    this.#writeBar0(PLATFORM_BAR0, 0);
    this.#access.configWrite(commandOffset, 2, command | memoryEnable);
    store(PLATFORM_BAR0);
    this.#access.configWrite(commandOffset, 2, command);
    this.#writeBar0(low, high);
  }

  /** Address in a pair of base address registers, or -1 if no TLP can carry it exactly. */
  barAddress(bar: number): number {
    const low = this.#access.configRead(BAR_REGISTER_OFFSET + 4 * bar);
    const high = this.#access.configRead(BAR_REGISTER_OFFSET + 4 * bar + 4);
    return high >= 2 ** 20 ? -1 : high * 2 ** 32 + ((low & ~0xf) >>> 0);
  }

  #writeBar0(low: number, high: number): void {
    this.#access.configWrite(BAR_REGISTER_OFFSET, 4, low);
    this.#access.configWrite(BAR_REGISTER_OFFSET + 4, 4, high);
  }

  #writeWithinDword(offset: number, lengthBytes: number, value: number): void {
    const overlaps = (register: number): boolean => offset < register + 2 && offset + lengthBytes > register;
    if (overlaps(this.#deviceControl)) this.#writeDeviceControl(offset, lengthBytes, value);
    else if (overlaps(this.#powerControl)) this.#writePowerControl(offset, lengthBytes, value);
    else this.#access.configWrite(offset, lengthBytes, value);
  }

  #writeDeviceControl(offset: number, lengthBytes: number, value: number): void {
    const shift = 8 * (offset - this.#deviceControl);
    const isLowByteWritten = shift === 0;
    if (isLowByteWritten) this.#guestPayload = value & payloadMask;
    const passed = isLowByteWritten ? (value & ~payloadMask) | this.#platformPayload : value;
    const isReset = ((value << shift) & resetMask) !== 0 && offset + lengthBytes > this.#deviceControl + 1;
    const write = () => this.#access.configWrite(offset, lengthBytes, passed);
    if (isReset) this.#throughReset(write);
    else write();
  }

  /** A function that returns from D3hot has lost what a reset clears. */
  #writePowerControl(offset: number, lengthBytes: number, value: number): void {
    const write = () => this.#access.configWrite(offset, lengthBytes, value);
    const wasOff = (this.#read16(this.#powerControl) & POWER_STATE_MASK) !== 0;
    const turnsOn = offset <= this.#powerControl && (value & POWER_STATE_MASK) === 0;
    if (wasOff && turnsOn) this.#throughReset(write);
    else write();
  }

  #throughReset(write: () => void): void {
    const values = this.#kept.map(([register]) => this.#access.configRead(register & ~3));
    write();
    this.#effects.waitForReset();
    for (const [index, [register, lengthBytes]] of this.#kept.entries()) {
      const value = values[index]! >>> (8 * (register & 3));
      // State saved during a reset request must not request another reset.
      const kept = register === this.#deviceControl ? value & ~resetMask : value;
      this.#access.configWrite(
        register,
        lengthBytes,
        lengthBytes === 4 ? kept : kept & (2 ** (8 * lengthBytes) - 1),
      );
    }
    this.#effects.functionWasReset();
  }

  #read16(register: number): number {
    return (this.#access.configRead(register & ~3) >>> (8 * (register & 3))) & 0xffff;
  }

  #asGuestSees(register: number, value: number): number {
    return register === (this.#deviceControl & ~3) && value !== 0xffff_ffff
      ? (value & ~payloadMask) | this.#guestPayload
      : value;
  }
}
