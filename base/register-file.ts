/**
 * Registers in operation: reads and writes of software, stores of hardware, and resets, all by the declaration of their bank.
 *
 *     bus ── write ──► access of each field ──► stored ──► hook `write`: its effect
 *         ◄── read ─── access of each field ◄── stored, or hook `read`: the hardware's value
 *
 * Promises: a write changes exactly the bytes that it enables and the fields that software may write; a read shows neither
 * write-only fields nor unclaimed bits; hardware's own stores ignore the access mode. So a hook never checks what software may
 * do, and the types reject a hook that its register's access can never call.
 */
import { ConfigurationError } from './assert.ts';
import type {
  Register,
  RegisterAccess,
  RegisterBank,
  RegisterField,
  RegisterTable,
  ResetKind,
} from './registers.ts';

/** Result of a write: `refused` found only fields that software cannot write, `unclaimed` no register. */
export type RegisterWriteAnswer = 'written' | 'refused' | 'unclaimed';

/** The hardware's value of a dword, of which software sees the part that the declared access allows; `at` is its offset in the register. */
export type RegisterReadHook = (stored: number, at: number, cycle: number) => number;
/** Software has written: `written` holds the written bits that software may write, all others zero. */
export type RegisterWriteHook = (written: number, at: number, cycle: number) => void;

type AccessOf<R extends Register> = R['fields'][keyof R['fields']]['access'];
type Readable<A extends RegisterAccess> = [A] extends ['wo'] ? never : RegisterReadHook;
type Writable<A extends RegisterAccess> = [A] extends ['ro' | 'hwInit' | 'rc'] ? never : RegisterWriteHook;

/** Hooks by register name, for registers that share no dword with another. */
export type RegisterHooks<R extends RegisterTable> = {
  readonly [N in keyof R]?: {
    readonly read?: Readable<AccessOf<R[N]>>;
    readonly write?: Writable<AccessOf<R[N]>>;
  };
};

const DWORD_BYTES = 4;

/** One dword: its value, and masks of the accesses to its bits. */
class Dword {
  /** Offset in bytes from the beginning of its register. */
  readonly at: number;
  value = 0;
  initial = 0;
  readable = 0;
  writable = 0;
  writeOnly = 0;
  oneClears = 0;
  oneSets = 0;
  readClears = 0;
  acquirable = 0;
  releasedByZero = 0;
  keptByHot = 0;
  keptByFunctionLevel = 0;
  onRead: RegisterReadHook | undefined;
  onWrite: RegisterWriteHook | undefined;

  constructor(at: number) {
    this.at = at;
  }

  /** Adds a field, `shift` bits up: registers of 1 and 2 bytes share a dword. */
  claim(field: RegisterField, shift: number): void {
    const mask = (field.mask << shift) >>> 0;
    const { access, survives } = field;
    if (access === 'wo') this.writeOnly |= mask;
    else this.readable |= mask;
    if (access === 'rw') this.writable |= mask;
    if (access === 'w1c' || access === 'rcW1c') this.oneClears |= mask;
    if (access === 'w1s') this.oneSets |= mask;
    if (access === 'rc' || access === 'rcW1c') this.readClears |= mask;
    if (access === 'ra' || access === 'raZero') this.acquirable |= mask;
    if (access === 'raZero') this.releasedByZero |= mask;
    if (survives === 'hot') this.keptByHot |= mask;
    if (survives !== 'none') this.keptByFunctionLevel |= mask;
    this.storeInitial(mask, (field.resetValue << field.low) << shift);
  }

  /** The bits for which a write has an effect. */
  get effective(): number {
    return this.writable | this.writeOnly | this.oneClears | this.oneSets | this.acquirable;
  }

  read(cycle: number): number {
    const shown = this.onRead === undefined ? this.value : this.onRead(this.value, this.at, cycle);
    const value = (shown & this.readable) >>> 0;
    this.value = (this.value & ~this.readClears) >>> 0;
    // A read that finds it free acquires it: the stored value becomes 1.
    if (this.acquirable !== 0 && (value & this.acquirable) === 0) this.value |= lowestBit(this.acquirable);
    return value;
  }

