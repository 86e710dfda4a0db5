/**
 * The header of every message between two channels: at the front of the registered buffer that carries it. No
 * hardware reads it, so it is in the processor's own byte order.
 */
import { bits32, layout, named, u32, u64 } from '../../base/index.ts';

/**
 * - EAGER: the payload follows the header.
 * - ADVERTISE: the sender has a payload of `payloadBytes`; for a rendezvous by READ at `address` under `rkey`.
 * - CLEAR: the receiver of an advertised payload takes it at `address` under `rkey` (rendezvous by WRITE).
 * - FINISHED: the payload of this rendezvous is where it should be.
 * - CREDIT: nothing but the credits.
 */
export const MessageKind = { EAGER: 1, ADVERTISE: 2, CLEAR: 3, FINISHED: 4, CREDIT: 5 } as const;
export type MessageKind = (typeof MessageKind)[keyof typeof MessageKind];

export const messageHeader = layout(
  'message header',
  { sizeBytes: 32, byteOrder: 'little', source: 'this project' },
  {
    kind: named(bits32(0x00, 7, 0), MessageKind),
    status: bits32(0x00, 15, 8, 'of FINISHED: 0, or 1 when the receiver had too little room'),
    credits: bits32(0x00, 31, 16, 'buffers that the sender of this header has made free'),
    rendezvous: u32(0x04, 'slot of the side that advertised'),
    payloadBytes: u32(0x08),
    address: u64(0x10),
    rkey: u32(0x18),
  },
);

export const messageHeaderBytes = 32;
