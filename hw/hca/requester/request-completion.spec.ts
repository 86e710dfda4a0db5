import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { tightest } from '../testing/data-path-bench.ts';
import { connectedPair, Region } from '../testing/data-path-verbs.ts';
import { scene } from '../testing/scenario.ts';

describe('the requester keeps the order of completions', () => {
  it('IBTA 10.7.3.1, 10.8.3: of unsignalled requests, NOPs, READs and WRITEs in one queue', async () => {
    for (const hca of [{}, tightest, { completionFifoDepth: 2 }]) {
      const { bench, a, aCq, local, target } = await scene({ hca });
      const write = { opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 10)], remote: target };
      a.post(write);
      a.post({ ...write, isUnsignalled: true });
      a.post({ opcode: WqeOpcode.NOP });
      a.post({ ...write, opcode: WqeOpcode.RDMA_READ });
      a.post({ opcode: WqeOpcode.NOP });
      a.post({ opcode: WqeOpcode.NOP, isUnsignalled: true });
      a.post({ opcode: WqeOpcode.NOP });
      a.post({ ...write, isUnsignalled: true });
      a.post(write);
      a.post({ opcode: WqeOpcode.NOP });
      a.ring();
      await bench.run(60);
      expect(aCq.drain().map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual(
        [0, 2, 3, 4, 6, 8, 9].map((counter) => [counter, 0]),
      );
      expect(bench.a.dataPath.parts.records.freeCount).toBe(bench.a.dataPath.parts.records.capacity);
    }
  });

  it('over many turns of a small ring', async () => {
    const { bench, a, aCq, local, remote, target } = await scene({ a: { sqLogCount: 2 } });
    for (let index = 0; index < 70; index++) {
      const at = (index * 64) % 8192;
      a.send({
        opcode: WqeOpcode.RDMA_WRITE,
        segments: [local.part(at, 64)],
        remote: { ...target, address: target.address + at },
      });
      const before = aCq.consumer;
      await bench.until(() => aCq.takenCount() > before, 30);
    }
    expect(aCq.consumer).toBe(70);
    expect(remote.read(0, 64 * 70)).toEqual(local.read(0, 64 * 70));
  });

  it('when many QPs send at once, none is left out', async () => {
    const { bench } = await scene({ hca: { outstandingWqes: 4 } });
    const pairs = Array.from({ length: 8 }, () => connectedPair(bench.a, bench.b));
    const from = new Region(bench.a, 8192);
    const to = new Region(bench.b, 8192);
    await bench.run(2);
    for (const { a } of pairs)
      for (let index = 0; index < 5; index++)
        a.send({
          opcode: WqeOpcode.RDMA_WRITE,
          segments: [from.part(0, 5000)],
          remote: { address: to.address, key: to.key },
        });
    await bench.until(() => pairs.every(({ aCq }) => aCq.takenCount() >= 5), 300);
  });
});
