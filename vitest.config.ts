import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { builtForm } from './build/vitest-plugin.ts';
import { isAll } from './test/extent.ts';
import { FileOrder } from './test/file-order.ts';

// Node loads modules anew in each process and worker that a test starts. Its cache of stripped and compiled modules, which
// processes and workers inherit by this variable, saves two thirds of the processor time of a start.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('./dist/compiled', import.meta.url));

// Files run beside each other: a machine's threads have no core for themselves, and polling keeps others from working.
process.env['HCA_CORES'] ??= '1';

/**
 * Reporters of a run: for people, and for a script that counts when HCA_TEST_RESULTS names a folder.
 * @param name of the run's file there
 */
export function reportersOf(name: string): (string | [string, { outputFile: string }])[] {
  const folder = process.env['HCA_TEST_RESULTS'];
  return folder === undefined
    ? ['default']
    : ['default', ['json', { outputFile: join(folder, `${name}.json`) }]];
}

/** Node.js as the model's runtime, in every process of the tests. */
export const nodeRuntime = fileURLToPath(new URL('./runtime/node.ts', import.meta.url));

/** Setup file of the model's suite, whose machines run briefly. */
const usualInlining = fileURLToPath(new URL('./test/usual-inlining.ts', import.meta.url));
/** Setup file of `npm run test:quick`. */
const quickProperties = fileURLToPath(new URL('./test/quick-properties.ts', import.meta.url));
const isQuick = process.env['HCA_TEST_QUICK'] === '1';
/** Specs that only a run of everything has (test/extent.ts). */
export const longUnlessAll: readonly string[] = isAll ? [] : ['**/*.long.spec.ts'];

/** The rooms whose specs leave nothing behind in a process: what they mock comes back. */
const shared = '{abi,analyser,base,driver,host,hw,net,protocol,runtime,sim,userlib,wire}/**/*.spec.ts';
/**
 * Scenarios of whole machines, which leave nothing behind either; not those that look at all objects of a process or at how the engine
 * keeps their fields, nor those that start processes.
 */
const scenarios = [
  'test/!(bench|docs|machine-image|package|*.long).spec.ts',
  'test/wire/*.spec.ts',
  'experiments/{bottleneck,model,studies,validate,workloads}/**/*.spec.ts',
  'explain/timeline/**/*.spec.ts',
  'torture/**/*.spec.ts',
  'machine/**/!(worker-parts).spec.ts',
];
/** Commands of `hca`, most of them in the process of their spec, which is afterwards as it was (cli/testing). */
const ofCommands = [
  ...[
    'cli',
    'compare-timeline',
    'cutoff',
    'drawn-pairs',
    'explain',
    'files',
    'guest-page',
    'html-output',
    'json-outputs',
  ],
  ...['perf-bottleneck', 'perf-extended', 'rerun', 'sweep', 'validate', 'wire'],
].join('|');
/** Tests of the parts around the machine, which leave no state to later tests: pages, tables, sweeps, the server, a guest's parts. */
const tools = [
  'build/{local-names,plain-fields,wide-fields}.spec.ts',
  'build/site/*.spec.ts',
  'guests/**/*.spec.ts',
  'lab/page/*.spec.ts',
  'lab/worker/!(program-session).spec.ts',
  'lab/worker/operation/*.spec.ts',
  'build/pages/*.spec.ts',
  `cli/**/!(${ofCommands}|torture-served).spec.ts`,
  'experiments/{runs,sweep}/**/*.spec.ts',
  'explain/{page,diff,text}/**/*.spec.ts',
];
const commands = [`cli/**/@(${ofCommands}).spec.ts`];
const apart = [
  '**/node_modules/**',
  '**/dist/**',
  '.scratch/**',
  'test/guest/**',
  'test/page/**',
  ...longUnlessAll,
];

/**
 * Everything but the Linux guests, which have a configuration of their own. Tests never time the wall clock; the limit only ends
 * what hangs, on shared and loaded machines too. Fresh stories are bounded by it: they are as many as a minute lets them be.
 */
export default defineConfig({
  plugins: [...builtForm],
  test: {
    setupFiles: [nodeRuntime, usualInlining, ...(isQuick ? [quickProperties] : [])],
    // Specs run the code of `hca` unmodified (cli/testing).
    server: { deps: { external: [/\/dist\/checkout\//] } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Vitest leaves one core to itself, and of two that is half: a file keeps its one less than one and a half busy.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: FileOrder },
    reporters: reportersOf('model'),
    projects: [
      {
        extends: true,
        test: {
          name: 'machine',
          include: ['**/*.spec.ts'],
          exclude: [...apart, shared, ...scenarios, ...tools, ...commands],
        },
      },
      {
        // One process after the other for all files: to start and load for each costs a quarter of the rooms' time.
        extends: true,
        test: { name: 'rooms', include: [shared], exclude: apart, isolate: false, restoreMocks: true },
      },
      {
        extends: true,
        test: { name: 'scenarios', include: scenarios, exclude: apart, isolate: false, restoreMocks: true },
      },
      {
        extends: true,
        test: { name: 'commands', include: commands, exclude: apart, isolate: false, restoreMocks: true },
      },
      {
        extends: true,
        test: { name: 'tools', include: tools, exclude: apart, isolate: false, restoreMocks: true },
      },
    ],
  },
});
