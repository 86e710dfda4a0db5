/**
 * MCG entry: one multicast group and its members. The member count, not the number of non-zero words, delimits the list.
 * The hash heads are the entries below 2^log_hash; others are chained by `next`. Source: interface sheet 5.6, 3.18.
 */

import { array, bits32, bytes, layout, named, nested } from '../base/index.ts';

export const McgProtocol = { IB_IPV6: 0, ETHERNET: 1, IB_IPV4: 2, FCOE: 3 } as const;
export type McgProtocol = (typeof McgProtocol)[keyof typeof McgProtocol];

const head = {
  nextIndex: bits32(0x00, 31, 6, '0 is the end of the chain'),
  protocol: named(bits32(0x04, 31, 30), McgProtocol),
  removeRequest: bits32(0x04, 24, 24, 'operation requests only'),
  memberCount: bits32(0x04, 23, 0, '0 is an empty entry'),
  mgid: bytes(0x10, 16),
} as const;

/** The first 0x20 bytes of an entry of any size. */
export const mcgHead = layout('MCG head', { sizeBytes: 0x20, byteOrder: 'big', source: 'sheet 5.6' }, head);

export const mcgMember = layout(
  'MCG member',
  { sizeBytes: 4, byteOrder: 'big', source: 'sheet 5.6' },
  { blockLoopback: bits32(0x00, 30, 30), qpn: bits32(0x00, 23, 0) },
);

/** An entry of 1 KiB, Linux's default: 248 members. */
export const mcgEntry = layout(
  'MCG entry',
  { sizeBytes: 0x400, byteOrder: 'big', source: 'sheet 5.6' },
  { ...head, members: array(nested(0x20, mcgMember), 248) },
);

/** log2 of an entry's bytes: from eight members, as in iPXE, up to the size that READ_MCG and WRITE_MCG carry in one mailbox. */
export const mcgLogEntryBytesMin = 6;
export const mcgLogEntryBytesMax = 12;

/** Members of an entry of 2^logEntryBytes bytes. */
export const mcgMembersMax = (logEntryBytes: number): number =>
  ((1 << logEntryBytes) - mcgHead.sizeBytes) / 4;

/** Input modifier of WRITE_MCG with opcode modifier 1: the default entry of a port. */
export const defaultMcgModifier = (port: number, steerUnicast: number): number =>
  (port << 16) | (steerUnicast << 1);
