import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { licencesOf } from './licences.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

it('has the text of each package once, by name, and none for own modules', () => {
  const text = licencesOf([
    join(root, 'node_modules/v86/build/libv86.mjs'),
    join(root, 'node_modules/@xterm/xterm/lib/xterm.mjs'),
    join(root, 'node_modules/@xterm/xterm/lib/other.mjs'),
    join(root, 'lab/page/main.ts'),
  ]);
  expect(text.match(/^\S+ [\d.]+\S* \([\w-]+\)$/gm)).toEqual([
    expect.stringMatching(/^@xterm\/xterm [\d.]+ \(MIT\)$/),
    expect.stringMatching(/^v86 [\d.]+\S* \(BSD-2-Clause\)$/),
  ]);
  expect(text).toContain('The xterm.js authors');
  expect(text).toContain('Redistribution and use in source and binary forms');
});

it('refuses a package without a licence text', () => {
  const folder = mkdtempSync(join(tmpdir(), 'licences-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const bare = join(folder, 'node_modules/bare');
  mkdirSync(bare, { recursive: true });
  writeFileSync(join(bare, 'package.json'), '{"name":"bare","version":"1.0.0"}');
  expect(() => licencesOf([join(bare, 'index.js')])).toThrow(/bare is in the build, and has no licence text/);
});
