import { describe, expect, it } from 'vitest';
import { cpioArchive, type TreeEntry } from './cpio.ts';
import { cpioFiles } from './cpio-files.ts';

describe('the files of an archive', () => {
  it('are the wanted regular ones, with their contents', () => {
    const file = (text: string): TreeEntry => ({ kind: 'file', mode: 0o644, content: Buffer.from(text) });
    const archive = cpioArchive(
      new Map<string, TreeEntry>([
        ['lib/a.ko', file('abcde')],
        ['lib/b.ko', { kind: 'link', target: 'a.ko' }],
        ['lib/c.txt', file('no')],
        ['z.ko', file('')],
      ]),
    );
    const files = cpioFiles(archive, (path) => path.endsWith('.ko'));
    expect([...files].map(([path, content]) => [path, Buffer.from(content).toString()])).toEqual([
      ['lib/a.ko', 'abcde'],
      ['z.ko', ''],
    ]);
  });

  it('are none of what is no such archive', () => {
    expect(cpioFiles(new Uint8Array(1000), () => true).size).toBe(0);
  });
});
