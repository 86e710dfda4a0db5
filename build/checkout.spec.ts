/** What runs in a checkout is what its sources say, whatever was built before. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
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

const builds = (): string[] => readdirSync(join(tree.folder, 'dist/checkout'));
const command = [join(tree.folder, 'bin/hca.js'), '--version'];
const version = (): string =>
  execFileSync(process.execPath, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const source = join(tree.folder, 'system/cli/command-line.ts');
const edit = (from: string, to: string): void =>
  writeFileSync(source, readFileSync(source, 'utf8').replace(from, to));

describe('a start in a checkout', () => {
  it('builds what is not built, two at once as one does, and what is built it only runs', async () => {
    const both = [1, 2].map(() => spawn(process.execPath, command));
    const printed = await Promise.all(both.map((child) => text(child.stdout)));
    expect(printed[0]).toMatch(/^hca-emulator \d+\.\d+\.\d+, Node v\d+/);
    expect(printed[1]).toBe(printed[0]);
    await Promise.all(both.map((child) => child.exitCode ?? once(child, 'close')));
    const [build] = builds();
    expect(version()).toBe(printed[0]);
    expect(builds()).toEqual([build]);
  });

  it('runs what has been edited', () => {
    edit('Node $', 'Nodes $');
    expect(version()).toContain('Nodes v');
    expect(builds()).toHaveLength(2);
  });

  it('runs nothing when the sources cannot be built, and says why', () => {
    appendFileSync(source, '\nclass {');
    expect(version).toThrow(/command-line\.ts/);
    edit('\nclass {', '');
  });

  it('keeps four builds', () => {
    for (const name of ['a', 'b', 'c', 'd'])
      mkdirSync(join(tree.folder, 'dist/checkout', name), { recursive: true });
    edit('Nodes', 'Node');
    expect(version()).toMatch(/ Node v/);
    expect(builds()).toHaveLength(4);
  });

  it('keeps each build that a process runs, and none for one that is gone', async () => {
    const old = new Date(0);
    const gone = spawn(process.execPath, ['--version']);
    await once(gone, 'close');
    for (const [name, pid] of [
      ['used', process.pid],
      ['left', gone.pid],
    ] as const) {
      const folder = join(tree.folder, 'dist/checkout', name);
      mkdirSync(join(folder, 'users'), { recursive: true });
      writeFileSync(join(folder, 'users', String(pid)), '');
      utimesSync(folder, old, old);
    }
    edit('Node', 'Nodes');
    expect(version()).toMatch(/ Nodes v/);
    expect(builds()).toContain('used');
    expect(builds()).not.toContain('left');
    // Those that have run by themselves have taken their notes back.
    const notesOf = (name: string): string[] =>
      readdirSync(join(tree.folder, 'dist/checkout', name, 'users'));
    const run = builds().filter(
      (name) => name !== 'used' && existsSync(join(tree.folder, 'dist/checkout', name, 'users')),
    );
    expect(run.length).toBeGreaterThan(0);
    expect(run.flatMap(notesOf)).toEqual([]);
    rmSync(join(tree.folder, 'dist/checkout/used'), { recursive: true });
  });

  it('does not build for a spec', () => {
    const before = builds();
    writeFileSync(join(tree.folder, 'sim/new.spec.ts'), 'class {');
    version();
    expect(builds()).toEqual(before);
  });
});
