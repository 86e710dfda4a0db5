/** `node build/run.ts bench/main --json -`: runs the built form of a module that `knip.json` lists as an entry. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { builtCheckout } from './checkout.ts';

// The variable makes child processes and threads run the built form too, like those of `hca`.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../dist/compiled');
enableCompileCache(process.env['NODE_COMPILE_CACHE']);
const [node, , name, ...args] = process.argv;
const folder = builtCheckout();
if (folder !== undefined) {
  const file = join(folder, `${name}.js`);
  process.argv = [node!, file, ...args];
  await import(pathToFileURL(file).href);
}
