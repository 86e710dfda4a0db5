/**
 * Doorbell records: counters in host memory that software writes and the device reads. RQ and SRQ have a record and no
 * doorbell; a CQ has both. Source: interface sheet 6.8.
 */
import { bits32, layout, named } from '../base/index.ts';
import { CqArmCommand } from './doorbells.ts';

const source = 'sheet 6.8, 6.9';

/** Doorbell record of an RQ or SRQ: WQEs posted so far, modulo 2^16. */
export const receiveRecord = layout(
  'receive doorbell record',
  { sizeBytes: 4, byteOrder: 'big', source },
  { postedCounter: bits32(0x00, 15, 0) },
);

/** Doorbell record of a CQ. */
export const cqRecord = layout(
  'CQ doorbell record',
  { sizeBytes: 8, byteOrder: 'big', source },
  {
    consumerCounter: bits32(0x00, 23, 0),
    sequenceNumber: bits32(0x04, 29, 28),
    command: named(bits32(0x04, 26, 24), CqArmCommand),
    consumerCounterAtArming: bits32(0x04, 23, 0),
  },
);
