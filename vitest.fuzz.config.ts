import { defineConfig } from 'vitest/config';
import { builtForm } from './build/vitest-plugin.ts';
import { nodeRuntime } from './vitest.config.ts';

/**
 * Tests of hostile input in large numbers: HOSTILE_PACKETS packets and frames at a port, MADs, messages of communication management, iWARP streams, TCP segments at an
 * iWARP card, and frames on the socket of a cable, a million of each unless it says otherwise, by HOSTILE_SEED.
 */
process.env['HOSTILE_PACKETS'] ??= '1000000';

export default defineConfig({
  plugins: [...builtForm],
  test: {
    setupFiles: [nodeRuntime],
    include: [
      'hw/hca/ibta/receiver/hostile-packets.spec.ts',
      'hw/hca/ibta/receiver/multicast-stories.spec.ts',
      'hw/hca/port/hostile-mads.spec.ts',
      'protocol/iwarp/hostile-input.spec.ts',
      'hw/hca/iwarp/hostile-streams.spec.ts',
      'driver/cm/hostile-messages.spec.ts',
      'guests/serve/hostile-stranger.spec.ts',
      'host/mm/random-stories.spec.ts',
    ],
  },
});
