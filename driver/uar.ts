/** Doorbell pages: each context gets a UAR of its own, mapped uncached, and the BlueFlame page that pairs with it. */
import { Bar, type BlueFlameGeometry, blueFlameOffset, uarPageBytes } from '../abi/index.ts';
import { blueFlameRegisterBytesOf, uarAreaBytesOf } from './capabilities.ts';
import type { Device } from './device.ts';
import { KernelError } from './kernel-error.ts';
import type { ProcessMemory } from './platform.ts';

export interface UserUar {
  readonly page: number;
  readonly userAddress: number;
  readonly busAddress: number;
  /** User address -1 without BlueFlame. */
  readonly blueFlameUserAddress: number;
  readonly blueFlameBusAddress: number;
  readonly blueFlameRegisterBytes: number;
}

export function mapUar(device: Device, process: ProcessMemory): UserUar {
  const page = device.numbers.uars.allocate();
  if (page < 0) throw new KernelError('ENOMEM', 'no doorbell page is left');
  const bar = device.platform.pci.bars[Bar.UAR]!.address;
  const busAddress = bar + page * uarPageBytes;
  const registerBytes = blueFlameRegisterBytesOf(device.limits);
  const geometry: BlueFlameGeometry = {
    uarAreaBytes: uarAreaBytesOf(device.limits),
    registerBytes,
    registersPerPage: 2 ** device.limits.logBlueFlameRegistersPerPage,
  };
  const blueFlameBusAddress = bar + blueFlameOffset(geometry, page, 0, 0);
  return {
    page,
    busAddress,
    userAddress: process.mapDevice(busAddress, uarPageBytes, 'uncached'),
    blueFlameBusAddress,
    blueFlameUserAddress:
      registerBytes === 0 ? -1 : process.mapDevice(blueFlameBusAddress, uarPageBytes, 'writeCombining'),
    blueFlameRegisterBytes: registerBytes,
  };
}

export function unmapUar(device: Device, process: ProcessMemory, uar: UserUar): void {
  process.unmapDevice(uar.userAddress);
  if (uar.blueFlameUserAddress >= 0) process.unmapDevice(uar.blueFlameUserAddress);
  device.numbers.uars.release(uar.page);
}
