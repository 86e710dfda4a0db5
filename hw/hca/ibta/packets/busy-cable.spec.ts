/**
 * A transmitter that is notified how long the cable is busy sends the same packets at the same instants, with the same
 * statistics, as one that retries and is called back. The latter is the former with a port that never reports it.
 */
import { expect, it, vi } from 'vitest';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { connectedPair, Region } from '../../testing/data-path-verbs.ts';
import { countersOf, runMixedTraffic } from '../../testing/mixed-traffic.ts';
import { type Scene, type SceneOptions, scene } from '../../testing/scenario.ts';

const { RDMA_READ, RDMA_WRITE, SEND } = WqeOpcode;

function writeMuch({ a, local, target }: Scene): void {
  for (let message = 0; message < 6; message++)
    a.post({ opcode: RDMA_WRITE, remote: target, segments: [local.part(0, 16_000)] });
  a.ring();
}

const traffic: Record<string, { options: SceneOptions; run(on: Scene): Promise<void> }> = {
  'of all kinds': { options: {}, run: ({ bench }) => runMixedTraffic(bench, 4, 40, 3) },
  'of packets formed so slowly that it waits for them': {
    options: { hca: { transmitLatencyCycles: 200, transmitPacketCycles: 1 } },
    run: async (on) => {
      for (let message = 0; message < 12; message++)
        on.a.post({ opcode: RDMA_WRITE, remote: on.target, inline: Uint8Array.of(message) });
      writeMuch(on);
      await on.bench.run(100);
    },
  },
  'both ways, with responses before requests': {
    options: {},
    run: async (on) => {
      const { bench, b, local, remote } = on;
      const back = { address: local.address, key: local.key };
      for (let message = 0; message < 6; message++)
        b.post({ opcode: RDMA_READ, remote: back, segments: [remote.part(0, 12_000)] });
      b.ring();
      writeMuch(on);
      await bench.run(100);
    },
  },
  'to another port and to this one': {
    options: {},
    run: async (on) => {
      const { a: node } = on.bench;
      const { a: left } = connectedPair(node, node, { path: { remoteLid: node.address.lid } });
      const to = new Region(node, 3000);
      for (let message = 0; message < 6; message++)
        left.post({
          opcode: RDMA_WRITE,
          remote: { address: to.address, key: to.key },
          segments: [on.local.part(0, 3000)],
        });
      writeMuch(on);
      left.ring();
      await on.bench.run(100);
    },
  },
  'for a receiver that is not ready, so that what is queued becomes void': {
    options: { ackTimeout: 1, hca: { burstPackets: 1, transmitBufferPackets: 4 } },
    run: async (on) => {
      const { bench, a, b, local, remote } = on;
      const others = connectedPair(bench.a, bench.b);
      for (let message = 0; message < 4; message++)
        a.post({ opcode: SEND, segments: [local.part(0, 10_000)] });
      writeMuch({ ...on, a: others.a });
      a.ring();
      await bench.run(14);
      for (let message = 0; message < 4; message++) b.receive([remote.part(0, 10_000)]);
      await bench.run(100);
    },
  },
  'of which some payload cannot be read': {
    options: {},
    run: async (on) => {
      const { bench, a, local, target } = on;
      const far = new Region(bench.a, 4096);
      far.loseMemory(0);
      a.post({ opcode: RDMA_WRITE, remote: target, segments: [local.part(0, 16_000)] });
      a.post({ opcode: RDMA_WRITE, remote: target, segments: [far.part(0, 4000)] });
      writeMuch(on);
      await bench.run(100);
    },
  },
};

async function countersAfter(
  name: string,
  isNotified: boolean,
): Promise<{ counters: unknown; tries: number }> {
  const { options, run } = traffic[name]!;
  const on = await scene(options);
  const { nodes } = on.bench;
  if (!isNotified) for (const { port } of nodes) vi.spyOn(port, 'expectPacket').mockReturnValue(0);
  const sendPackets = nodes.map(({ port }) => vi.spyOn(port, 'sendPacket'));
  await run(on);
  on.bench.checkBalances();
  const counters = nodes.map((node) => ({
    ...(countersOf(node) as object),
    transmitted: node.wire.transmitted,
    loopback: node.dataPath.blocks.loopback.first.packetTotal,
  }));
  return { counters, tries: sendPackets.reduce((sum, { mock }) => sum + mock.calls.length, 0) };
}

it.each(Object.keys(traffic))('traffic %s', async (name) => {
  const notified = await countersAfter(name, true);
  const trying = await countersAfter(name, false);
  expect(notified.counters).toEqual(trying.counters);
  expect(notified.tries).toBeLessThan(trying.tries);
});
