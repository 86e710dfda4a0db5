import { defineConfig } from 'vitest/config';

/** A machine boots in a second or two; the limit only ends what hangs. */
export default defineConfig({ test: { testTimeout: 120_000 } });
