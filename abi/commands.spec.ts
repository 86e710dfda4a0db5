import { describe, expect, test } from 'vitest';
import { CommandStatus, commandStatusName, Errno, errnoOfStatus } from './command-status.ts';
import { commandNameOf, commands, Opcode } from './commands.ts';
import { asyncEventMask, EventType } from './eqe.ts';
import { hcr, hcrGoOffset } from './hcr.ts';

describe('the command table', () => {
  test.each([
    ['QUERY_DEV_CAP', 0x003],
    ['QUERY_FW', 0x004],
    ['2RST_QP', 0x021],
    ['MAD_IFC', 0x024],
    ['NOP', 0x031],
    ['MAD_DEMUX', 0x203],
    ['RUN_FW', 0xff6],
    ['MAP_FA', 0xfff],
  ] as const)('gives %s its number of the sheet', (name, opcode) => {
    expect(Opcode[name]).toBe(opcode);
    expect(commandNameOf(opcode)).toBe(name);
  });

  test('has every row of the sheet, and nothing twice', () => {
    const opcodes = Object.values(commands).map(({ opcode }) => opcode);
    expect(new Set(opcodes).size).toBe(opcodes.length);
    expect(opcodes.length).toBe(105); // 5 of iWARP, 91 in the rows, 7 of the VF protocol, 2 emulator-specific
    expect(commandNameOf(0x02d)).toBe('INIT2INIT_QP');
    expect(commandNameOf(0xabc)).toBeUndefined();
  });

  test('tells which commands use a mailbox, and when', () => {
    expect(commands.SW2HW_MPT).toMatchObject({ input: 'box', output: 'none' });
    expect(commands.HW2SW_MPT).toMatchObject({ input: 'none', output: 'optionalBox' });
    expect(commands.SET_ICM_SIZE).toMatchObject({ input: 'immediate', output: 'immediate' });
  });
});

describe('command status', () => {
  test.each([
    [CommandStatus.OK, 0],
    [CommandStatus.BAD_OP, Errno.EPERM],
    [CommandStatus.BAD_PARAM, Errno.EINVAL],
    [CommandStatus.EXCEED_LIM, Errno.ENOMEM],
    [CommandStatus.ICM_ERROR, Errno.ENFILE],
    [CommandStatus.BAD_QP_STATE, Errno.EINVAL],
    [CommandStatus.REG_BOUND, Errno.EBUSY],
    [0x77, Errno.EIO],
  ])('0x%s becomes errno %i', (status, errno) => {
    expect(errnoOfStatus(status)).toBe(errno);
  });

  test('has a name or a number', () => {
    expect(commandStatusName(0x0c)).toBe('ICM_ERROR');
    expect(commandStatusName(0x77)).toBe('0x77');
  });
});

test('the HCR of a polled QUERY_FW ends in the dword that starts it', () => {
  // GO and toggle: 00a00004, as the stock driver writes it first after reset.
  const bytes = hcr.encode({
    outParam: 0x23f9000n,
    token: 0xffff,
    go: 1,
    toggle: 1,
    opcode: Opcode.QUERY_FW,
  });
  expect(bytes.slice(hcrGoOffset)).toEqual(new Uint8Array([0x00, 0xa0, 0x00, 0x04]));
  expect(bytes.slice(0x0c, 0x14)).toEqual(new Uint8Array([0, 0, 0, 0, 0x02, 0x3f, 0x90, 0x00]));
});

test('the asynchronous mask holds the events the driver maps', () => {
  expect(asyncEventMask).toBe(0x1d1f_46fen); // MAP_EQ of the stock driver
  expect(asyncEventMask & (1n << BigInt(EventType.COMP))).toBe(0n);
});
