/**
 * The parts of a PCI function that every driver programs: command register, capability list, MSI-X.
 * Sources: PCI Express base specification 7.5.1, 7.7.2.
 */
import { CapabilityId, msixCapability, msixTableEntry, type0Header } from '../abi/pci/index.ts';
import { fieldInDword, fieldOf, highWordOf, lowWordOf, viewOf, withField } from '../base/index.ts';
import type { Cpu, InterruptLines, PciFunction } from './platform.ts';

/** The function, and the messages that the platform assigns to its vectors. */
interface FunctionSite {
  readonly pci: PciFunction;
  readonly interrupts: Pick<InterruptLines, 'messageFor'>;
}

const dword = 4;
const capabilitiesMax = 48;
/** Registers as dwords, which is how the bus reads them. */
const { command, capabilitiesPointer } = type0Header.registers;
const { memorySpaceEnable, busMasterEnable } = command.fields;
const msix = msixCapability.registers;
const capabilityIdField = fieldInDword(msix.capabilityId, msix.capabilityId.fields.value);
const nextPointerField = fieldInDword(msix.nextPointer, msix.nextPointer.fields.value);
const tableSizeField = fieldInDword(msix.control, msix.control.fields.tableSize);
const functionMaskField = fieldInDword(msix.control, msix.control.fields.functionMask);
const msixEnableField = fieldInDword(msix.control, msix.control.fields.enable);

/** Enables memory space and bus mastering. */
export async function enableBusMaster(cpu: Cpu, { pci }: FunctionSite): Promise<void> {
  await writeCommand(cpu, pci, withField(await memorySpaceCommand(cpu, pci), busMasterEnable, 1));
}

/** Disables bus mastering: the device can access no memory and send no message. */
export async function disableBusMaster(cpu: Cpu, { pci }: FunctionSite): Promise<void> {
  await writeCommand(cpu, pci, withField(await pci.readConfig32(cpu, command.offset), busMasterEnable, 0));
}

const memorySpaceCommand = async (cpu: Cpu, pci: PciFunction): Promise<number> =>
  withField(await pci.readConfig32(cpu, command.offset), memorySpaceEnable, 1);

/** The upper half is the status register; writing 1 would clear its bits. */
const writeCommand = (cpu: Cpu, pci: PciFunction, value: number): Promise<void> =>
  pci.writeConfig32(cpu, command.offset, value & 0xffff);

/** Offset of a capability in configuration space; 0 if the function lacks it. */
export async function findCapability(cpu: Cpu, { pci }: FunctionSite, id: number): Promise<number> {
  const pointer = await pci.readConfig32(cpu, capabilitiesPointer.offset);
  let offset = fieldOf(pointer, capabilitiesPointer.fields.value) & ~3;
  for (let hops = 0; offset !== 0 && hops < capabilitiesMax; hops++) {
    const header = await pci.readConfig32(cpu, offset);
    if (fieldOf(header, capabilityIdField) === id) return offset;
    offset = fieldOf(header, nextPointerField) & ~3;
  }
  return 0;
}

/** The MSI-X table of a function. */
export interface MsixTable {
  readonly capabilityOffset: number;
  readonly tableAddress: number;
  readonly vectorCount: number;
}

/** Finds the MSI-X table by the capability list; undefined if the function has no MSI-X. */
export async function findMsix(cpu: Cpu, site: FunctionSite): Promise<MsixTable | undefined> {
  const capabilityOffset = await findCapability(cpu, site, CapabilityId.msix);
  if (capabilityOffset === 0) return undefined;
  const header = await site.pci.readConfig32(cpu, capabilityOffset);
  const pointer = await site.pci.readConfig32(cpu, capabilityOffset + msix.table.offset);
  const bar = site.pci.bars[fieldOf(pointer, msix.table.fields.barIndex)];
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
  site: FunctionSite,
  table: MsixTable,
  count: number,
): Promise<void> {
  const entry = new Uint8Array(msixTableEntry.sizeBytes);
  const words = viewOf(entry);
  for (let vector = 0; vector < count; vector++) {
    const message = site.interrupts.messageFor(vector);
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
  await setMsixEnable(cpu, site, table, 1);
}

export async function disableMsix(cpu: Cpu, site: FunctionSite, table: MsixTable): Promise<void> {
  await setMsixEnable(cpu, site, table, 0);
}

async function setMsixEnable(cpu: Cpu, site: FunctionSite, table: MsixTable, enable: number): Promise<void> {
  await cpu.settle();
  let header = await site.pci.readConfig32(cpu, table.capabilityOffset);
  header = withField(header, functionMaskField, 0);
  header = withField(header, msixEnableField, enable);
  await site.pci.writeConfig32(cpu, table.capabilityOffset, header);
}
