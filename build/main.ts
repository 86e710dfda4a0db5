/**
 * `npm run build`: the built form of the checkout, unless there is one (`npm ci` does this by itself, and each start does).
 * `node build/main.ts --package`: that of the package, into `dist/package`, always.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundleInto, root } from './bundle.ts';
import { buildCheckout } from './checkout.ts';

async function packageBuild(): Promise<void> {
  const folder = join(root, 'dist', 'package');
  rmSync(folder, { recursive: true, force: true });
  await bundleInto(folder);
}

try {
  await (process.argv[2] === '--package' ? packageBuild() : buildCheckout());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
