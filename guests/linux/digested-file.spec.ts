import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOfFile, isWhole, writeDigested } from './digested-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'digested-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a file of the cache', () => {
  it('is intact as written, and adds nothing but its digest', () => {
    const path = join(folder, 'image');
    expect(isWhole(path)).toBe(false);
    writeDigested(path, Buffer.from('abc'));
    expect(isWhole(path)).toBe(true);
    expect(readdirSync(folder).sort()).toEqual(['image', 'image.sha256']);
    // FIPS 180-2, appendix B.1: the digest of "abc".
    const known = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    expect(readFileSync(`${path}.sha256`, 'utf8')).toBe(known);
  });

  it.each([
    ['damaged at equal size', (path: string) => writeFileSync(path, 'abd')],
    ['shorter', (path: string) => truncateSync(path, 2)],
    ['empty', (path: string) => truncateSync(path, 0)],
    ['without its digest', (path: string) => rmSync(`${path}.sha256`)],
  ])('is not whole when %s', (_what, damage) => {
    const path = join(folder, 'image');
    writeDigested(path, Buffer.from('abc'));
    damage(path);
    expect(isWhole(path)).toBe(false);
  });

  it('has the digest of all its pieces when it is long', () => {
    const path = join(folder, 'long');
    writeDigested(path, new Uint8Array(3 * 2 ** 20 + 7).fill(5));
    expect(readFileSync(`${path}.sha256`, 'utf8')).toBe(digestOfFile(path));
    expect(isWhole(path)).toBe(true);
  });
});
