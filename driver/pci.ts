/**
 * The PCI side of the HCA's probe and reset: identity, saved configuration.
 * Sources: PCI Express base specification 7.5.1; interface sheet 1.4, 2.3.
 */
import { Bar, gatewayOffset, pciIdentity } from '../abi/index.ts';
import { CapabilityId, expressCapability, type0Header } from '../abi/pci/index.ts';
import { fieldInDword, fieldOf, highWordOf, lowWordOf, usToPs } from '../base/index.ts';
import { KernelError } from './kernel-error.ts';
import { enableBusMaster, findCapability } from './pci-function.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const dword = 4;
/** The part of configuration space that Linux saves and restores: the one PCI had before PCI Express. */
const savedBytes = 256;
/** BAR 0 is 64 bits wide; its low bits give its type. */
const firstBar = type0Header.registers.bar0;
const barAddressMask = firstBar.fields.address.mask;

/** Registers of the header as they lie in the dwords that the bus reads. */
const { vendorId, command } = type0Header.registers;
const vendorField = fieldInDword(vendorId, vendorId.fields.value);
const { deviceControl, linkControl } = expressCapability.registers;

/** Checks the identity and the BARs, and enables memory space and bus mastering. */
export async function enableFunction(cpu: Cpu, platform: DriverPlatform): Promise<void> {
  const { pci } = platform;
  const id = await pci.readConfig32(cpu, vendorId.offset);
  if (fieldOf(id, vendorField) !== pciIdentity.vendorId) {
    throw new KernelError(
      'ENODEV',
      `vendor id is 0x${fieldOf(id, vendorField).toString(16)}, expected 0x${pciIdentity.vendorId.toString(16)}`,
    );
  }
  for (const bar of [Bar.CONFIGURATION, Bar.UAR]) {
    if ((pci.bars[bar]?.sizeBytes ?? 0) === 0) throw new KernelError('ENODEV', `BAR${bar} is missing`);
  }
  await enableBusMaster(cpu, platform);
}

/** The configuration space as it was before a reset. */
export type SavedConfiguration = ReadonlyMap<number, number>;

/** Reads dwords 0 to 63, except the two of the flash gateway. */
export async function saveConfiguration(cpu: Cpu, platform: DriverPlatform): Promise<SavedConfiguration> {
  const saved = new Map<number, number>();
  const left: readonly number[] = Object.values(gatewayOffset);
  for (let offset = 0; offset < savedBytes; offset += dword) {
    if (!left.includes(offset)) saved.set(offset, await platform.pci.readConfig32(cpu, offset));
  }
  return saved;
}

/** Waits until the vendor id can be read again. */
export async function waitForVendorId(cpu: Cpu, platform: DriverPlatform, limitUs: number): Promise<void> {
  const watch = platform.stopwatch();
  while (fieldOf(await platform.pci.readConfig32(cpu, vendorId.offset), vendorField) === 0xffff) {
    if (watch.elapsedPs >= usToPs(limitUs))
      throw new KernelError('ENODEV', 'the device does not answer configuration reads after its reset');
    await cpu.sleep(usToPs(1_000));
  }
}

/** Whether the function answers: a removed function, or one still in reset, reads as all ones. */
export async function isPresent(cpu: Cpu, platform: DriverPlatform): Promise<boolean> {
  return fieldOf(await platform.pci.readConfig32(cpu, vendorId.offset), vendorField) !== 0xffff;
}

/** Whether the function is still configured: after a power loss its BARs are empty. */
export async function isConfigured(cpu: Cpu, platform: DriverPlatform): Promise<boolean> {
  if (!(await isPresent(cpu, platform))) return false;
  const assigned = platform.pci.bars[Bar.CONFIGURATION]!.address;
  const [low, high] = [firstBar.offset, firstBar.offset + dword];
  const found = ((await platform.pci.readConfig32(cpu, low)) & barAddressMask) >>> 0;
  return (
    found === lowWordOf(assigned) &&
    (await platform.pci.readConfig32(cpu, high)) >>> 0 === highWordOf(assigned)
  );
}

/** Rewrites device and link control, then the header without COMMAND, and COMMAND last. */
export async function restoreConfiguration(
  cpu: Cpu,
  platform: DriverPlatform,
  saved: SavedConfiguration,
): Promise<void> {
  const express = await findCapability(cpu, platform, CapabilityId.pciExpress);
  const offsets = Array.from({ length: 16 }, (_, at) => at * dword).filter((at) => at !== command.offset);
  if (express > 0) {
    offsets.unshift(express + deviceControl.offset, express + linkControl.offset);
  }
  for (const offset of offsets) await platform.pci.writeConfig32(cpu, offset, saved.get(offset) ?? 0);
  await platform.pci.writeConfig32(cpu, command.offset, saved.get(command.offset)! & 0xffff);
}
