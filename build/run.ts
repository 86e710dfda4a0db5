/** `node build/run.ts bench/main --json -`: runs the built form of a module that `knip.json` lists as an entry. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { builtCheckout } from './checkout.ts';

const [node, , name, ...args] = process.argv;
const file = join(await builtCheckout(), `${name}.js`);
process.argv = [node!, file, ...args];
await import(pathToFileURL(file).href);
