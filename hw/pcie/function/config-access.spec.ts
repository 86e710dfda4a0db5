/** Configuration space, written with all ones and zeros by software: every bit compared with its declaration and the standard. */
import { describe, expect, it } from 'vitest';
import {
  aerCapability,
  alternativeRoutingIdCapability,
  expressCapability,
  msixCapability,
  powerManagementCapability,
  serialNumberCapability,
  type0Header,
  vendorCapability,
} from '../../../abi/pci/index.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import type { RegisterTable } from '../../../base/registers.ts';
import { accessMistakes } from '../../../base/testing/register-access.ts';
import { ConfigSpace } from './config-space.ts';
import { functionParameters } from './function-parameters.ts';

const config = defaultsOf(functionParameters);
const newSpace = (): ConfigSpace => new ConfigSpace(config, { generation: 3, lanes: 8 });

/** Each structure at its offset, and the registers that do not keep written values: see base/testing/register-access.ts. */
const structures: readonly (readonly [string, RegisterTable, base: number, effects: readonly string[]])[] = [
  // The bits of a BAR below its size are zero.
  ['header', type0Header.registers, 0, ['bar0', 'bar2']],
  ['power management', powerManagementCapability.registers, config.powerManagementOffset, []],
  // Its bit 15 resets the function, and reads zero.
  ['PCI Express', expressCapability.registers, config.expressOffset, ['deviceControl']],
  ['MSI-X', msixCapability.registers, config.msixOffset, []],
  ['vendor specific', vendorCapability.registers, config.vendorOffset, []],
  ['ARI', alternativeRoutingIdCapability.registers, 0x100, []],
  ['serial number', serialNumberCapability.registers, config.serialNumberOffset, []],
  ['AER', aerCapability.registers, config.aerOffset, []],
];

describe('every bit of configuration space behaves as it is declared', () => {
  it.each(structures)('%s', async (_name, registers, base, effects) => {
    const space = newSpace();
    const bus = {
      read: (offset: number) => space.read(base + offset, 4),
      write: (offset: number, value: number) => {
        space.write(base + offset, 4, value);
      },
    };
    expect(await accessMistakes(registers, bus, effects)).toEqual([]);
  });
});

// Name, offset, bytes, value after writing all ones, value after writing zeros: access columns of the PCI Express Base
// Specification 3.1, 7.5, 7.8 and 7.10, for an endpoint without ROM, ASPM, ECRC and power budgeting.
it.each([
  ['Command, 7.5.1.1', 0x04, 2, 0x0546, 0x0000],
  ['Status, 7.5.1.2', 0x06, 2, 0x0010, 0x0010],
  ['Cache Line Size, 7.5.1.3', 0x0c, 1, 0xff, 0x00],
  ['Header Type', 0x0e, 1, 0x00, 0x00],
  ['BAR0, 7.5.2.1', 0x10, 4, 0xfff0_0004, 0x0000_0004],
  ['BAR2', 0x18, 4, 0xff80_000c, 0x0000_000c],
  ['BAR4, not implemented', 0x20, 4, 0, 0],
  ['Expansion ROM, not implemented', 0x30, 4, 0, 0],
  ['Interrupt Line, 7.5.1.5', 0x3c, 1, 0xff, 0x00],
  ['Interrupt Pin', 0x3d, 1, 0x01, 0x01],
  ['Device Capabilities, 7.8.3', 0x64, 4, 0x1000_8022, 0x1000_8022],
  ['Device Status, 7.8.5', 0x6a, 2, 0x0000, 0x0000],
  ['Link Control, 7.8.7', 0x70, 2, 0x00cb, 0x0000],
  ['Link Status, 7.8.8', 0x72, 2, 0x1083, 0x1083],
  ['Device Control 2, 7.8.16', 0x88, 2, 0x001f, 0x0000],
  ['MSI-X Message Control', 0x9e, 2, 0xc07f, 0x007f],
  ['MSI-X Table Offset', 0xa0, 4, 0x0007_c000, 0x0007_c000],
  ['Uncorrectable Error Status, 7.10.2', 0x158, 4, 0, 0],
  ['Uncorrectable Error Mask, 7.10.3', 0x15c, 4, 0x001f_f010, 0],
  ['Correctable Error Mask, 7.10.6', 0x168, 4, 0x0000_31c1, 0],
])('%s', (_name, offset, lengthBytes, ones, zeros) => {
  const space = newSpace();
  space.write(offset, lengthBytes, 0xffff_ffff);
  expect(space.read(offset, lengthBytes)).toBe(ones);
  space.write(offset, lengthBytes, 0);
  expect(space.read(offset, lengthBytes)).toBe(zeros);
});

it('PCIe 7.8.4: writing ones to Device Control starts a function-level reset, and reads as zero there', () => {
  const space = newSpace();
  expect(space.write(0x68, 2, 0xffff)).toBe('functionLevelReset');
  expect(space.read(0x68, 2)).toBe(0x79ff);
});
