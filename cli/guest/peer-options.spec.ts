import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { peerOptionsOf } from './peer-options.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-peer-options-'));
const file = join(folder, 'program.ts');
writeFileSync(file, 'export default async function () {}');
afterAll(() => rmSync(folder, { recursive: true }));

describe('--peer', () => {
  it('names a module and its export', () => {
    const { href } = pathToFileURL(file);
    expect(peerOptionsOf({})).toBe(undefined);
    expect(peerOptionsOf({ peer: file })).toEqual({ run: { url: href } });
    expect(peerOptionsOf({ peer: `${file}#server`, peerArgs: '{"count":2}' })).toEqual({
      run: { url: href, exportName: 'server' },
      args: { count: 2 },
    });
  });

  it.each([
    [{ peer: `${file}x` }, /--peer is .*programe?\.tsx", expected a module/],
    [{ peerArgs: '1' }, '--peer-args is "1", expected an option beside --peer'],
    [{ peer: file, peerArgs: '{' }, /--peer-args is "\{", expected JSON \(/],
  ])('is rejected in one line: %j', (choice, message) => {
    expect(() => peerOptionsOf(choice)).toThrow(message);
  });
});
