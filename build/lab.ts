/**
 * The builds for a browser: the library in one module, and the lab as a folder of static files that fetches nothing from
 * elsewhere.
 *
 *     hca-emulator.js                                `hca-emulator/browser`
 *     index.html, style.css, page.js                 the lab's page
 *     view-….js, ….worker.js                         its views, each loaded when it is shown, and its workers
 *     v86.js                                         the processor of a stock Linux, loaded by its worker
 *     machine.js, library.js, parser.js …            code shared by several of these
 *     licences.txt                                   of the packages whose code is in these files
 *     _headers                                       the headers that the lab needs, as static hosts read them
 *
 * The model is rewritten as in the other builds (bundle.ts), so that it is as fast.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { headersFile } from './lab-headers.ts';
import { licencesOf } from './licences.ts';
import { rewritten } from './rewritten.ts';
import { withWideFields } from './wide-fields.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const rewriting: Plugin = {
  name: 'rewriting',
  transform: (code, id) => (isOurs(id) ? withWideFields(code) : null),
  // A file of third-party modules only is not rewritten.
  renderChunk: (code, { moduleIds }) => (moduleIds.some(isOurs) ? rewritten(code) : null),
};

/** `?raw` after a source path means its text. */
const texts: Plugin = {
  name: 'texts',
  resolveId: (id, importer) =>
    id.endsWith('?raw') && importer !== undefined ? join(dirname(importer), id) : null,
  load: (id) =>
    id.endsWith('?raw')
      ? {
          code: `export default ${JSON.stringify(readFileSync(id.slice(0, -'?raw'.length), 'utf8'))};`,
          moduleType: 'js',
        }
      : null,
};

/** Language level of browsers that are two years old: `using` is translated. */
export const browserTarget = 'es2024';

/** The symbols of `using`, for browsers without them: every module begins with them, because classes name methods by them. */
export const disposeSymbols =
  "Symbol.dispose??=Symbol.for('Symbol.dispose');Symbol.asyncDispose??=Symbol.for('Symbol.asyncDispose');";

const isOurs = (id: string): boolean => id.startsWith(root) && !id.includes('node_modules');

/** Names of files that several others import, from one module in each; other files are named after their only or last module. */
const sharedNames: readonly (readonly [module: string, name: string])[] = [
  ['machine/profile/configuration.ts', 'machine'],
  ['machine/machine.ts', 'library'],
  ['experiments/model/path.ts', 'closed-form'],
  ['lab/page/watched.ts', 'watched'],
  ['node_modules/@lezer/common/dist/index.js', 'parser'],
];

/** v86 would import modules of Node.js if it ran there; a page never reaches those places. */
const withoutNode: Plugin = {
  name: 'v86-without-node',
  transform: (code, id) =>
    isCore(id) ? code.replace(/\bimport\("node:[\w/]+"\)/g, 'Promise.reject()') : null,
};
const isCore = (id: string): boolean => id.includes('node_modules/v86/');

/** A descriptive name of a file. */
function chunkFileNames({ name, isDynamicEntry, moduleIds }: ChunkContent): string {
  if (moduleIds.some(isCore)) return 'v86.js';
  if (isDynamicEntry) return `view-${name.replace(/-view$/, '')}.js`;
  const shared = sharedNames.find(([module]) => moduleIds.includes(join(root, module)));
  return `${shared?.[1] ?? name}.js`;
}

interface ChunkContent {
  readonly name: string;
  readonly isDynamicEntry: boolean;
  readonly moduleIds: readonly string[];
}

/**
 * Modules for a browser, minified. They must not contain anything of Node.js.
 * @param input names of the files, with their entry sources
 * @throws Error that names any outside import
 */
async function browserModules(input: Readonly<Record<string, string>>): Promise<OutputChunk[]> {
  await using build = await rolldown({
    cwd: root,
    input: { ...input },
    platform: 'browser',
    external: (id) => /^(node:|(fs|os|path|util|v8|crypto|worker_threads)$)/.test(id),
    plugins: [texts, withoutNode, rewriting],
    checks: { bundlerTimings: false, pluginTimings: false },
    // A room's index exports everything available to others; unused exports are dropped, with their imports.
    treeshake: { moduleSideEffects: (id) => !isOurs(id) || id.startsWith(join(root, 'lab')) },
    transform: { define: { 'process.env.NODE_ENV': '"production"' }, target: browserTarget },
    tsconfig: false,
    logLevel: 'silent',
  });
  const { output } = await build.generate({
    format: 'es',
    entryFileNames: '[name].js',
    chunkFileNames,
    codeSplitting: {
      groups: [
        // A separate file, to be loaded first.
        { name: 'start-model', test: /lab\/page\/start-model\.ts$/ },
        // Third-party code that is not to be rewritten.
        { name: 'xterm', test: /node_modules\/@xterm\/.*\.m?js$/ },
      ],
    },
    banner: disposeSymbols,
    minify: true,
  });
  const chunks = output.filter((each) => each.type === 'chunk');
  const names = new Set(chunks.map(({ fileName }) => fileName));
  const foreign = chunks.flatMap(({ imports, dynamicImports }) =>
    [...imports, ...dynamicImports].filter((name) => !names.has(name)),
  );
  if (foreign.length > 0) throw new Error(`the modules for a browser would import ${foreign.join(', ')}`);
  return chunks;
}

/** Writes the library into a folder, as one module: `hca-emulator/browser`. */
export async function libraryInto(folder: string): Promise<void> {
  const [library, ...more] = await browserModules({ 'hca-emulator': join(root, 'browser.ts') });
  if (more.length > 0)
    throw new Error(`the library is not one module: ${more.map(({ fileName }) => fileName)}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, library!.fileName), library!.code);
}

/** Writes the lab into a folder. */
export async function labInto(folder: string): Promise<void> {
  const chunks = await browserModules({
    page: join(root, 'lab/page/main.ts'),
    'model.worker': join(root, 'lab/worker/main.ts'),
    'form.worker': join(root, 'lab/worker/form.ts'),
    'program.worker': join(root, 'lab/worker/program.ts'),
    'linux.worker': join(root, 'lab/linux/worker.ts'),
  });
  mkdirSync(folder, { recursive: true });
  for (const { fileName, code } of chunks) writeFileSync(join(folder, fileName), code);
  copyFileSync(join(root, 'lab/page/index.html'), join(folder, 'index.html'));
  const styles = ['node_modules/uplot/dist/uPlot.min.css', 'lab/page/style.css'];
  writeFileSync(
    join(folder, 'style.css'),
    styles.map((file) => readFileSync(join(root, file), 'utf8')).join('\n'),
  );
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  writeFileSync(
    join(folder, 'licences.txt'),
    licencesOf([...modules, ...styles.map((file) => join(root, file))]),
  );
  writeFileSync(join(folder, '_headers'), headersFile('/*'));
}
