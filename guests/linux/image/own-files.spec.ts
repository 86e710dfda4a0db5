import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { moduleNameOf, type OwnFiles, ownFilesArchive } from './own-files.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'own-files-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (...names: string[]): string => join(folder, ...names);

/** Name, type and permissions, and content of each entry, read by the format's description (cpio(5)). */
function entriesOf(own: Partial<OwnFiles>, memoryMib = 1024): [string, string, string][] {
  const archive = ownFilesArchive({ copies: [], modules: [], ...own }, '6.1.0', memoryMib);
  const text = Buffer.from(archive).toString('latin1');
  const entries: [string, string, string][] = [];
  for (let from = 0; from < text.length; ) {
    const field = (index: number): number =>
      Number.parseInt(text.slice(from + 6 + 8 * index, from + 14 + 8 * index), 16);
    const nameEnd = from + 110 + field(11);
    const contentAt = Math.ceil(nameEnd / 4) * 4;
    const name = text.slice(from + 110, nameEnd - 1);
    if (name === 'TRAILER!!!') break;
    entries.push([name, field(1).toString(8), text.slice(contentAt, contentAt + field(6))]);
    from = Math.ceil((contentAt + field(6)) / 4) * 4;
  }
  return entries;
}

describe('files of the user’s own', () => {
  it('are in /root under their name, with their permissions', () => {
    writeFileSync(at('run.sh'), 'echo', { mode: 0o755 });
    expect(entriesOf({ copies: [at('run.sh')] })).toEqual([
      ['root', '40755', ''],
      ['root/run.sh', '100755', 'echo'],
    ]);
  });

  it('are where the option puts them, below /usr where the image has links', () => {
    writeFileSync(at('a:b'), '1', { mode: 0o644 });
    expect(entriesOf({ copies: [`${at('a:b')}:/lib/x/y`] }).map(([name]) => name)).toEqual([
      'usr',
      'usr/lib',
      'usr/lib/x',
      'usr/lib/x/y',
    ]);
    expect(entriesOf({ copies: [at('a:b')] }).at(-1)).toEqual(['root/a:b', '100644', '1']);
  });

  it('leave /tmp open to all', () => {
    writeFileSync(at('f'), '');
    expect(entriesOf({ copies: [`${at('f')}:/tmp/f`] })[0]).toEqual(['tmp', '41777', '']);
  });

  it('come as whole folders, links within as links', () => {
    mkdirSync(at('d', 'e'), { recursive: true, mode: 0o755 });
    writeFileSync(at('d', 'e', 'f'), 'x', { mode: 0o600 });
    symlinkSync('e/f', at('d', 'link'));
    expect(entriesOf({ copies: [at('d')] }).slice(1)).toEqual([
      ['root/d', '40755', ''],
      ['root/d/e', '40755', ''],
      ['root/d/e/f', '100600', 'x'],
      ['root/d/link', '120777', 'e/f'],
    ]);
  });

  it('are modules where depmod looks first (depmod.d(5): updates before built-in)', () => {
    writeFileSync(at('my-driver.ko'), 'ELF', { mode: 0o644 });
    expect(entriesOf({ modules: [at('my-driver.ko')] }).at(-1)).toEqual([
      'usr/lib/modules/6.1.0/updates/my-driver.ko',
      '100644',
      'ELF',
    ]);
    expect(moduleNameOf(at('my-driver.ko'))).toBe('my_driver');
  });

  it('are no archive if there are none', () => {
    expect(entriesOf({})).toEqual([]);
  });

  it.each([
    ['what is not there', { copies: ['/nowhere/at/all'] }],
    ['a place that is not absolute', { copies: ['package.json:x'] }],
    ['a place that ends as a folder', { copies: ['package.json:/x/'] }],
    ['a device', { copies: ['/dev/null'] }],
    ['a place that leads upwards', { copies: ['package.json:/x/../y'] }],
    ['a module of another name', { modules: ['package.json'] }],
  ])('are rejected: %s', (_, own) => {
    expect(() => entriesOf(own)).toThrow(ConfigurationError);
  });

  it('are rejected if they use more than half of the guest’s memory', () => {
    writeFileSync(at('big'), Buffer.alloc(2 ** 20));
    expect(() => entriesOf({ copies: [at('big')] }, 2)).not.toThrow();
    writeFileSync(at('one'), 'x');
    expect(() => entriesOf({ copies: [at('big'), at('one')] }, 2)).toThrow('half of --memory');
  });
});
