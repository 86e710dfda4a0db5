import { defineConfig } from 'vitest/config';

/** Tests never time the wall clock; the limit only ends what hangs, on shared and loaded machines too. */
export default defineConfig({
  test: {
    include: ['**/*.spec.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', '.scratch/**'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
