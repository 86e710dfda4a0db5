/** The package as `npm pack` makes it, installed in a folder without a registry: its dependencies are those of the repository. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('..', import.meta.url));

export interface PackedPackage {
  /** Where it is installed. */
  readonly installed: string;
  /** Paths of the files in it. */
  readonly files: readonly string[];
}

/** Packs the repository and installs it in `folder`, with those packages of the repository beside it. */
export function installPacked(folder: string, others: readonly string[] = []): PackedPackage {
  const run = (command: string, args: readonly string[], cwd: string): string =>
    execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], repository)) as [
    { filename: string; files: { path: string }[] },
  ];
  run('tar', ['xzf', packed.filename], folder);
  const installed = join(folder, 'node_modules', 'hca-emulator');
  cpSync(join(folder, 'package'), installed, { recursive: true });
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), '@types/node', ...others]) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(repository, 'node_modules', name), link);
  }
  return { installed, files: packed.files.map(({ path }) => path) };
}
