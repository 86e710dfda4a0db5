/**
 * HCR, the command register: seven big-endian dwords at BAR0 + 0x80680. Source: interface sheet 2.2.
 *
 * Software writes dwords 0 to 5, then dword 6 with GO = 1, which starts the command. While it runs, GO reads 1. When a
 * polled command ends, the device stores out_param and then dword 6 with the status, GO = 0 and T as posted: a device that
 * loses T makes the driver's busy test end early or never. After reset T is 0.
 */

import { bits32, layout, u32, u64 } from '../base/index.ts';

export const hcr = layout(
  'HCR',
  { sizeBytes: 28, byteOrder: 'big', source: 'sheet 2.2' },
  {
    inParam: u64(0x00, 'immediate or mailbox address'),
    inputModifier: u32(0x08),
    outParam: u64(0x0c, 'mailbox address, or the immediate result'),
    token: bits32(0x14, 31, 16, 'returned in the completion event'),
    status: bits32(0x18, 31, 24, 'written by the device'),
    go: bits32(0x18, 23, 23, '1 starts the command and reads 1 while it runs'),
    event: bits32(0x18, 22, 22, 'report completion by EQE'),
    toggle: bits32(0x18, 21, 21, 'kept by the device; the driver inverts it with each command'),
    opcodeModifier: bits32(0x18, 15, 12),
    opcode: bits32(0x18, 11, 0),
  },
);

/** Offset of the dword whose write starts a command. */
export const hcrGoOffset = 0x18;

/** Token of commands that are polled. */
export const pollingToken = 0xffff;

/** A command mailbox: one 4 KiB page, 4 KiB aligned. */
export const mailboxBytes = 4096;
