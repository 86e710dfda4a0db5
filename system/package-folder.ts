import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of the package that this file belongs to, wherever it was built to. */
export const packageFolder: string = folderAbove(import.meta.dirname);

function folderAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : folderAbove(dirname(folder));
}
