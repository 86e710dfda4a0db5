/** Packets of a stranger at the port: see testing/hostile-scene.ts for what holds of each. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packetDraws } from '../testing/hostile-packets.ts';
import { HostileScene } from '../testing/hostile-scene.ts';

/** So many packets in all, so many to a scene: `npm run fuzz` sets the first, and a seed. */
const packets = Number(process.env['HOSTILE_PACKETS'] ?? 200);
const perScene = packets > 2000 ? 200 : 50;
const seed = Number(process.env['HOSTILE_SEED'] ?? 19);
const draws = fc.array(packetDraws, { minLength: perScene, maxLength: perScene, size: 'max' });

describe('a stranger at the port', () => {
  it('IBTA 9.6, 9.7: does only what its packets may', { timeout: 24 * 3600_000 }, async () => {
    const story = fc.asyncProperty(draws, async (packets) => {
      const scene = await HostileScene.open();
      for (const draw of packets) await scene.arrive(draw);
      await scene.check();
    });
    await fc.assert(story, { seed, numRuns: Math.ceil(packets / perScene), endOnFailure: true });
  });

  it('is judged: a byte that changes is seen, and a packet that leaves no trace', async () => {
    const [some] = fc.sample(draws, { numRuns: 1, seed: 1 });
    const scene = await HostileScene.open();
    const { port, memory } = scene.bench.b;
    memory.bytes[memory.bytes.length - 1]! ^= 1;
    await expect(scene.check()).rejects.toThrow('of host memory has changed');
    port.drops = () => true;
    for (const draw of some!.slice(0, 3)) await scene.arrive(draw);
    await expect(scene.check()).rejects.toThrow('packets that left no trace');
  });
});
