/**
 * The kernel as the owner of queues: its memory is always present, never moves, and is physically addressed. So the code that
 * maps queues of processes (driver/cq.ts, driver/uar.ts) also maps the kernel's own.
 */
import { pageBytes } from '../base/index.ts';
import type { PinnedPages, ProcessMemory } from './platform.ts';

export const kernelProcess: ProcessMemory = {
  processId: 0,
  pin: (_cpu, address, lengthBytes) => identityPages(address, lengthBytes),
  unpin: () => undefined,
  mapDevice: (physicalAddress) => physicalAddress,
  unmapDevice: () => undefined,
};

function identityPages(address: number, lengthBytes: number): PinnedPages {
  const first = Math.floor(address / pageBytes) * pageBytes;
  const count = Math.ceil((address + lengthBytes - first) / pageBytes);
  const pages = Array.from({ length: count }, (_, at) => first + at * pageBytes);
  return { address, lengthBytes, pageCount: count, pages, isWritable: true };
}
