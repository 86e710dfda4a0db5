/**
 * Gives the model's modules, as tests run them, local names as the built ones have (see README.md): vitest makes each use of
 * an imported name a look-up in an object, which takes a quarter more of the time of stories.
 */
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vitest/config';
import { withLocalNames } from './local-names.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Specs and their helpers stay as they are: vitest itself moves their calls of `vi.mock`. */
const isOfModel = (id: string): boolean =>
  /\.ts$/.test(id) &&
  id.startsWith(root) &&
  !/node_modules|\.spec\.ts$|^(test|build)\//.test(id.slice(root.length));

/** For `plugins` of a vitest configuration. */
export const localNames: Plugin = {
  name: 'local-names',
  enforce: 'post',
  transform: (code, id) => (isOfModel(id) ? { code: withLocalNames(code), map: null } : null),
};
