/**
 * The 4 KiB of a function's configuration space as bytes with an access mask for every bit. Structures are placed in
 * it; after that it answers reads and writes of any byte enables and knows nothing of what a register does.
 *
 * Promises: reserved and unclaimed bytes read zero and ignore writes; a write touches exactly the bytes it enables;
 * hardware's own stores (`PlacedStructure.set`) obey no access mode.
 */
import { ConfigurationError } from '../../base/assert.ts';
import { type ConfigRegisterTable, type ConfigStructure, configMask } from './config-register.ts';

export const CONFIG_SPACE_BYTES = 4096;
/** Place of the next pointer in every capability (PCI Local Bus Specification 3.0, 6.7). */
const NEXT_POINTER_OFFSET = 1;

/**
 * The three depths of reset: `fundamental` (power-on) initialises everything, `hot` keeps sticky bits, `functionLevel`
 * keeps sticky bits and the fields that steer the link (PCI Express Base Specification 3.1, 6.6).
 */
export type ResetKind = 'fundamental' | 'hot' | 'functionLevel';

export class ConfigImage {
  readonly #view = new DataView(new ArrayBuffer(CONFIG_SPACE_BYTES));
  readonly #initial = new DataView(new ArrayBuffer(CONFIG_SPACE_BYTES));
  readonly #writable = new Uint8Array(CONFIG_SPACE_BYTES);
  readonly #oneClears = new Uint8Array(CONFIG_SPACE_BYTES);
  readonly #sticky = new Uint8Array(CONFIG_SPACE_BYTES);
  readonly #keptByFunctionLevelReset = new Uint8Array(CONFIG_SPACE_BYTES);
  readonly #claimed = new Uint8Array(CONFIG_SPACE_BYTES);

