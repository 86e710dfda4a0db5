/**
 * The modules of the repository as a few JavaScript files, which a process loads in a third of the time of 900:
 *
 *     index.js, cli/main.js, experiments/workloads/…     what is started or imported by its address, under its own name
 *     model.js                                           what `index.ts` brings: the machine and what programs speak
 *     rest.js                                            the command line, serving, guests, stories
 *     experiments/vitest/index.js                        fixture and matchers: the only file that imports vitest
 *
 * What is started by its address is listed in `knip.json`. A module's `import.meta.url` is the address that it would have as a
 * file of its own, so modules find each other as they do in the sources.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ModuleInfo, type Plugin, rolldown } from 'rolldown';
import { rewritten } from './rewritten.ts';
import { withWideFields } from './wide-fields.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The room that only tests of users import. */
const forVitest = join(root, 'experiments', 'vitest');

type Modules = (id: string) => ModuleInfo | null;

/** Modules that are started or imported by their address, beside those that only tests, examples and browsers start. */
function entries(): string[] {
  const { entry } = JSON.parse(readFileSync(join(root, 'knip.json'), 'utf8')) as { entry: readonly string[] };
  const listed = entry.flatMap((pattern) => globSync(pattern, { cwd: root }));
  const ours = listed.filter(
    (file) => !/^(test|examples|lab)\/|^browser\.ts$|\/testing\/|\.spec\.ts$|^sim\//.test(file),
  );
  return [...new Set(ours)].sort();
}

/** Writes the files into a folder. @throws Error when a source has no sense as TypeScript */
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
          // What is imported nowhere is started: it stays apart, so that it runs only then. What is for vitest runs nowhere else.
          name: (id, modules) =>
            !id.startsWith(forVitest) && modules.getModuleInfo(id)?.importers.length ? 'rest' : null,
        },
      ],
    },
  });
}

/** A module and all that it imports, and so on. */
function closureOf(first: string, infoOf: Modules): ReadonlySet<string> {
  const found = new Set([first]);
  for (const id of found) for (const imported of infoOf(id)?.importedIds ?? []) found.add(imported);
  return found;
}

/** Name under which modules ask for their address, declared at the beginning of each file. */
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
  // At the end, for rolldown prints the text anew when it has been rewritten.
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) if (file.type === 'chunk') file.code = inAscii(file.code);
  },
};

/**
 * A module with escapes for what is not ASCII, which stands in strings and patterns only: one letter beyond Latin 1 makes V8 keep
 * all its text as UTF-16, and Node decodes it in three times the time.
 */
const inAscii = (code: string): string =>
  code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
