/**
 * Compares a bank's declaration with its behaviour when software writes all ones and all zeros to each dword. The result is a
 * list of sentences, one for each bit pattern that behaves otherwise; it is empty for a correct bank.
 */
import type { RegisterAccess, RegisterTable } from '../registers.ts';

/** The bus, as software uses it: whole dwords. */
export interface RegisterBus {
  read(offset: number): number | Promise<number>;
  write(offset: number, value: number): void | Promise<void>;
}

const ALL_ONES = 0xffff_ffff;
const hex = (value: number): string => `0x${(value >>> 0).toString(16).padStart(8, '0')}`;

/** The bits of a dword by their access. */
interface DwordBits {
  readonly names: string[];
  readonly byAccess: Map<RegisterAccess, number>;
}

/** Bits by dword offset; registers of 1 and 2 bytes share a dword. */
function dwordsOf(registers: RegisterTable): Map<number, DwordBits> {
  const dwords = new Map<number, DwordBits>();
  for (const [name, { offset, sizeBytes, fields }] of Object.entries(registers)) {
    if (Object.keys(fields).length === 0) continue;
    for (let at = 0; at < sizeBytes; at += 4) {
      const dword = (offset + at) & ~3;
      const bits: DwordBits = dwords.get(dword) ?? { names: [], byAccess: new Map() };
      dwords.set(dword, bits);
      bits.names.push(name);
      for (const { access, mask } of Object.values(fields)) {
        const placed = mask << (8 * (offset & 3));
        bits.byAccess.set(access, (bits.byAccess.get(access) ?? 0) | placed);
      }
    }
  }
  return dwords;
}

/**
 * Writes all ones and then zeros to every dword of a bank's registers.
 *
 * @param effects registers whose writes have effects, so that their values may differ from the written ones: for these it
 *   checks only that they show nothing unreadable
 */
export async function accessMistakes(
  registers: RegisterTable,
  bus: RegisterBus,
  effects: readonly string[] = [],
): Promise<string[]> {
  const mistakes = effects.filter((name) => !(name in registers)).map((name) => `${name} is no register`);
  for (const [offset, { names, byAccess }] of dwordsOf(registers)) {
    const say = (what: string, value: number): void => {
      mistakes.push(`${names.join(', ')} at ${hex(offset)}: ${what} ${hex(value)}`);
    };
    const mask = (...modes: RegisterAccess[]): number =>
      modes.reduce((bits, mode) => bits | (byAccess.get(mode) ?? 0), 0);
    const declared = [...byAccess.values()].reduce((bits, one) => bits | one, 0);
    const hidden = ~declared | mask('wo');
    const fixed = mask('ro', 'hwInit');
    const before = await bus.read(offset);
    await bus.write(offset, ALL_ONES);
    const ones = await bus.read(offset);
    await bus.write(offset, 0);
    const zeros = await bus.read(offset);
    for (const value of [before, ones, zeros]) {
      if ((value & hidden) !== 0) say('shows bits that software cannot read in', value);
    }
    if (effects.some((name) => names.includes(name))) continue;
    for (const value of [ones, zeros]) {
      if (((value ^ before) & fixed) !== 0) say('lets software change read-only bits to', value);
    }
    if ((~ones & mask('rw', 'w1s')) !== 0) say('does not keep ones, but', ones);
    if ((ones & mask('w1c', 'rcW1c')) !== 0) say('is not cleared by ones, but', ones);
    if ((zeros & mask('rw')) !== 0) say('does not keep zeros, but', zeros);
    if ((~zeros & mask('w1s')) !== 0) say('lets zeros clear what is set by ones, and is', zeros);
  }
  return mistakes;
}
