/**
 * The PCI side of probe: command register, saved configuration, MSI-X. Offsets of the standard header and of the MSI-X
 * capability are the PCI specification's; where the capability lies is found by walking the list, as Linux does.
 * Sources: PCI Express base specification 7.5.1, 7.7.2; interface sheet 1.4, 2.3.
 */
import { msixTableEntry } from '../abi/bar-map.ts';
import { Bar, flashGatewayOffset, pciIdentity } from '../abi/pci-identity.ts';
import { highWordOf, lowWordOf, viewOf } from '../base/bytes.ts';
import { fieldOf, register, registerBits, registerMap, withField } from '../base/registers.ts';
import { usToPs } from '../base/units.ts';
import { KernelError } from './kernel-error.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const dword = 4;

/** Header of a type 0 function, as far as the driver uses it. */
const configurationHeader = registerMap(
  'configuration header',
  { sizeBytes: 256, source: 'PCIe 7.5.1' },
  {
    identity: register(0x00, 4, 'ro', 'vendor and device id', 0, {
      vendorId: registerBits(15, 0),
      deviceId: registerBits(31, 16),
    }),
    command: register(0x04, 4, 'rw', 'command and status', 0, {
      memorySpace: registerBits(1, 1),
      busMaster: registerBits(2, 2),
      interruptDisable: registerBits(10, 10),
    }),
    capabilities: register(0x34, 4, 'ro', 'offset of the first capability', 0, { first: registerBits(7, 0) }),
  },
);

/** First dword of any capability, and of MSI-X in particular. */
const capabilityHeader = register(0, 4, 'rw', 'capability header', 0, {
  id: registerBits(7, 0),
  next: registerBits(15, 8),
  msixTableSizeMinus1: registerBits(26, 16),
  msixFunctionMask: registerBits(30, 30),
  msixEnable: registerBits(31, 31),
}).fields;
const msixTablePointer = register(4, 4, 'ro', 'MSI-X table', 0, {
  bar: registerBits(2, 0),
  offset8: registerBits(31, 3),
});
const pciExpressCapability = { id: 0x10, deviceControl: 0x08, linkControl: 0x10 } as const;
const msixCapabilityId = 0x11;
const capabilitiesMax = 48;
/** BAR 0 is 64 bits wide; the low four bits say what it is. */
const firstBarOffset = 0x10;
const barAddressMask = ~0xf;

const { identity, command, capabilities } = configurationHeader.registers;

/** Checks the identity and the BARs, and switches memory space and bus mastering on. */
export async function enableFunction(cpu: Cpu, platform: DriverPlatform): Promise<void> {
  const { pci } = platform;
  const id = await pci.readConfig32(cpu, identity.offset);
  if (fieldOf(id, identity.fields['vendorId']!) !== pciIdentity.vendorId) {
    throw new KernelError('ENODEV', `no device of vendor 0x${pciIdentity.vendorId.toString(16)}`);
  }
  for (const bar of [Bar.CONFIGURATION, Bar.UAR]) {
    if ((pci.bars[bar]?.sizeBytes ?? 0) === 0) throw new KernelError('ENODEV', `BAR${bar} is missing`);
  }
  await changeCommand(cpu, platform, { memorySpace: 1, busMaster: 1 });
}

/** Switches bus mastering off: the device can reach no memory and send no message any more. */
export async function disableFunction(cpu: Cpu, platform: DriverPlatform): Promise<void> {
  await changeCommand(cpu, platform, { busMaster: 0 });
}

async function changeCommand(
  cpu: Cpu,
  platform: DriverPlatform,
  changes: Readonly<Record<string, number>>,
): Promise<void> {
  let value = await platform.pci.readConfig32(cpu, command.offset);
  for (const [name, bit] of Object.entries(changes)) value = withField(value, command.fields[name]!, bit);
  // The upper half is the status register, whose bits a written 1 would clear.
  await platform.pci.writeConfig32(cpu, command.offset, value & 0xffff);
}

