import { expect, it } from 'vitest';
import { ForwardingTables, NO_PORT } from './forwarding-tables.ts';

it('an entry that is rewritten while packets move counts from the instant after, in order', () => {
  const tables = new ForwardingTables();
  tables.setPort(2, 1);
  tables.rewritePort(2, 3, 100);
  tables.rewritePort(2, NO_PORT, 100);
  tables.rewritePort(2, 4, 200);
  expect([tables.portOf(2, 100), tables.portOf(2, 101), tables.portOf(2, 200)]).toEqual([
    1,
    NO_PORT,
    NO_PORT,
  ]);
  // A new epoch begins at 150: instants are counted from there.
  tables.rebase(150);
  expect([tables.portOf(2, 50), tables.portOf(2, 51)]).toEqual([NO_PORT, 4]);
});
