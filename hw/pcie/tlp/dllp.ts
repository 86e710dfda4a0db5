/**
 * Data link layer packets: what they cost and how they look. PCIe base specification 3.1, 3.4: 4 bytes of
 * content, a 16-bit CRC, and 2 bytes of framing (SDP and END symbols, or the SDP token): 8 bytes of the link.
 */
import { bits32, layout, named, reserved, u8, u16 } from '../../../base/index.ts';

export const DLLP_LINK_BYTES = 8;

/** DLLP types, table 3-1, for virtual channel 0. */
const DLLP_ACK = 0x00;
const DLLP_NAK = 0x10;
const DLLP_UPDATE_FC_P = 0x80;
export const DLLP_UPDATE_FC_NP = 0x90;
const DLLP_UPDATE_FC_CPL = 0xa0;

const dllpTypes = {
  Ack: DLLP_ACK,
  Nak: DLLP_NAK,
  UpdateFcP: DLLP_UPDATE_FC_P,
  UpdateFcNp: DLLP_UPDATE_FC_NP,
  UpdateFcCpl: DLLP_UPDATE_FC_CPL,
} as const;

/** UpdateFC of a flow. */
export const updateFcTypeOf = (flow: number): number => DLLP_UPDATE_FC_P + (flow << 4);

/** Flow-control DLLP with its CRC. Figure 3-8. */
export const updateFc = layout(
  'UpdateFC',
  { sizeBytes: 6, byteOrder: 'big', source: 'PCIe base specification 3.1, figure 3-8' },
  {
    type: named(u8(0), dllpTypes),
    reserved0: reserved(bits32(0, 23, 22)),
    headerCredits: bits32(0, 21, 14, 'HdrFC'),
    reserved1: reserved(bits32(0, 13, 12)),
    dataCredits: bits32(0, 11, 0, 'DataFC'),
    crc: u16(4),
  },
);

/** Ack or Nak with its CRC. Figure 3-6. */
export const ackNak = layout(
  'AckNak',
  { sizeBytes: 6, byteOrder: 'big', source: 'PCIe base specification 3.1, figure 3-6' },
  {
    type: named(u8(0), dllpTypes),
    reserved0: reserved(bits32(0, 23, 12)),
    sequence: bits32(0, 11, 0, 'AckNak_Seq_Num'),
    crc: u16(4),
  },
);
