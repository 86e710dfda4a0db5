import { describe, expect, it } from 'vitest';
import { PageTables } from '../../pc/page-tables.ts';
import { programOf } from './program-name.ts';

const pageBytes = 4096;

/** Tables whose highest user page, 1 MiB below the end of user space, ends with these characters. */
function tablesOf(end: string): PageTables {
  const memory = new Uint8Array(4 * pageBytes);
  const view = new DataView(memory.buffer);
  view.setUint32(pageBytes + 4 * 767, 2 * pageBytes + 1, true);
  view.setUint32(2 * pageBytes + 4 * (1023 - 256), 3 * pageBytes + 1, true);
  memory.set(Buffer.from(end, 'latin1'), 4 * pageBytes - end.length);
  return new PageTables(memory, pageBytes, false);
}

describe('the program of an address space', () => {
  it('is the path that exec leaves at the end of the stack', () => {
    expect(programOf(tablesOf('HOME=/\0/usr/bin/ib_write_lat\0\0\0\0\0'))).toBe('/usr/bin/ib_write_lat');
  });

  it('is unknown if the page does not end as a stack does, or is absent', () => {
    expect(programOf(tablesOf('HOME=/\0/usr/bin/ib_write_lat\0\0\0\0.'))).toBeUndefined();
    expect(programOf(tablesOf('\0\x01\x02\0\0\0\0\0'))).toBeUndefined();
    expect(programOf(tablesOf(''))).toBeUndefined();
    expect(programOf(new PageTables(new Uint8Array(2 * pageBytes), pageBytes, false))).toBeUndefined();
  });
});
