import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { type BenchOptions, tightest } from '../testing/data-path-bench.ts';
import { connectedPair, type SendRequest } from '../testing/data-path-verbs.ts';
import { type Scene, scene, summaryOf } from '../testing/scenario.ts';

const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];
const write = ({ local, target }: Scene): SendRequest => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(0, 3000)],
  remote: target,
});

describe('a QP that goes to error', () => {
  for (const [name, options] of sizes) {
    it(`IBTA 10.3.1: completes every work request posted, once, whatever it was doing${name}`, async () => {
      for (const afterUs of [0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6]) {
        const given = await scene(options);
        const { bench, a, b, aCq, bCq, local, remote, checkBystanders } = given;
        for (let index = 0; index < 6; index++) b.receive([remote.part(0, 4000)]);
        for (let index = 0; index < 12; index++)
          a.post(
            index % 3 === 0
              ? write(given)
              : index % 3 === 1
                ? { opcode: WqeOpcode.SEND, segments: [local.part(0, 2500)] }
                : { ...write(given), opcode: WqeOpcode.RDMA_READ, segments: [local.part(6000, 3000)] },
          );
        a.ring();
        await bench.run(afterUs);
        a.toError();
        b.toError();
        await bench.run(80);
        const sent = aCq.drain();
        expect(sent.map(({ wqeCounter }) => wqeCounter)).toEqual(
          Array.from({ length: 12 }, (_, index) => index),
        );
        const received = bCq.drain();
        expect(received.map(({ wqeCounter }) => wqeCounter)).toEqual([0, 1, 2, 3, 4, 5]);
        for (const list of [sent, received]) {
          // Good ones first, then only flushed ones.
          const firstFlushed = list.findIndex(({ syndrome }) => syndrome !== 0);
          expect(list.slice(firstFlushed).every(({ syndrome }) => syndrome === 5)).toBe(true);
        }
        await checkBystanders();
        await bench.until(() => [a, b].every((qp) => !qp.node.dataPath.control.qpIsBusy(qp.slot)), 30);
        const { records } = bench.a.dataPath.parts;
        expect(records.freeCount).toBe(records.capacity);
      }
    });

    it(`IBTA 10.3.1: flushes what is posted afterwards: sends by their doorbell, receives a period after their record${name}`, async () => {
      const given = await scene(options);
      const { bench, a, aCq, local } = given;
      a.toError();
      await bench.run(10);
      a.send(write(given));
      a.receive([local.part(0, 8)]);
      await bench.run(15);
      expect(summaryOf(aCq.drain())[0]).toBe('send 0: 0x5');
      a.receive([local.part(0, 8)]);
      a.receive([local.part(0, 8)]);
      await bench.run(60);
      a.send(write(given));
      await bench.run(30);
      const rest = summaryOf(aCq.drain());
      expect(rest.filter((line) => line.startsWith('send'))).toEqual(['send 1: 0x5']);
      expect(bench.a.dataPath.parts.qps.rows[a.slot]!.state).toBe(QpState.ERR);
      expect(bench.a.dataPath.blocks.receives.consumedCounter(a.slot)).toBe(3);
    });
  }

  it('IBTA 10.3.1: flushes a message half received', async () => {
    const given = await scene();
    const { bench, a, b, bCq, local, remote } = given;
    bench.b.port.drops = ({ psn }) => psn === 0;
    b.receive([remote.part(0, 8000)]);
    b.receive([remote.part(0, 8000)]);
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 6000)] });
    await bench.run(10);
    b.toError();
    await bench.run(40);
    expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x5', 'receive 1: 0x5']);
  });
});

describe('many QPs in error', () => {
  it('IBTA 10.3.1: are all flushed, with few lines and little room for completions', async () => {
    const given = await scene({ hca: tightest });
    const { bench } = given;
    const pairs = Array.from({ length: 8 }, () => connectedPair(bench.a, bench.b));
    await bench.run(4);
    for (const { a } of pairs) {
      for (let index = 0; index < 9; index++) a.post(write(given));
      a.toError();
    }
    await bench.until(() => pairs.every(({ aCq }) => aCq.takenCount() === 9), 500);
    await bench.run(50);
    for (const { aCq } of pairs) expect(aCq.takenCount()).toBe(9);
  });
});

