/** The PCI side of the NIC's probe: its identity. Source: PCI Express base specification 7.5.1. */
import { nicIdentity } from '../../abi/nic/index.ts';
import { type0Header } from '../../abi/pci/index.ts';
import { enableBusMaster } from '../../driver/index.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import { NetError } from '../socket/index.ts';

/** Checks that the function is this NIC, and enables memory space and bus mastering. @throws NetError ENODEV */
export async function enableFunction(
  cpu: Cpu,
  platform: NetPlatform,
  bars: readonly number[],
): Promise<void> {
  const id = await platform.pci.readConfig32(cpu, type0Header.registers.vendorId.offset);
  const wanted = nicIdentity.deviceId * 0x1_0000 + nicIdentity.vendorId;
  if (id >>> 0 !== wanted)
    throw new NetError(
      'ENODEV',
      `device and vendor id are 0x${(id >>> 0).toString(16)}, expected 0x${wanted.toString(16)}`,
    );
  for (const bar of bars) {
    if ((platform.pci.bars[bar]?.sizeBytes ?? 0) === 0) throw new NetError('ENODEV', `BAR${bar} is missing`);
  }
  await enableBusMaster(cpu, platform);
}
