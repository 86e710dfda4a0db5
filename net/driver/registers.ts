/** Access to the NIC's BAR0 by register name. */
import { NicBar, nicBar0 } from '../../abi/nic/index.ts';
import { fieldOf, type RegisterFields, withField } from '../../base/index.ts';
import type { Cpu, NetPlatform } from '../platform.ts';

type RegisterName = keyof typeof nicBar0.registers;
type FieldName<N extends RegisterName> = keyof (typeof nicBar0.registers)[N]['fields'] & string;

export class NicRegisterFile {
  readonly #base: number;

  constructor(platform: NetPlatform) {
    this.#base = platform.pci.bars[NicBar.REGISTERS]!.address;
  }

  /** Bus address of a register, for stores on the hot path. */
  addressOf(name: RegisterName, index = 0): number {
    return this.#base + nicBar0.registers[name].offset + index * 4;
  }

  async read(cpu: Cpu, name: RegisterName): Promise<number> {
    return (await cpu.mmioRead32(this.addressOf(name))) >>> 0;
  }

  /** A posted store. */
  write(cpu: Cpu, name: RegisterName, value: number, index = 0): void {
    cpu.mmioWrite32(this.addressOf(name, index), value >>> 0);
  }
}

/** The value of a register with these fields, all others zero. */
export function registerValue<N extends RegisterName>(
  name: N,
  fields: Readonly<Partial<Record<FieldName<N>, number>>>,
): number {
  const known: RegisterFields = nicBar0.registers[name].fields;
  return Object.entries<number | undefined>(fields).reduce(
    (value, [field, wanted = 0]) => withField(value, known[field]!, wanted),
    0,
  );
}

/** A field of a register's value. */
export function fieldIn<N extends RegisterName>(name: N, field: FieldName<N>, value: number): number {
  const known: RegisterFields = nicBar0.registers[name].fields;
  return fieldOf(value, known[field]!);
}