describe('taking a QP away', () => {
  for (const [name, options] of sizes)
    it(`sheet 3.17: leaves nothing of it, whatever it was doing, and makes no completion${name}`, async () => {
      for (const afterUs of [0, 0.3, 0.6, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 7]) {
        const given = await scene(options);
        const { bench, a, b, aCq, bCq, local, remote, checkBystanders } = given;
        for (let index = 0; index < 6; index++) b.receive([remote.part(0, 4000)]);
        for (let index = 0; index < 9; index++)
          a.post({
            ...write(given),
            ...(index % 3 === 1 ? { opcode: WqeOpcode.SEND } : {}),
            ...(index % 3 === 2 ? { opcode: WqeOpcode.RDMA_READ, segments: [local.part(6000, 3000)] } : {}),
          });
        a.ring();
        await bench.run(afterUs);
        for (const qp of [a, b]) qp.node.act(() => qp.node.dataPath.control.qpDestroyed(qp.slot));
        await bench.run(0.1);
        // The command processor waits for this before it frees the slot.
        await bench.until(() => [a, b].every((qp) => !qp.node.dataPath.control.qpIsBusy(qp.slot)), 30);
        for (const qp of [a, b]) qp.node.dataPath.parts.qps.free(qp.slot);
        // CQEs that were on their way to memory when the QP was destroyed are there 1 us later; none follows.
        await bench.run(1);
        aCq.drain();
        bCq.drain();
        await bench.run(100);
        expect([aCq.drain(), bCq.drain()]).toEqual([[], []]);
        for (const { dataPath, wire } of bench.nodes) {
          expect(dataPath.parts.records.freeCount).toBe(dataPath.parts.records.capacity);
          expect(dataPath.blocks.transmitter.requests.isEmpty).toBe(true);
          expect(dataPath.blocks.transmitter.responses.isEmpty).toBe(true);
          expect(wire.receiveBufferedBytes).toBe(0);
        }
        await checkBystanders();
        // The slot's next generation has no state of the previous one.
        const next = connectedPair(bench.a, bench.b);
        await bench.run(3);
        next.b.receive([remote.part(0, 4000)]);
        next.a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 1500)] });
        await bench.until(() => next.aCq.takenCount() === 1, 50);
        expect(next.bCq.drain()).toMatchObject([{ byteCount: 1500, syndrome: 0, wqeCounter: 0 }]);
      }
    });
});

describe('a QP left in error', () => {
  it('IBTA 10.3.1: flushes a receive a period after it was posted, however long the QP has been in error', async () => {
    const given = await scene({ hca: { errorFlushPollNs: 5000 } });
    const { bench, b, bCq } = given;
    b.toError();
    for (const waitUs of [12, 1e3, 1e6]) {
      await bench.run(waitUs);
      // Nothing is due meanwhile, so that a run can end, or be found to be deadlocked.
      expect([bench.b.lp.queue.nextPs, bench.b.hostLp.queue.nextPs]).toEqual([Infinity, Infinity]);
      b.receive([]);
      await bench.run(4);
      expect(bCq.drain()).toEqual([]);
      await bench.run(4);
      expect(bCq.drain()).toMatchObject([{ isSend: false, syndrome: CqeSyndrome.WR_FLUSH_ERR }]);
    }
    expect(bench.b.rootComplex.blocks.monitor.heldCount).toBe(1);
  });

  it('IBTA 10.3.1: flushes each of the receives that are posted while others are flushed', async () => {
    const given = await scene();
    const { bench, b, bCq } = given;
    b.toError();
    await bench.run(2000);
    const counters: number[] = [];
    for (let receive = 0; receive < 300; receive++) {
      b.receive([]);
      await bench.run(0.3);
      counters.push(...bCq.drain().map(({ wqeCounter }) => wqeCounter));
      // The queue has sixteen places.
      if (receive - counters.length > 12) await bench.run(25);
    }
    await bench.run(60);
    counters.push(...bCq.drain().map(({ wqeCounter }) => wqeCounter));
    expect(counters).toEqual(Array.from({ length: 300 }, (_, counter) => counter));
  });

  it('is not monitored any more once it has been destroyed', async () => {
    const given = await scene();
    const { bench, b, bCq } = given;
    b.toError();
    await bench.run(50);
    bench.b.act(() => bench.b.dataPath.control.qpDestroyed(b.slot));
    await bench.run(1);
    expect(bench.b.rootComplex.blocks.monitor.heldCount).toBe(0);
    expect(bench.b.memory.watchedPages.length).toBe(0);
    b.receive([]);
    await bench.run(50);
    expect(bCq.drain()).toEqual([]);
  });

  it('IBTA 10.3.1: flushes later sends also where its doorbell record cannot be read', async () => {
    const beyondMemory = 2n ** 40n;
    const given = await scene({ b: { fields: { doorbellRecordAddress: beyondMemory } } });
    const { bench, b, bCq } = given;
    b.toError();
    await bench.run(50);
    b.send({ opcode: WqeOpcode.NOP });
    await bench.run(50);
    expect(bCq.drain()).toMatchObject([{ isSend: true, syndrome: CqeSyndrome.WR_FLUSH_ERR }]);
  });
});

