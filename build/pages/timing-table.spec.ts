import { describe, expect, it } from 'vitest';
import { profileListing } from '../../machine/profile/listing.ts';
import { pageWith, readPage, timingTable } from './timing-table.ts';

describe('docs/reference/timing.md', () => {
  it('lists every latency with its default and source, as the parameter tables declare them (else: npm run docs)', () => {
    expect(readPage()).toBe(pageWith(timingTable(), readPage()));
  });

  it('would differ if a latency changed', () => {
    expect(pageWith(timingTable().replace('| 427 |', '| 428 |'), readPage())).not.toBe(readPage());
  });

  it('finds a source or the word estimate for every parameter', () => {
    for (const { path, source } of profileListing().parameters) expect(source, path).not.toBe('');
  });
});
