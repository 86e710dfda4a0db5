/** Values of axes: every valid notation, and every kind of invalid one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { checkedAxis } from './axis.ts';
import { valueTextsOf } from './axis-text.ts';

const valuesOf = (path: string, given: unknown): unknown => {
  const axis = checkedAxis(path, given, false);
  return 'values' in axis ? axis.values : axis.span;
};

describe('an axis', () => {
  test.each([
    ['hca.mttCacheLines', '16..128*2', [16, 32, 64, 128]],
    ['hca.mttCacheLines', '16..100*2', [16, 32, 64]],
    ['hca.mttCacheLines', '16..64*2,1K', [16, 32, 64, 1024]],
    ['pcie.link.generation', '3,4,5', [3, 4, 5]],
    ['pcie.link.generation', [3, 4, 5], [3, 4, 5]],
    ['pcie.link.generation', 4, [4]],
    ['pcie.iommu.isEnabled', 'false,true', [false, true]],
    ['pcie.iommu.isEnabled', [true], [true]],
    ['wire.speed', 'QDR, FDR', ['QDR', 'FDR']],
    ['size', '64,4Ki,1M', [64, 4096, 2 ** 20]],
    // Suffixes of a message rate are powers of 1000.
    ['rate', '500,10k,1M', [500, 10_000, 1_000_000]],
    ['rate', '1k..100K*10', [1000, 10_000, 100_000]],
    ['size', ['2..8*2', 100], [2, 4, 8, 100]],
    ['txDepth', '0x10..0x40+16', [16, 32, 48, 64]],
    ['events', 'true,false', [true, false]],
    ['mtu', '256..1024*2', [256, 512, 1024]],
    ['test', 'write-bw,read-bw', ['write-bw', 'read-bw']],
    ['profile', 'connectx3-qdr,connectx3-fdr', ['connectx3-qdr', 'connectx3-fdr']],
  ])('%s accepts %j', (path, given, values) => {
    expect(valuesOf(path, given)).toEqual(values);
  });

  test.each([
    ['hca.mttCacheLine', '16', 'did you mean hca.mttCacheLines?'],
    ['sise', '16', 'did you mean size?'],
    ['hca.mttCacheLines', '3', 'a power of two from 1 to 65536 lines'],
    ['hca.mttCacheLines', '1..64', 'with *factor or +step'],
    ['hca.mttCacheLines', ['1..64', 2], 'a range such as 16..4096*2'],
    ['size', ['64,65'], 'an integer from 1'],
    ['hca.mttCacheLines', '16..8*2', 'whose end is not below its beginning'],
    ['hca.mttCacheLines', '16..64*1', 'a factor of at least 2'],
    ['hca.mttCacheLines', '0..64*2', 'from at least 1'],
    ['size', '1..64+0', 'a step of at least 1'],
    ['size', '1..64-2', 'a range such as 16..4096*2'],
    ['size', '1..2..3', 'a range such as 16..4096*2'],
    ['size', '1..9999999+1', 'at most 100000 values'],
    ['size', '1..99999999999999999999*2', 'whole numbers below 2^53'],
    ['size', '64,,65', 'one comma between them'],
    ['size', '', 'one comma between them'],
    ['size', [], '1 to 100000'],
    ['size', '64,65,0x40', 'each value once'],
    ['size', 'large', 'an integer from 1'],
    ['size', [[64]], 'an integer from 1'],
    ['size', null, 'an integer from 1'],
    ['wire.speed', 'QDR,FAST', 'one of'],
    ['wire.speed', [4], 'one of'],
    ['pcie.link.generation', [true], 'an integer from'],
    ['pcie.iommu.isEnabled', 'yes', 'true or false'],
    ['test', 'write-wb', 'did you mean write-bw?'],
    ['profile', 'connectx3-qrd', 'did you mean connectx3-qdr?'],
    ['profile', 3, 'a name or a file'],
  ])('%s rejects %j', (path, given, words) => {
    expect(() => valuesOf(path, given)).toThrow(ConfigurationError);
    expect(() => valuesOf(path, given)).toThrow(words);
  });

  it('of profiles accepts files in parent folders, whose paths are not ranges', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hca-axis-'));
    try {
      writeFileSync(join(folder, 'own.json'), '{ "extends": "connectx3-fdr" }');
      const path = `${folder}/../${basename(folder)}/own.json`;
      expect(valuesOf('profile', `${path},connectx3-qdr`)).toEqual([path, 'connectx3-qdr']);
      expect(valuesOf('profile', [path])).toEqual([path]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('may be a span if points are drawn, but not of powers of two', () => {
    expect(checkedAxis('size', '1..1000', true)).toEqual({ path: 'size', span: { from: 1, to: 1000 } });
    expect(() => checkedAxis('hca.mttCacheLines', '1..1024', true)).toThrow(
      'powers of two, such as 1..1024*2',
    );
    expect(() => checkedAxis('size', '0..1000', true)).toThrow('an integer from 1');
  });
});

describe('a range', () => {
  const small = fc.integer({ min: 1, max: 1000 });

  it('rises by its factor, from its beginning up to its end', () => {
    fc.assert(
      fc.property(small, small, fc.integer({ min: 2, max: 9 }), (from, extent, factor) => {
        const values = (valueTextsOf('x', `${from}..${from + extent}*${factor}`) as string[]).map(Number);
        expect(values[0]).toBe(from);
        for (const [at, value] of values.entries()) expect(value).toBe(from * factor ** at);
        expect(values.at(-1)! * factor).toBeGreaterThan(from + extent);
      }),
    );
  });

  it('rises by its step, from its beginning up to its end', () => {
    fc.assert(
      fc.property(small, small, small, (from, extent, step) => {
        const values = (valueTextsOf('x', `${from}..${from + extent}+${step}`) as string[]).map(Number);
        expect(values).toEqual(
          Array.from({ length: Math.floor(extent / step) + 1 }, (_, at) => from + at * step),
        );
      }),
    );
  });
});
