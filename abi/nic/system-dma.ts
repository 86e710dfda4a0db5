/**
 * Ports of the system (third-party) DMA controller: 32-bit ports, 32 bytes of them for each channel, then the common
 * ones. The idea and the words are those of Intel's 8237A (data sheet 231466): base and current registers, modes, masks,
 * terminal count. Wider here: addresses of 64 bits, words of 4 bytes, and an address on the device's side as well.
 *
 *     base written ─► current too ─► unmasked and requested ─► current counts, word by word ─► terminal count
 *                                                              │ autoinitialize: current = base, and on
 *                                                              └ else: the channel masks itself
 */
import { register, registerBits, registerMap } from '../../base/registers.ts';

const bits = registerBits;

export const systemDmaChannelCount = 4;
export const systemDmaChannelBytes = 0x20;
/** Bytes of the word that one bus cycle moves. */
export const systemDmaWordBytes = 4;

/** MODE, bits 7:6. */
export const SystemDmaMode = { SINGLE: 1, BLOCK: 2 } as const;
export type SystemDmaMode = (typeof SystemDmaMode)[keyof typeof SystemDmaMode];

/** MODE, bits 3:2: from the point of view of memory. */
export const SystemDmaTransfer = {
  /** Device to memory. */
  WRITE: 1,
  /** Memory to device. */
  READ: 2,
} as const;
export type SystemDmaTransfer = (typeof SystemDmaTransfer)[keyof typeof SystemDmaTransfer];

export const systemDmaBits = {
  mode: {
    transfer: bits(3, 2, 'one of SystemDmaTransfer'),
    autoInitialize: bits(4, 4, 'current registers are loaded from the base at terminal count'),
    decrement: bits(5, 5, 'the memory address counts down'),
    mode: bits(7, 6, 'one of SystemDmaMode: the bus is given up after every word, or held to the end'),
    fixedDevice: bits(8, 8, 'own: the device address stays'),
  },
  status: {
    terminalCount: bits(3, 0, 'by channel: has reached its terminal count; a read clears'),
    request: bits(7, 4, 'by channel: is requested and not masked'),
    error: bits(11, 8, 'own, by channel: stopped by an access that failed; a read clears'),
  },
  command: { enable: bits(0, 0, 'the controller works') },
} as const;

/** The ports of one channel, from `channel × 0x20` on. */
export const systemDmaChannelPorts = registerMap(
  'system DMA channel',
  { sizeBytes: systemDmaChannelBytes, source: '8237A data sheet' },
  {
    addressLow: register(
      0x00,
      4,
      'rw',
      'memory address; a write sets base and current, a read gives the current one',
    ),
    addressHigh: register(0x04, 4, 'rw', 'its high half'),
    count: register(0x08, 4, 'rw', 'words to move (the 8237A takes one less); as for the address'),
    deviceLow: register(0x0c, 4, 'rw', 'own: bus address of the device; as for the address'),
    deviceHigh: register(0x10, 4, 'rw', 'own: its high half'),
    mode: register(0x14, 4, 'rw', 'MODE', 0, systemDmaBits.mode),
  },
);

/** The common ports. */
export const systemDmaPorts = registerMap(
  'system DMA controller',
  { sizeBytes: 0xa0, source: '8237A data sheet' },
  {
    command: register(0x80, 4, 'rw', 'COMMAND', 0, systemDmaBits.command),
    status: register(0x84, 4, 'rc', 'STATUS', 0, systemDmaBits.status),
    request: register(0x88, 4, 'wo', 'bits 3:0 request channels: each runs to its terminal count'),
    mask: register(
      0x8c,
      4,
      'rw',
      'bits 3:0 mask channels; a masked one stops behind the word under way',
      0xf,
    ),
    masterClear: register(0x90, 4, 'wo', 'any write: everything as after reset'),
  },
);