  /** Software's write of the enabled bytes. */
  write(enabled: number, value: number, cycle: number): void {
    const written = value & enabled & this.effective;
    const stored = enabled & this.writable;
    let kept = this.value & ~(written & this.oneClears) & ~stored;
    if (this.acquirable !== 0) {
      const released = (value & enabled) === 0 ? this.acquirable : this.acquirable & ~this.releasedByZero;
      kept &= ~(enabled & released);
    }
    this.value = (kept | (written & (stored | this.oneSets))) >>> 0;
    if (this.onWrite !== undefined) this.onWrite(written >>> 0, this.at, cycle);
  }

  /** Hardware's store of the bits in `mask`. */
  store(mask: number, bits: number): void {
    this.value = ((this.value & ~mask) | (bits & mask)) >>> 0;
  }

  /** Stores the bits now and for every later reset. */
  storeInitial(mask: number, bits: number): void {
    this.store(mask, bits);
    this.initial = ((this.initial & ~mask) | (bits & mask)) >>> 0;
  }

  reset(kind: ResetKind): void {
    const kept = kind === 'fundamental' ? 0 : kind === 'hot' ? this.keptByHot : this.keptByFunctionLevel;
    this.value = ((this.value & kept) | (this.initial & ~kept)) >>> 0;
  }
}

export class RegisterFile {
  readonly sizeBytes: number;
  /** Registers by offset / 4. */
  readonly #dwords = new Map<number, Dword>();
  readonly #claimed: { readonly base: number; readonly end: number }[] = [];

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes;
  }

  /**
   * Adds a bank at `base`.
   * @throws ConfigurationError if it leaves the file or overlaps an earlier one
   */
  place<const R extends RegisterTable>(
    bank: RegisterBank<R>,
    base: number,
    hooks: RegisterHooks<R> = {},
  ): PlacedBank<R> {
    const end = base + bank.sizeBytes;
    if (base % DWORD_BYTES !== 0 || base < 0 || end > this.sizeBytes) {
      throw new ConfigurationError(
        `${bank.name} offset`,
        base,
        `a dword offset that leaves room in ${this.sizeBytes} bytes`,
      );
    }
    if (this.#claimed.some((other) => base < other.end && other.base < end)) {
      throw new ConfigurationError(`${bank.name} offset`, base, 'bytes that no other registers claim');
    }
    this.#claimed.push({ base, end });
    for (const [name, entry] of Object.entries(bank.registers)) {
      for (let at = 0; at < entry.sizeBytes; at += DWORD_BYTES)
        this.#claim(entry, base + entry.offset, at, hooks[name]);
    }
    return new PlacedBank(this, bank, base);
  }

  /** Whether a register has the byte at `offset`, or shares a dword with it. */
  isClaimed(offset: number): boolean {
    return this.#dwords.has(offset >> 2);
  }

  /** Software's read of the `lengthBytes` (1, 2 or 4) bytes at `offset`, within one dword; 0 where no register is. */
  read(offset: number, lengthBytes: number, cycle = 0): number {
    const dword = this.#dwords.get(offset >> 2);
    return dword === undefined ? 0 : partOf(dword.read(cycle), offset, lengthBytes);
  }

  /** Software's write of the low `lengthBytes` (1 to 4) bytes of `value` at `offset`, within one dword. */
  write(offset: number, lengthBytes: number, value: number, cycle = 0): RegisterWriteAnswer {
    const dword = this.#dwords.get(offset >> 2);
    if (dword === undefined) return 'unclaimed';
    if (dword.effective === 0) return 'refused';
    const shift = shiftOf(offset);
    dword.write((lowBytes(lengthBytes) << shift) >>> 0, value << shift, cycle);
    return 'written';
  }

  /** The stored value of the `lengthBytes` (1, 2 or 4) bytes at `offset`: for the hardware's side. */
  stored(offset: number, lengthBytes: number): number {
    const dword = this.#dwords.get(offset >> 2);
    return dword === undefined ? 0 : partOf(dword.value, offset, lengthBytes);
  }

  /** Hardware's store to the bits in `mask` at `offset`. */
  store(offset: number, mask: number, bits: number): void {
    const shift = shiftOf(offset);
    this.#dwords.get(offset >> 2)!.store(mask << shift, bits << shift);
  }

  /** The same, also for every later reset: for values fixed while the machine is built. */
  storeInitial(offset: number, mask: number, bits: number): void {
    const shift = shiftOf(offset);
    this.#dwords.get(offset >> 2)!.storeInitial(mask << shift, bits << shift);
  }

  /** Makes exactly the bits of `mask` writable in the dword at `offset`: how a BAR shows its size. */
  setWritable(offset: number, mask: number): void {
    this.#dwords.get(offset >> 2)!.writable = mask;
  }

  /** Makes the bits of `mask` at `offset` read only. */
  forbidWrites(offset: number, mask: number): void {
    const dword = this.#dwords.get(offset >> 2)!;
    dword.writable &= ~(mask << shiftOf(offset));
  }

  reset(kind: ResetKind = 'fundamental'): void {
    for (const dword of this.#dwords.values()) dword.reset(kind);
  }

  #claim(
    { fields }: Register,
    base: number,
    at: number,
    hooks: { readonly read?: RegisterReadHook; readonly write?: RegisterWriteHook } | undefined,
  ): void {
    const claims = Object.values(fields);
    if (claims.length === 0) return;
    const index = (base + at) >> 2;
    const dword = this.#dwords.get(index) ?? new Dword(at);
    this.#dwords.set(index, dword);
    for (const field of claims) dword.claim(field, shiftOf(base + at));
    if (hooks === undefined) return;
    dword.onRead = hooks.read;
    dword.onWrite = hooks.write;
  }
}

