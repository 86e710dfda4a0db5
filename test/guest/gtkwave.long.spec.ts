/**
 * A value change dump of a machine, converted by GTKWave's own tools from Debian's packages into its format and back: the tools
 * report no error, and no signal, instant or value is lost.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPrograms } from '../../experiments/runs/perf-run.ts';
import { parsedWorkload, perfArgsOf } from '../../experiments/workloads/index.ts';
import { vcdOf } from '../../explain/timeline/index.ts';
import { defaultCacheFolder, ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { silentProgress } from '../../guests/linux/progress.ts';
import { treeProgram } from '../../guests/linux/tree-program.ts';
import { smallMachine } from '../machines.ts';

/** The converters need no window: graphical parts are left out. */
const gtkwaveKit: Kit = {
  name: 'gtkwave',
  title: "GTKWave's converters",
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['gtkwave'],
  standIns: [
    ...[
      'libcairo2',
      'libgdk-pixbuf-2.0-0',
      'libglib2.0-0',
      'libgtk-3-0',
      'libpango-1.0-0',
      'libpangocairo-1.0-0',
    ],
    ...['libtcl8.6', 'libtk8.6', 'dconf-gsettings-backend', 'gsettings-backend', 'debconf', 'dpkg'],
  ],
  isKernel: false,
};

type Changes = ReadonlyMap<string, readonly string[]>;

/** Each signal's changes as text, by its name; leading zeros and the order of signals at an instant are insignificant. */
function changesOf(text: string): Changes {
  const names = new Map<string, string>();
  const changes = new Map<string, string[]>();
  const scopes: string[] = [];
  let atPs = '';
  let isDefined = false;
  for (const line of text.split('\n')) {
    const [word = '', second = '', , code = '', name = ''] = line.trim().split(/\s+/);
    if (word === '$scope') scopes.push(line.trim().split(/\s+/)[2]!);
    else if (word === '$upscope') scopes.pop();
    else if (word === '$var') names.set(code, [...scopes, name].join('.'));
    else if (word === '$enddefinitions') isDefined = true;
    else if (!isDefined) continue;
    else if (word.startsWith('#')) atPs = word.slice(1);
    else if (/^[b01x]/.test(word)) {
      const [value, of] = word.startsWith('b') ? [word.slice(1), second] : [word[0]!, word.slice(1)];
      const signal = names.get(of)!;
      const own = changes.get(signal) ?? [];
      const plain = value.replace(/^0+(?=.)/, '').replace(/^x+$/, 'x');
      if (own.at(-1)?.split(' ')[1] !== plain) own.push(`${atPs} ${plain}`);
      changes.set(signal, own);
    }
  }
  return changes;
}

describe('a value change dump, read by GTKWave', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hca-gtkwave-'));
  let tree: string;
  let text: string;

  beforeAll(async () => {
    const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };
    [tree] = (await ensureKits([gtkwaveKit], cache)) as [string];
    await using machine = await smallMachine({ analysis: { timeline: {} } });
    await loadPrograms(machine, perfArgsOf(parsedWorkload('write-bw,size=5000,iters=40,qps=2')));
    await machine.run();
    const timeline = await machine.timeline();
    const posted = [...timeline.records()].find(({ kind }) => kind === 'posted')!;
    const fromPs = BigInt(posted.atPs);
    const clocks = [{ process: 'hca0', name: 'core', frequencyMHz: 427 }];
    ({ text } = vcdOf(timeline.between(fromPs, fromPs + 20_000_000n), clocks));
    writeFileSync(join(folder, 'out.vcd'), text);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Output of the tool. */
  function run(tool: string, ...args: readonly string[]): string {
    const { file, arguments: before } = treeProgram(tree, `usr/bin/${tool}`);
    return execFileSync(file, [...before, ...args], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  }

  it('is converted there and back without an error or a lost change', () => {
    run('vcd2fst', 'out.vcd', 'out.fst');
    run('fst2vcd', '-f', 'out.fst', '-o', 'back.vcd');
    const [before, after] = [changesOf(text), changesOf(readFileSync(join(folder, 'back.vcd'), 'utf8'))];
    expect(before.size).toBeGreaterThan(30);
    expect([...after.keys()].toSorted()).toEqual([...before.keys()].toSorted());
    for (const [signal, changes] of before) expect(after.get(signal), signal).toEqual(changes);
  });
});
