/**
 * vfio-user on the wire, declared once: header, commands, message layouts. Little-endian: the protocol takes the byte
 * order of the machine, and the machines we serve on are little-endian.
 *
 * Source: QEMU docs/interop/vfio-user.rst (versions 0.0 and 0.1), hw/vfio-user/protocol.h, and for the structures of the
 * kernel's interface include/uapi/linux/vfio.h. Layouts follow the header unless stated otherwise.
 */
import { bits32, bytes, layout, named, u16, u32, u64 } from '../../../base/index.ts';

const source = 'QEMU docs/interop/vfio-user.rst';
const byteOrder = 'little';

export const Command = {
  VERSION: 1,
  DMA_MAP: 2,
  DMA_UNMAP: 3,
  DEVICE_GET_INFO: 4,
  DEVICE_GET_REGION_INFO: 5,
  DEVICE_GET_REGION_IO_FDS: 6,
  DEVICE_GET_IRQ_INFO: 7,
  DEVICE_SET_IRQS: 8,
  REGION_READ: 9,
  REGION_WRITE: 10,
  DMA_READ: 11,
  DMA_WRITE: 12,
  DEVICE_RESET: 13,
  DIRTY_PAGES: 14,
  REGION_WRITE_MULTI: 15,
  DEVICE_FEATURE: 16,
  MIG_DATA_READ: 17,
  MIG_DATA_WRITE: 18,
} as const;

export const MESSAGE_COMMAND = 0;
export const MESSAGE_REPLY = 1;

export const header = layout(
  'vfio-user header',
  { sizeBytes: 16, byteOrder, source },
  {
    id: u16(0, 'echoed in the reply'),
    command: named(u16(2), Command),
    sizeBytes: u32(4, 'of the whole message, header included'),
    type: bits32(8, 3, 0, '0 command, 1 reply'),
    noReply: bits32(8, 4, 4, 'in a command: no reply is wanted'),
    isError: bits32(8, 5, 5, 'in a reply: the command failed'),
    errno: u32(12, 'of a failed command'),
  },
);

export const HEADER_BYTES = header.sizeBytes;

/** VERSION, command and reply; followed by JSON text that ends with NUL. */
export const version = layout(
  'VERSION',
  { sizeBytes: 4, byteOrder, source },
  { major: u16(0), minor: u16(2) },
);
export const VERSION_MAJOR = 0;
export const VERSION_MINOR_MAX = 1;

/** DMA_MAP; with a descriptor if the memory can be mapped. The reply is only a header. */
export const dmaMap = layout(
  'DMA_MAP',
  { sizeBytes: 32, byteOrder, source },
  {
    argumentBytes: u32(0, 'argsz: size of this structure'),
    readable: bits32(4, 0, 0),
    writable: bits32(4, 1, 1),
    otherFlags: bits32(4, 31, 2),
    fileOffset: u64(8, 'where the memory begins in the descriptor'),
    address: u64(16, 'DMA address'),
    sizeBytes: u64(24),
  },
);

/** DMA_UNMAP, command and reply. */
export const dmaUnmap = layout(
  'DMA_UNMAP',
  { sizeBytes: 24, byteOrder, source },
  {
    argumentBytes: u32(0),
    getDirtyBitmap: bits32(4, 0, 0),
    all: bits32(4, 1, 1, 'everything, with address and size 0'),
    otherFlags: bits32(4, 31, 2),
    address: u64(8),
    sizeBytes: u64(16),
  },
);

export const deviceInfo = layout(
  'DEVICE_GET_INFO',
  { sizeBytes: 16, byteOrder, source },
  {
    argumentBytes: u32(0),
    canReset: bits32(4, 0, 0),
    isPci: bits32(4, 1, 1),
    regionCount: u32(8),
    interruptCount: u32(12, 'kinds of interrupt'),
  },
);

export const regionInfo = layout(
  'DEVICE_GET_REGION_INFO',
  { sizeBytes: 32, byteOrder, source },
  {
    argumentBytes: u32(0),
    readable: bits32(4, 0, 0),
    writable: bits32(4, 1, 1),
    mappable: bits32(4, 2, 2),
    hasCapabilities: bits32(4, 3, 3),
    index: u32(8),
    capabilityOffset: u32(12),
    sizeBytes: u64(16),
    offset: u64(24, 'for mmap; 0 without it'),
  },
);

/** DEVICE_GET_REGION_IO_FDS; sub-regions would follow in the reply. */
export const regionIoDescriptors = layout(
  'DEVICE_GET_REGION_IO_FDS',
  { sizeBytes: 16, byteOrder, source },
  { argumentBytes: u32(0), flags: u32(4), index: u32(8), count: u32(12) },
);

export const interruptInfo = layout(
  'DEVICE_GET_IRQ_INFO',
  { sizeBytes: 16, byteOrder, source },
  {
    argumentBytes: u32(0),
    eventfd: bits32(4, 0, 0),
    maskable: bits32(4, 1, 1),
    automasked: bits32(4, 2, 2, 'masks itself when triggered'),
    noResize: bits32(4, 3, 3, 'vectors are set up all at once'),
    index: u32(8),
    count: u32(12),
  },
);

/** DEVICE_SET_IRQS; with data type bool, a byte for each vector follows. */
export const setInterrupts = layout(
  'DEVICE_SET_IRQS',
  { sizeBytes: 20, byteOrder, source },
  {
    argumentBytes: u32(0),
    dataType: bits32(4, 2, 0, 'one bit of DATA_…'),
    action: bits32(4, 5, 3, 'one bit of ACTION_…'),
    otherFlags: bits32(4, 31, 6),
    index: u32(8),
    start: u32(12),
    count: u32(16),
  },
);
export const DATA_NONE = 1;
export const DATA_BOOL = 2;
export const DATA_EVENTFD = 4;
export const ACTION_MASK = 1;
export const ACTION_UNMASK = 2;
export const ACTION_TRIGGER = 4;

/** REGION_READ and REGION_WRITE, command and reply; the data follows in the write's command and the read's reply. */
export const regionAccess = layout(
  'REGION_READ, REGION_WRITE',
  { sizeBytes: 16, byteOrder, source },
  { offset: u64(0), region: u32(8), count: u32(12, 'bytes of data') },
);

/** REGION_WRITE_MULTI, command and reply; in the command `count` entries follow. */
export const multiWrite = layout(
  'REGION_WRITE_MULTI',
  { sizeBytes: 8, byteOrder, source },
  { count: u64(0) },
);
export const multiWriteEntry = layout(
  'REGION_WRITE_MULTI entry',
  { sizeBytes: 24, byteOrder, source },
  { offset: u64(0), region: u32(8), count: u32(12, 'at most 8'), data: bytes(16, 8) },
);
