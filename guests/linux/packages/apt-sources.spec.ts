import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { aptSources, deb822Sources, debianArchive, oneLineSources } from './apt-sources.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'apt-sources-'));
  mkdirSync(join(folder, 'sources.list.d'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("the machine's apt sources", () => {
  it('are read from the one-line format with its options, comments and disabled lines', () => {
    const text = [
      '# deb http://old.example/debian bullseye main',
      'deb [ arch=amd64 signed-by=/usr/share/keyrings/k.gpg ] https://mirror.example/debian bookworm main contrib # ours',
      'deb-src https://mirror.example/debian bookworm main',
      'deb http://security.example/debian-security bookworm-security main',
    ].join('\n');
    expect(oneLineSources(text)).toEqual([
      {
        uri: 'https://mirror.example/debian',
        suites: ['bookworm'],
        components: ['main', 'contrib'],
        signedBy: '/usr/share/keyrings/k.gpg',
      },
      {
        uri: 'http://security.example/debian-security',
        suites: ['bookworm-security'],
        components: ['main'],
        signedBy: undefined,
      },
    ]);
  });

  it('are read from the deb822 format: several addresses and suites, an embedded key, disabled stanzas', () => {
    const text = [
      'Types: deb deb-src',
      'URIs: http://a.example/debian http://b.example/debian',
      '# a comment between fields',
      'Suites: trixie trixie-updates',
      'Components: main',
      'Signed-By:',
      ' -----BEGIN PGP PUBLIC KEY BLOCK-----',
      ' .',
      ' -----END PGP PUBLIC KEY BLOCK-----',
      '',
      'Types: deb',
      'Enabled: no',
      'URIs: http://c.example/debian',
      'Suites: sid',
      'Components: main',
    ].join('\n');
    const sources = deb822Sources(text);
    expect(sources.map(({ uri }) => uri)).toEqual(['http://a.example/debian', 'http://b.example/debian']);
    expect(sources[0]!.suites).toEqual(['trixie', 'trixie-updates']);
    expect(sources[0]!.signedBy).toContain('\n -----END PGP PUBLIC KEY BLOCK-----');
  });

  it('give the address of the Debian archive, not those of security updates and of other projects', () => {
    writeFileSync(
      join(folder, 'sources.list'),
      'deb http://other.example/apt stable main\n'.replace('stable', 'nodistro'),
    );
    writeFileSync(
      join(folder, 'sources.list.d/debian.sources'),
      'Types: deb\nURIs: http://s.example/debian-security\nSuites: bookworm-security\nComponents: main\n\n' +
        'Types: deb\nURIs: http://m.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n',
    );
    writeFileSync(
      join(folder, 'sources.list.d/old.sources.disabled'),
      'Types: deb\nURIs: http://x\nSuites: sid\n',
    );
    expect(aptSources(folder)).toHaveLength(3);
    expect(debianArchive(folder)).toEqual({ uri: 'http://m.example/debian', signedBy: '/k.gpg' });
  });

  it('may be overridden by an address from the user', () => {
    expect(debianArchive(folder, 'http://mine.example/debian').uri).toBe('http://mine.example/debian');
  });

  it('without a Debian archive are an error that names the option for one', () => {
    writeFileSync(join(folder, 'sources.list'), 'deb http://ubuntu.example/ubuntu noble main\n');
    expect(() => debianArchive(folder)).toThrow(ConfigurationError);
    expect(() => debianArchive(folder)).toThrow('--mirror');
  });
});
