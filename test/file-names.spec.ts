/** A file that exports one class and no other value has the name of that class: `PinTable` is in `pin-table.ts`. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Folders of sources. */
const rooms = readdirSync(root, { withFileTypes: true })
  .filter(
    (entry) => entry.isDirectory() && !/^(?:\.|node_modules$|dist$|reference$|schemas$)/.test(entry.name),
  )
  .map(({ name }) => name);

/** Files that still must be renamed; a renamed one is removed from this list. */
const stillNamedOtherwise: readonly string[] = [
  'hw/hca/connectx3/send-format.ts: connect-x3-send-format.ts',
  'hw/hca/frames/receive-checksums.ts: frame-checksums.ts',
  'hw/hca/objects/replacement.ts: set-associative-directory.ts',
  'hw/hca/ibta/responder/atomic-replay.ts: atomic-results.ts',
];

/** `DmaReadEngine` is `dma-read-engine`, `TLPRecord` is `tlp-record`. */
const fileNameOf = (className: string): string =>
  className
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1-$2')
    .toLowerCase();

/** The class that a file exports, if it exports no other value; errors that it throws do not count. */
function onlyClassOf(text: string): string | undefined {
  const exported = [
    ...text.matchAll(/^export (?:default )?(?:async |abstract )*(class|function\*?|const|let) (\w+)/gm),
  ];
  const values = exported.filter(([, kind, name]) => kind !== 'class' || !name!.endsWith('Error'));
  return values.length === 1 && values[0]![1] === 'class' ? values[0]![2] : undefined;
}

/** Every source of the rooms. */
function sourcesOf(): { readonly path: string; readonly text: string }[] {
  const paths = rooms.flatMap((room) =>
    readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => join(room, path)),
  );
  return paths
    .filter((path) => /(?<!\.d)\.ts$/.test(path) && !path.includes('node_modules'))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

const isHelper = (path: string): boolean => /\.spec\.ts$|(?:^|\/)testing[^/]*\.ts$/.test(path);

/** Files whose class has another name, with the name that the file should have. */
const misnamed = (files: readonly { readonly path: string; readonly text: string }[]): string[] =>
  files.flatMap(({ path, text }) => {
    const name = isHelper(path) ? undefined : onlyClassOf(text);
    if (name === undefined || fileNameOf(name) === basename(path, '.ts')) return [];
    return [`${path}: ${fileNameOf(name)}.ts`];
  });

describe('the name of a file', () => {
  it('is that of the class that it exports', () => {
    const found = misnamed(sourcesOf());
    const known = new Set(stillNamedOtherwise);
    expect(found.filter((row) => !known.has(row))).toEqual([]);
    expect(stillNamedOtherwise.filter((row) => !found.includes(row))).toEqual([]);
  });

  it.each([
    ['host/pins.ts', 'export class PinTable {}', ['host/pins.ts: pin-table.ts']],
    ['host/pin-table.ts', 'export class PinTable {}', []],
    [
      'hw/engine.ts',
      'export type A = 1;\nexport abstract class DmaReadEngine {}',
      ['hw/engine.ts: dma-read-engine.ts'],
    ],
    ['host/pins.ts', 'export class PinTable {}\nexport const limit = 1;', []],
    ['host/pins.ts', 'export class PinTable {}\nexport class PinError {}', ['host/pins.ts: pin-table.ts']],
    ['host/testing.ts', 'export class TestMachine {}', []],
  ])('of %s with %j is checked', (path, text, expected) => {
    expect(misnamed([{ path, text }])).toEqual(expected);
  });
});
