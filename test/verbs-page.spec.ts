/** docs/reference/verbs.md and the library agree: every verb of the page is exported, no refused verb is, and the page omits no verb. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as library from '../userlib/index.ts';

const page = readFileSync(new URL('../docs/reference/verbs.md', import.meta.url), 'utf8');
const [, supported = '', refused = ''] = /## Supported([\s\S]*?)## Refused([\s\S]*?)## One port/.exec(page)!;
const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/^\| (`ibv_.*) \|$/gm)].map(([, row]) => row!.split(' | '));
const namesIn = (cell: string): string[] => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
const camel = (verb: string): string =>
  verb.replace(/^ibv_/, '').replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const exported = new Set(
  Object.entries(library).flatMap(([name, value]) => (typeof value === 'function' ? [name] : [])),
);
/** Names of the library's own, or of librdmacm. */
const others = /^(rdma[A-Z].*|IbvWc|VerbsError|verb|spinCq|pollSettled|smSetPkeys)$/;

describe('the page of verbs', () => {
  it('names each supported verb like the library', () => {
    const rows = rowsOf(supported);
    expect(rows.length).toBeGreaterThan(25);
    for (const [verbs, here] of rows) {
      expect(namesIn(here!)).toEqual(namesIn(verbs!).map(camel));
      for (const name of namesIn(here!)) expect(exported.has(name), name).toBe(true);
    }
  });

  it('has every verb of the library', () => {
    const named = new Set(rowsOf(supported).flatMap(([, here]) => namesIn(here!)));
    expect([...exported].filter((name) => !named.has(name) && !others.test(name))).toEqual([]);
  });

  it('rejects each other one with an errno and a reason, and the library has none of them', () => {
    const rows = rowsOf(refused);
    expect(rows.length).toBeGreaterThan(15);
    for (const [verbs, errno, why] of rows) {
      expect(errno).toMatch(/^E[A-Z]+$/);
      expect(why!.length).toBeGreaterThan(5);
      for (const verb of namesIn(verbs!)) expect(exported.has(camel(verb)), verb).toBe(false);
    }
  });
});
