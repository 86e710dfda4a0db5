import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../../runtime/package-folder.ts';

let found: string | undefined;

/** The version of the emulator: results of different versions are different results. */
export function packageVersion(): string {
  if (found === undefined) {
    const text = readFileSync(join(packageFolder, 'package.json'), 'utf8');
    found = (JSON.parse(text) as { readonly version: string }).version;
  }
  return found;
}
