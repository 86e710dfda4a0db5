import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ruleNames } from './lint/rules.ts';
import { pageWith, readPage, rulesTable } from './rules-table.ts';

describe('docs/trace.md', () => {
  it('lists every rule, as the rule table declares it (else: npm run docs)', () => {
    expect(readPage()).toBe(pageWith(rulesTable(), readPage()));
  });

  it('would differ if a rule changed', () => {
    expect(pageWith(rulesTable().replace('| error |', '| note |'), readPage())).not.toBe(readPage());
  });

  it('names no rule that is checked nowhere', () => {
    const files = ['command-rules', 'memory-rules', 'queue-rules', 'linter'];
    const code = [
      ...files.map((name) => readFileSync(new URL(`lint/${name}.ts`, import.meta.url), 'utf8')),
      readFileSync(new URL('wqe-segments.ts', import.meta.url), 'utf8'),
    ].join('\n');
    for (const name of ruleNames) expect(code, name).toContain(`'${name}'`);
  });
});
