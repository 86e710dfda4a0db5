import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { viewOf } from '../base/bytes.ts';
import {
  arbitraryValues,
  exportedLayouts,
  readByAccessors,
  writeByAccessors,
} from './testing/layout-properties.ts';

/** Large tables hold thousands of fields: a few runs of them see as many values as many runs of a small table. */
const runsFor = (sizeBytes: number): number => (sizeBytes > 0x200 ? 5 : 60);

test('abi exports the layouts of the interface', () => {
  expect(exportedLayouts.length).toBeGreaterThan(60);
  const names = exportedLayouts.map(([, layout]) => layout.name);
  expect(new Set(names).size).toBe(names.length);
});

describe.each(exportedLayouts)('%s', (_, layout) => {
  const guardBytes = 5; // the instance is in the middle of a larger buffer, unaligned

  test('the accessors read what typed-binary decodes', () => {
    const anyBytes = fc.uint8Array({ minLength: layout.sizeBytes, maxLength: layout.sizeBytes });
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        const buffer = new Uint8Array(layout.sizeBytes + 2 * guardBytes);
        buffer.set(bytes, guardBytes);
        expect(readByAccessors(layout, viewOf(buffer), guardBytes)).toEqual(layout.decode(bytes));
      }),
      { numRuns: runsFor(layout.sizeBytes) },
    );
  });

  test('the accessors write what typed-binary encodes, and nothing around it', () => {
    fc.assert(
      fc.property(arbitraryValues(layout.table), (values) => {
        const buffer = new Uint8Array(layout.sizeBytes + 2 * guardBytes).fill(0xa5);
        buffer.fill(0, guardBytes, guardBytes + layout.sizeBytes);
        writeByAccessors(layout, viewOf(buffer), guardBytes, values);
        expect(buffer.slice(guardBytes, -guardBytes)).toEqual(layout.encode(values));
        expect(new Set(buffer.slice(0, guardBytes))).toEqual(new Set([0xa5]));
        expect(new Set(buffer.slice(-guardBytes))).toEqual(new Set([0xa5]));
      }),
      { numRuns: runsFor(layout.sizeBytes) },
    );
  });

  test('decode returns what encode received', () => {
    fc.assert(
      fc.property(arbitraryValues(layout.table), (values) => {
        expect(layout.decode(layout.encode(values))).toEqual(values);
      }),
      { numRuns: runsFor(layout.sizeBytes) },
    );
  });

  test('names its source, and has a documentation row and a printed line per field', () => {
    expect(layout.source).not.toBe('');
    expect(layout.docRows().length).toBeGreaterThan(0);
    expect(layout.format(new Uint8Array(layout.sizeBytes)).length).toBeGreaterThanOrEqual(
      Object.values(layout.table).filter((field) => field.kind !== 'reserved').length,
    );
  });
});
