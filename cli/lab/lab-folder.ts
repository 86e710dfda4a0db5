/** The folder of the built lab. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../base/index.ts';
import { packageFolder } from '../../runtime/package-folder.ts';

/**
 * Returns the folder of the lab. In a checkout, a separate process first builds it if its sources have changed.
 * @throws ConfigurationError if the build fails; the reason has been printed
 */
export function labFolder(): string {
  const builder = join(packageFolder, 'build/main.ts');
  if (!existsSync(builder)) return join(packageFolder, 'dist/package/lab');
  const { status } = spawnSync(process.execPath, [builder, '--lab'], { stdio: ['ignore', 2, 2] });
  if (status !== 0)
    throw new ConfigurationError(
      'lab',
      'sources that cannot be built',
      'sources that npm run build:lab accepts',
    );
  return join(packageFolder, 'dist/lab');
}
