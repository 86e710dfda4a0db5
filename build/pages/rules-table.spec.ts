import { describe, expect, it } from 'vitest';
import { pageWith, readPage, rulesTable } from './rules-table.ts';

describe('docs/how-to/trace.md', () => {
  it('lists every rule, as the rule table declares it (else: npm run docs)', () => {
    expect(readPage()).toBe(pageWith(rulesTable(), readPage()));
  });

  it('would differ if a rule changed', () => {
    expect(pageWith(rulesTable().replace('| error |', '| note |'), readPage())).not.toBe(readPage());
  });
});
