/**
 * What npm runs after it has installed a checkout (`prepare`): builds it by main.ts, or says in words what is missing. Building takes
 * development dependencies: rolldown, and where `node` is older the package `node`, which is Node 24. JavaScript, since an older Node
 * runs no TypeScript.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const nodeMajor = Number(process.versions.node.split('.')[0]);
if (nodeMajor < 24) {
  process.stderr.write(
    `hca-emulator: not built. Building takes Node 24 or newer, this is ${process.version}. ` +
      'npm ci without --omit=dev installs Node 24 beside the sources; the packed package (npm pack) is built already.\n',
  );
  process.exitCode = 1;
} else {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  process.exitCode = spawnSync(process.execPath, [main], { stdio: 'inherit' }).status ?? 1;
}
