import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of the package that this file belongs to, wherever it was built to. */
export const packageFolder: string = folderAbove(import.meta.dirname);

function folderAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : folderAbove(dirname(folder));
}

/** What package.json says of itself. */
export function packageFacts(): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
  };
}
