/** Packets and frames of a hostile peer at the port: testing/hostile-scene.ts describes the checks of each. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FrameDraw, frameDraws } from '../../testing/hostile-frames.ts';
import { highPacketDraws, packetDraws } from '../../testing/hostile-packets.ts';
import { EthernetHostilePort, type HostilePort, LinkPort } from '../../testing/hostile-ports.ts';
import { HostileScene } from '../../testing/hostile-scene.ts';

/** Packets in all, and packets per scene: `npm run fuzz` sets the first, and a seed. */
const packets = Number(process.env['HOSTILE_PACKETS'] ?? 400);
const perScene = packets > 2000 ? 400 : 50;
const seed = Number(process.env['HOSTILE_SEED'] ?? 19);
const timeout = 24 * 3600_000;

/** Half of the packets are of InfiniBand, the others use these ports. */
const ethernetPorts = {
  'RoCE v1': new EthernetHostilePort('v1', { receiveChecksums: 'none', hasFlowControl: true }),
  'RoCE v2 over IPv4': new EthernetHostilePort('v2 over IPv4', {
    receiveChecksums: 'complete',
    hasFlowControl: true,
  }),
  'RoCE v2 over IPv6': new EthernetHostilePort('v2 over IPv6', {
    receiveChecksums: 'verified',
    hasFlowControl: false,
  }),
} as const;
const portCount = Object.keys(ethernetPorts).length;

/** @returns in how many scenes a region at an address beyond 2^52 was written to */
async function play<Draw>(
  port: HostilePort<Draw>,
  draws: fc.Arbitrary<Draw>,
  count: number,
): Promise<number> {
  let reached = 0;
  const scenes = fc.array(draws, { minLength: perScene, maxLength: perScene, size: 'max' });
  const story = fc.asyncProperty(scenes, async (all) => {
    const scene = await HostileScene.open(port);
    for (const draw of all) await scene.arrive(draw);
    if (scene.hasReachedHigh) reached++;
    await scene.check();
  });
  const numRuns = Math.ceil(count / perScene);
  // `npm run test:quick` draws all packets, too, because their outcomes are counted.
  await fc.assert(story, { seed, numRuns, endOnFailure: true, interruptAfterTimeLimit: timeout });
  return reached;
}

describe('a stranger at the port', () => {
  it('IBTA 9.6, 9.7: does only what its packets may', { timeout }, async () => {
    await play(new LinkPort(), packetDraws, packets / 2);
  });

  it('IBTA 9.7.4.1: reaches a region by its address of 64 bits, and by none that differs in the upper ones', {
    timeout,
  }, async () => {
    expect(await play(new LinkPort(), highPacketDraws, packets / 2)).toBeGreaterThan(0);
    const inFrames = highPacketDraws.map((packet): FrameDraw => ({ kind: 'packet', packet, tag: 0 }));
    expect(await play(ethernetPorts['RoCE v2 over IPv4'], inFrames, packets / 2)).toBeGreaterThan(0);
  });

  it.each(Object.entries(ethernetPorts))(
    'IBTA A16, A17, IEEE 802.3 31B: does only what its frames may, with %s',
    { timeout },
    async (_name, port) => {
      await play(port, frameDraws, packets / 2 / portCount);
    },
  );

  it('is judged: a byte that changes is seen, and a packet that leaves no trace', async () => {
    const some = fc.sample(packetDraws, { numRuns: 3, seed: 1 });
    const scene = await HostileScene.open(new LinkPort());
    const { port, memory } = scene.bench.b;
    memory.bytes[memory.bytes.length - 1]! ^= 1;
    await expect(scene.check()).rejects.toThrow('of host memory has changed');
    port.drops = () => true;
    for (const draw of some) await scene.arrive(draw);
    await expect(scene.check()).rejects.toThrow('packets that left no trace');
  });

  it('is judged: a frame that is counted under another reason is seen', async () => {
    const port = new EthernetHostilePort('v1', { receiveChecksums: 'none', hasFlowControl: true });
    const scene = await HostileScene.open(port);
    const { steering } = scene.bench.b.ethernet!.side;
    const { drop } = steering;
    steering.drop = (reason) => drop.call(steering, reason === 'packetDamaged' ? 'packetMalformed' : reason);
    for (const packet of fc.sample(packetDraws, { numRuns: 3, seed: 1 }))
      await scene.arrive({ kind: 'packet', packet: { ...packet, wrong: 15 }, tag: 0 });
    await expect(scene.check()).rejects.toThrow('not counted as their headers say');
  });
});
