/**
 * The host's memory as the slot reaches it: through a cache if the point names its window, and through an IOMMU if the
 * machine has one.
 *
 *     root complex ─► IOMMU: pages of 4 KiB, each mapped to itself ─► cache ─► window, then page tables
 */
import { entryOffsetOf, iommuPageBytes, levelCount, setEntry } from '../../abi/index.ts';
import { nsToPs } from '../../base/index.ts';
import { Iommu } from '../../hw/iommu/index.ts';
import type { HostMemory } from '../../hw/pcie/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { LogicalProcess } from '../../sim/index.ts';
import { HostCache } from './host-cache.ts';
import { windowBytes } from './measuring-device.ts';
import type { SlotPoint, SlotWindow } from './points.ts';

/** Additional latency of a read that misses the cache: pcie-bench, SIGCOMM 2018, 6.3. */
const cacheMissPs = nsToPs(70);
/** Sets of 20 ways, of which devices may fill two: the tenth of Intel's overview of Data Direct I/O. */
const cacheWays = { ways: 20, deviceWays: 2 } as const;
const readAndWrite = 3;
const line = new Uint8Array(64);

class SlotMemory implements HostMemory {
  readonly bytes: Uint8Array;

  constructor(sizeBytes: number) {
    this.bytes = new Uint8Array(sizeBytes);
  }

  get sizeBytes(): number {
    return this.bytes.length;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    target.set(this.bytes.subarray(address, address + lengthBytes), targetOffset);
    return true;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    this.bytes.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
    return true;
  }
}

/** The memory that the slot of `config` reaches for the accesses of `point`, warm or cold as it says. */
export function memoryOfSlot({ pcie }: MachineConfig, lp: LogicalProcess, point: SlotPoint): HostMemory {
  const window = point.memory;
  const accessedBytes = window?.bytes ?? 2 * windowBytes;
  const memory = new SlotMemory(accessedBytes + tableBytesOf(accessedBytes));
  const reached = window === undefined ? memory : cacheOf(memory, window);
  if (!pcie.iommu.isEnabled) return reached;
  const iommu = new Iommu({ lp, memory: reached, config: pcie.iommu });
  iommu.connect({ processor: { faultRecorded: () => {} } });
  iommu.setRoot(mapToItself(memory, accessedBytes));
  return iommu;
}

function cacheOf(memory: HostMemory, { bytes, cacheBytes, cached }: SlotWindow): HostCache {
  const cache = new HostCache(memory, { ...cacheWays, sizeBytes: cacheBytes }, cacheMissPs);
  if (cached === 'byHost') cache.touch(0, bytes);
  if (cached === 'byDevice')
    for (let at = 0; at < bytes; at += line.length) cache.write(at, line.length, line, 0);
  return cache;
}

const pagesOfTable = iommuPageBytes / 8;

/** One table of each upper level, and as many of the lowest as the bytes need: less than 1 GiB. */
const tableBytesOf = (bytes: number): number =>
  (levelCount - 1 + Math.ceil(bytes / iommuPageBytes / pagesOfTable)) * iommuPageBytes;

/** Writes the tables after the first `bytes` of memory. @returns the address of the root table */
function mapToItself(memory: SlotMemory, bytes: number): number {
  const view = new DataView(memory.bytes.buffer);
  const tableOf = (level: number, index: number): number =>
    bytes + (levelCount - level + (level === 1 ? index : 0)) * iommuPageBytes;
  for (let address = 0; address < bytes; address += iommuPageBytes) {
    const leaf = Math.floor(address / iommuPageBytes / pagesOfTable);
    for (let level = levelCount; level > 1; level--)
      setEntry(
        view,
        tableOf(level, 0) + entryOffsetOf(address, level),
        tableOf(level - 1, leaf),
        readAndWrite,
      );
    setEntry(view, tableOf(1, leaf) + entryOffsetOf(address, 1), address, readAndWrite);
  }
  return tableOf(levelCount, 0);
}
