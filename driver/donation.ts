/**
 * Pages given to the device: the firmware area, auxiliary pages and ICM chunks. A donation consists of a few physically
 * contiguous runs, each as large as the host still has; each becomes entries of a MAP command whose size divides both of its
 * addresses (interface sheet 3.6).
 */
import { type CommandName, icmPageBytes, mapEntry, mapEntryCountMax } from '../abi/index.ts';
import { log2Exact, viewOf } from '../base/index.ts';
import type { CommandInterface } from './command-interface.ts';
import { KernelError } from './kernel-error.ts';
import type { Cpu, KernelMemory } from './platform.ts';

/** One physically contiguous run of 4 KiB pages. */
export interface Run {
  readonly address: number;
  readonly pages: number;
}

/** Allocates `pages` pages in as few runs as possible, or throws ENOMEM and keeps none. */
export function takePages(memory: KernelMemory, pages: number): Run[] {
  const runs: Run[] = [];
  let wanted = pages;
  for (let rest = pages; rest > 0; ) {
    wanted = Math.min(wanted, rest);
    const address = memory.allocateFrames(wanted);
    if (address >= 0) {
      runs.push({ address, pages: wanted });
      rest -= wanted;
    } else if (wanted > 1) {
      wanted = Math.floor(wanted / 2);
    } else {
      givePages(memory, runs);
      throw new KernelError('ENOMEM', `no ${pages} pages to donate to the device`);
    }
  }
  return runs;
}

export function givePages(memory: KernelMemory, runs: readonly Run[]): void {
  for (const run of runs) memory.freeFrames(run.address, run.pages);
}

interface MapEntry {
  readonly icmAddress: number;
  readonly physicalAddress: number;
  readonly logSize4k: number;
}

/** The entries that describe the runs, mapped from `icmAddress` on; the firmware and auxiliary areas have none. */
function mapEntriesOf(runs: readonly Run[], icmAddress: number | undefined): MapEntry[] {
  const entries: MapEntry[] = [];
  let offset = 0;
  for (const run of runs) {
    for (let done = 0; done < run.pages; ) {
      const physical = run.address + done * icmPageBytes;
      const virtual = icmAddress === undefined ? 0 : icmAddress + offset;
      const pages = largestAlignedRun(run.pages - done, physical, virtual);
      entries.push({ icmAddress: virtual, physicalAddress: physical, logSize4k: log2Exact(pages) });
      done += pages;
      offset += pages * icmPageBytes;
    }
  }
  return entries;
}

/** The largest power of two of pages that fits and divides both addresses. */
function largestAlignedRun(pages: number, physical: number, virtual: number): number {
  let size = 1;
  while (size * 2 <= pages) {
    const bytes = size * 2 * icmPageBytes;
    if (physical % bytes !== 0 || virtual % bytes !== 0) break;
    size *= 2;
  }
  return size;
}

/** Written field by field: a boot writes hundreds of them, and a mailbox is already zeroed. */
function putEntry(view: DataView, at: number, { icmAddress, physicalAddress, logSize4k }: MapEntry): void {
  const { fields } = mapEntry;
  fields.icmAddress.setNumber(view, at, icmAddress);
  fields.physicalAddress.setNumber(view, at, physicalAddress);
  fields.logSize4k.set(view, at, logSize4k);
}

/** Maps the runs: one command, or several when a mailbox does not hold all entries. */
export async function donate(
  cpu: Cpu,
  commands: CommandInterface,
  name: CommandName & ('MAP_FA' | 'MAP_ICM_AUX' | 'MAP_ICM'),
  runs: readonly Run[],
  icmAddress?: number,
): Promise<void> {
  const entries = mapEntriesOf(runs, icmAddress);
  for (let first = 0; first < entries.length; first += mapEntryCountMax) {
    const batch = entries.slice(first, first + mapEntryCountMax);
    await commands.executeWithMailbox(cpu, name, { inputModifier: batch.length }, (bytes, address) => {
      const view = viewOf(bytes);
      for (const [at, entry] of batch.entries()) putEntry(view, address + at * mapEntry.sizeBytes, entry);
    });
  }
}

/** Pages that belong to the device: software never writes to them until they are returned. */
export function leaveToDevice(memory: KernelMemory, runs: readonly Run[]): void {
  for (const { address, pages } of runs) memory.leaveToDevice(address, pages);
}
