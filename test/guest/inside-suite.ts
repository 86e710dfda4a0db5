/** Shared parts of the tests of a Linux in this process. */
import { SimulatorError } from '../../base/assert.ts';
import { defaultCacheFolder, insideFiles, silentProgress } from '../../guests/linux/index.ts';

/** Source of the tests' guests. */
export const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };

/** Why no guest with this kernel is available; undefined if one is. Fetches and builds missing parts. */
export async function reasonAgainstInside(kernel: string): Promise<string | undefined> {
  try {
    await insideFiles({ kernel }, cache);
    return undefined;
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return error.message;
  }
}
