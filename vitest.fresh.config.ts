import { defineConfig } from 'vitest/config';
import { builtForm } from './build/vitest-plugin.ts';
import { nodeRuntime } from './vitest.config.ts';

/** A minute of stories that nobody has played before: what it finds is new, and no fault of the change that is being tested. */
export default defineConfig({
  plugins: [...builtForm],
  test: { setupFiles: [nodeRuntime], include: ['test/torture/**/*.spec.ts'] },
});
