import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { cpioArchive, type TreeEntry } from './cpio.ts';

interface Read {
  readonly name: string;
  readonly mode: number;
  readonly links: number;
  readonly device: readonly [number, number];
  readonly content: string;
}

/** Reads an archive by the format's description: 13 fields of 8 hex digits after the magic. */
function readArchive(archive: Uint8Array): Read[] {
  const text = Buffer.from(archive).toString('latin1');
  const entries: Read[] = [];
  for (let at = 0; ; ) {
    expect(text.slice(at, at + 6)).toBe('070701');
    const field = (index: number): number =>
      Number.parseInt(text.slice(at + 6 + 8 * index, at + 14 + 8 * index), 16);
    const nameEnd = at + 110 + field(11);
    const name = text.slice(at + 110, nameEnd - 1);
    const contentAt = Math.ceil(nameEnd / 4) * 4;
    if (name === 'TRAILER!!!') return entries;
    const content = text.slice(contentAt, contentAt + field(6));
    entries.push({ name, mode: field(1), links: field(4), device: [field(9), field(10)], content });
    at = Math.ceil((contentAt + field(6)) / 4) * 4;
  }
}

const file = (content: string, mode = 0o644): TreeEntry => ({
  kind: 'file',
  mode,
  content: Buffer.from(content),
});

describe('an archive for the kernel', () => {
  it('begins with the header that cpio(5) describes, byte for byte', () => {
    const archive = cpioArchive(new Map([['a', file('xyz')]]));
    // magic, inode 1, mode 100644, uid, gid, 1 link, time 0, 3 bytes, device 0 0, node 0 0, name of 2 bytes, check 0
    const header =
      '070701' +
      ['00000001', '000081a4', '00000000', '00000000', '00000001', '00000000', '00000003'].join('') +
      ['00000000', '00000000', '00000000', '00000000', '00000002', '00000000'].join('');
    expect(Buffer.from(archive).subarray(0, 116).toString('latin1')).toBe(`${header}a\0xyz\0`);
  });

  it('holds files, links, directories and device nodes with their types and modes', () => {
    const tree = new Map<string, TreeEntry>([
      ['bin', { kind: 'link', target: 'usr/bin' }],
      ['dev/console', { kind: 'character-device', mode: 0o600, major: 5, minor: 1 }],
      ['tmp', { kind: 'directory', mode: 0o1777 }],
      ['init', file('#!/bin/sh\n', 0o755)],
    ]);
    const found = new Map(readArchive(cpioArchive(tree)).map((entry) => [entry.name, entry]));
    expect(found.get('bin')).toMatchObject({ mode: 0o120777, content: 'usr/bin' });
    expect(found.get('dev/console')).toMatchObject({ mode: 0o020600, device: [5, 1] });
    expect(found.get('tmp')).toMatchObject({ mode: 0o041777, links: 2 });
    expect(found.get('init')).toMatchObject({ mode: 0o100755, content: '#!/bin/sh\n' });
  });

  it('has every directory before its contents, also those that were not given', () => {
    const names = readArchive(cpioArchive(new Map([['usr/lib/x/y', file('')]]))).map(({ name }) => name);
    expect(names).toEqual(['usr', 'usr/lib', 'usr/lib/x', 'usr/lib/x/y']);
  });

  it.each([0, 1, 2, 3, 4, 5])('pads names and contents to four bytes: %i bytes of content', (length) => {
    const content = 'c'.repeat(length);
    const archive = cpioArchive(
      new Map([
        ['name', file(content)],
        ['next', file('n')],
      ]),
    );
    expect(readArchive(archive).map((entry) => entry.content)).toEqual([content, 'n']);
  });

  it('is the same for the same tree in another order', () => {
    const entries: [string, TreeEntry][] = [
      ['a', file('1')],
      ['b/c', file('2')],
    ];
    expect(cpioArchive(new Map(entries.toReversed()))).toEqual(cpioArchive(new Map(entries)));
  });

  it.each(['/etc/passwd', '', 'a/../b', 'a//b', './a'])('rejects the path %j', (path) => {
    expect(() => cpioArchive(new Map([[path, file('')]]))).toThrow(ConfigurationError);
  });
});
