/**
 * `npm run docs:site`: the documentation as a folder of static files, `dist/site`, with a search of its own and the lab.
 * `npm run docs:site -- --serve [PORT]`: the same, then served on loopback until the process ends.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildLab } from '../checkout.ts';
import { serveSite } from './serve-site.ts';

const site = fileURLToPath(new URL('../../dist/site', import.meta.url));

try {
  await buildLab();
  const { build } = await import('vitepress');
  await build(import.meta.dirname);
  const [, , serve, port = '0'] = process.argv;
  if (serve === '--serve') {
    const { url } = await serveSite(site, Number(port));
    process.stdout.write(`The documentation is at ${url}\n`);
  } else
    process.stdout.write(
      `The documentation is ${join(site, 'index.html')}: serve the folder, or use --serve.\n`,
    );
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
