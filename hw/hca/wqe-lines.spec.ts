import { describe, expect, it } from 'vitest';
import { controlSegment } from '../../abi/wqe.ts';
import { WQE_LINE_BYTES, WqeLines } from './wqe-lines.ts';

const noOne = (): void => undefined;

describe('WqeLines', () => {
  it('gives a QP its own line, a free one, or the least recently used', () => {
    const lines = new WqeLines(2, 0);
    const lost: number[] = [];
    const evict = (qp: number): void => {
      lost.push(qp);
    };
    expect(lines.claim(7, -1, evict)).toBe(0);
    expect(lines.claim(8, -1, evict)).toBe(1);
    expect(lines.claim(7, 0, evict)).toBe(0);
    lines.rows[1]!.validCount = 3;
    expect(lines.claim(9, -1, evict)).toBe(1);
    expect([lost, lines.evictionCount]).toEqual([[8], 1]);
    lines.free(0);
    expect(lines.claim(10, -1, evict)).toBe(0);
    expect(lost).toEqual([8]);
  });

  it('gives up no line that is being filled, or was filled and not yet looked at', () => {
    const lines = new WqeLines(2, 0);
    lines.claim(1, -1, noOne);
    lines.claim(2, -1, noOne);
    lines.rows[0]!.isFetching = 1;
    lines.rows[1]!.isLocked = 1;
    expect(lines.claim(3, -1, noOne)).toBe(-1);
    lines.rows[1]!.isLocked = 0;
    expect(lines.claim(3, -1, noOne)).toBe(1);
  });

  it('counts WQEs up to the first whose owner bit is not that of the pass', () => {
    const stride = 128;
    for (const [firstCounter, logCount, bits, valid] of [
      [0, 3, [0, 0, 1, 0], 2],
      [8, 3, [1, 1, 1, 1], 4],
      [0xfffe, 4, [1, 1], 2],
      [4, 2, [0, 1, 1, 1], 0],
    ] as const) {
      const sram = new Uint8Array(2 * WQE_LINE_BYTES);
      const view = new DataView(sram.buffer);
      const lines = new WqeLines(1, WQE_LINE_BYTES);
      lines.claim(1, -1, noOne);
      bits.forEach((bit, index) => {
        controlSegment.fields.owner.set(view, lines.placeOf(0, firstCounter + index, stride), bit);
      });
      lines.scan(0, view, firstCounter, bits.length, stride, logCount);
      expect(lines.rows[0]!.validCount).toBe(valid);
      expect(lines.rows[0]!.mayHaveMore).toBe(valid === bits.length ? 1 : 0);
      expect(lines.rows[0]!.firstCounter).toBe(firstCounter);
      expect(lines.endCounter(0)).toBe((firstCounter + valid) & 0xffff);
    }
  });

  it('moves on through the line as a ring, with the 16-bit counter', () => {
    const lines = new WqeLines(1, 64);
    lines.rows[0]!.firstCounter = 0xffff;
    lines.rows[0]!.validCount = 2;
    expect(lines.firstPlace(0, 256)).toBe(64 + 768);
    lines.advance(0);
    expect([lines.rows[0]!.firstCounter, lines.rows[0]!.validCount]).toEqual([0, 1]);
    expect(lines.firstPlace(0, 256)).toBe(64);
  });

  it('remembers when each WQE was asked for and came', () => {
    const lines = new WqeLines(2, 0);
    lines.rows[1]!.firstCounter = 5;
    lines.setTimes(1, 5, 100, 300);
    lines.setTimes(1, 6, 200, 400);
    expect([lines.fetchBegunCycle(1), lines.fetchedCycle(1)]).toEqual([100, 300]);
    lines.advance(1);
    expect([lines.fetchBegunCycle(1), lines.fetchedCycle(1)]).toEqual([200, 400]);
  });

  it('is empty after a reset', () => {
    const lines = new WqeLines(2, 0);
    lines.claim(1, -1, noOne);
    lines.rows[0]!.isFetching = 1;
    lines.rows[0]!.isLocked = 1;
    lines.reset();
    for (const line of lines.rows) expect(line).toMatchObject({ qp: -1, isFetching: 0, isLocked: 0 });
  });
});
