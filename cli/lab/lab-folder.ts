/** The folder of the built lab. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../base/index.ts';
import { packageFolder } from '../../runtime/package-folder.ts';

/**
 * Of a checkout it is built first, when its sources are not those of the last build, by a process of its own.
 * @throws ConfigurationError when the sources cannot be built; the reason has been written
 */
export function labFolder(): string {
  const builder = join(packageFolder, 'build/main.ts');
  if (!existsSync(builder)) return join(packageFolder, 'dist/package/lab');
  const { status } = spawnSync(process.execPath, [builder, '--lab'], { stdio: ['ignore', 2, 2] });
  if (status !== 0)
    throw new ConfigurationError(
      'lab',
      'sources that cannot be built',
      'sources that npm run build:lab takes',
    );
  return join(packageFolder, 'dist/lab');
}
