/**
 * BAR0 by its interface sheet: software finds at each place the behaviour that the access column of section 2.1 gives.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bar0 } from '../../../../abi/bar-map.ts';
import { accessMistakes } from '../../../../base/testing/register-access.ts';
import { ControlBench } from '../../testing/control-bench.ts';

const ALL_ONES = 0xffff_ffff;

/** Rows of the sheet's table by name: offset (undefined where firmware publishes it) and access column. */
function sheetRows(): Map<string, { readonly offset: number | undefined; readonly access: string }> {
  const sheet = readFileSync(
    new URL('../../../../reference/connectx3-interface.md', import.meta.url),
    'utf8',
  );
  const section = sheet.slice(sheet.indexOf('### 2.1 Register map'), sheet.indexOf('### 2.2'));
  const rows = [...section.matchAll(/^\| ([^|]*) \| [^|]* \| ([^|]*) \| [^|]* \| ([^|]*) \|$/gm)];
  return new Map(
    rows.map(([, offset, name, access]) => [
      name!,
      { offset: offset!.startsWith('0x') ? Number.parseInt(offset!, 16) : undefined, access: access! },
    ]),
  );
}

const rows = sheetRows();
const registerOf = {
  'HCR, command register': 'hcr',
  'owner register': 'owner',
  reset: 'reset',
  'hardware semaphore': 'semaphore',
  'interrupt clear (INTx)': 'clearInterrupt',
  'catastrophic error buffer': 'catastrophicBuffer',
  'free-running clock, high dword first': 'clock',
} as const;

/** Accesses that software tries on a register, by its access column, with the expected results. */
const trial: Readonly<Record<string, (bench: ControlBench, offset: number) => void>> = {
  'r/w, 32-bit accesses only': (bench, offset) => {
    bench.write32(offset, ALL_ONES);
    expect(bench.read32(offset)).toBe(ALL_ONES);
    bench.write32(offset, 0);
    expect(bench.read32(offset)).toBe(0);
    expect(bench.control.violations.report()).toEqual({});
  },
  'read acquires, write 0 releases': (bench, offset) => {
    expect([bench.read32(offset), bench.read32(offset) !== 0]).toEqual([0, true]);
    bench.write32(offset, ALL_ONES);
    expect(bench.read32(offset)).not.toBe(0);
    bench.write32(offset, 0);
    expect([bench.read32(offset), bench.read32(offset) !== 0]).toEqual([0, true]);
  },
  'read acquires, write releases': (bench, offset) => {
    for (const released of [ALL_ONES, 0]) {
      expect([bench.read32(offset), bench.read32(offset) !== 0]).toEqual([0, true]);
      bench.write32(offset, released);
    }
    expect(bench.read32(offset)).toBe(0);
  },
  w: (bench, offset) => {
    for (const value of [ALL_ONES, 0]) {
      bench.write32(offset, value);
      expect(bench.read32(offset)).toBe(0);
    }
    expect(bench.control.violations.report()).toEqual({});
  },
  r: (bench, offset) => {
    const before = bench.read32(offset);
    for (const value of [ALL_ONES, 0]) {
      bench.write32(offset, value);
      expect(bench.read32(offset)).toBe(before);
    }
    expect(bench.control.violations.report()).toEqual({ registerReadOnlyWrite: 2 });
  },
};

describe('BAR0, beside the access column of sheet 2.1', () => {
  it.each(Object.entries(registerOf))('%s', (row, name) => {
    const { offset, access } = rows.get(row)!;
    const { offset: declared, sizeBytes } = bar0.registers[name];
    if (offset !== undefined) expect(declared).toBe(offset);
    for (let at = 0; at < sizeBytes; at += 4) {
      // Dword 6 of the HCR starts the command, and is then busy: command-register.spec.ts.
      if (name !== 'hcr' || at < 0x18) trial[access]!(new ControlBench(), declared + at);
    }
  });

  it('sheet 2.1: covers every row but those of other blocks and of functions that there are not', () => {
    const others = [...rows.keys()].filter((name) => !(name in registerOf));
    expect(others).toEqual([
      'name',
      'MSI-X table',
      'MSI-X PBA',
      'CR-space access control: bit 6 (big-endian)',
      'communication channel (PF ↔ VF)',
    ]);
  });

  it('sheet 2.1: keeps bit 6 of the CR-space access control, and no other', () => {
    const bench = new ControlBench();
    bench.write32(bar0.registers.crSpaceAccess.offset, ALL_ONES);
    expect(bench.read32(bar0.registers.crSpaceAccess.offset)).toBe(0x40);
  });

  it('behaves in every dword as it is declared', async () => {
    const bench = new ControlBench();
    const bus = {
      read: (offset: number) => bench.read32(offset),
      write: (offset: number, value: number) => bench.write32(offset, value),
    };
    expect(await accessMistakes(bar0.registers, bus, ['hcr'])).toEqual([]);
  });
});
