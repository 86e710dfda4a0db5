/**
 * The guest's MSI-X table: where its messages go. A slot keeps the device's table itself (serve/message-table.ts), so the PC
 * answers the guest's accesses to it, as QEMU does (hw/vfio/pci.c): each vector that the guest wants gets a descriptor, and an
 * interrupt with that descriptor is a message to the guest's address with the guest's data.
 */
import { msixCapability, msixTableEntry } from '../../abi/pci/index.ts';
import type { FunctionConfig } from '../../hw/pcie/index.ts';
import { INTERRUPT_MSIX, type VfioUserDevice } from '../slot/index.ts';

/** A message by which a function interrupts: a write of `data`. */
export interface InterruptMessage {
  readonly address: number;
  readonly data: number;
}

/** The slot, as far as its interrupts go. */
type InterruptSlot = Pick<VfioUserDevice, 'setInterrupt' | 'maskInterrupt'>;

const { control } = msixCapability.registers;
const NONE = -1;

export class MsixTable {
  readonly #slot: InterruptSlot;
  readonly #controlOffset: number;
  readonly #begin: number;
  readonly #firstDescriptor: number;
  readonly #entries: DataView;
  readonly #count: number;
  /** Vectors that have a descriptor, and those of them that the device holds back. */
  readonly #isSet: Uint8Array;
  readonly #isHeld: Uint8Array;
  #isEnabled = false;
  #isFunctionMasked = false;

  /** @param firstDescriptor of vector 0; the others follow */
  constructor(slot: InterruptSlot, config: FunctionConfig, firstDescriptor: number) {
    this.#slot = slot;
    this.#controlOffset = config.msixOffset + control.offset;
    this.#begin = config.msixTableOffset;
    this.#count = config.msixVectorCount;
    this.#firstDescriptor = firstDescriptor;
    this.#entries = new DataView(new ArrayBuffer(this.#count * msixTableEntry.sizeBytes));
    this.#isSet = new Uint8Array(this.#count);
    this.#isHeld = new Uint8Array(this.#count);
    this.reset();
  }

  /** Whether an access of BAR0 is one of the table. */
  contains(offset: number): boolean {
    return offset >= this.#begin && offset < this.#begin + this.#entries.byteLength;
  }

  /** Reads 1 or 4 bytes of the table. */
  read(offset: number, lengthBytes: 1 | 4): number {
    const at = offset - this.#begin;
    return lengthBytes === 4 ? this.#entries.getInt32(at & ~3, true) : this.#entries.getUint8(at);
  }

  /** Writes 1 or 4 bytes of the table. */
  write(offset: number, value: number, lengthBytes: 1 | 4): void {
    const at = offset - this.#begin;
    if (lengthBytes === 4) this.#entries.setInt32(at & ~3, value, true);
    else this.#entries.setUint8(at, value);
    this.#arrange(Math.floor(at / msixTableEntry.sizeBytes));
  }

  /** The guest has written these bytes of configuration space, and the device has them. */
  configWritten(offset: number, bytes: Uint8Array): void {
    const at = this.#controlOffset + 1 - offset;
    if (at < 0 || at >= bytes.length) return;
    const value = bytes[at]! << 8;
    this.#isEnabled = (value & control.fields.enable.mask) !== 0;
    this.#isFunctionMasked = (value & control.fields.functionMask.mask) !== 0;
    for (let vector = 0; vector < this.#count; vector++) this.#arrange(vector);
  }

  /** As after a reset of the function: disabled, and all vectors masked. */
  reset(): void {
    this.#isEnabled = false;
    this.#isFunctionMasked = false;
    for (let vector = 0; vector < this.#count; vector++) {
      msixTableEntry.fields.isMasked.set(this.#entries, vector * msixTableEntry.sizeBytes, 1);
      this.#arrange(vector);
    }
  }

  /** The message of a descriptor that the device has raised. */
  messageOf(descriptor: number): InterruptMessage {
    const at = (descriptor - this.#firstDescriptor) * msixTableEntry.sizeBytes;
    const { fields } = msixTableEntry;
    return {
      address: fields.addressHigh.get(this.#entries, at) * 2 ** 32 + fields.addressLow.get(this.#entries, at),
      data: fields.data.get(this.#entries, at),
    };
  }

  #arrange(vector: number): void {
    const isMasked =
      msixTableEntry.fields.isMasked.get(this.#entries, vector * msixTableEntry.sizeBytes) === 1;
    const isOpen = !isMasked && !this.#isFunctionMasked;
    if (!this.#isEnabled) {
      if (this.#isSet[vector] === 1) this.#slot.setInterrupt(INTERRUPT_MSIX, vector, NONE);
      this.#isSet[vector] = 0;
      this.#isHeld[vector] = 0;
    } else if (isOpen && this.#isSet[vector] === 0) {
      this.#isSet[vector] = 1;
      this.#slot.setInterrupt(INTERRUPT_MSIX, vector, this.#firstDescriptor + vector);
    } else if (this.#isSet[vector] === 1 && isOpen === (this.#isHeld[vector] === 1)) {
      this.#isHeld[vector] = isOpen ? 0 : 1;
      this.#slot.maskInterrupt(INTERRUPT_MSIX, vector, !isOpen);
    }
  }
}