/** A bank at its base: its fields by name, for the hardware's side. For a register of several dwords, the first. */
export class PlacedBank<R extends RegisterTable> {
  readonly base: number;
  readonly bank: RegisterBank<R>;
  readonly #file: RegisterFile;

  constructor(file: RegisterFile, bank: RegisterBank<R>, base: number) {
    this.#file = file;
    this.bank = bank;
    this.base = base;
  }

  /** Offset of a register in the file. */
  offsetOf(register: keyof R): number {
    return this.base + this.bank.registers[register]!.offset;
  }

  /** The whole register. */
  value(register: keyof R): number {
    const { sizeBytes } = this.bank.registers[register]!;
    return this.#file.stored(this.offsetOf(register), Math.min(sizeBytes, DWORD_BYTES));
  }

  get<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string): number {
    const { mask, low } = this.bank.registers[register]!.fields[field]!;
    return (this.value(register) & mask) >>> low;
  }

  set<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string, value: number): void {
    const { mask, low } = this.bank.registers[register]!.fields[field]!;
    this.#file.store(this.offsetOf(register), mask, value << low);
  }

  /** Sets the bits of `mask` in a register: for registers whose bits the standard numbers, such as errors. */
  setBits(register: keyof R, mask: number): void {
    this.#file.store(this.offsetOf(register), mask, mask);
  }

  /** Makes a field read only: for features that this device's build omits. */
  forbidWrites<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string): void {
    this.#file.forbidWrites(this.offsetOf(register), this.bank.registers[register]!.fields[field]!.mask);
  }

  /**
   * Sets a field now and as its value after every reset.
   * @throws ConfigurationError for a value that does not fit
   */
  initialise<N extends keyof R>(register: N, field: keyof R[N]['fields'] & string, value: number): void {
    const { mask, low } = this.bank.registers[register]!.fields[field]!;
    if (!(value >= 0 && value <= mask >>> low)) {
      const path = `${this.bank.name}.${String(register)}.${field}`;
      throw new ConfigurationError(path, value, `a value from 0 to ${mask >>> low}`);
    }
    this.#file.storeInitial(this.offsetOf(register), mask, value << low);
  }
}

const shiftOf = (offset: number): number => 8 * (offset & 3);
const lowBytes = (count: number): number => (count >= 4 ? 0xffff_ffff : (1 << (8 * count)) - 1);
const lowestBit = (mask: number): number => mask & -mask;
const partOf = (dword: number, offset: number, lengthBytes: number): number =>
  ((dword >>> shiftOf(offset)) & lowBytes(lengthBytes)) >>> 0;
