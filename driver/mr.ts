/**
 * Memory regions: pin the pages, translate them with the largest page that fits, write the entries, SW2HW_MPT.
 *
 * Pinning costs a fixed part and a part per page, charged to `pin`. A region's key is its slot with the generation bits,
 * rotated (interface sheet 7.1); lkey and rkey are the same number.
 */
import { keyOfIndexForm, MptStatus, mpt } from '../abi/index.ts';
import { viewOf } from '../base/index.ts';
import type { Device } from './device.ts';
import { KernelError, require } from './kernel-error.ts';
import type { Translation } from './mtt-table.ts';
import { OnDemandRegion, type PageableMemory, pageCountOf } from './on-demand/index.ts';
import type { Cpu, PinnedPages, ProcessMemory } from './platform.ts';
import { AccessFlag } from './uapi.ts';
import { checkRange, pinPages } from './user-buffer.ts';

export interface MemoryRegion {
  readonly key: number;
  /** Allocator number: slot plus generation. */
  readonly number: number;
  readonly isOnDemand: boolean;
  /** Pinned pages; undefined for an on-demand region, or after a re-registration that failed. */
  pages: PinnedPages | undefined;
  /** Undefined after a re-registration that failed. */
  translation: Translation | undefined;
  /** False after a failed re-registration: the device no longer has it, and it can only be deregistered. */
  isEnabled: boolean;
}

/** Changes of a region; attributes left out are unchanged (ibv_rereg_mr). */
export interface RegionChanges {
  readonly pdn?: number | undefined;
  readonly access?: number | undefined;
  readonly translation?: { readonly address: number; readonly lengthBytes: number } | undefined;
}

const { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ } = AccessFlag;
const { IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_MW_BIND, IBV_ACCESS_ON_DEMAND } = AccessFlag;
const knownAccess =
  IBV_ACCESS_LOCAL_WRITE |
  IBV_ACCESS_REMOTE_WRITE |
  IBV_ACCESS_REMOTE_READ |
  IBV_ACCESS_REMOTE_ATOMIC |
  IBV_ACCESS_MW_BIND |
  IBV_ACCESS_ON_DEMAND;

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
  if ((access & IBV_ACCESS_ON_DEMAND) !== 0)
    return registerOnDemand(cpu, device, process, pdn, address, lengthBytes, access);
  const pages = pinPages(cpu, process, address, lengthBytes, isWriting(access) ? 'write' : 'read');
  const { costs } = device.platform;
  cpu.charge('pin', costs.registerRegionFixed + costs.registerRegionPerPage * pages.pageCount);
  const number = device.numbers.mpts.allocate();
  let translation: Translation | undefined;
  try {
    if (number < 0) throw new KernelError('ENOMEM', 'no memory region slot is left');
    translation = await device.mtts.translate(cpu, pages, address);
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
  return { key: keyOfIndexForm(number), number, isOnDemand: false, pages, translation, isEnabled: true };
}

/** Registers without pinning: no translation is present until the device requests it (driver/on-demand). */
async function registerOnDemand(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  pdn: number,
  address: number,
  lengthBytes: number,
  access: number,
): Promise<MemoryRegion> {
  const { pager, mtts, numbers, icm } = device;
  if ((access & IBV_ACCESS_MW_BIND) !== 0)
    throw new KernelError('EOPNOTSUPP', 'no windows are bound to an on-demand region');
  const pageable = pageableMemoryOf(process);
  checkRange(address, lengthBytes);
  cpu.charge('driver', device.platform.costs.registerRegionFixed);
  await pager.open(cpu);
  const number = numbers.mpts.allocate();
  let translation: Translation | undefined;
  try {
    if (number < 0) throw new KernelError('ENOMEM', 'no memory region slot is left');
    translation = await mtts.reserve(cpu, pageCountOf(address, lengthBytes));
    await icm.dmpt.use(cpu, slotOf(device, number));
    const key = keyOfIndexForm(number);
    const isWritable = (access & IBV_ACCESS_LOCAL_WRITE) !== 0;
    const options = { process: pageable, mtts, translation, address, lengthBytes, isWritable };
    pager.add(key, new OnDemandRegion(options));
    try {
      await handOver(cpu, device, { number, pdn, address, lengthBytes, access, translation });
    } catch (error) {
      await pager.remove(cpu, key);
      await icm.dmpt.release(cpu, slotOf(device, number));
      throw error;
    }
    return { key, number, isOnDemand: true, pages: undefined, translation, isEnabled: true };
  } catch (error) {
    if (translation !== undefined) await mtts.release(cpu, translation);
    if (number >= 0) numbers.mpts.release(number);
    throw error;
  }
}

function pageableMemoryOf(process: ProcessMemory): PageableMemory {
  const { holdPage, releasePages, watchPages } = process;
  if (holdPage === undefined || releasePages === undefined || watchPages === undefined)
    throw new KernelError('EOPNOTSUPP', 'the host has no on-demand paging');
  return process as PageableMemory;
}

/** Takes the region from the device, then unpins its pages. */
export async function deregisterRegion(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  region: MemoryRegion,
): Promise<void> {
  const slot = slotOf(device, region.number);
  if (region.isEnabled) await takeBack(cpu, device, slot);
  if (region.isOnDemand) await device.pager.remove(cpu, region.key);
  await device.icm.dmpt.release(cpu, slot);
  if (region.translation !== undefined) await device.mtts.release(cpu, region.translation);
  device.numbers.mpts.release(region.number);
  const { costs } = device.platform;
  if (region.pages === undefined) {
    cpu.charge('driver', costs.deregisterRegionFixed);
    return;
  }
  cpu.charge('pin', costs.deregisterRegionFixed + costs.deregisterRegionPerPage * region.pages.pageCount);
  process.unpin(cpu, region.pages);
}

