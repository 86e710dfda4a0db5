/**
 * Doorbells: BAR2 registers. Source: interface sheet 6.8, 6.9. Doorbell records in host memory: doorbell-records.ts.
 *
 * The send queue has a doorbell and no record; RQ and SRQ have a record and no doorbell; a CQ has both: the record's first
 * dword holds software's consumer counter, the arm register requests an event.
 */

import { bits32, layout, named } from '../base/index.ts';

const source = 'sheet 6.8, 6.9';

/** Condition of an arm request. */
export const CqArmCommand = { SOLICITED: 1, NEXT: 2 } as const;
export type CqArmCommand = (typeof CqArmCommand)[keyof typeof CqArmCommand];

/** Send doorbell, UAR + 0x14. */
export const sendDoorbell = layout(
  'send doorbell',
  { sizeBytes: 4, byteOrder: 'big', source },
  { qpn: bits32(0x00, 31, 8) },
);

/** CQ arm, UAR + 0x20, one 64-bit or two 32-bit writes. */
export const cqArm = layout(
  'CQ arm',
  { sizeBytes: 8, byteOrder: 'big', source },
  {
    sequenceNumber: bits32(0x00, 29, 28, 'modulo 4; drops requests of a round that has fired'),
    command: named(bits32(0x00, 26, 24), CqArmCommand),
    cqn: bits32(0x00, 23, 0),
    consumerCounter: bits32(0x04, 23, 0),
  },
);

/** EQ doorbell, UAR (EQN / 4) + 0x800 + 8 × (EQN mod 4). */
export const eqDoorbell = layout(
  'EQ doorbell',
  { sizeBytes: 4, byteOrder: 'big', source },
  { arm: bits32(0x00, 31, 31), consumerCounter: bits32(0x00, 23, 0) },
);

/** The first 8 bytes of a BlueFlame post: the first two dwords of the WQE, which the device needs. */
export const blueFlameHead = layout(
  'BlueFlame head',
  { sizeBytes: 8, byteOrder: 'big', source: 'sheet 6.9, 6.3' },
  {
    owner: bits32(0x00, 31, 31),
    wqeCounter: bits32(0x00, 23, 8),
    opcode: bits32(0x00, 4, 0),
    qpn: bits32(0x04, 31, 8),
    fence: bits32(0x04, 6, 6),
    ds: bits32(0x04, 5, 0),
  },
);
