/**
 * The MSI-X table as the platform keeps it: an entry for every vector whose interrupts the guest's machine wants, written by
 * stores into BAR0 like any software's, and MSI-X enabled while such an entry exists.
 *
 *     wanted ──► address and data that name the vector, not masked          no longer ──► masked
 *
 * Source: what Linux' vfio-pci does on VFIO_DEVICE_SET_IRQS (drivers/vfio/pci/vfio_pci_intrs.c, vfio_msi_set_block).
 */
import { msixTableEntry } from '../../abi/pci/index.ts';
import { TrafficClass } from '../../hw/dma/index.ts';
import type { FunctionConfig } from '../../hw/pcie/index.ts';
import type { ConfigWindow } from './config-window.ts';
import type { InterruptLines } from './interrupt-lines.ts';
import type { SlotAccess } from './slot-access.ts';

const MASKED = 1;
const STORE_BYTES = 8;

export class MessageTable {
  readonly #access: SlotAccess;
  readonly #window: ConfigWindow;
  readonly #lines: InterruptLines;
  readonly #begin: number;
  readonly #end: number;
  /** Vectors whose entry is not masked. */
  readonly #isOpen: Uint8Array;
  readonly #entry = new DataView(new ArrayBuffer(msixTableEntry.sizeBytes));
  readonly #entryBytes = new Uint8Array(this.#entry.buffer);
  /** MSI-X was enabled here, not by the guest. */
  #isEnabledHere = false;

  constructor(access: SlotAccess, window: ConfigWindow, lines: InterruptLines, config: FunctionConfig) {
    this.#access = access;
    this.#window = window;
    this.#lines = lines;
    this.#begin = config.msixTableOffset;
    this.#end = this.#begin + config.msixVectorCount * msixTableEntry.sizeBytes;
    this.#isOpen = new Uint8Array(config.msixVectorCount);
  }

  /** Whether an access of BAR0 touches the table. */
  contains(offset: number, lengthBytes: number): boolean {
    return offset < this.#end && offset + lengthBytes > this.#begin;
  }

  /** The guest's machine has set or removed the descriptor of a vector. */
  arrange(vector: number): void {
    const hasVector = this.#lines.hasVector(vector);
    this.#open(vector, hasVector);
    if (hasVector) {
      if (this.#window.setMsixEnabled(true)) this.#isEnabledHere = true;
    } else if (this.#isEnabledHere && !this.#lines.hasVectors) {
      this.#window.setMsixEnabled(false);
      this.#isEnabledHere = false;
    }
  }

  /** The guest's machine masks or unmasks a vector. */
  mask(vector: number, isMasked: boolean): void {
    if (this.#lines.hasVector(vector)) this.#open(vector, !isMasked);
  }

  /** The table is as after power-on: writes the former entries again. */
  wasReset(): void {
    this.#isOpen.fill(0);
    this.#isEnabledHere &&= this.#lines.hasVectors;
    for (let vector = 0; vector < this.#isOpen.length; vector++)
      if (this.#lines.hasVector(vector)) this.#open(vector, true);
  }

  #open(vector: number, isOpen: boolean): void {
    if (isOpen === (this.#isOpen[vector] === 1)) return;
    this.#isOpen[vector] = isOpen ? 1 : 0;
    const { address, data } = this.#lines.messageFor(vector);
    const { fields } = msixTableEntry;
    fields.addressLow.set(this.#entry, 0, address % 2 ** 32);
    fields.addressHigh.set(this.#entry, 0, Math.floor(address / 2 ** 32));
    fields.data.set(this.#entry, 0, data);
    fields.isMasked.set(this.#entry, 0, isOpen ? 0 : MASKED);
    const offset = this.#begin + vector * msixTableEntry.sizeBytes;
    this.#window.withMemory((bar0) => {
      for (let at = 0; at < msixTableEntry.sizeBytes; at += STORE_BYTES)
        this.#access.store(bar0 + offset + at, TrafficClass.register, this.#entryBytes, at, STORE_BYTES);
    });
  }
}
