/** The contracts of blocks (../README.md), for those of the RDMA side. */
import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { Random } from '../../../sim/index.ts';
import { oneLineCaches, tightest } from '../testing/data-path-bench.ts';
import {
  type IwarpBench,
  type IwarpOptions,
  iwarpPair,
  iwarpScene,
  runJoined,
  untilJoined,
} from './testing/iwarp-bench.ts';

const { ATOMIC_FA, RDMA_READ, RDMA_WRITE, RDMA_WRITE_IMM, SEND, SEND_INVAL } = WqeOpcode;

/** Posts requests of all kinds on three pairs, and lets some of them cross. */
async function traffic(options: IwarpOptions, seed: number, steps: number) {
  const random = new Random(seed);
  const scene = await iwarpScene({ hasMarkers: random.chance(0.5) }, { ...options, hasExtensions: true });
  const { bench, local, remote, streams } = scene;
  const pairs = [scene, iwarpPair(bench), iwarpPair(bench, { reads: 1 })];
  await runJoined(bench, 5);
  if (random.chance(0.5)) {
    streams.a.cuts = [1460, 3];
    for (const { connection } of pairs) streams.a.connection(connection).roomBytes = 3000;
  }
  const target = { address: remote.address, key: remote.key };
  const sides = pairs.flatMap(({ a, b, aCq, bCq }) => [
    { qp: a, cq: aCq, peer: b, own: local, other: remote, remote: target },
    {
      qp: b,
      cq: bCq,
      peer: a,
      own: remote,
      other: local,
      remote: { address: local.address, key: local.key },
    },
  ]);
  const posted = sides.map(() => 0);
  const done = sides.map(() => 0);
  const drain = (): void => {
    for (const [index, { cq }] of sides.entries())
      done[index]! += cq.drain().filter(({ isSend }) => isSend).length;
  };
  for (let step = 0; step < steps; step++) {
    drain();
    for (const [index, { qp, peer, own, other, remote: to }] of sides.entries()) {
      if (posted[index]! - done[index]! > 6) continue;
      const bytes = 1 + random.below(4000);
      const opcode = [RDMA_WRITE, SEND, RDMA_READ, RDMA_WRITE_IMM, ATOMIC_FA][random.below(5)]!;
      if (opcode === SEND || opcode === RDMA_WRITE_IMM) peer.receive([other.part(0, 4096)]);
      const segments = [own.part(8000, opcode === ATOMIC_FA ? 8 : bytes)];
      const isFenced = random.chance(0.2);
      const atomic = opcode === ATOMIC_FA ? { swapOrAdd: 1n } : {};
      qp.send({ opcode, segments, remote: to, isFenced, immediate: 7, ...atomic });
      posted[index]! += 1;
    }
    await runJoined(bench, 1);
  }
  const finish = (): Promise<void> =>
    untilJoined(bench, () => {
      drain();
      return done.every((count, index) => count === posted[index]);
    });
  return { ...scene, sides, finish };
}

/** READs of 12 streams at once, and then small SENDs faster than their completions can be written. */
async function manySmall(): Promise<IwarpBench> {
  const dma = { readIssueCycles: 1000, writeIssueCycles: 1000 };
  const { bench, a, b, aCq, bCq, local, remote } = await iwarpScene(
    { reads: 16 },
    { dma, hca: { responseBufferPackets: 64, completionFifoDepth: 2 } },
  );
  for (let index = 0; index < 12; index++)
    a.post({
      opcode: RDMA_READ,
      segments: [local.part(index * 1000, 3000)],
      remote: { address: remote.address + 1000, key: remote.key },
    });
  a.ring();
  await untilJoined(bench, () => aCq.takenCount() === 12);
  for (let index = 0; index < 12; index++) b.receive([]);
  for (let index = 0; index < 12; index++) a.post({ opcode: SEND, segments: [] });
  a.ring();
  await untilJoined(bench, () => bCq.takenCount() === 12);
  return bench;
}

const rdmaState = ({ a }: IwarpBench) => {
  const { connections, placementQueue, rdmaTransmitter, readResponder, placement, streamEnds } =
    a.dataPath.blocks;
  return [connections, placementQueue, rdmaTransmitter, readResponder, placement, streamEnds].map((block) =>
    block.inspect(),
  );
};

describe('the blocks of the RDMA side', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])('forget everything at a reset in any state (seed %i)', async (seed) => {
    const random = new Random(seed);
    const hca = random.chance(0.5) ? { hca: tightest, iwarp: { placementSegments: 1 } } : {};
    const { bench, streams } = await traffic(hca, seed, 5 + random.below(40));
    const fresh = rdmaState((await iwarpScene(undefined, hca)).bench).slice(1);
    for (const node of bench.nodes)
      node.act(() => {
        node.reads.reset(node.domain.cycle);
        node.writes.reset(node.domain.cycle);
        node.dataPath.reset();
      });
    await bench.run(3);
    expect(rdmaState(bench).slice(1)).toEqual(fresh);
    expect(bench.a.dataPath.parts.connections.inspect()).toEqual({ streams: [] });
    expect(Array.from(streams.a.held).every((count) => count === 0)).toBe(true);
    await bench.run(5);
  });

  it('have every declared reason to stall, and lose nothing', async () => {
    const all: readonly IwarpOptions[] = [
      { hca: tightest, iwarp: { placementSegments: 1 } },
      { dma: { tagCount: 1 } },
      { dma: { writeIssueCycles: 300 } },
      { dma: { readIssueCycles: 300 }, hca: { responseBufferPackets: 64 } },
      { hca: { ...oneLineCaches, cacheMissCycles: 300, transmitLatencyCycles: 200 } },
    ];
    const stalled = new Map<string, number>();
    const note = ({ nodes }: IwarpBench): void => {
      for (const { dataPath } of nodes)
        for (const { account } of [dataPath.roles.outbound, dataPath.roles.inbound, dataPath.roles.responses])
          account.stallReasons.forEach((reason, index) => {
            const name = `${account.name}.${reason}`;
            stalled.set(name, (stalled.get(name) ?? 0) + account.stalledCycles[index]!);
          });
    };
    for (const [index, options] of all.entries()) {
      const { bench, finish, a, b, remote, local } = await traffic(options, index + 1, 60);
      await finish();
      b.receive([remote.part(0, 64)]);
      // While payload is on its way, a key is invalidated.
      a.post({
        opcode: RDMA_WRITE,
        segments: [local.part(0, 8000)],
        remote: { address: remote.address, key: remote.key },
      });
      a.post({ opcode: SEND_INVAL, segments: [local.part(0, 9)], immediate: remote.key });
      a.ring();
      await runJoined(bench, 60);
      note(bench);
    }
    note(await manySmall());
    expect([...stalled].filter(([, cycles]) => cycles === 0).map(([name]) => name)).toEqual([]);
  }, 60_000);
});