  /**
   * Places a structure at `base`.
   * @throws ConfigurationError when it leaves configuration space or overlaps one placed before
   */
  place<const R extends ConfigRegisterTable>(
    structure: ConfigStructure<R>,
    base: number,
  ): PlacedStructure<R> {
    if (base % 4 !== 0 || base < 0 || base + structure.sizeBytes > CONFIG_SPACE_BYTES) {
      throw new ConfigurationError(`${structure.name} offset`, base, 'a dword offset in configuration space');
    }
    for (let at = base; at < base + structure.sizeBytes; at++) {
      if (this.#claimed[at] !== 0) {
        throw new ConfigurationError(
          `${structure.name} offset`,
          base,
          'bytes that no other structure claims',
        );
      }
      this.#claimed[at] = 1;
    }
    for (const entry of Object.values(structure.registers)) {
      for (const field of Object.values(entry.fields)) {
        const at = base + entry.offset;
        const mask = configMask(field);
        const mode = field.mode;
        if (mode === 'RW' || mode === 'RWS') orInto(this.#writable, at, mask);
        if (mode === 'RW1C' || mode === 'RW1CS') orInto(this.#oneClears, at, mask);
        if (mode.endsWith('S')) orInto(this.#sticky, at, mask);
        if (field.isKeptByFunctionLevelReset) orInto(this.#keptByFunctionLevelReset, at, mask);
        this.storeInitial(at, entry.sizeBytes, mask, (field.resetValue << field.low) >>> 0);
      }
    }
    return new PlacedStructure(this, structure, base);
  }

  /** Makes exactly the bits of `mask` writable in the dword at `offset`: how a BAR shows its size. */
  setWritable(offset: number, mask: number): void {
    for (let byte = 0; byte < 4; byte++) this.#writable[offset + byte] = (mask >>> (8 * byte)) & 0xff;
  }

  /** Makes the bits of `mask` from `offset` on read only. */
  forbidWrites(offset: number, mask: number): void {
    for (let byte = 0; byte < 4; byte++) {
      this.#writable[offset + byte] = this.#writable[offset + byte]! & ~(mask >>> (8 * byte));
    }
  }

  /** The `lengthBytes` (1, 2 or 4) bytes at `offset`, little-endian. */
  read(offset: number, lengthBytes: number): number {
    if (lengthBytes === 1) return this.#view.getUint8(offset);
    return lengthBytes === 2 ? this.#view.getUint16(offset, true) : this.#view.getUint32(offset, true);
  }

  /** Software's write of the low `lengthBytes` (1 to 4) bytes of `value` at `offset`. */
  write(offset: number, lengthBytes: number, value: number): void {
    for (let byte = 0; byte < lengthBytes; byte++) {
      const at = offset + byte;
      const written = (value >>> (8 * byte)) & 0xff;
      const writable = this.#writable[at]!;
      const kept = this.#view.getUint8(at) & ~(written & this.#oneClears[at]!);
      this.#view.setUint8(at, (kept & ~writable) | (written & writable));
    }
  }

  /** Hardware's store of the bits in `mask`. */
  store(offset: number, sizeBytes: number, mask: number, bits: number): void {
    const value = (this.read(offset, sizeBytes) & ~mask) | (bits & mask);
    if (sizeBytes === 1) this.#view.setUint8(offset, value);
    else if (sizeBytes === 2) this.#view.setUint16(offset, value, true);
    else this.#view.setUint32(offset, value, true);
  }

  /** Stores the bits now and for every later reset: for what is fixed while the machine is built. */
  storeInitial(offset: number, sizeBytes: number, mask: number, bits: number): void {
    this.store(offset, sizeBytes, mask, bits);
    for (let byte = 0; byte < sizeBytes; byte++) {
      const at = offset + byte;
      const byteMask = (mask >>> (8 * byte)) & 0xff;
      this.#initial.setUint8(
        at,
        (this.#initial.getUint8(at) & ~byteMask) | ((bits >>> (8 * byte)) & byteMask),
      );
    }
  }

  reset(kind: ResetKind): void {
    for (let at = 0; at < CONFIG_SPACE_BYTES; at++) {
      let kept = kind === 'fundamental' ? 0 : this.#sticky[at]!;
      if (kind === 'functionLevel') kept |= this.#keptByFunctionLevelReset[at]!;
      this.#view.setUint8(at, (this.#view.getUint8(at) & kept) | (this.#initial.getUint8(at) & ~kept));
    }
  }
}

/** A structure at its place: its fields by name, for the hardware's side. */
export class PlacedStructure<R extends ConfigRegisterTable> {
  readonly base: number;
  readonly structure: ConfigStructure<R>;
  readonly #image: ConfigImage;

  constructor(image: ConfigImage, structure: ConfigStructure<R>, base: number) {
    this.#image = image;
    this.structure = structure;
    this.base = base;
  }

  /** Offset in configuration space of a register. */
  offsetOf(register: keyof R): number {
    return this.base + this.structure.registers[register]!.offset;
  }

  /** The whole register. */
  value(register: keyof R): number {
    return this.#image.read(this.offsetOf(register), this.structure.registers[register]!.sizeBytes);
  }

  get<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string): number {
    const declared = this.structure.registers[register]!.fields[field]!;
    return (this.value(register) & configMask(declared)) >>> declared.low;
  }

  set<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string, value: number): void {
    const entry = this.structure.registers[register]!;
    const declared = entry.fields[field]!;
    this.#image.store(this.offsetOf(register), entry.sizeBytes, configMask(declared), value << declared.low);
  }

  /** Sets the bits of `mask` in a register: for registers whose bits are numbered by the standard, as errors are. */
  setBits(register: keyof R, mask: number): void {
    this.#image.store(this.offsetOf(register), this.structure.registers[register]!.sizeBytes, mask, mask);
  }

  /** Makes a field read only: for what the build of this function leaves out. */
  forbidWrites<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string): void {
    this.#image.forbidWrites(
      this.offsetOf(register),
      configMask(this.structure.registers[register]!.fields[field]!),
    );
  }

  /** Sets the pointer to the next capability; only capabilities have one. */
  initialiseNext(next: number): void {
    this.#image.storeInitial(this.base + NEXT_POINTER_OFFSET, 1, 0xff, next);
  }

  /** Sets a field now and as its value after every reset. */
  initialise<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string, value: number): void {
    const entry = this.structure.registers[register]!;
    const declared = entry.fields[field]!;
    const mask = configMask(declared);
    const bits = (value << declared.low) >>> 0;
    if (value < 0 || (bits & ~mask) !== 0 || bits >>> declared.low !== value) {
      const width = declared.high - declared.low + 1;
      throw new ConfigurationError(
        `${this.structure.name}.${String(register)}.${field}`,
        value,
        `a value of ${width} bits`,
      );
    }
    this.#image.storeInitial(this.offsetOf(register), entry.sizeBytes, mask, bits);
  }
}

function orInto(bytes: Uint8Array, offset: number, mask: number): void {
  for (let byte = 0; byte < 4; byte++) {
    const bits = (mask >>> (8 * byte)) & 0xff;
    if (bits !== 0) bytes[offset + byte] = bytes[offset + byte]! | bits;
  }
}
