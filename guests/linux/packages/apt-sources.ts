/**
 * Finds the Debian archive that this machine already uses, in apt's own configuration: the address of its mirror and the key
 * that signs it. Nothing of it is hard-coded in this project, so a working apt suffices.
 *
 * Reads the one-line format (`deb [options] URI SUITE COMPONENT…`, files *.list) and the deb822 format (fields in
 * stanzas, files *.sources). Source: sources.list(5).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';

export interface AptSource {
  readonly uri: string;
  readonly suites: readonly string[];
  readonly components: readonly string[];
  /** A keyring's path, a fingerprint or a complete key, as given by the source. */
  readonly signedBy: string | undefined;
}

/** A Debian archive that provides every suite. */
export interface DebianArchive {
  readonly uri: string;
  readonly signedBy: string | undefined;
}

/** Names of the releases in Debian's main archive. */
const debianSuites =
  /^(bullseye|bookworm|trixie|forky|duke|sid|oldoldstable|oldstable|stable|testing|unstable)$/;

/** Keys of all Debian releases, where the package debian-archive-keyring installs them. */
const debianKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * The Debian archive that the apt configuration under `folder` names first; or the one at `mirror`.
 * @throws ConfigurationError if none exists
 */
export function debianArchive(folder = '/etc/apt', mirror?: string): DebianArchive {
  const keyring = existsSync(debianKeyring) ? debianKeyring : undefined;
  if (mirror !== undefined) return { uri: mirror, signedBy: keyring };
  const found = aptSources(folder).find(
    ({ suites, components }) =>
      components.includes('main') && suites.some((suite) => debianSuites.test(suite)),
  );
  if (found === undefined) {
    throw new ConfigurationError(
      'Debian archive in apt sources',
      folder,
      'one; name another by --mirror URI',
    );
  }
  return { uri: found.uri, signedBy: found.signedBy ?? keyring };
}

/** All binary sources that apt itself would use, in its order. */
export function aptSources(folder: string): AptSource[] {
  const parts = join(folder, 'sources.list.d');
  const files = [
    join(folder, 'sources.list'),
    ...(existsSync(parts) ? readdirSync(parts).sort() : []).map((name) => join(parts, name)),
  ];
  return files.filter((file) => existsSync(file)).flatMap(sourcesOfFile);
}

function sourcesOfFile(file: string): AptSource[] {
  if (file.endsWith('.list')) return oneLineSources(readFileSync(file, 'utf8'));
  return file.endsWith('.sources') ? deb822Sources(readFileSync(file, 'utf8')) : [];
}

/** Reads the one-line format. */
export function oneLineSources(text: string): AptSource[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)/.exec(line);
    if (match === null) return [];
    const [, options = '', uri, suite, components = ''] = match;
    const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1];
    return [{ uri: uri!, suites: [suite!], components: words(components), signedBy }];
  });
}

/** Reads the deb822 format. */
export function deb822Sources(text: string): AptSource[] {
  return stanzas(text)
    .filter((fields) => words(fields.get('types')).includes('deb') && fields.get('enabled') !== 'no')
    .flatMap((fields) =>
      words(fields.get('uris')).map((uri) => ({
        uri,
        suites: words(fields.get('suites')),
        components: words(fields.get('components')),
        signedBy: fields.get('signed-by'),
      })),
    );
}

/** Fields of each stanza, names in lower case; a value keeps its continuation lines. Comments are dropped. */
function stanzas(text: string): Map<string, string>[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .split(/\n\s*\n/)
    .map((stanza) => {
      const fields = new Map<string, string>();
      for (const [, name, value] of stanza.matchAll(/^([\w-]+):[ \t]*(.*(?:\n[ \t]+.*)*)/gm)) {
        fields.set(name!.toLowerCase(), value!.trimEnd());
      }
      return fields;
    });
}

const words = (text = ''): string[] => text.split(/\s+/).filter(Boolean);
