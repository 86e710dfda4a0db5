import { describe, expect, it } from 'vitest';
import { linesOf, readGolden } from '../../abi/testing/golden.ts';
import { folded, type SequenceStep, sideBySide, stepsOfTrace, stepText } from './command-sequence.ts';
import { linuxSequence, noteOf, ourSequence, pageWith, readPage, sequenceTable } from './probe-sequence.ts';

const step = (command: string, count = 1): SequenceStep => ({
  command,
  opcodeModifier: 0,
  inputModifiers: ['0x1', '0x1'],
  isByEvent: false,
  count,
});

describe('docs/reference/probe-sequence.md', () => {
  it('shows the commands of our driver as it posts them today (else: npm run docs)', async () => {
    const ours = await ourSequence();
    expect(ours[0]?.command).toBe('QUERY_FW');
    expect(ours.at(-1)?.command).toBe('UNMAP_FA');
    expect(readPage()).toBe(pageWith(sequenceTable(linuxSequence().steps, ours), readPage()));
  });

  it('explains every row in which the two differ, below the table', async () => {
    const rows = sideBySide(linuxSequence().steps, await ourSequence());
    for (const row of rows) {
      const isSame = row.left !== undefined && row.right !== undefined && row.left.count === row.right.count;
      const note = noteOf(row);
      if (!isSame) expect(note, JSON.stringify(row)).toBeDefined();
      if (note !== undefined) expect(readPage()).toContain(`\n${note}. `);
    }
  });

  it('has Linux post the commands that were captured elsewhere, in the same order', () => {
    const captured = folded(
      linesOf(readGolden(), 'hcr')
        .filter(({ file }) => file === 'a-probe')
        .map((line) => ({ ...step(line.op), opcodeModifier: line.op_mod, isByEvent: line.event === 1 })),
    ).map(({ command }) => command);
    const traced = linuxSequence().steps.map(({ command }) => command);
    // Up to the port's first MADs; after them, tables of another size are read, and the capture leaves repeats out.
    const until = captured.indexOf('SET_PORT') + 1;
    expect(until).toBeGreaterThan(10);
    expect(traced.slice(0, until)).toEqual(captured.slice(0, until));
  });
});

describe('a sequence', () => {
  it('is parsed from a trace in the order of posting, for any endings of the commands', () => {
    const trace = [
      '        900.000 ns  host0  commands   NOP in_mod 0x1f token 0x10: OK, 100.000 ns',
      '       1000.000 ns  host0  commands   MAP_EQ in_mod 0x4 (unmap [31], EQN) polled: OK, 950.000 ns',
      '    in value       value=0x1',
      '       1100.000 ns  host0  commands   MAD_IFC in_mod 0x1 (source LID [31:16], port [7:0]) op_mod 3 token 0x1: BAD_PARAM, 5.000 ns',
      '       1200.000 ns  host0  commands   NOP in_mod 0x0 polled: NO ANSWER',
      '       1300.000 ns  host0  doorbells  EQ 0x4 consumed 1',
    ].join('\n');
    expect(stepsOfTrace(trace).map(stepText)).toEqual([
      'MAP_EQ [0x4] (polled)',
      'NOP [0x1f]',
      'MAD_IFC [0x1] op_mod 3',
    ]);
  });

  it('is aligned with another one with equal steps opposite each other', () => {
    const rows = sideBySide([step('A'), step('B', 2), step('D')], [step('B'), step('C'), step('D')]);
    expect(rows.map(({ left, right }) => [left?.command, right?.command])).toEqual([
      ['A', undefined],
      ['B', 'B'],
      [undefined, 'C'],
      ['D', 'D'],
    ]);
  });
});
