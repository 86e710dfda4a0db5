/** EQC, the event queue context. Source: interface sheet 5.3. */

import { aligned, bits8, bits16, bits32, joined, layout, named, u8, u16 } from '../base/index.ts';
import { QueueStatus } from './cqc.ts';

/** Arm states of an EQ; Linux creates EQs armed. */
export const EqArmState = { ARMED: 0x9, FIRED: 0xa, ALWAYS_ARMED: 0xb } as const;
export type EqArmState = (typeof EqArmState)[keyof typeof EqArmState];

export const eqc = layout(
  'EQC',
  { sizeBytes: 0x40, byteOrder: 'big', source: 'sheet 5.3' },
  {
    status: named(bits32(0x00, 31, 28), QueueStatus),
    collapsed: bits32(0x00, 18, 18),
    ignoreOverrun: bits32(0x00, 17, 17),
    armState: named(bits32(0x00, 11, 8), EqArmState),
    pageOffset32: bits16(0x0a, 11, 5, 'first entry in its page, in 32-byte units'),
    logEntries: bits32(0x0c, 28, 24),
    moderationPeriod: u16(0x10, 'unit not stated by the sources; the CQ counterpart counts µs'),
    moderationCount: u16(0x12),
    interruptNumber: bits32(0x14, 9, 0, 'MSI-X table entry, or the INTx pin'),
    logPageSize4k: bits8(0x18, 5, 0),
    mttAddress: joined(u8(0x1b), aligned(bits32(0x1c, 31, 3)), 'byte offset from the MTT base'),
    consumerCounter: bits32(0x28, 23, 0),
    producerCounter: bits32(0x2c, 23, 0),
  },
);
