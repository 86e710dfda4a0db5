import { describe, expect, it } from 'vitest';
import { acpiTables } from './acpi-tables.ts';
import { tablesAddress } from './memory-map.ts';

/** Tables as a kernel finds them, by a reader of its own: ACPI 6.5, 5.2. */
function read(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer);
  const text = (at: number, length: number): string =>
    String.fromCharCode(...bytes.subarray(at, at + length));
  const sum = (at: number, length: number): number =>
    bytes.subarray(at, at + length).reduce((total, byte) => (total + byte) & 0xff, 0);
  const table = (address: number) => {
    const at = address - tablesAddress;
    const length = view.getUint32(at + 4, true);
    return { at, signature: text(at, 4), length, sum: sum(at, length) };
  };
  return { view, text, sum, table };
}

const bytes = acpiTables([{ device: 6, line: 10 }]);
const { view, text, sum, table } = read(bytes);
const root = table(view.getUint32(16, true));
const tables = Array.from({ length: (root.length - 36) / 4 }, (_, index) =>
  table(view.getUint32(root.at + 36 + 4 * index, true)),
);
const found = (signature: string) => tables.find((each) => each.signature === signature)!;

describe('the ACPI tables', () => {
  it('begin with a root pointer of ACPI 1.0 that leads to a root table, all with sums of 0', () => {
    expect([text(0, 8), sum(0, 20), root.signature, root.sum]).toEqual(['RSD PTR ', 0, 'RSDT', 0]);
    expect(tables.map(({ signature, sum }) => [signature, sum])).toEqual([
      ['FACP', 0],
      ['APIC', 0],
      ['MCFG', 0],
    ]);
    const description = table(view.getUint32(found('FACP').at + 40, true));
    expect([description.signature, description.sum]).toEqual(['DSDT', 0]);
  });

  it('describe one processor, one I/O APIC at its lines from 0, and the control interrupt as a level', () => {
    const { at, length } = found('APIC');
    const entries: (readonly number[])[] = [];
    for (let entry = at + 44; entry < at + length; entry += bytes[entry + 1]!)
      entries.push([...bytes.subarray(entry, entry + bytes[entry + 1]!)]);
    expect(entries).toEqual([
      [0, 8, 0, 0, 1, 0, 0, 0],
      [1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0],
      [2, 10, 0, 9, 9, 0, 0, 0, 0x0d, 0],
    ]);
  });

  it('place the configuration space of bus 0 at 0xb0000000', () => {
    const { at, length } = found('MCFG');
    expect(length).toBe(60);
    expect(view.getBigUint64(at + 44, true)).toBe(0xb000_0000n);
    expect([...bytes.subarray(at + 52, at + 60)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it('lead pin A of a device to its line, and have a host bridge of PCI Express', () => {
    const description = table(view.getUint32(found('FACP').at + 40, true));
    const code = [...bytes.subarray(description.at, description.at + description.length)];
    const holds = (part: readonly number[]): boolean =>
      code.some((_, at) => part.every((byte, index) => code[at + index] === byte));
    // Package of four: address 0x0006ffff, pin 0, no device, line 10.
    expect(holds([0x12, 0x0b, 4, 0x0c, 0xff, 0xff, 6, 0, 0, 0, 0x0a, 10])).toBe(true);
    // EISAID("PNP0A08") is 0x080ad041, little-endian in a DWordConst.
    expect(holds([0x0c, 0x41, 0xd0, 0x0a, 0x08])).toBe(true);
  });
});
