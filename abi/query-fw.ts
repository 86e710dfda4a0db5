/** QUERY_FW (0x004), out box. Source: interface sheet 3.5. */

import { bits8, bits32, layout, notModelled, u8, u16, u32, u64 } from '../base/index.ts';

export const queryFw = layout(
  'QUERY_FW',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.5' },
  {
    firmwarePages: u16(0x00, '4 KiB pages that MAP_FA must give'),
    firmwareMajor: u16(0x02),
    firmwareSubminor: u16(0x04, 'stands before the minor'),
    firmwareMinor: u16(0x06),
    physicalFunction: u8(0x09),
    commandInterfaceRevision: u16(0x0a, 'Linux accepts 2 and 3'),
    hasDebugTrace: notModelled(bits32(0x0c, 31, 31)),
    logOutstandingCommands: u8(0x0f, 'log2 of the commands that may be outstanding'),
    buildHour: u8(0x10),
    buildMinute: u8(0x11),
    buildSecond: u8(0x12),
    ccq: notModelled(bits8(0x13, 0, 0)),
    buildYear: u16(0x14),
    buildMonth: u8(0x16),
    buildDay: u8(0x17),
    clearInterruptOffset: u64(0x20),
    clearInterruptBar: bits8(0x28, 7, 6, '0 is BAR0, 1 is BAR2'),
    catastrophicBufferOffset: u64(0x30),
    catastrophicBufferDwords: u32(0x38),
    catastrophicBufferBar: bits8(0x3c, 7, 6),
    communicationChannelOffset: notModelled(u64(0x40, 'PF to VF, 0 without SR-IOV')),
    communicationChannelBar: notModelled(bits8(0x48, 7, 6)),
    clockOffset: u64(0x50),
    clockBar: bits8(0x58, 7, 6),
  },
);

/** The revision whose INIT_PORT and CLOSE_PORT take no mailbox. */
export const commandInterfaceRevision = 3;
