/** Bytes that have crossed a host's memory bus, by who moved them. A copy crosses twice: read here, written there. */
import { pageBytes } from '../../base/index.ts';
import type { HostNode } from './host-node.ts';

export interface MemoryTraffic {
  /** Copies of the kernel between user and socket buffers, and of the messaging library between user and its own. */
  readonly copies: number;
  /** Words that a core moved between memory and a card, and those of the system DMA controller. */
  readonly programmed: number;
  readonly systemDma: number;
  /** Device reads and writes, as the root complex asked memory for them. */
  readonly deviceReads: number;
  readonly deviceWrites: number;
  /** Pages zeroed, pages copied (written by one of several users, fork, compaction), pages to and from the swap and file devices. */
  readonly zeroing: number;
  readonly pageCopies: number;
  readonly paging: number;
  readonly total: number;
}

const wordBytes = 4;

export function memoryTrafficOf({ host, rootComplex, nic, systemDma, userCopies }: HostNode): MemoryTraffic {
  const { counts } = host.mm;
  const programmed = nic?.programmed;
  const { swappedInPages, swappedOutPages, filePagesRead, filePagesWritten } = counts;
  const parts = {
    copies: 2 * ((nic?.network?.counts.copiedBytes ?? 0) + userCopies.bytes),
    programmed: programmed === undefined ? 0 : programmed.readBytes + programmed.writtenBytes,
    systemDma: wordBytes * (systemDma?.wordsMoved ?? 0),
    deviceReads: rootComplex.reads.readBytes,
    deviceWrites: rootComplex.writes.writtenBytes,
    zeroing: pageBytes * counts.zeroedPages,
    pageCopies: 2 * pageBytes * (counts.copiedPages + counts.forkCopiedPages + counts.migratedPages),
    paging: pageBytes * (swappedInPages + swappedOutPages + filePagesRead + filePagesWritten),
  };
  return { ...parts, total: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0) };
}
