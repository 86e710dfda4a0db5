#!/usr/bin/env node
/**
 * Starts the command line, built: in a checkout the build of the sources as they are now, which is made when there is none
 * (../build/README.md). Node keeps what it compiles beside the build, in a package in `$XDG_CACHE_HOME/hca-emulator`, else
 * `~/.cache/hca-emulator`, which saves half of a start, or where NODE_COMPILE_CACHE says; NODE_DISABLE_COMPILE_CACHE=1 keeps
 * nothing. Where no file can be written it works without.
 */
import { existsSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { NODE_COMPILE_CACHE, XDG_CACHE_HOME, HOME } = process.env;

/** By the variable, threads and processes that a command starts have it too. */
function keepCompiledIn(folder) {
  if (folder && !NODE_COMPILE_CACHE) process.env.NODE_COMPILE_CACHE = folder;
  module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);
}

const start = (folder) => import(pathToFileURL(join(folder, 'cli/main.js')).href);

const isCheckout = existsSync(join(root, 'build/checkout.ts'));

if (Number(process.versions.node.split('.')[0]) < 24) {
  const remedy = isCheckout ? '; after npm ci (without --omit=dev), npx hca brings Node 24' : '';
  process.stderr.write(`hca: Node 24 or newer is needed, this is ${process.version}${remedy}\n`);
  process.exitCode = 2;
} else if (isCheckout) {
  keepCompiledIn(join(root, 'dist/compiled'));
  const { builtCheckout } = await import('../build/checkout.ts');
  const folder = builtCheckout();
  if (folder) await start(folder);
} else {
  const caches = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  keepCompiledIn(caches && join(caches, 'hca-emulator', 'compiled'));
  await start(join(root, 'dist/package'));
}
