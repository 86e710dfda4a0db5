/** Test support: expectations of golden specs for a line, and the relations between lines of one capture. */
import { expect } from 'vitest';
import { type AnyLayout, type GoldenLine, placeOf, reEncoded } from './golden.ts';

/** Every bit that the line sets is covered by a field of the layout. */
export function expectCovered(layout: AnyLayout, hex: string, line: GoldenLine): void {
  const { got, want } = reEncoded(layout, hex);
  expect(got, placeOf(line)).toBe(want);
}

/** The last matching line before `line` in the same file. */
export function lastBefore<L extends GoldenLine>(
  candidates: readonly L[],
  line: GoldenLine,
  fits: (candidate: L) => boolean,
): L | undefined {
  return candidates.findLast((one) => one.file === line.file && one.line < line.line && fits(one));
}
