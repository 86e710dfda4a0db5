/** SRQC, the shared receive queue context. Source: interface sheet 5.5. */

import { aligned, bits8, bits32, bits64, joined, layout, named, u8, u16 } from '../base/index.ts';

export const SrqState = { ERROR: 0x0, SOFTWARE: 0xf } as const;
export type SrqState = (typeof SrqState)[keyof typeof SrqState];

export const srqc = layout(
  'SRQC',
  { sizeBytes: 0x30, byteOrder: 'big', source: 'sheet 5.5' },
  {
    state: named(bits32(0x00, 31, 28), SrqState),
    logWqes: bits32(0x00, 27, 24),
    srqn: bits32(0x00, 23, 0),
    logStride16: bits8(0x04, 2, 0, 'log2 of the stride in 16-byte units'),
    xrcDomain: u16(0x06),
    pageOffset64: bits32(0x08, 29, 24, 'first WQE in its page, in 64-byte units'),
    cqn: bits32(0x08, 23, 0, 'XRC: where receives complete'),
    logPageSize4k: bits8(0x10, 5, 0),
    mttAddress: joined(u8(0x13), aligned(bits32(0x14, 31, 3)), 'byte offset from the MTT base'),
    pd: bits32(0x18, 23, 0),
    limitWatermark: u16(0x1c, '0 is disarmed'),
    postedWqes: u16(0x1e, '(device)'),
    wqeCounter: u16(0x22, '(device)'),
    doorbellRecordAddress: aligned(bits64(0x28, 63, 2)),
  },
);
