/** A queue's memory: pages of the process that the kernel has pinned and translated for the device. */
import { highWordOf, pageBytes } from '../base/index.ts';
import type { Device } from './device.ts';
import { KernelError, require } from './kernel-error.ts';
import type { Translation } from './mtt-table.ts';
import type { Cpu, PinnedPages, ProcessMemory } from './platform.ts';

export interface UserBuffer {
  readonly pages: PinnedPages;
  readonly translation: Translation;
}

/** Checks that a range can be memory. Throws EINVAL. */
export function checkRange(address: number, lengthBytes: number): void {
  require(Number.isSafeInteger(address) &&
    address >= 0, `address is ${address}, expected 0 to ${Number.MAX_SAFE_INTEGER}`);
  require(Number.isSafeInteger(lengthBytes) &&
    lengthBytes > 0, `lengthBytes is ${lengthBytes}, expected 1 to ${Number.MAX_SAFE_INTEGER}`);
  require(highWordOf(address + lengthBytes) <
    2 ** 20, `the range ends at 0x${(address + lengthBytes).toString(16)}, expected an end below 2^52`);
}

/** Pins pages; throws the error of the system call. */
export function pinPages(
  cpu: Cpu,
  process: ProcessMemory,
  address: number,
  lengthBytes: number,
  access: 'read' | 'write' = 'write',
): PinnedPages {
  checkRange(address, lengthBytes);
  const pages = process.pin(cpu, address, lengthBytes, access);
  if (pages === 'EFAULT') {
    throw new KernelError(
      'EFAULT',
      `${lengthBytes} bytes at 0x${address.toString(16)} are not mapped with ${access} access`,
    );
  }
  if (pages === 'ENOMEM')
    throw new KernelError(
      'ENOMEM',
      `${lengthBytes} bytes cannot be pinned: RLIMIT_MEMLOCK is reached or memory has run out`,
    );
  return pages;
}

/** Pins and translates a ring that starts at a page boundary; the device counts its bytes from 0. */
export async function mapBuffer(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  address: number,
  lengthBytes: number,
): Promise<UserBuffer> {
  require(address % pageBytes === 0, 'a queue starts at a page boundary');
  const pages = pinPages(cpu, process, address, lengthBytes);
  try {
    return { pages, translation: await device.mtts.translate(cpu, pages, 0) };
  } catch (error) {
    process.unpin(cpu, pages);
    throw error;
  }
}

export async function unmapBuffer(
  cpu: Cpu,
  device: Device,
  process: ProcessMemory,
  buffer: UserBuffer,
): Promise<void> {
  await device.mtts.release(cpu, buffer.translation);
  process.unpin(cpu, buffer.pages);
}