async function takeBack(cpu: Cpu, device: Device, slot: number): Promise<void> {
  await device.commands.execute(cpu, 'HW2SW_MPT', { inputModifier: slot, opcodeModifier: 1 });
}

/**
 * Changes a region, which keeps its key: takes it back, edits its entry in the page of ICM, clears the status and makes the
 * device drop its cached copy (interface sheet 3.15; golden capture j-rereg-mr; Linux 6.1, mlx4_ib_rereg_user_mr). A failure
 * after the first step leaves a region that the device does not have.
 */
export async function reregisterRegion(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  region: MemoryRegion,
  { pdn, access, translation }: RegionChanges,
): Promise<void> {
  if (access !== undefined) checkAccess(access);
  if (region.isOnDemand || ((access ?? 0) & IBV_ACCESS_ON_DEMAND) !== 0)
    throw new KernelError('EOPNOTSUPP', 'an on-demand region cannot be re-registered');
  require(region.isEnabled, 'an earlier re-registration failed: the region can only be deregistered');
  const slot = slotOf(device, region.number);
  await takeBack(cpu, device, slot);
  region.isEnabled = false;
  const { memory } = device.platform;
  const entryAddress = device.icm.dmpt.physicalAddressOf(slot);
  const entry = memory.bytes.slice(entryAddress, entryAddress + mpt.sizeBytes);
  const view = viewOf(entry);
  const { fields } = mpt;
  if (pdn !== undefined) fields.pd.set(view, 0, pdn);
  if (access !== undefined) {
    if (translation === undefined) requireWritable(region, access);
    for (const [name, flag] of accessFields) fields[name].set(view, 0, (access & flag) !== 0 ? 1 : 0);
  }
  if (translation !== undefined) {
    const { mttAddress, logPageBytes } = await remap(
      cpu,
      device,
      process,
      region,
      translation,
      access ?? accessOf(view),
    );
    fields.startAddress.set(view, 0, BigInt(translation.address));
    fields.lengthBytes.set(view, 0, BigInt(translation.lengthBytes));
    fields.mttAddress.set(view, 0, mttAddress);
    fields.logPageSize.set(view, 0, logPageBytes);
  }
  fields.status.set(view, 0, MptStatus.VALID);
  cpu.storeMemory(entryAddress, entry);
  await device.commands.execute(cpu, 'SYNC_TPT');
  region.isEnabled = true;
}

const accessFields = [
  ['localWriteEnabled', IBV_ACCESS_LOCAL_WRITE],
  ['remoteReadEnabled', IBV_ACCESS_REMOTE_READ],
  ['remoteWriteEnabled', IBV_ACCESS_REMOTE_WRITE],
  ['atomicEnabled', IBV_ACCESS_REMOTE_ATOMIC],
  ['bindEnabled', IBV_ACCESS_MW_BIND],
] as const;

const accessOf = (view: DataView): number =>
  accessFields.reduce((access, [name, flag]) => access | (mpt.fields[name].get(view, 0) === 1 ? flag : 0), 0);

/** Write rights need pages that were pinned for writing (mlx4_ib_rereg_user_mr). @throws KernelError EPERM */
function requireWritable({ pages }: MemoryRegion, access: number): void {
  if (isWriting(access) && pages?.isWritable === false)
    throw new KernelError('EPERM', 'the memory of the region may only be read');
}

const isWriting = (access: number): boolean => (access & ~IBV_ACCESS_REMOTE_READ) !== 0;

/** Unpins the old pages of a region, then pins and translates others. */
async function remap(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  region: MemoryRegion,
  { address, lengthBytes }: { readonly address: number; readonly lengthBytes: number },
  access: number,
): Promise<Translation> {
  const { costs } = device.platform;
  const { pages: old, translation } = region;
  region.pages = undefined;
  region.translation = undefined;
  if (translation !== undefined) await device.mtts.release(cpu, translation);
  if (old !== undefined) {
    cpu.charge('pin', costs.deregisterRegionPerPage * old.pageCount);
    process.unpin(cpu, old);
  }
  const pages = pinPages(cpu, process, address, lengthBytes, isWriting(access) ? 'write' : 'read');
  region.pages = pages;
  cpu.charge('pin', costs.registerRegionFixed + costs.registerRegionPerPage * pages.pageCount);
  region.translation = await device.mtts.translate(cpu, pages, address);
  return region.translation;
}

/** Remote writes and atomics need the right to write locally, as InfiniBand demands (10.6.3.1). */
function checkAccess(access: number): void {
  require((access & ~knownAccess) ===
    0, `access is 0x${access.toString(16)}, expected flags of 0x${knownAccess.toString(16)} only`);
  const writesRemotely = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) !== 0;
  require(!writesRemotely ||
    (access & IBV_ACCESS_LOCAL_WRITE) !==
      0, `access is 0x${access.toString(16)}, expected IBV_ACCESS_LOCAL_WRITE with remote write or atomic`);
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
        isOnDemand: bit(IBV_ACCESS_ON_DEMAND),
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
