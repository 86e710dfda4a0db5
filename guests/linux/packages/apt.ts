/**
 * Debian's apt as an ordinary user's tool: it resolves, fetches and checks packages in a private state folder, and installs
 * nothing.
 *
 * Its list of installed packages contains only stand-ins: packages (a package manager, an init system) on which others depend
 * for installation, but not for unpacking. It uses only the network settings (proxies) of the machine's own
 * configuration, never hooks, pins or sources. Source: apt.conf(5), apt-get(8), README.progress-reporting of apt for the status lines.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import { digestOfFile } from '../digested-file.ts';
import type { DebianArchive } from './apt-sources.ts';
import type { Architecture } from './architecture.ts';

/** Request to apt: packages from suites, of which the last may be preferred. */
export interface AptRequest {
  /** Architecture of the packages. */
  readonly architecture: Architecture;
  readonly suites: readonly string[];
  /** A suite like trixie-backports, whose packages are otherwise used only on request. */
  readonly preferredSuite: string | undefined;
  readonly packages: readonly string[];
  /** Packages considered installed. */
  readonly standIns: readonly string[];
}

export interface AptPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
}

/** Progress of fetching, 0 to 100, and apt's present action. */
export type AptProgress = (percent: number, doing: string) => void;

const statusDescriptor = 3;

export class Apt {
  readonly #folder: string;
  readonly #archive: DebianArchive;
  readonly #architecture: Architecture;

  /**
   * `folder` is created and filled; several processes must not use it at once. All requests to it are of this one
   * `architecture`.
   */
  constructor(folder: string, archive: DebianArchive, architecture: Architecture) {
    this.#folder = folder;
    this.#archive = archive;
    this.#architecture = architecture;
    for (const part of ['lists/partial', 'archives/partial', 'etc'])
      mkdirSync(join(folder, part), { recursive: true });
    writeFileSync(join(folder, 'etc/apt.conf'), this.#configuration(), { mode: 0o600 });
  }

  /** Fetches the lists of packages. @throws ConfigurationError with apt's first complaint */
  async update(suites: readonly string[], progress: AptProgress): Promise<void> {
    this.#writeSources(suites);
    await this.#run(['update', '-q', '-o', 'APT::Update::Error-Mode=any'], progress);
  }

  /** The packages to unpack for a request. @throws ConfigurationError with apt's first complaint */
  resolve(request: AptRequest): AptPackage[] {
    this.#prepare(request);
    const output = this.#read('apt-get', ['install', '-s', '-qq', '-y', ...choice(request)]);
    return packagesToInstall(output);
  }

  /** Fetches packages that `resolve` named, continuing where an earlier attempt stopped. */
  async download(request: AptRequest, progress: AptProgress): Promise<void> {
    this.#prepare(request);
    await this.#run(['install', '-d', '-q', '-y', ...choice(request)], progress);
  }

  /**
   * Removes fetched packages that differ from the archive's signed lists: apt itself accepts an existing file of the right
   * size.
   * @returns those removed
   */
  removeDamaged(packages: readonly AptPackage[]): AptPackage[] {
    const fetched = packages.filter((one) => existsSync(this.fileOf(one)));
    if (fetched.length === 0) return [];
    const digests = this.#digestsOf(fetched);
    const damaged = fetched.filter((one) => digests.get(identityOf(one)) !== digestOfFile(this.fileOf(one)));
    for (const one of damaged) rmSync(this.fileOf(one));
    return damaged;
  }

  /** SHA-256 of packages by name and version, from apt's lists. */
  #digestsOf(packages: readonly AptPackage[]): Map<string, string> {
    const names = packages.map(({ name, version }) => `${name}=${version}`);
    return packageDigests(this.#read('apt-cache', ['show', ...names]));
  }

  /** Path of a fetched package. */
  fileOf({ name, version, architecture }: AptPackage): string {
    return join(this.#folder, 'archives', `${name}_${version.replaceAll(':', '%3a')}_${architecture}.deb`);
  }

  #configuration(): string {
    const at = (name: string): string => JSON.stringify(join(this.#folder, name));
    return [
      ...networkSettings(),
      `APT::Architecture "${this.#architecture}";`,
      `APT::Architectures { "${this.#architecture}"; };`,
      'APT::Install-Recommends "false";',
      'APT::Sandbox::User "root";',
      'APT::Get::List-Cleanup "false";',
      'Acquire::Languages "none";',
      'Acquire::GzipIndexes "true";',
      'Acquire::Retries "3";',
      'DPkg::Lock::Timeout "600";',
      'Dir::Etc::Parts "/dev/null";',
      'Dir::Etc::Main "/dev/null";',
      'Dir::Etc::SourceParts "/dev/null";',
      'Dir::Etc::Preferences "/dev/null";',
      'Dir::Etc::PreferencesParts "/dev/null";',
      `Dir::Etc::SourceList ${at('etc/kit.sources')};`,
      `Dir::State ${at('.')};`,
      `Dir::State::Lists ${at('lists')};`,
      `Dir::State::Status ${at('status')};`,
      `Dir::Cache ${at('.')};`,
      `Dir::Cache::Archives ${at('archives')};`,
      '',
    ].join('\n');
  }

  #prepare({ suites, standIns }: AptRequest): void {
    this.#writeSources(suites);
    const status = standIns.map(
      (name) =>
        `Package: ${name}\nStatus: install ok installed\nArchitecture: ${this.#architecture}\nMulti-Arch: allowed\n` +
        'Version: 999:0\nMaintainer: none\nDescription: stand-in\n',
    );
    writeFileSync(join(this.#folder, 'status'), status.join('\n'));
  }

  #writeSources(suites: readonly string[]): void {
    const { uri, signedBy } = this.#archive;
    const key = signedBy === undefined ? '' : `Signed-By: ${signedBy}\n`;
    const text = `Types: deb\nURIs: ${uri}\nSuites: ${suites.join(' ')}\nComponents: main\n${key}`;
    writeFileSync(join(this.#folder, 'etc/kit.sources'), text);
  }

  get #environment(): NodeJS.ProcessEnv {
    const configuration = join(this.#folder, 'etc/apt.conf');
    return { ...process.env, APT_CONFIG: configuration, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };
  }

  #read(tool: 'apt-get' | 'apt-cache', parameters: readonly string[]): string {
    try {
      return execFileSync(tool, parameters, {
        env: this.#environment,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        maxBuffer: 64 * 1024 * 1024,
      });
    } catch (error) {
      const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
      throw new ConfigurationError(tool, firstComplaint(output), 'no error');
    }
  }

  async #run(parameters: readonly string[], progress: AptProgress): Promise<void> {
    const child = spawn('apt-get', [...parameters, '-o', `APT::Status-Fd=${statusDescriptor}`], {
      env: this.#environment,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    });
    let complaints = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      complaints += text;
    });
    readStatus(child.stdio[statusDescriptor] as NodeJS.ReadableStream, progress);
    const { promise, resolve, reject } = Promise.withResolvers<number | null>();
    child.on('error', reject).on('close', resolve);
    if ((await promise) !== 0) {
      throw new ConfigurationError('apt-get', firstComplaint(complaints), 'no error');
    }
  }
}

/** The packages in the output of a simulated installation: `Inst NAME [OLD] (VERSION ORIGIN [ARCHITECTURE])`. */
export function packagesToInstall(output: string): AptPackage[] {
  return [...output.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) .*\[(\w+)\]\)/gm)].map(
    ([, name, version, architecture]) => ({
      name: name!.replace(/:\w+$/, ''),
      version: version!,
      architecture: architecture!,
    }),
  );
}

