import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { ensureKits, type FetchProgress, kitFolder, packagesOfKit } from './cache.ts';
import type { Kit } from './kits.ts';

const digestOfPackage = createHash('sha256').update('package\n').digest('hex');

/** Stand-ins for apt and dpkg in their own PATH: they log their calls, and treat files as the real ones do. The lock is the real one. */
const fakeTools = {
  'apt-config': '',
  'apt-cache': `printf 'Package: hello\\nVersion: 1:2.0\\nSHA256: ${digestOfPackage}\\n'`,
  'apt-get': `echo "$@" >>"$CALLS"
architecture=$(sed -n 's/^APT::Architecture "\\(.*\\)";$/\\1/p' "$APT_CONFIG")
case "$*" in
  *"install -s"*) echo "Inst hello (1:2.0 Debian [$architecture])" ;;
  *"install -d"*) folder=$(sed -n 's/^Dir::Cache::Archives "\\(.*\\)";$/\\1/p' "$APT_CONFIG")
    sleep "\${FETCH_SECONDS:-0}"; [ -n "$REFUSES" ] && { echo 'E: Unable to fetch some archives' >&2; exit 100; }
    file="$folder/hello_1%3a2.0_$architecture.deb"
    [ -e "$file" ] && exit 0
    [ -n "$FETCHES_BADLY" ] && { echo damaged >"$file"; exit 0; }
    echo package >"$file" ;;
esac`,
  'dpkg-deb': `[ -n "$UNPACKS_BADLY" ] && { mkdir -p "$3/half"; exit 2; }
mkdir -p "$3/usr/bin" && cp "$2" "$3/usr/bin/hello"`,
};

const kit: Kit = {
  name: 'hello',
  title: 'hello',
  architecture: 'amd64',
  suites: ['stable'],
  preferredSuite: undefined,
  packages: ['hello'],
  standIns: ['perl'],
  isKernel: false,
};

let folder: string;
let before: NodeJS.ProcessEnv;
let steps: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kits-'));
  before = { ...process.env };
  steps = [];
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const [name, script] of Object.entries(fakeTools)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  process.env['PATH'] = `${bin}:${before['PATH']}`;
  process.env['CALLS'] = join(folder, 'calls');
});
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  process.env['PATH'] = before['PATH'];
  rmSync(folder, { recursive: true });
});

const progress: FetchProgress = { step: (title) => steps.push(title), update() {}, done() {} };
const cacheFolder = (): string => join(folder, 'cache');
const ensure = (kits: readonly Kit[] = [kit]) =>
  ensureKits(kits, { folder: cacheFolder(), mirror: 'http://mirror.example/debian', progress });
const calls = (): string[] =>
  existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n') : [];

