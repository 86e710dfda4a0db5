/**
 * CQC, the completion queue context; MODIFY_CQ uses the same layout. Source: interface sheet 5.2, 3.16.
 * The arm state is private to the device: sources disagree on the codes, software never reads them.
 */

import { aligned, bits8, bits16, bits32, bits64, joined, layout, named, u8, u16 } from '../base/index.ts';

/** Status of a CQ or an EQ in its context. */
export const QueueStatus = { OK: 0x0, OVERFLOW: 0x9, WRITE_FAILURE: 0xa } as const;
export type QueueStatus = (typeof QueueStatus)[keyof typeof QueueStatus];

/** Arm states of a CQ, Linux's names and numbers. */
export const CqArmState = { SOLICITED: 0x6, ARMED: 0x9, FIRED: 0xa } as const;
export type CqArmState = (typeof CqArmState)[keyof typeof CqArmState];

export const cqc = layout(
  'CQC',
  { sizeBytes: 0x40, byteOrder: 'big', source: 'sheet 5.2' },
  {
    status: named(bits32(0x00, 31, 28), QueueStatus),
    timestamps: bits32(0x00, 19, 19),
    collapsed: bits32(0x00, 18, 18, 'always write entry 0'),
    ignoreOverrun: bits32(0x00, 17, 17),
    armState: named(bits32(0x00, 11, 8, '(device)'), CqArmState),
    pageOffset32: bits16(0x0a, 11, 5, 'first entry in its page, in 32-byte units'),
    logEntries: bits32(0x0c, 28, 24),
    uarPage: bits32(0x0c, 23, 0),
    moderationPeriodUs: u16(0x10),
    moderationCount: u16(0x12),
    eqn: bits32(0x14, 8, 0, 'EQ of its completion events'),
    logPageSize4k: bits8(0x18, 5, 0),
    mttAddress: joined(u8(0x1b), aligned(bits32(0x1c, 31, 3)), 'byte offset from the MTT base'),
    lastNotifiedCounter: bits32(0x20, 23, 0, '(device)'),
    solicitedProducerCounter: bits32(0x24, 23, 0, '(device)'),
    consumerCounter: bits32(0x28, 23, 0),
    producerCounter: bits32(0x2c, 23, 0),
    doorbellRecordAddress: aligned(bits64(0x38, 63, 3, 'two dwords: consumer, arm')),
  },
);
