/** A checkout always runs its present sources, regardless of earlier builds. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { SourceTree } from '../test/mistakes/source-tree.ts';

const tree = new SourceTree();
afterAll(() => tree[Symbol.dispose]());

const builds = (): string[] => readdirSync(checkouts);
const checkouts = join(tree.folder, 'dist/checkout');
const folderOf = (name: string): string => join(checkouts, name);
const usersOf = (name: string): string => join(folderOf(name), 'users');
const command = [join(tree.folder, 'bin/hca.js'), '--version'];
const version = (): string =>
  execFileSync(process.execPath, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const source = join(tree.folder, 'cli/command-line.ts');
const edit = (from: string, to: string): void =>
  writeFileSync(source, readFileSync(source, 'utf8').replace(from, to));

describe('a start in a checkout', () => {
  it('builds missing builds, two at once like one, and only runs existing ones', async () => {
    const both = [1, 2].map(() => spawn(process.execPath, command));
    const printed = await Promise.all(both.map((child) => text(child.stdout)));
    expect(printed[0]).toMatch(/^hca-emulator \d+\.\d+\.\d+, Node v\d+/);
    expect(printed[1]).toBe(printed[0]);
    await Promise.all(both.map((child) => child.exitCode ?? once(child, 'close')));
    const [build] = builds();
    expect(version()).toBe(printed[0]);
    expect(builds()).toEqual([build]);
  });

  it('runs edited sources, and keeps four builds, each that a process runs, and none for a process that has ended', async () => {
    const [first] = builds();
    const gone = spawn(process.execPath, ['--version']);
    await once(gone, 'close');
    // Builds from the latest to the oldest, all older than the built form.
    const others = ['c', 'b', 'a', 'left', 'used'];
    for (const [at, name] of others.entries()) {
      mkdirSync(usersOf(name), { recursive: true });
      utimesSync(folderOf(name), 1e9 - at, 1e9 - at);
    }
    for (const [name, pid] of [
      ['used', process.pid],
      ['left', gone.pid],
    ] as const) {
      writeFileSync(join(usersOf(name), String(pid)), '');
    }
    edit('Node $', 'Nodes $');
    expect(version()).toContain('Nodes v');
    const [last, ...more] = builds().filter((name) => name !== first && !others.includes(name));
    expect(more).toEqual([]);
    expect(builds().toSorted()).toEqual([first, last, 'c', 'b', 'used'].toSorted());
    // Processes that have ended by themselves have removed their notes.
    expect([first, last].flatMap((name) => readdirSync(usersOf(name!)))).toEqual([]);
    rmSync(folderOf('used'), { recursive: true });
  });

  it('does not build for a spec', () => {
    const before = builds();
    writeFileSync(join(tree.folder, 'sim/new.spec.ts'), 'class {');
    version();
    expect(builds()).toEqual(before);
  });

  it('runs nothing if the sources cannot be built, and reports why', () => {
    appendFileSync(source, '\nclass {');
    expect(version).toThrow(/command-line\.ts/);
  });
});
