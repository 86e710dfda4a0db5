/**
 * The PCI side of the NIC's probe: identity, command register, MSI-X. Where the capability lies is found by walking the
 * list. Sources: PCI Express base specification 7.5.1, 7.7.2.
 */
import { nicIdentity } from '../../abi/nic/index.ts';
import { CapabilityId, msixCapability, msixTableEntry, type0Header } from '../../abi/pci/index.ts';
import { fieldInDword, fieldOf, highWordOf, lowWordOf, viewOf, withField } from '../../base/index.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import { NetError } from '../socket/index.ts';

const dword = 4;
/** Registers as they lie in the dwords that the bus reads. */
const { vendorId, command, capabilitiesPointer } = type0Header.registers;
const { memorySpaceEnable, busMasterEnable } = command.fields;
const msix = msixCapability.registers;
const capabilityIdField = fieldInDword(msix.capabilityId, msix.capabilityId.fields.value);
const nextPointerField = fieldInDword(msix.nextPointer, msix.nextPointer.fields.value);
const tableSizeField = fieldInDword(msix.control, msix.control.fields.tableSize);
const functionMaskField = fieldInDword(msix.control, msix.control.fields.functionMask);
const msixEnableField = fieldInDword(msix.control, msix.control.fields.enable);
const capabilitiesMax = 48;

/** Checks that this is our NIC, and switches memory space and bus mastering on. @throws NetError ENODEV */
export async function enableFunction(
  cpu: Cpu,
  platform: NetPlatform,
  bars: readonly number[],
): Promise<void> {
  const id = await platform.pci.readConfig32(cpu, vendorId.offset);
  const wanted = nicIdentity.deviceId * 0x1_0000 + nicIdentity.vendorId;
  if (id >>> 0 !== wanted)
    throw new NetError(
      'ENODEV',
      `device and vendor id are 0x${(id >>> 0).toString(16)}, expected 0x${wanted.toString(16)}`,
    );
  for (const bar of bars) {
    if ((platform.pci.bars[bar]?.sizeBytes ?? 0) === 0) throw new NetError('ENODEV', `BAR${bar} is missing`);
  }
  await changeCommand(cpu, platform, 1, 1);
}

/** Switches bus mastering off: the device reaches no memory and sends no message any more. */
export async function disableFunction(cpu: Cpu, platform: NetPlatform): Promise<void> {
  await changeCommand(cpu, platform, 1, 0);
}

async function changeCommand(
  cpu: Cpu,
  platform: NetPlatform,
  memorySpace: number,
  busMaster: number,
): Promise<void> {
  let value = await platform.pci.readConfig32(cpu, command.offset);
  value = withField(value, memorySpaceEnable, memorySpace);
  value = withField(value, busMasterEnable, busMaster);
  // The upper half is the status register, whose bits a written 1 would clear.
  await platform.pci.writeConfig32(cpu, command.offset, value & 0xffff);
}

/** MSI-X as the device offers it. */
export interface MsixTable {
  readonly capabilityOffset: number;
  readonly tableAddress: number;
  readonly vectorCount: number;
}

/** @throws NetError ENODEV when the device has no MSI-X */
export async function findMsix(cpu: Cpu, platform: NetPlatform): Promise<MsixTable> {
  const { pci } = platform;
  let offset = (await pci.readConfig32(cpu, capabilitiesPointer.offset)) & 0xfc;
  for (let hops = 0; offset !== 0 && hops < capabilitiesMax; hops++) {
    const header = await pci.readConfig32(cpu, offset);
    if (fieldOf(header, capabilityIdField) === CapabilityId.msix) {
      const pointer = await pci.readConfig32(cpu, offset + msix.table.offset);
      const bar = pci.bars[fieldOf(pointer, msix.table.fields.barIndex)];
      if (bar === undefined) break;
      return {
        capabilityOffset: offset,
        tableAddress: bar.address + fieldOf(pointer, msix.table.fields.offset) * 8,
        vectorCount: fieldOf(header, tableSizeField) + 1,
      };
    }
    offset = fieldOf(header, nextPointerField) & 0xfc;
  }
  throw new NetError('ENODEV', 'the device has no MSI-X');
}

/** Programmes entries 0 … count − 1 with the platform's messages, unmasked, and enables MSI-X. */
export async function enableMsix(
  cpu: Cpu,
  platform: NetPlatform,
  table: MsixTable,
  count: number,
): Promise<void> {
  const entry = new Uint8Array(msixTableEntry.sizeBytes);
  const words = viewOf(entry);
  for (let vector = 0; vector < count; vector++) {
    const { address, data } = platform.interrupts.messageFor(vector);
    msixTableEntry.encodeInto(
      { addressLow: lowWordOf(address), addressHigh: highWordOf(address), data, isMasked: 0 },
      entry,
    );
    for (let offset = 0; offset < entry.length; offset += dword)
      cpu.mmioWrite32(table.tableAddress + vector * entry.length + offset, words.getUint32(offset, true));
  }
  await setMsixEnable(cpu, platform, table, 1);
}

export async function disableMsix(cpu: Cpu, platform: NetPlatform, table: MsixTable): Promise<void> {
  await setMsixEnable(cpu, platform, table, 0);
}

async function setMsixEnable(
  cpu: Cpu,
  platform: NetPlatform,
  table: MsixTable,
  enable: number,
): Promise<void> {
  await cpu.settle();
  let header = await platform.pci.readConfig32(cpu, table.capabilityOffset);
  header = withField(header, functionMaskField, 0);
  header = withField(header, msixEnableField, enable);
  await platform.pci.writeConfig32(cpu, table.capabilityOffset, header);
}