describe('the cache of kits', () => {
  it('fetches a kit, unpacks it, names its packages, and keeps no archives', async () => {
    const [root] = await ensure();
    expect(readFileSync(join(root!, 'usr/bin/hello'), 'utf8')).toBe('package\n');
    expect(packagesOfKit(root!)).toEqual([{ name: 'hello', version: '1:2.0', architecture: 'amd64' }]);
    expect(readdirSync(join(cacheFolder(), 'apt/archives'))).toEqual(['partial']);
    expect(readFileSync(join(cacheFolder(), 'apt/etc/kit.sources'), 'utf8')).toContain(
      'http://mirror.example/debian',
    );
  });

  it('does not run apt for an existing kit', async () => {
    await ensure();
    const count = calls().length;
    await ensure();
    expect(calls()).toHaveLength(count);
  });

  it('fetches once when two ask at the same time, and the second reports that it waits', async () => {
    process.env['FETCH_SECONDS'] = '1.5';
    const roots = await Promise.all([ensure(), ensure()]);
    expect(roots[0]).toEqual(roots[1]);
    expect(calls().filter((call) => call.includes('install -d'))).toHaveLength(1);
    expect(steps).toContain('waiting for another process to fill the cache');
  });

  it('leaves no kit when unpacking fails, and completes it the next time', async () => {
    process.env['UNPACKS_BADLY'] = 'yes';
    await expect(ensure()).rejects.toThrow(ConfigurationError);
    expect(existsSync(kitFolder(cacheFolder(), kit))).toBe(false);
    delete process.env['UNPACKS_BADLY'];
    const [root] = await ensure();
    expect(readdirSync(root!).sort()).toEqual(['packages.json', 'usr']);
  });

  it('fetches a package again that is damaged in the cache at equal size', async () => {
    const file = join(cacheFolder(), 'apt/archives/hello_1%3a2.0_amd64.deb');
    mkdirSync(join(cacheFolder(), 'apt/archives'), { recursive: true });
    writeFileSync(file, 'pockage\n');
    const [root] = await ensure();
    expect(readFileSync(join(root!, 'usr/bin/hello'), 'utf8')).toBe('package\n');
    expect(steps).toContain('fetching hello, of which a part was damaged');
  });

  it('does not unpack a package that arrives damaged, and does not keep it', async () => {
    process.env['FETCHES_BADLY'] = 'yes';
    await expect(ensure()).rejects.toThrow(/"hello".*SHA-256 differs/);
    expect(existsSync(kitFolder(cacheFolder(), kit))).toBe(false);
    expect(readdirSync(join(cacheFolder(), 'apt/archives'))).toEqual(['partial']);
    delete process.env['FETCHES_BADLY'];
    await ensure();
  });

  it('passes on apt’s complaint, in one line', async () => {
    process.env['REFUSES'] = 'yes';
    await expect(ensure()).rejects.toThrow(ConfigurationError);
    await expect(ensure()).rejects.toThrow('Unable to fetch some archives');
  });

  it('names a tool that is missing and the package that has it', async () => {
    process.env['PATH'] = '/nowhere';
    await expect(ensure()).rejects.toThrow(/"apt-get".*to be installed \(Debian package apt\)/);
  });

  it('reports when the cache cannot be created', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const options = { folder: join(file, 'cache'), mirror: 'http://mirror.example/debian', progress };
    await expect(ensureKits([kit], options)).rejects.toThrow(/a folder that can be made \(ENOTDIR\)/);
    // Node's own recursive mkdir never returns here.
    const nowhere = { ...options, folder: '/proc/no-such' };
    await expect(ensureKits([kit], nowhere)).rejects.toThrow(/a folder that can be made \(ENOENT\)/);
  });

  it('fetches a kit of another architecture with a state of its own', async () => {
    const other: Kit = { ...kit, name: 'hello-i386', architecture: 'i386' };
    const [, root] = await ensure([kit, other]);
    expect(packagesOfKit(root!)).toEqual([{ name: 'hello', version: '1:2.0', architecture: 'i386' }]);
    const [configuration, status] = ['etc/apt.conf', 'status'].map((name) =>
      readFileSync(join(cacheFolder(), 'apt-i386', name), 'utf8'),
    );
    expect(configuration).toContain('APT::Architecture "i386";\nAPT::Architectures { "i386"; };');
    expect(status).toContain('Package: perl\nStatus: install ok installed\nArchitecture: i386\n');
    expect(readFileSync(join(cacheFolder(), 'apt/status'), 'utf8')).toContain('Architecture: amd64\n');
  });

  it('keeps the folders that kits had before they named an architecture', () => {
    // By the digest of {"formatVersion":1,"kit":{…}} of that time.
    expect(kitFolder('', kit)).toBe('kits/hello-3c95ed7f');
    expect(kitFolder('', { ...kit, architecture: 'i386' })).not.toBe(kitFolder('', kit));
  });

  it('uses another folder for a kit when its request changes', () => {
    const other = { ...kit, packages: ['hello', 'world'] };
    expect(kitFolder(cacheFolder(), other)).not.toBe(kitFolder(cacheFolder(), kit));
  });
});
