/** v86's machine code as Node.js reads it from the package; a page receives it from its server. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Bytes of v86.wasm. */
export const coreCode = (): Uint8Array =>
  readFileSync(
    createRequire(import.meta.url)
      .resolve('v86')
      .replace('libv86.mjs', 'v86.wasm'),
  );
