#!/usr/bin/env node
/** Starts the command line: from the TypeScript sources in a checkout, from the compiled package elsewhere. */
import { existsSync } from 'node:fs';

const source = new URL('../system/cli/main.ts', import.meta.url);
const compiled = new URL('../dist/system/cli/main.js', import.meta.url);

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
