import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { libraryClosure } from './libraries.ts';
import { elfNeeding } from './testing-elf.ts';

let root: string;
const put = (path: string, content: Uint8Array): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
};

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'libraries-'));
});
afterEach(() => rmSync(root, { recursive: true }));

describe('the libraries of a program', () => {
  it('are those of its architecture, with the libraries that they need, each at its real path', () => {
    put('bin/hello', elfNeeding(['libone.so.1', 'libc.so.6'], 32));
    put('usr/lib/i386-linux-gnu/libone.so.1.2', elfNeeding(['libtwo.so.2', 'libc.so.6'], 32));
    symlinkSync('libone.so.1.2', join(root, 'usr/lib/i386-linux-gnu/libone.so.1'));
    put('lib/i386-linux-gnu/libtwo.so.2', elfNeeding([], 32));
    put('lib/i386-linux-gnu/libc.so.6', elfNeeding([], 32));
    put('lib/i386-linux-gnu/liblate.so.1', elfNeeding([], 32));
    for (const name of ['libone.so.1', 'libtwo.so.2', 'libc.so.6', 'liblate.so.1'])
      put(`usr/lib/x86_64-linux-gnu/${name}`, elfNeeding([], 64));
    const found = libraryClosure(root, 'i386', ['bin/hello'], ['liblate.so.1']);
    expect(Object.fromEntries(found)).toEqual({
      'libone.so.1': 'usr/lib/i386-linux-gnu/libone.so.1.2',
      'libtwo.so.2': 'lib/i386-linux-gnu/libtwo.so.2',
      'libc.so.6': 'lib/i386-linux-gnu/libc.so.6',
      'liblate.so.1': 'lib/i386-linux-gnu/liblate.so.1',
    });
  });

  it('are refused if one exists for another architecture only, by its name', () => {
    put('bin/hello', elfNeeding(['libone.so.1'], 32));
    put('usr/lib/x86_64-linux-gnu/libone.so.1', elfNeeding([], 64));
    expect(() => libraryClosure(root, 'i386', ['bin/hello'])).toThrow(/bin\/hello.*"libone\.so\.1"/);
  });
});
