import { expect, it } from 'vitest';
import { Opcode, opcodeTable } from '../../../../wire/opcodes.ts';
import * as traits from './request-traits.ts';
import { messageKind, traitsByOpcode } from './request-traits.ts';

it('IBTA 9.2: has of every opcode what its row in the table of the wire has', () => {
  for (const row of opcodeTable) {
    const bits = traitsByOpcode[row.opcode]!;
    const has = (trait: number): boolean => (bits & trait) !== 0;
    expect([has(traits.STARTS_MESSAGE), has(traits.ENDS_MESSAGE)]).toEqual([
      row.startsMessage,
      row.endsMessage,
    ]);
    expect([has(traits.HAS_IMMEDIATE), has(traits.IS_REQUEST)]).toEqual([row.hasImmediate, row.isRequest]);
    expect(has(traits.IS_KNOWN)).toBe(true);
  }
  expect(traitsByOpcode[0x15]! & traits.IS_KNOWN).toBe(0);
});

it('distinguishes the kinds of messages, and what takes and completes a receive WQE', () => {
  const kindOf = (opcode: number): number => messageKind(traitsByOpcode[opcode]!);
  expect(kindOf(Opcode.RC_SEND_MIDDLE)).toBe(traits.MESSAGE_SEND);
  expect(kindOf(Opcode.UC_RDMA_WRITE_LAST)).toBe(traits.MESSAGE_WRITE);
  expect(kindOf(Opcode.RC_FETCH_ADD)).toBe(traits.MESSAGE_NONE);
  expect(kindOf(Opcode.RC_ACKNOWLEDGE)).toBe(traits.MESSAGE_UNKNOWN);
  const receives = traits.TAKES_RECEIVE_WQE | traits.COMPLETES_RECEIVE_WQE;
  expect(traitsByOpcode[Opcode.RC_SEND_ONLY]! & receives).toBe(receives);
  expect(traitsByOpcode[Opcode.RC_SEND_FIRST]! & receives).toBe(traits.TAKES_RECEIVE_WQE);
  expect(traitsByOpcode[Opcode.RC_RDMA_WRITE_ONLY]! & receives).toBe(0);
  expect(traitsByOpcode[Opcode.RC_RDMA_WRITE_LAST_WITH_IMMEDIATE]! & receives).toBe(receives);
});
