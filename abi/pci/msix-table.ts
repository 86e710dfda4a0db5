/** One entry of the MSI-X table. Source: PCI Local Bus Specification 3.0, 6.8.2. */
import { aligned, bits32, layout, u32 } from '../../base/index.ts';

/** Software reads and writes all fields; unclaimed bits are zero. After reset a vector is masked. */
export const msixTableEntry = layout(
  'MSI-X table entry',
  { sizeBytes: 16, byteOrder: 'little', source: 'PCI Local Bus Specification 3.0, 6.8.2' },
  {
    addressLow: aligned(bits32(0x00, 31, 2, 'message address')),
    addressHigh: u32(0x04),
    data: u32(0x08, 'message data'),
    isMasked: bits32(0x0c, 0, 0, 'vector control'),
  },
);
