import { describe, expect, it } from 'vitest';
import { controlSegment } from '../../../abi/wqe.ts';
import { QueuePair } from '../objects/queue-pair.ts';
import { noLine, WQE_LINE_BYTES } from '../objects/wqe-line.ts';
import { WqeLines } from './wqe-lines.ts';

const { owner, ds } = controlSegment.fields;
const format = {
  isPosted: (view: DataView, at: number, pass: number) => owner.get(view, at) === pass,
  bytesAt: (view: DataView, at: number) => ds.get(view, at) * 16,
};

const pairs = (): QueuePair[] => Array.from({ length: 11 }, (_, slot) => new QueuePair(slot));

describe('WqeLines', () => {
  it('gives a QP its own line, a free one, or the least recently used', () => {
    const rows = pairs();
    const lines = new WqeLines(2, 0, rows);
    const claim = (qp: number): number => {
      const pair = rows[qp]!;
      const line = lines.claim(qp, pair.wqeLine);
      pair.wqeLine = line;
      return line.number;
    };
    const lineOf = (qp: number): number => rows[qp]!.wqeLine.number;
    expect([claim(7), claim(8), claim(7)]).toEqual([0, 1, 0]);
    lines.rows[1]!.validCount = 3;
    expect(claim(9)).toBe(1);
    expect([lineOf(8), lineOf(7), lines.evictionCount]).toEqual([-1, 0, 1]);
    lines.rows[0]!.free();
    expect(claim(10)).toBe(0);
    expect(lines.evictionCount).toBe(1);
  });

  it('has a QP that loses WQEs read them again, as if its doorbell had been rung', () => {
    for (const [validCount, mayHaveMore, hasDoorbell] of [
      [0, 0, 0],
      [1, 0, 1],
      [0, 1, 1],
    ] as const) {
      const rows = pairs();
      const lines = new WqeLines(1, 0, rows);
      rows[3]!.wqeLine = lines.claim(3, noLine);
      Object.assign(lines.rows[0]!, { validCount, mayHaveMore });
      expect(lines.claim(4, noLine).number).toBe(0);
      expect([rows[3]!.hasDoorbell, rows[3]!.wqeLine]).toEqual([hasDoorbell, noLine]);
    }
  });

  it('gives up no line that is being filled, or was filled and not yet looked at', () => {
    const lines = new WqeLines(2, 0, pairs());
    lines.claim(1, noLine);
    lines.claim(2, noLine);
    lines.rows[0]!.isFetching = 1;
    lines.rows[1]!.isLocked = 1;
    expect(lines.claim(3, noLine).number).toBe(-1);
    lines.rows[1]!.isLocked = 0;
    expect(lines.claim(3, noLine).number).toBe(1);
  });

  it('sheet 6.2: counts WQEs up to the first whose owner bit is not that of the pass', () => {
    const stride = 128;
    for (const [firstCounter, logCount, bits, valid] of [
      [0, 3, [0, 0, 1, 0], 2],
      [8, 3, [1, 1, 1, 1], 4],
      [0xfffe, 4, [1, 1], 2],
      [4, 2, [0, 1, 1, 1], 0],
    ] as const) {
      const sram = new Uint8Array(2 * WQE_LINE_BYTES);
      const view = new DataView(sram.buffer);
      const lines = new WqeLines(1, WQE_LINE_BYTES, pairs());
      lines.claim(1, noLine);
      bits.forEach((bit, index) => {
        controlSegment.fields.owner.set(view, lines.rows[0]!.placeOf(firstCounter + index, stride), bit);
      });
      lines.rows[0]!.scan(format, view, firstCounter, bits.length, stride, logCount);
      expect(lines.rows[0]!.validCount).toBe(valid);
      expect(lines.rows[0]!.mayHaveMore).toBe(valid === bits.length ? 1 : 0);
      expect(lines.rows[0]!.firstCounter).toBe(firstCounter);
      expect(lines.rows[0]!.endCounter).toBe((firstCounter + valid) & 0xffff);
    }
  });

  it('sheet 6.1: moves on through the line as a ring, with the 16-bit counter', () => {
    const line = new WqeLines(1, 64, pairs()).rows[0]!;
    line.firstCounter = 0xffff;
    line.validCount = 2;
    expect(line.placeOf(line.firstCounter, 256)).toBe(64 + 768);
    line.advance();
    expect([line.firstCounter, line.validCount]).toEqual([0, 1]);
    expect(line.placeOf(line.firstCounter, 256)).toBe(64);
  });

  it('sheet 6.1: takes up WQEs of several blocks, and keeps of the last one what is there until the rest has come', () => {
    const line = new WqeLines(1, 0, pairs()).rows[0]!;
    const view = new DataView(new ArrayBuffer(WQE_LINE_BYTES));
    const put = (counter: number, units: number, owner: number): void => {
      const at = line.placeOf(counter, 64);
      view.setUint32(at, owner * 2 ** 31);
      view.setUint8(at + 7, units);
    };
    // From block 13 of a ring of 16 on: one WQE of 2 blocks, then one of 3 across the end of line and ring, then none
    // of this pass.
    put(13, 8, 0);
    put(15, 9, 0);
    put(18, 4, 0);
    line.scanBlocks(format, view, 13, 1, 64, 4);
    expect([line.validCount, line.partBlocks, line.mayHaveMore]).toEqual([0, 1, 1]);
    line.scanBlocks(format, view, 14, 2, 64, 4);
    expect([line.validCount, line.partBlocks, line.mayHaveMore]).toEqual([2, 1, 1]);
    line.advance(2);
    expect([line.firstCounter, line.validCount, line.partBlocks]).toEqual([15, 0, 1]);
    line.scanBlocks(format, view, 16, 4, 64, 4);
    expect([line.validCount, line.partBlocks, line.mayHaveMore]).toEqual([3, 0, 0]);
  });

  it('remembers when each WQE was asked for and came', () => {
    const line = new WqeLines(2, 0, pairs()).rows[1]!;
    line.firstCounter = 5;
    line.setTimes(5, 100, 300);
    line.setTimes(6, 200, 400);
    expect(line.firstTimes).toEqual({ begunCycle: 100, fetchedCycle: 300 });
    line.advance();
    expect(line.firstTimes).toEqual({ begunCycle: 200, fetchedCycle: 400 });
  });

  it('is empty after a reset', () => {
    const lines = new WqeLines(2, 0, pairs());
    lines.claim(1, noLine);
    lines.rows[0]!.isFetching = 1;
    lines.rows[0]!.isLocked = 1;
    lines.reset();
    for (const line of lines.rows) expect(line).toMatchObject({ qp: -1, isFetching: 0, isLocked: 0 });
  });
});
