/**
 * Memory regions: pin the pages, translate them with the largest page that fits, write the entries, SW2HW_MPT.
 *
 * The costs are those of pinning: a fixed part and one per page, charged to `pin`. A region's key is its slot with the
 * generation bits, rotated (interface sheet 7.1); lkey and rkey are the same number.
 */
import { keyOfIndexForm } from '../abi/keys.ts';
import { MptStatus, mpt } from '../abi/mpt.ts';
import type { Device } from './device.ts';
import { KernelError, require } from './kernel-error.ts';
import type { Translation } from './mtt.ts';
import type { Cpu, PinnedPages, ProcessMemory } from './platform.ts';
import { AccessFlag } from './uapi.ts';
import { pinPages } from './user-buffer.ts';

export interface MemoryRegion {
  readonly key: number;
  /** Allocator number: slot plus generation. */
  readonly number: number;
  readonly pages: PinnedPages;
  readonly translation: Translation;
}

const { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ } = AccessFlag;
const { IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_MW_BIND } = AccessFlag;
const knownAccess =
  IBV_ACCESS_LOCAL_WRITE |
  IBV_ACCESS_REMOTE_WRITE |
  IBV_ACCESS_REMOTE_READ |
  IBV_ACCESS_REMOTE_ATOMIC |
  IBV_ACCESS_MW_BIND;

export async function registerRegion(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  pdn: number,
  address: number,
  lengthBytes: number,
  access: number,
): Promise<MemoryRegion> {
  checkAccess(access);
  const writes = (access & ~IBV_ACCESS_REMOTE_READ) !== 0;
  const pages = pinPages(cpu, process, address, lengthBytes, writes ? 'write' : 'read');
  const { costs } = device.platform;
  cpu.charge('pin', costs.registerRegionFixed + costs.registerRegionPerPage * pages.pages.length);
  const number = device.numbers.mpts.allocate();
  let translation: Translation | undefined;
  try {
    if (number < 0) throw new KernelError('ENOMEM', 'no memory region slot is left');
    translation = await device.mtts.translate(cpu, pages.pages, address);
    await device.icm.dmpt.use(cpu, slotOf(device, number));
    try {
      await handOver(cpu, device, { number, pdn, address, lengthBytes, access, translation });
    } catch (error) {
      await device.icm.dmpt.release(cpu, slotOf(device, number));
      throw error;
    }
  } catch (error) {
    if (translation !== undefined) await device.mtts.release(cpu, translation);
    if (number >= 0) device.numbers.mpts.release(number);
    process.unpin(cpu, pages);
    throw error;
  }
  return { key: keyOfIndexForm(number), number, pages, translation };
}

/** Takes the region from the device, then lets its pages go. */
export async function deregisterRegion(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  region: MemoryRegion,
): Promise<void> {
  const slot = slotOf(device, region.number);
  await device.commands.execute(cpu, 'HW2SW_MPT', { inputModifier: slot, opcodeModifier: 1 });
  await device.icm.dmpt.release(cpu, slot);
  await device.mtts.release(cpu, region.translation);
  device.numbers.mpts.release(region.number);
  const { costs } = device.platform;
  cpu.charge('pin', costs.deregisterRegionFixed + costs.deregisterRegionPerPage * region.pages.pages.length);
  process.unpin(cpu, region.pages);
}

/** Remote writes and atomics need the right to write locally, as InfiniBand demands (10.6.3.1). */
function checkAccess(access: number): void {
  require((access & ~knownAccess) === 0, `access flags 0x${access.toString(16)}`);
  const writesRemotely = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) !== 0;
  require(!writesRemotely || (access & IBV_ACCESS_LOCAL_WRITE) !== 0, 'remote write without local write');
}

const slotOf = (device: Device, number: number): number => number & (device.profile.counts.dmpt - 1);

interface NewRegion {
  readonly number: number;
  readonly pdn: number;
  readonly address: number;
  readonly lengthBytes: number;
  readonly access: number;
  readonly translation: Translation;
}

async function handOver(cpu: Cpu, device: Device, region: NewRegion): Promise<void> {
  const bit = (flag: number): number => ((region.access & flag) !== 0 ? 1 : 0);
  const command = { inputModifier: slotOf(device, region.number) };
  await device.commands.executeWithMailbox(cpu, 'SW2HW_MPT', command, (bytes, address) => {
    mpt.encodeInto(
      {
        status: MptStatus.SOFTWARE,
        mio: 1,
        isRegion: 1,
        localReadEnabled: 1,
        localWriteEnabled: bit(IBV_ACCESS_LOCAL_WRITE),
        remoteReadEnabled: bit(IBV_ACCESS_REMOTE_READ),
        remoteWriteEnabled: bit(IBV_ACCESS_REMOTE_WRITE),
        atomicEnabled: bit(IBV_ACCESS_REMOTE_ATOMIC),
        bindEnabled: bit(IBV_ACCESS_MW_BIND),
        keyIndexForm: region.number,
        localInvalidateEnabled: 1,
        remoteInvalidateEnabled: 1,
        pd: region.pdn,
        startAddress: BigInt(region.address),
        lengthBytes: BigInt(region.lengthBytes),
        mttAddress: region.translation.mttAddress,
        logPageSize: region.translation.logPageBytes,
      },
      bytes,
      address,
    );
  });
}
