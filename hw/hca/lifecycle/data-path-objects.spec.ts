import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { tightest } from '../testing/data-path-bench.ts';
import { connectedPair, pattern, Region } from '../testing/data-path-verbs.ts';
import { scene, syndromesOf } from '../testing/scenario.ts';

const BYTES = 16_384;

describe('CLOSE_HCA in the middle of traffic', () => {
  for (const hca of [{}, tightest])
    it(`sheet 3.10: leaves nothing to the next life${hca === tightest ? ', at the smallest sizes' : ''}`, async () => {
      for (let afterUs = 0.6; afterUs < 8; afterUs += 0.7) {
        const { bench, a, b, local, remote, target } = await scene({ hca, dma: { tagCount: 2 } });
        const { control } = bench.a.dataPath;
        for (let index = 0; index < 3; index++) {
          a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 5000)], remote: target });
          a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 5000)], remote: target });
          const ours = { address: local.address, key: local.key };
          b.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [remote.part(0, 5000)], remote: ours });
          b.post({ opcode: WqeOpcode.RDMA_READ, segments: [remote.part(0, 5000)], remote: ours });
        }
        a.ring();
        b.ring();
        await bench.run(afterUs);
        bench.a.act(() => control.halt());
        let isQuiescent = false;
        await bench.until(() => {
          // The reset happens at the edge at which the data path is quiescent, as in the command.
          bench.a.act(() => {
            if (isQuiescent || !control.isQuiescent()) return;
            isQuiescent = true;
            control.resetAll();
            const { qps, cqs } = bench.a.dataPath.parts;
            for (const slot of qps.liveSlots()) qps.free(slot);
            for (const slot of cqs.liveSlots()) cqs.free(slot);
          });
          return isQuiescent;
        }, 200);
        const next = connectedPair(bench.a, bench.b);
        const [from, to] = [new Region(bench.a, BYTES), new Region(bench.b, BYTES)];
        from.write(pattern(afterUs * 10, BYTES));
        await bench.run(3);
        const { address, key } = to;
        next.a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part()], remote: { address, key } });
        next.a.send({
          opcode: WqeOpcode.RDMA_READ,
          segments: [local.part(0, 6000)],
          remote: { address, key },
        });
        const syndromes: number[] = [];
        await bench.until(() => syndromes.push(...syndromesOf(next.aCq.drain())) === 2, 200);
        expect(syndromes).toEqual([0, 0]);
        expect(to.read()).toEqual(from.read());
        expect(local.read(0, 6000)).toEqual(from.read(0, 6000));
        await bench.until(() => !control.qpIsBusy(next.a.slot), 10);
      }
    });
});

describe('a reset in the middle of traffic', () => {
  it('frees the records of all requests, also of those whose CQEs were on their way', async () => {
    for (let afterUs = 3; afterUs < 6; afterUs += 0.25) {
      const { bench, a, local, target } = await scene({ hca: tightest, dma: { tagCount: 1 } });
      const { dataPath, reads, writes, domain } = bench.a;
      for (let index = 0; index < 12; index++)
        a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: target });
      a.ring();
      await bench.run(afterUs);
      bench.a.act(() => {
        reads.reset(domain.cycle);
        writes.reset(domain.cycle);
        dataPath.control.resetAll();
        const { qps, cqs } = dataPath.parts;
        for (const slot of qps.liveSlots()) qps.free(slot);
        for (const slot of cqs.liveSlots()) cqs.free(slot);
      });
      await bench.run(1);
      expect(dataPath.parts.records.freeCount).toBe(dataPath.parts.records.capacity);
    }
  });
});

describe('an object that is destroyed', () => {
  it('is busy until its asynchronous events have been posted: they come before the end of the command', async () => {
    const { bench, a, aCq, local, target } = await scene();
    const { control } = bench.b.dataPath;
    bench.b.events.hasRoom = false;
    // A WRITE with a wrong key fails the peer's QP, with an event.
    const remote = { address: target.address, key: target.key + 1 };
    const [slot] = bench.b.dataPath.parts.qps.liveSlots();
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote });
    await bench.until(() => aCq.drain().length > 0, 50);
    bench.b.act(() => control.qpDestroyed(slot!));
    await bench.run(20);
    expect(control.qpIsBusy(slot!)).toBe(true);
    bench.b.act(() => bench.b.events.makeRoom(bench.b.domain.cycle));
    await bench.until(() => !control.qpIsBusy(slot!), 10);
    expect(bench.b.events.lines).toHaveLength(1);
  });
});
