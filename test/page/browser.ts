/**
 * Tests in a page of a browser. If no browser is available (no apt, another platform) they are skipped with a reason;
 * under CI they fail.
 */
import { expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import { isAll } from '../extent.ts';
import { browsersTree } from './tree.ts';

/** Folder of the browsers, or why they are unavailable. */
async function browser(): Promise<{ readonly tree: string } | { readonly reason: string }> {
  try {
    return { tree: await browsersTree() };
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return { reason: error.message };
  }
}

const found = await browser();

/** A test that receives the folder of the browsers. */
export function inBrowser(name: string, test: (tree: string) => Promise<void>): void {
  if ('tree' in found) it(name, () => test(found.tree));
  else if (process.env['CI'] === 'true') it(name, () => expect.fail(found.reason));
  else it.skip(`${name}: needs a browser: ${found.reason}`);
}

/** {@link inBrowser}, if everything is run. */
export function inBrowserOfAll(name: string, test: (tree: string) => Promise<void>): void {
  if (isAll) inBrowser(name, test);
}
