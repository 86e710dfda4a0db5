/**
 * The modules of the repository as a few JavaScript files, which a process loads in a third of the time of 900:
 *
 *     index.js, cli/main.js, experiments/workloads/…     modules started or imported by address, under their own names
 *     model.js                                           exports of `index.ts`: the machine and its programming interfaces
 *     rest.js                                            the command line, serving, guests, stories
 *     experiments/vitest/index.js                        fixture and matchers: the only file that imports vitest
 *     guests/linux/inside/index.js                       stock Linux as a library, of rest.js
 *
 * `knip.json` lists the modules that are started by address. A module's `import.meta.url` is the address that it would have as
 * a file of its own, so modules find each other as they do in the sources.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ModuleInfo, type Plugin, rolldown } from 'rolldown';
import { rewritten } from './rewritten.ts';
import { withWideFields } from './wide-fields.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The room that only users' tests import. */
const forVitest = join(root, 'experiments', 'vitest');

type Modules = (id: string) => ModuleInfo | null;

/** Modules started or imported by address, except those that only tests, examples and browsers start. */
function entries(): string[] {
  const { entry } = JSON.parse(readFileSync(join(root, 'knip.json'), 'utf8')) as { entry: readonly string[] };
  const listed = entry.flatMap((pattern) => globSync(pattern, { cwd: root }));
  const ours = listed.filter(
    (file) => !/^(test|examples|lab)\/|^browser\.ts$|\/testing\/|\.spec\.ts$|^sim\//.test(file),
  );
  return [...new Set(ours)].sort();
}

/** Writes the files into a folder. @throws Error if a source is not valid TypeScript */
export async function bundleInto(folder: string): Promise<void> {
  const input = Object.fromEntries(entries().map((file) => [file.slice(0, -'.ts'.length), join(root, file)]));
  await using build = await rolldown({
    cwd: root,
    input,
    platform: 'node',
    external: (id) => !id.startsWith('.') && !id.startsWith('/'),
    plugins: [rewriting],
    checks: { bundlerTimings: false, pluginTimings: false },
    preserveEntrySignatures: 'strict',
    treeshake: false,
    tsconfig: false,
  });
  let model: ReadonlySet<string> | undefined;
  const isOfModel = (id: string, infoOf: Modules): boolean => {
    model ??= closureOf(join(root, 'index.ts'), infoOf);
    return model.has(id);
  };
  await build.write({
    dir: folder,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    comments: false,
    minifyInternalExports: false,
    codeSplitting: {
      groups: [
        {
          debugName: 'model',
          priority: 2,
          name: (id, modules) => (isOfModel(id, (each) => modules.getModuleInfo(each)) ? 'model' : null),
        },
        {
          debugName: 'rest',
          priority: 1,
          // A module without importers is started by address: it stays separate, so that it runs only then. Modules for vitest
          // run nowhere else.
          name: (id, modules) =>
            !id.startsWith(forVitest) && modules.getModuleInfo(id)?.importers.length ? 'rest' : null,
        },
      ],
    },
  });
}

/** A module and all its direct and indirect imports. */
function closureOf(first: string, infoOf: Modules): ReadonlySet<string> {
  const found = new Set([first]);
  for (const id of found) for (const imported of infoOf(id)?.importedIds ?? []) found.add(imported);
  return found;
}

/** Name by which modules read their own address, declared at the beginning of each file. */
const ADDRESS = 'addressOf$module';

const rewriting: Plugin = {
  name: 'rewriting',
  transform(code, id) {
    const address = `${ADDRESS}('${relative(root, id).replace(/\.ts$/, '.js')}')`;
    return withWideFields(code.replaceAll('import.meta.url', address));
  },
  renderChunk(code, { fileName }) {
    const local = rewritten(code);
    if (!local.includes(ADDRESS)) return local;
    const up = relative(dirname(fileName), '') || '.';
    return `const ${ADDRESS} = (path) => new URL('${up}/' + path, import.meta.url).href;\n${local}`;
  },
  // Last, because rolldown prints the text again after a rewrite.
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) if (file.type === 'chunk') file.code = inAscii(file.code);
  },
};

/**
 * A module with its non-ASCII characters, which occur only in strings and patterns, escaped. One letter beyond Latin 1 makes V8
 * keep all its text as UTF-16, and Node needs three times as long to decode it.
 */
const inAscii = (code: string): string =>
  code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
