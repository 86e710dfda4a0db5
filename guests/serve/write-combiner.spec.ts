import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WriteCombiner } from './write-combiner.ts';

interface Left {
  readonly address: number;
  readonly bytes: readonly number[];
}

function combiner() {
  const left: Left[] = [];
  const buffer = new WriteCombiner((address, source, offset, lengthBytes) =>
    left.push({ address, bytes: [...source.subarray(offset, offset + lengthBytes)] }),
  );
  const write = (address: number, ...bytes: number[]): void =>
    buffer.write(address, Uint8Array.from(bytes), 0, bytes.length);
  return { left, buffer, write };
}

const eight = (first: number): number[] => Array.from({ length: 8 }, (_, at) => first + at);

describe('the write combiner', () => {
  it('combines the eight stores of a BlueFlame post into one of 64 bytes', () => {
    const { left, write } = combiner();
    for (let piece = 0; piece < 8; piece++) write(0x1000 + 8 * piece, ...eight(8 * piece));
    expect(left).toEqual([{ address: 0x1000, bytes: Array.from({ length: 64 }, (_, at) => at) }]);
  });

  it('sends incomplete lines in pieces of 8', () => {
    const { left, buffer, write } = combiner();
    write(0x1000, ...eight(0));
    write(0x1008, ...eight(8));
    expect(left).toEqual([]);
    buffer.flush();
    expect(left).toEqual([
      { address: 0x1000, bytes: eight(0) },
      { address: 0x1008, bytes: eight(8) },
    ]);
    expect([buffer.wholeLineCount, buffer.partLineCount, buffer.isEmpty]).toEqual([0, 1, true]);
  });

  it('sends its contents before a store that does not continue the line', () => {
    const { left, write } = combiner();
    write(0x1000, ...eight(0));
    write(0x2010, ...eight(50));
    expect(left.map(({ address }) => address)).toEqual([0x1000, 0x2010]);
  });

  it('sends every byte once, in order, for any stores', () => {
    const store = fc.record({ line: fc.nat(3), at: fc.nat(63), length: fc.integer({ min: 1, max: 64 }) });
    fc.assert(
      fc.property(fc.array(store, { maxLength: 60 }), (stores) => {
        const { left, buffer, write } = combiner();
        let next = 0;
        const expected: string[] = [];
        for (const { line, at, length } of stores) {
          const bytes = Array.from({ length: Math.min(length, 64 - at) }, () => next++ & 0xff);
          write(line * 64 + at, ...bytes);
          expected.push(...bytes.map((byte, index) => `${line * 64 + at + index}=${byte}`));
        }
        buffer.flush();
        const seen = left.flatMap(({ address, bytes }) =>
          bytes.map((byte, index) => `${address + index}=${byte}`),
        );
        expect(seen).toEqual(expected);
        for (const { address, bytes } of left) expect((address % 64) + bytes.length).toBeLessThanOrEqual(64);
      }),
      { seed: 20261121 },
    );
  });
});
