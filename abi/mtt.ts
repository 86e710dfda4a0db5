/**
 * MTT entry: one page of an object's buffer. The driver writes entries directly into ICM pages. An MTT address is a byte offset
 * from the table's base; the entry for byte x is at offset + 8 × ((x + page offset) >> log page size). Source: interface sheet
 * 5.6, 4.4, 3.15.
 */

import { aligned, bits32, bits64, layout, u64 } from '../base/index.ts';

export const mttEntry = layout(
  'MTT entry',
  { sizeBytes: 8, byteOrder: 'big', source: 'sheet 5.6' },
  {
    pageAddress: aligned(bits64(0x00, 63, 3, 'DMA address; zero below the page size')),
    present: bits32(0x04, 0, 0),
  },
);

export const mttEntryBytes = 8;

/** Pages of regions and queues have at most 2 GiB. Linux' mlx4_ib: MLX4_MAX_MTT_SHIFT. */
export const logPageBytesMax = 31;

/** Head of the WRITE_MTT mailbox; the entries follow. Used by iPXE, not by Linux. */
export const writeMttHeader = layout(
  'WRITE_MTT header',
  { sizeBytes: 16, byteOrder: 'big', source: 'sheet 3.15' },
  { mttAddress: u64(0x00) },
);
