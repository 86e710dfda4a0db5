/**
 * Donation of host memory: the mailbox entry of MAP_FA, MAP_ICM_AUX and MAP_ICM. The input modifier counts entries, at
 * most 256 per mailbox. Source: interface sheet 3.6.
 */

import { aligned, bits8, bits64, layout } from '../base/index.ts';

export const mapEntry = layout(
  'MAP_ICM entry',
  { sizeBytes: 16, byteOrder: 'big', source: 'sheet 3.6' },
  {
    icmAddress: aligned(bits64(0x00, 63, 12, 'ICM virtual address; 0 for FA and AUX')),
    physicalAddress: aligned(bits64(0x08, 63, 12, 'DMA address of the chunk')),
    logSize4k: bits8(0x0f, 5, 0, 'log2 of the chunk size in 4 KiB pages'),
  },
);

export const mapEntryCountMax = 256;

/** Pages of ICM, FA and AUX are 4 KiB for any page size of the host. */
export const icmPageBytes = 4096;
