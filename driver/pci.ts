/**
 * The PCI side of probe: command register, saved configuration, MSI-X. Where a capability lies is found by walking the list, as
 * Linux does.
 * Sources: PCI Express base specification 7.5.1, 7.7.2; interface sheet 1.4, 2.3.
 */

import { Bar, gatewayOffset, pciIdentity } from '../abi/index.ts';
import {
  CapabilityId,
  expressCapability,
  msixCapability,
  msixTableEntry,
  type0Header,
} from '../abi/pci/index.ts';
import {
  type FieldPlace,
  fieldInDword,
  fieldOf,
  highWordOf,
  lowWordOf,
  usToPs,
  viewOf,
  withField,
} from '../base/index.ts';
import { KernelError } from './kernel-error.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const dword = 4;
/** What Linux saves and restores: the part of configuration space that PCI had before PCI Express. */
const savedBytes = 256;
const capabilitiesMax = 48;
/** BAR 0 is 64 bits wide; the low bits say what it is. */
const firstBar = type0Header.registers.bar0;
const barAddressMask = firstBar.fields.address.mask;

/** Registers of the header as they lie in the dwords that the bus reads. */
const { vendorId, command, capabilitiesPointer } = type0Header.registers;
const vendorField = fieldInDword(vendorId, vendorId.fields.value);
const { memorySpaceEnable, busMasterEnable } = command.fields;

/** First dword of any capability, and of MSI-X in particular. */
const msix = msixCapability.registers;
const capabilityIdField = fieldInDword(msix.capabilityId, msix.capabilityId.fields.value);
const nextPointerField = fieldInDword(msix.nextPointer, msix.nextPointer.fields.value);
const tableSizeField = fieldInDword(msix.control, msix.control.fields.tableSize);
const functionMaskField = fieldInDword(msix.control, msix.control.fields.functionMask);
const msixEnableField = fieldInDword(msix.control, msix.control.fields.enable);
const { deviceControl, linkControl } = expressCapability.registers;

/** Checks the identity and the BARs, and switches memory space and bus mastering on. */
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
  await changeCommand(cpu, platform, [memorySpaceEnable, busMasterEnable], 1);
}

/** Switches bus mastering off: the device can reach no memory and send no message any more. */
export async function disableFunction(cpu: Cpu, platform: DriverPlatform): Promise<void> {
  await changeCommand(cpu, platform, [busMasterEnable], 0);
}

async function changeCommand(
  cpu: Cpu,
  platform: DriverPlatform,
  fields: readonly FieldPlace[],
  bit: 0 | 1,
): Promise<void> {
  let value = await platform.pci.readConfig32(cpu, command.offset);
  for (const field of fields) value = withField(value, field, bit);
  // The upper half is the status register, whose bits a written 1 would clear.
  await platform.pci.writeConfig32(cpu, command.offset, value & 0xffff);
}

/** The configuration space as it was before a reset. */
export type SavedConfiguration = ReadonlyMap<number, number>;

/** Reads dwords 0 to 63 but for the two of the flash gateway. */
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

/** Whether the function answers: one that is gone, or still in reset, reads as all ones. */
export async function isPresent(cpu: Cpu, platform: DriverPlatform): Promise<boolean> {
  return fieldOf(await platform.pci.readConfig32(cpu, vendorId.offset), vendorField) !== 0xffff;
}

/** Whether the function is as it was configured: one that lost its power has forgotten where its registers are. */
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

/** Rewrites device and link control, the header but for COMMAND, and COMMAND last. */
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

/** Offset of a capability in configuration space, 0 when there is none. */
export async function findCapability(cpu: Cpu, platform: DriverPlatform, id: number): Promise<number> {
  const pointer = await platform.pci.readConfig32(cpu, capabilitiesPointer.offset);
  let offset = fieldOf(pointer, capabilitiesPointer.fields.value) & ~3;
  for (let hops = 0; offset !== 0 && hops < capabilitiesMax; hops++) {
    const header = await platform.pci.readConfig32(cpu, offset);
    if (fieldOf(header, capabilityIdField) === id) return offset;
    offset = fieldOf(header, nextPointerField) & ~3;
  }
  return 0;
}

/** MSI-X as the device offers it; undefined when it does not. */
export interface MsixTable {
  readonly capabilityOffset: number;
  readonly tableAddress: number;
  readonly vectorCount: number;
}

export async function findMsix(cpu: Cpu, platform: DriverPlatform): Promise<MsixTable | undefined> {
  const capabilityOffset = await findCapability(cpu, platform, CapabilityId.msix);
  if (capabilityOffset === 0) return undefined;
  const header = await platform.pci.readConfig32(cpu, capabilityOffset);
  const pointer = await platform.pci.readConfig32(cpu, capabilityOffset + msix.table.offset);
  const bar = platform.pci.bars[fieldOf(pointer, msix.table.fields.barIndex)];
  if (bar === undefined) return undefined;
  return {
    capabilityOffset,
    tableAddress: bar.address + fieldOf(pointer, msix.table.fields.offset) * 8,
    vectorCount: fieldOf(header, tableSizeField) + 1,
  };
}

/** Programmes entries 0 … count − 1 with the platform's messages, unmasked, and enables MSI-X. */
export async function enableMsix(
  cpu: Cpu,
  platform: DriverPlatform,
  table: MsixTable,
  count: number,
): Promise<void> {
  const entry = new Uint8Array(msixTableEntry.sizeBytes);
  const words = viewOf(entry);
  for (let vector = 0; vector < count; vector++) {
    const message = platform.interrupts.messageFor(vector);
    msixTableEntry.encodeInto(
      {
        addressLow: lowWordOf(message.address),
        addressHigh: highWordOf(message.address),
        data: message.data,
        isMasked: 0,
      },
      entry,
    );
    for (let offset = 0; offset < entry.length; offset += dword) {
      const address = table.tableAddress + vector * entry.length + offset;
      cpu.mmioWrite32(address, words.getUint32(offset, true));
    }
  }
  await setMsixEnable(cpu, platform, table, 1);
}

export async function disableMsix(cpu: Cpu, platform: DriverPlatform, table: MsixTable): Promise<void> {
  await setMsixEnable(cpu, platform, table, 0);
}

async function setMsixEnable(
  cpu: Cpu,
  platform: DriverPlatform,
  table: MsixTable,
  enable: number,
): Promise<void> {
  await cpu.settle();
  let header = await platform.pci.readConfig32(cpu, table.capabilityOffset);
  header = withField(header, functionMaskField, 0);
  header = withField(header, msixEnableField, enable);
  await platform.pci.writeConfig32(cpu, table.capabilityOffset, header);
}