describe('a QP whose receives are being flushed', () => {
  it('IBTA 10.3.1: flushes what is sent meanwhile, whenever its doorbell arrives', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    a.toError();
    await bench.run(20);
    aCq.drain();
    for (let afterNs = 0; afterNs < 1500; afterNs += 50) {
      a.send(write(given));
      await bench.run(afterNs / 1000);
      a.send(write(given));
      await bench.run(20);
      expect(summaryOf(aCq.drain()), `${afterNs} ns behind the one before`).toHaveLength(2);
    }
  });
});

describe('a reset of the data path', () => {
  for (const [name, options] of sizes)
    it(`at any moment leaves it as new${name}`, async () => {
      for (const afterUs of [0.3, 1, 2, 3, 5]) {
        const given = await scene(options);
        const { bench, a, b, local, remote } = given;
        for (let index = 0; index < 6; index++) b.receive([remote.part(0, 4000)]);
        for (let index = 0; index < 9; index++)
          a.post({ ...write(given), ...(index % 2 === 1 ? { opcode: WqeOpcode.RDMA_READ } : {}) });
        a.ring();
        await bench.run(afterUs);
        for (const node of bench.nodes)
          node.act(() => {
            const { dataPath, reads, writes, domain } = node;
            reads.reset(domain.cycle);
            writes.reset(domain.cycle);
            dataPath.control.resetAll();
            const { qps, cqs } = dataPath.parts;
            for (const slot of qps.liveSlots()) qps.free(slot);
            for (const slot of cqs.liveSlots()) cqs.free(slot);
          });
        await bench.run(20);
        for (const { dataPath, wire } of bench.nodes) {
          expect(dataPath.parts.records.freeCount).toBe(dataPath.parts.records.capacity);
          expect(dataPath.parts.lines.rows.every(({ qp }) => qp === -1)).toBe(true);
          expect(dataPath.parts.lines.rows.every(({ isFetching }) => isFetching === 0)).toBe(true);
          expect(dataPath.blocks.transmitter.requests.isEmpty).toBe(true);
          expect(dataPath.blocks.transmitter.responses.isEmpty).toBe(true);
          expect(wire.receiveBufferedBytes).toBe(0);
        }
        const next = connectedPair(bench.a, bench.b);
        await bench.run(3);
        next.b.receive([remote.part(0, 4000)]);
        next.a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 1500)] });
        next.a.send({ ...write(given), opcode: WqeOpcode.RDMA_READ, segments: [local.part(6000, 3000)] });
        await bench.until(() => next.aCq.takenCount() === 2, 50);
        expect(next.bCq.drain()).toMatchObject([{ byteCount: 1500, syndrome: 0, wqeCounter: 0 }]);
        expect(local.read(6000, 3000)).toEqual(remote.read(0, 3000));
      }
    });
});
