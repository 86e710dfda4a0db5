import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of the package that contains this file, for every build. */
export const packageFolder: string = folderAbove(import.meta.dirname);

function folderAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : folderAbove(dirname(folder));
}

/** Name and version of the package. */
export const packageNameAndVersion = (): { readonly name: string; readonly version: string } =>
  JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
