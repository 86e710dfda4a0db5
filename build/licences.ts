/** The licences of third-party packages whose code is in a build: their terms ask that copies carry them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Folder of the innermost package that a module belongs to; undefined for a module outside all packages. */
const packageFolder = (module: string): string | undefined =>
  /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(module)?.[0];

/**
 * The name, version and licence text of each package of which the modules have code, by name.
 * @param modules absolute paths; those outside of node_modules are this project's own
 * @throws Error for a package without a licence text
 */
export function licencesOf(modules: Iterable<string>): string {
  const folders = new Set([...modules].flatMap((module) => packageFolder(module) ?? []));
  const texts = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as Readonly<Record<'name' | 'version' | 'license', string>>;
    const file = existsSync(folder)
      ? readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
      : undefined;
    if (file === undefined) throw new Error(`${name} is in the build, and has no licence text in ${folder}`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  return texts.sort().join(`\n${'-'.repeat(80)}\n\n`);
}