/** The configuration space as it was before a reset. */
export type SavedConfiguration = ReadonlyMap<number, number>;

/** Reads dwords 0 to 63 but for the two of the flash gateway. */
export async function saveConfiguration(cpu: Cpu, platform: DriverPlatform): Promise<SavedConfiguration> {
  const saved = new Map<number, number>();
  const left: readonly number[] = Object.values(flashGatewayOffset);
  for (let offset = 0; offset < configurationHeader.sizeBytes; offset += dword) {
    if (!left.includes(offset)) saved.set(offset, await platform.pci.readConfig32(cpu, offset));
  }
  return saved;
}

/** Waits until the vendor id can be read again. */
export async function waitForVendorId(cpu: Cpu, platform: DriverPlatform, limitUs: number): Promise<void> {
  const watch = platform.stopwatch();
  const vendorField = identity.fields['vendorId']!;
  while (fieldOf(await platform.pci.readConfig32(cpu, identity.offset), vendorField) === 0xffff) {
    if (watch.elapsedPs >= usToPs(limitUs))
      throw new KernelError('ENODEV', 'the device did not come back from reset');
    await cpu.sleep(usToPs(1_000));
  }
}

/** Whether the function answers: one that is gone, or still in reset, reads as all ones. */
export async function isPresent(cpu: Cpu, platform: DriverPlatform): Promise<boolean> {
  return (
    fieldOf(await platform.pci.readConfig32(cpu, identity.offset), identity.fields['vendorId']!) !== 0xffff
  );
}

/** Whether the function is as it was configured: one that lost its power has forgotten where its registers are. */
export async function isConfigured(cpu: Cpu, platform: DriverPlatform): Promise<boolean> {
  if (!(await isPresent(cpu, platform))) return false;
  const assigned = platform.pci.bars[Bar.CONFIGURATION]!.address;
  const [low, high] = [firstBarOffset, firstBarOffset + dword];
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
  const express = await findCapability(cpu, platform, pciExpressCapability.id);
  const offsets = Array.from({ length: 16 }, (_, at) => at * dword).filter((at) => at !== command.offset);
  if (express > 0) {
    offsets.unshift(express + pciExpressCapability.deviceControl, express + pciExpressCapability.linkControl);
  }
  for (const offset of offsets) await platform.pci.writeConfig32(cpu, offset, saved.get(offset) ?? 0);
  await platform.pci.writeConfig32(cpu, command.offset, saved.get(command.offset)! & 0xffff);
}

/** Offset of a capability in configuration space, 0 when there is none. */
export async function findCapability(cpu: Cpu, platform: DriverPlatform, id: number): Promise<number> {
  const first = capabilities.fields['first']!;
  let offset = fieldOf(await platform.pci.readConfig32(cpu, capabilities.offset), first) & ~3;
  for (let hops = 0; offset !== 0 && hops < capabilitiesMax; hops++) {
    const header = await platform.pci.readConfig32(cpu, offset);
    if (fieldOf(header, capabilityHeader['id']!) === id) return offset;
    offset = fieldOf(header, capabilityHeader['next']!) & ~3;
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
  const capabilityOffset = await findCapability(cpu, platform, msixCapabilityId);
  if (capabilityOffset === 0) return undefined;
  const header = await platform.pci.readConfig32(cpu, capabilityOffset);
  const pointer = await platform.pci.readConfig32(cpu, capabilityOffset + msixTablePointer.offset);
  const bar = platform.pci.bars[fieldOf(pointer, msixTablePointer.fields['bar']!)];
  if (bar === undefined) return undefined;
  return {
    capabilityOffset,
    tableAddress: bar.address + fieldOf(pointer, msixTablePointer.fields['offset8']!) * 8,
    vectorCount: fieldOf(header, capabilityHeader['msixTableSizeMinus1']!) + 1,
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
  header = withField(header, capabilityHeader['msixFunctionMask']!, 0);
  header = withField(header, capabilityHeader['msixEnable']!, enable);
  await platform.pci.writeConfig32(cpu, table.capabilityOffset, header);
}
