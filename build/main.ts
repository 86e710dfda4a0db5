/** `npm run build`, second step: gives every module of a folder plain fields and local names, in place. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLocalNames } from './local-names.ts';
import { withPlainFields } from './plain-fields.ts';

const folder = process.argv[2]!;
for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.js')) continue;
  const file = join(folder, name);
  writeFileSync(file, withLocalNames(withPlainFields(readFileSync(file, 'utf8'))));
}
