/**
 * Ports of the system (third-party) DMA controller: 32-bit ports, 32 bytes of them for each channel, then the common ones. The
 * principle and the terms are those of Intel's 8237A (data sheet 231466): base and current registers, modes, masks, terminal
 * count. Differences: addresses of 64 bits, words of 4 bytes, and an additional address on the device's side.
 *
 *     base written ─► current too ─► unmasked and requested ─► current counts, word by word ─► terminal count
 *                                                              │ autoinitialize: current = base, and on
 *                                                              └ else: the channel masks itself
 */
import { named, register, registerBank, registerBits, wholeRegister } from '../../base/index.ts';

const bits = registerBits;

export const systemDmaChannelCount = 4;
export const systemDmaChannelBytes = 0x20;
/** Bytes of the word moved by one bus cycle. */
export const systemDmaWordBytes = 4;

/** MODE, bits 7:6. */
export const SystemDmaMode = { SINGLE: 1, BLOCK: 2 } as const;
export type SystemDmaMode = (typeof SystemDmaMode)[keyof typeof SystemDmaMode];

/** MODE, bits 3:2: as seen from memory. */
export const SystemDmaTransfer = {
  /** Device to memory. */
  WRITE: 1,
  /** Memory to device. */
  READ: 2,
} as const;
export type SystemDmaTransfer = (typeof SystemDmaTransfer)[keyof typeof SystemDmaTransfer];

export const systemDmaBits = {
  mode: {
    transfer: named(bits(3, 2, 'rw', 'one of SystemDmaTransfer'), SystemDmaTransfer),
    autoInitialize: bits(4, 4, 'rw', 'current registers are loaded from the base at terminal count'),
    decrement: bits(5, 5, 'rw', 'the memory address counts down'),
    mode: named(
      bits(7, 6, 'rw', 'one of SystemDmaMode: the bus is given up after every word, or held to the end'),
      SystemDmaMode,
    ),
    fixedDevice: bits(8, 8, 'rw', 'own: the device address stays'),
  },
  status: {
    terminalCount: bits(3, 0, 'rc', 'by channel: has reached its terminal count; a read clears'),
    request: bits(7, 4, 'ro', 'by channel: is requested and not masked'),
    error: bits(11, 8, 'rc', 'own, by channel: stopped by an access that failed; a read clears'),
  },
  command: { enable: bits(0, 0, 'rw', 'the controller works') },
} as const;

/** The ports of one channel, from `channel × 0x20` on. */
export const systemDmaChannelPorts = registerBank(
  'system DMA channel',
  { sizeBytes: systemDmaChannelBytes, source: '8237A data sheet' },
  {
    addressLow: wholeRegister(
      0x00,
      4,
      'rw',
      'memory address; a write sets base and current, a read gives the current one',
    ),
    addressHigh: wholeRegister(0x04, 4, 'rw', 'its high half'),
    count: wholeRegister(0x08, 4, 'rw', 'words to move (the 8237A takes one less); as for the address'),
    deviceLow: wholeRegister(0x0c, 4, 'rw', 'own: bus address of the device; as for the address'),
    deviceHigh: wholeRegister(0x10, 4, 'rw', 'own: its high half'),
    mode: register(0x14, 4, 'MODE', systemDmaBits.mode),
  },
);

/** The common ports. */
export const systemDmaPorts = registerBank(
  'system DMA controller',
  { sizeBytes: 0xa0, source: '8237A data sheet' },
  {
    command: register(0x80, 4, 'COMMAND', systemDmaBits.command),
    status: register(0x84, 4, 'STATUS', systemDmaBits.status),
    request: register(0x88, 4, 'REQUEST', {
      channels: bits(3, 0, 'wo', 'by channel: runs to its terminal count'),
    }),
    mask: register(0x8c, 4, 'MASK', {
      channels: bits(3, 0, 'rw', 'by channel: masked, which stops it behind the word under way', 0xf),
    }),
    masterClear: wholeRegister(0x90, 4, 'wo', 'any write: everything as after reset'),
  },
);
