import { defineConfig } from 'vitest/config';
import { reportersOf } from './vitest.config.ts';

/**
 * Stock Linux guests in QEMU, in three files that run beside each other, made for two cores: one keeps them busy, one waits
 * half of the time, one nearly all of it. A step is tried twice, and says so: the guest's own time limits run by the wall
 * clock of a machine that others share.
 */
export default defineConfig({
  test: {
    include: ['test/guest/**/*.spec.ts'],
    maxWorkers: 3,
    retry: 1,
    testTimeout: 900_000,
    hookTimeout: 600_000,
    reporters: reportersOf('guest'),
  },
});
