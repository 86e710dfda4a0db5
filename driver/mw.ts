/**
 * Memory windows: an MPT entry each, without pages. One of type 1 is valid and empty until a work request binds it, one of type 2 is
 * free. Source: Linux 6.1, drivers/infiniband/hw/mlx4/mr.c, mlx4_ib_alloc_mw, and net/ethernet/mellanox/mlx4/mr.c, mlx4_mw_enable.
 */

import {
  CapabilityFlag,
  hasCapability,
  hasFlag,
  keyOfIndexForm,
  MemoryManagementFlag,
  MptStatus,
  mpt,
} from '../abi/index.ts';
import type { Device } from './device.ts';
import { KernelError, require } from './kernel-error.ts';
import type { Cpu } from './platform.ts';
import { MwType } from './uapi.ts';

export interface MemoryWindow {
  readonly key: number;
  /** Allocator number: slot plus generation. */
  readonly number: number;
}

/** @throws KernelError EOPNOTSUPP if the device has no windows of the type, ENOMEM if no slot is left */
export async function allocateWindow(
  cpu: Cpu,
  device: Device,
  pdn: number,
  type: MwType,
): Promise<MemoryWindow> {
  require(type === MwType.IBV_MW_TYPE_1 || type === MwType.IBV_MW_TYPE_2, `type is ${type}, expected 1 or 2`);
  const isType2 = type === MwType.IBV_MW_TYPE_2;
  const { capabilityFlags, memoryManagementFlags } = device.limits;
  const isOffered = isType2
    ? hasFlag(memoryManagementFlags, MemoryManagementFlag.TYPE_2_WIN)
    : hasCapability(capabilityFlags, CapabilityFlag.MEM_WINDOW);
  if (!isOffered) throw new KernelError('EOPNOTSUPP', `the device has no memory windows of type ${type}`);
  const number = device.numbers.mpts.allocate();
  if (number < 0) throw new KernelError('ENOMEM', 'no memory region slot is left');
  const slot = slotOf(device, number);
  try {
    await device.icm.dmpt.use(cpu, slot);
    try {
      await handOver(cpu, device, number, pdn, isType2);
    } catch (error) {
      await device.icm.dmpt.release(cpu, slot);
      throw error;
    }
  } catch (error) {
    device.numbers.mpts.release(number);
    throw error;
  }
  return { key: keyOfIndexForm(number), number };
}

/** Takes the window from the device, bound or not. */
export async function releaseWindow(cpu: Cpu, device: Device, window: MemoryWindow): Promise<void> {
  const slot = slotOf(device, window.number);
  await device.commands.execute(cpu, 'HW2SW_MPT', { inputModifier: slot, opcodeModifier: 1 });
  await device.icm.dmpt.release(cpu, slot);
  device.numbers.mpts.release(window.number);
}

const slotOf = (device: Device, number: number): number => number & (device.profile.counts.dmpt - 1);

async function handOver(
  cpu: Cpu,
  device: Device,
  number: number,
  pd: number,
  isType2: boolean,
): Promise<void> {
  const command = { inputModifier: slotOf(device, number) };
  const ofType2 = isType2 ? 1 : 0;
  await device.commands.executeWithMailbox(cpu, 'SW2HW_MPT', command, (bytes, address) => {
    mpt.encodeInto(
      {
        status: isType2 ? MptStatus.FREE : MptStatus.VALID,
        isBoundToQp: ofType2,
        keyIndexForm: number,
        localInvalidateEnabled: ofType2,
        remoteInvalidateEnabled: ofType2,
        pd,
      },
      bytes,
      address,
    );
  });
}