/** SHA-256 of each package in apt-cache's output, paragraphs of `Field: value` lines, by {@link identityOf}. */
function packageDigests(output: string): Map<string, string> {
  const field = (paragraph: string, name: string): string =>
    new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1] ?? '';
  return new Map(
    output.split('\n\n').map((paragraph) => {
      const name = field(paragraph, 'Package');
      return [identityOf({ name, version: field(paragraph, 'Version') }), field(paragraph, 'SHA256')];
    }),
  );
}

const identityOf = ({ name, version }: Pick<AptPackage, 'name' | 'version'>): string => `${name}=${version}`;

function choice({ preferredSuite, packages }: AptRequest): string[] {
  return [...(preferredSuite === undefined ? [] : ['-t', preferredSuite]), ...packages];
}

/** Lines `dlstatus:ITEM:PERCENT:WHAT`. */
function readStatus(stream: NodeJS.ReadableStream, progress: AptProgress): void {
  stream.setEncoding('utf8').on('data', (text: string | Buffer) => {
    for (const [, percent, doing] of String(text).matchAll(/^dlstatus:[^:]*:([\d.]+):(.*)$/gm)) {
      progress(Number(percent), doing!);
    }
  });
}

/** The network settings of the machine's own apt, as lines of a configuration file. */
function networkSettings(): string[] {
  const all = execFileSync('apt-config', ['dump'], { encoding: 'utf8' });
  return all.split('\n').filter((line) => /^Acquire::(http|https|ftp|tor|ForceIPv[46])\b/.test(line));
}

/** The first error line, else the last line of apt's output. */
function firstComplaint(output: string): string {
  const lines = output.split('\n').filter(Boolean);
  return (lines.find((line) => line.startsWith('E:')) ?? lines.at(-1) ?? 'failed').replace(/^E: /, '');
}
