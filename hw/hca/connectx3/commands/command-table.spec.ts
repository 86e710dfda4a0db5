/** The device answers every posted command: none throws, hangs, or is forgotten. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { type CommandName, commands } from '../../../../abi/commands.ts';
import { broughtUp, createCq, createEq } from '../../testing/bring-up.ts';

const opcodes = Object.values(commands).map(({ opcode }) => opcode);
const statuses: readonly number[] = Object.values(CommandStatus);
const known = (name: CommandName): number => commands[name].opcode;

const arbitraryCommand = fc.record({
  opcode: fc.oneof(fc.constantFrom(...opcodes), fc.integer({ min: 0, max: 0xfff })),
  opcodeModifier: fc.constantFrom(0, 1, 2, 3, 15),
  inputModifier: fc.oneof(
    fc.constantFrom(0, 1, 4, 5, 64, 128, 129, 256, 0x8000_0004, 0xffff_ffff),
    fc.nat({ max: 0xffff_ffff }),
  ),
  inBox: fc.oneof(
    fc.uint8Array({ minLength: 0, maxLength: 512 }),
    // Sparse boxes get further: most fields are zero.
    fc
      .array(fc.tuple(fc.nat({ max: 511 }), fc.nat({ max: 255 })), { maxLength: 6 })
      .map((bytes) => bytes.reduce((box, [at, byte]) => box.fill(byte, at, at + 1), new Uint8Array(512))),
  ),
});

describe('the command table', () => {
  it('sheet 3.2: answers any sequence of commands, each with a status that the table has', () => {
    fc.assert(
      fc.property(fc.array(arbitraryCommand, { minLength: 1, maxLength: 12 }), (sequence) => {
        // Small queues: a buffer of 2^22 entries is legal, but takes long to fill.
        const bench = broughtUp({}, { logMaxCqEntries: 10, logMaxEqEntries: 10 });
        createCq(bench, 1, createEq(bench, 0));
        for (const { opcode, ...options } of sequence) {
          const outcome = bench.command(opcode, { ...options, outBytes: 1024 });
          expect(statuses).toContain(outcome.status);
          expect(bench.control.processor.isIdle).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('sheet 3.2: answers commands of Ethernet, of virtual functions and of older families with bad opcode', () => {
    const bench = broughtUp();
    const names: CommandName[] = [
      'SYS_EN',
      'QUERY_DDR',
      'SET_VLAN_FLTR',
      'SET_MCAST_FLTR',
      'DUMP_ETH_STATS',
      'CONFIG_DEV',
      'QUERY_FUNC',
      'MAD_DEMUX',
      'UPDATE_QP',
      'FLOW_ATTACH',
      'ACCESS_REG',
      'ALLOC_RES',
    ];
    for (const name of names) expect(bench.command(known(name)).status).toBe(CommandStatus.BAD_OP);
  });
});
