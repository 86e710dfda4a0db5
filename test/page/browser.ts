/**
 * Tests in a page of a browser. Where none can be had (no apt, another platform) they are skipped and say why;
 * under CI a browser that cannot be had fails.
 */
import { expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import { browsersTree } from './tree.ts';

/** Folder of the browsers, or why there is none. */
async function browser(): Promise<{ readonly tree: string } | { readonly reason: string }> {
  try {
    return { tree: await browsersTree() };
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return { reason: error.message };
  }
}

const found = await browser();

/** A test that is given the folder of the browsers. */
export function inBrowser(name: string, test: (tree: string) => Promise<void>): void {
  if ('tree' in found) it(name, () => test(found.tree));
  else if (process.env['CI'] === 'true') it(name, () => expect.fail(found.reason));
  else it.skip(`${name}: needs a browser: ${found.reason}`);
}
