/** Notices of subnet management: the attribute of a trap, and the details of traps that this project sends. */
import { bits8, bits16, bits32, bytes, layout, u8, u16 } from '../base/index.ts';

/** Types of generic notices. */
export const NoticeType = { URGENT: 1, SECURITY: 2 } as const;

/** The link of a port of a switch came up or went down. */
export const TRAP_LINK_CHANGE = 128;
/** A bad P_Key at a port of a switch. */
export const TRAP_SWITCH_PKEY = 259;

/** 14.2.5.1, up to the end of the data area of an SMP. */
export const notice = layout(
  'Notice',
  {
    sizeBytes: 64,
    byteOrder: 'big',
    source: 'IBA 14.2.5.1; opensm include/iba/ib_types.h, ib_mad_notice_attr_t',
  },
  {
    isGeneric: bits8(0, 7, 7),
    type: bits8(0, 6, 0),
    producerType: bits32(0, 23, 0, 'a node type'),
    trapNumber: u16(4),
    issuerLid: u16(6),
    isToggled: bits16(8, 15, 15),
    count: bits16(8, 14, 0),
    details: bytes(10, 54),
  },
);

/** Fields of {@link switchPkeyDetails} that are valid, as bits of `dataValid` in the order of the fields. */
export const SwitchPkeyValid = {
  SOURCE_LID: 1 << 0,
  DESTINATION_LID: 1 << 1,
  PKEY: 1 << 2,
  SERVICE_LEVEL: 1 << 3,
  SOURCE_QP: 1 << 4,
  DESTINATION_QP: 1 << 5,
  SOURCE_GID: 1 << 6,
  DESTINATION_GID: 1 << 7,
} as const;

/** Details of trap 259. */
export const switchPkeyDetails = layout(
  'details of trap 259',
  { sizeBytes: 54, byteOrder: 'big', source: 'IBA 14.2.5.1; opensm include/iba/ib_types.h, ntc_259' },
  {
    dataValid: u16(0, 'bits of SwitchPkeyValid'),
    sourceLid: u16(2),
    destinationLid: u16(4),
    pkey: u16(6),
    serviceLevel: bits8(8, 7, 4),
    sourceQp: bits32(8, 23, 0),
    destinationQp: bits32(12, 23, 0),
    sourceGid: bytes(16, 16),
    destinationGid: bytes(32, 16),
    switchLid: u16(48),
    port: u8(50),
  },
);

/** Details of trap 128. */
export const switchDetails = layout(
  'details of trap 128',
  { sizeBytes: 54, byteOrder: 'big', source: 'IBA 14.2.5.1; opensm include/iba/ib_types.h, ntc_128' },
  { switchLid: u16(0) },
);
