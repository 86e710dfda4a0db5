/**
 * Vital product data, accessed through two registers: software writes a byte address with the flag clear, and the function puts
 * the dword into the data register and sets the flag. Writing with the flag set would store; this memory is read only.
 *
 * The data is the smallest valid list: one identifier string and the end tag (PCI Local Bus Specification 3.0,
 * appendix I).
 */
import { vitalProductDataCapability } from '../../../abi/pci/index.ts';
import type { PlacedBank, RegisterFile } from '../../../base/index.ts';

const IDENTIFIER_STRING_TAG = 0x82;
const END_TAG = 0x78;
const PRODUCT_NAME = 'HCA';

export class VitalProductData {
  readonly registers: PlacedBank<typeof vitalProductDataCapability.registers>;
  readonly #bytes = new DataView(new ArrayBuffer(8));

  constructor(file: RegisterFile, base: number) {
    this.registers = file.place(vitalProductDataCapability, base);
    const name = new TextEncoder().encode(PRODUCT_NAME);
    [IDENTIFIER_STRING_TAG, name.length, 0, ...name, END_TAG].forEach((byte, at) => {
      this.#bytes.setUint8(at, byte);
    });
  }

  /** Called after every configuration write: answers if it wrote the upper byte of the address register. */
  afterWrite(offset: number, lengthBytes: number): void {
    const flagByte = this.registers.offsetOf('address') + 1;
    if (flagByte < offset || flagByte >= offset + lengthBytes) return;
    if (this.registers.get('address', 'isComplete') === 1) {
      // A store request: rejected by completing it without effect.
      this.registers.set('address', 'isComplete', 0);
      return;
    }
    const address = this.registers.get('address', 'value') & ~3;
    const dword = address < this.#bytes.byteLength ? this.#bytes.getUint32(address, true) : 0;
    this.registers.set('data', 'value', dword);
    this.registers.set('address', 'isComplete', 1);
  }
}
