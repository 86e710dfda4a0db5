#!/usr/bin/env node
/**
 * Starts the command line: from the TypeScript sources in a checkout, from the compiled package elsewhere. Node keeps what
 * it compiles in `$XDG_CACHE_HOME/hca-emulator`, else `~/.cache/hca-emulator`, which saves half of a start, or where
 * NODE_COMPILE_CACHE says; NODE_DISABLE_COMPILE_CACHE=1 keeps nothing. Where no file can be written it works without.
 */
import { existsSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';

const source = new URL('../system/cli/main.ts', import.meta.url);
const compiled = new URL('../dist/system/cli/main.js', import.meta.url);

const { NODE_COMPILE_CACHE, XDG_CACHE_HOME, HOME } = process.env;
const caches = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
// By the variable, threads and processes that a command starts have it too.
if (caches && !NODE_COMPILE_CACHE) process.env.NODE_COMPILE_CACHE = join(caches, 'hca-emulator', 'compiled');
module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);

if (!existsSync(source)) {
  await import(compiled.href);
} else if (Number(process.versions.node.split('.')[0]) >= 24) {
  await import(source.href);
} else {
  process.stderr.write(
    `hca: Node ${process.version} cannot run the sources; use npx hca, which brings Node 24\n`,
  );
  process.exitCode = 2;
}
