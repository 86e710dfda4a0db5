import { defineConfig } from 'vitest/config';
import { reportersOf } from './vitest.config.ts';

/**
 * Stock Linux guests in QEMU, one machine after the other: two at once on two cores would only wait for each other. A step
 * is tried twice, and says so: the guest's own time limits run by the wall clock of a machine that others share.
 */
export default defineConfig({
  test: {
    include: ['test/guest/**/*.spec.ts'],
    fileParallelism: false,
    retry: 1,
    testTimeout: 180_000,
    hookTimeout: 600_000,
    reporters: reportersOf('guest'),
  },
});
