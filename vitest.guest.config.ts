import { defineConfig } from 'vitest/config';
import { FileOrder } from './test/file-order.ts';
import { longUnlessAll, nodeRuntime, reportersOf } from './vitest.config.ts';

/**
 * Tests that run programs out of Debian's packages: a page in Chromium; sweeps on Redis and Slurm; and stock Linux guests in QEMU, a scenario in each file, three
 * of them beside each other on two cores: on average a scenario waits for a third of its time, and whichever worker is free takes the next. A step is tried twice, and says so: the
 * guest's own time limits run by the wall clock of a machine that others share.
 */
export default defineConfig({
  test: {
    setupFiles: [nodeRuntime],
    include: ['test/{guest,page}/**/*.spec.ts'],
    exclude: [...longUnlessAll],
    maxWorkers: 3,
    sequence: { sequencer: FileOrder },
    retry: 1,
    testTimeout: 900_000,
    hookTimeout: 600_000,
    reporters: reportersOf('guest'),
  },
});
