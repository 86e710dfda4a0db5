/**
 * `npm run build`: the built form of the checkout, unless there is one (`npm ci` does this by itself, and each start does).
 * `node build/main.ts --package`: that of the package, into `dist/package`, always; with the library for browsers and the lab.
 * `npm run build:lab`: the lab as a folder of static files, `dist/lab`, when its sources have changed.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildCheckout, buildLab } from './checkout.ts';

async function packageBuild(): Promise<void> {
  const { bundleInto } = await import('./bundle.ts');
  const folder = join(import.meta.dirname, '..', 'dist', 'package');
  rmSync(folder, { recursive: true, force: true });
  await bundleInto(folder);
  const { labInto, libraryInto } = await import('./lab.ts');
  await libraryInto(join(folder, 'browser'));
  await labInto(join(folder, 'lab'));
}

const builders: Readonly<Record<string, () => Promise<void>>> = {
  '--package': packageBuild,
  '--lab': buildLab,
};

try {
  await (builders[process.argv[2] ?? ''] ?? buildCheckout)();
} catch (error) {
  process.stderr.write(`${whyNot(error)}\n`);
  process.exitCode = 1;
}

function whyNot(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ERR_MODULE_NOT_FOUND' || !error.message.includes("'rolldown'")) return error.message;
  return (
    'hca-emulator: not built. Building takes rolldown, a development dependency that is not installed. ' +
    'npm ci without --omit=dev installs it; the packed package (npm pack) is built already.'
  );
}
