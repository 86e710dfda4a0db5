/** `npm run build`, second step: gives every module of a folder plain fields and local names, in place. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { modulesInCycles } from './cycles.ts';
import { importsOf, withLocalNames } from './local-names.ts';
import { withPlainFields } from './plain-fields.ts';

const folder = process.argv[2]!;
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.js'))
  .map((name) => join(folder, name));
const sources = new Map(files.map((file) => [file, withPlainFields(readFileSync(file, 'utf8'))]));
const imports = new Map(
  [...sources].map(([file, source]) => [file, importsOf(source).map((from) => join(dirname(file), from))]),
);
const inCycles = modulesInCycles(imports);
for (const [file, source] of sources) {
  writeFileSync(file, inCycles.has(file) ? source : withLocalNames(source));
}
