/** Bytes that have crossed a host's memory bus, by actor. A copy crosses twice: a read and a write. */
import { pageBytes } from '../../base/index.ts';
import type { HostNode } from './host-node.ts';

export interface MemoryTraffic {
  /** Copies by the kernel between user and socket buffers, and by the messaging library between user buffers and its own. */
  readonly copies: number;
  /** Words that a core moved between memory and a card, and words that the system DMA controller moved. */
  readonly programmed: number;
  readonly systemDma: number;
  /** Device reads and writes, as the root complex requested them from memory. */
  readonly deviceReads: number;
  readonly deviceWrites: number;
  /** Zeroed pages, copied pages (copy on write, fork, compaction), and pages to and from the swap and file devices. */
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
