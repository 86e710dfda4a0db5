/**
 * Taking the device and bringing it to its reset state: owner register, hardware semaphore, reset register, and the saved
 * configuration space. Source: interface sheet 2.3, 2.5, 8.1 steps 2 and 3.
 */
import { bar0 } from '../abi/index.ts';
import { swap32, usToPs, withField } from '../base/index.ts';
import { KernelError } from './kernel-error.ts';
import type { DriverConfig } from './parameters.ts';
import { restoreConfiguration, type SavedConfiguration, saveConfiguration, waitForVendorId } from './pci.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const { owner, semaphore, reset } = bar0.registers;
const semaphorePollUs = 1_000;

/** Reads the owner register: 0 means that this driver owns the device from now on. */
export async function takeOwnership(cpu: Cpu, platform: DriverPlatform): Promise<void> {
  if ((await cpu.mmioRead32(addressOf(platform, owner.offset))) !== 0) {
    throw new KernelError('ENODEV', 'another driver owns the device');
  }
}

/** Writes 0 to the owner register, and does not access the device for a while. */
export async function releaseOwnership(
  cpu: Cpu,
  platform: DriverPlatform,
  config: DriverConfig,
): Promise<void> {
  cpu.mmioWrite32(addressOf(platform, owner.offset), 0);
  await cpu.settle();
  await cpu.sleep(usToPs(config.ownerReleaseWaitUs));
}

/**
 * Resets the device; the reset also ends the ownership of the semaphore, which is never written.
 * @returns the configuration space, which is the same before and after
 */
export async function resetDevice(
  cpu: Cpu,
  platform: DriverPlatform,
  config: DriverConfig,
): Promise<SavedConfiguration> {
  const saved = await saveConfiguration(cpu, platform);
  await takeSemaphore(cpu, platform, config);
  const trigger = withField(0, reset.fields['trigger']!, 1);
  cpu.mmioWrite32(addressOf(platform, reset.offset), swap32(trigger));
  await cpu.settle();
  await cpu.sleep(usToPs(config.resetWaitUs));
  await waitForVendorId(cpu, platform, config.resetVendorLimitUs);
  await restoreConfiguration(cpu, platform, saved);
  return saved;
}

async function takeSemaphore(cpu: Cpu, platform: DriverPlatform, config: DriverConfig): Promise<void> {
  const watch = platform.stopwatch();
  while ((await cpu.mmioRead32(addressOf(platform, semaphore.offset))) !== 0) {
    if (watch.elapsedPs >= usToPs(config.semaphoreLimitUs))
      throw new KernelError('ENODEV', 'the hardware semaphore stays taken');
    await cpu.sleep(usToPs(semaphorePollUs));
  }
}

const addressOf = (platform: DriverPlatform, offset: number): number =>
  platform.pci.bars[0]!.address + offset;
