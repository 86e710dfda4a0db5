import { defineConfig } from 'vitest/config';
import { builtForm } from './build/vitest-plugin.ts';
import { nodeRuntime } from './vitest.config.ts';

/** Hostile packets in number: HOSTILE_PACKETS of them, a million unless it says otherwise, by HOSTILE_SEED. */
process.env['HOSTILE_PACKETS'] ??= '1000000';

export default defineConfig({
  plugins: [...builtForm],
  test: { setupFiles: [nodeRuntime], include: ['hw/hca/receiver/hostile-packets.spec.ts'] },
});
