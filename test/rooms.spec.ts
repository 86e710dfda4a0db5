/** `npm run lint` checks which room may import which; this spec checks the entry points of imports. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const roots =
  '{abi,analyser,base,bench,build,cli,driver,examples,experiments,explain,guests,host,hw,lab,machine,net,protocol,runtime,sim,torture,userlib,wire}';
/** Specs and their helpers may import any file of what they test. */
const isTest = (file: string): boolean => /\.spec\.ts$|(^|\/)testing|-bench\.ts$/.test(file);

/** Folders around a file, outermost first; a file of the root is in none. */
function foldersOf(file: string): string[] {
  const parts = dirname(file).split('/');
  return parts[0] === '.' ? [] : parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** True if `file` imports `target` and bypasses the `index.ts` of a folder outside its own. */
function passesTheDoor(file: string, target: string): boolean {
  const own = foldersOf(file);
  const doors = foldersOf(target)
    .filter((folder) => !own.includes(folder))
    .map((folder) => `${folder}/index.ts`)
    .filter((door) => existsSync(join(root, door)));
  return doors.length > 0 && !doors.includes(target);
}

const files = globSync(['*.ts', `${roots}/**/*.ts`], { cwd: root, exclude: ['**/node_modules', '**/dist'] });
/** `import { … }` and `export { … }` of the house's own files; the package's entry exports all types of some files (`export type *`). */
const named = /^(?:import|export|\}) (?!type \*)[^;]*?from '(\.[^']+)';/gm;
const imports = files
  .filter((file) => !isTest(file))
  .flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(named)].map(([, to]) => ({
      file,
      target: normalize(join(dirname(file), to!)),
    })),
  );

type Import = (typeof imports)[number];

/** Folders from which `file` imports and that import `file`. */
function foldersBothWays(file: string, all: readonly Import[]): string[] {
  const importers = new Set(all.filter(({ target }) => target === file).map((each) => dirname(each.file)));
  const imported = new Set(all.filter((each) => each.file === file).map(({ target }) => dirname(target)));
  return [...imported].filter((folder) => folder !== dirname(file) && importers.has(folder));
}

describe('a folder that has an index.ts', () => {
  it('is entered through it from everywhere else', () => {
    expect(imports.length).toBeGreaterThan(3000);
    expect(imports.filter(({ file, target }) => passesTheDoor(file, target))).toEqual([]);
  });

  it.each([
    ['hw/dma/split.ts', 'hw/pcie/link/pcie-link-port.ts', true],
    ['hw/dma/split.ts', 'hw/pcie/index.ts', false],
    ['hw/hca/hca.ts', 'hw/hca/events/event-writer.ts', true],
    ['hw/hca/events/event-writer.ts', 'hw/hca/data-path.ts', false],
    ['index.ts', 'machine/node/hca-node.ts', true],
  ])('is bypassed by %s when it imports %s: %s', (file, target, passes) => {
    expect(passesTheDoor(file, target)).toBe(passes);
  });
});

describe('a file that folders share', () => {
  it('imports at most two of the folders that import it', () => {
    const targets = new Set(imports.map(({ target }) => target));
    const bags = [...targets].filter((file) => foldersBothWays(file, imports).length > 2);
    expect(bags).toEqual([]);
  });

  it('is found by its imports in both directions', () => {
    const bag = 'hw/hca/core.ts';
    const rooms = ['packets', 'keys', 'costs'].map((room) => `hw/hca/${room}/index.ts`);
    const both = rooms.flatMap((file) => [
      { file, target: bag },
      { file: bag, target: file },
    ]);
    expect(foldersBothWays(bag, both)).toEqual(['hw/hca/packets', 'hw/hca/keys', 'hw/hca/costs']);
    expect(foldersBothWays(bag, both.slice(0, 1))).toEqual([]);
  });
});

describe('the test tool', () => {
  it('is imported by the command line, tests and benchmarks alone', () => {
    const importers = imports.filter(({ target }) => target.startsWith('torture/')).map(({ file }) => file);
    expect(importers.length).toBeGreaterThan(100);
    expect(importers.filter((file) => !/^(torture|cli|test|bench)\//.test(file))).toEqual([]);
  });
});
