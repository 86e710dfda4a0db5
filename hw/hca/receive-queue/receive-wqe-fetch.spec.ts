import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { EventType } from '../../../abi/eqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { tightest } from '../testing/data-path-bench.ts';
import { Cq, connectedPair, pattern, Qp, Region, Srq } from '../testing/data-path-verbs.ts';
import { scene, summaryOf, syndromesOf } from '../testing/scenario.ts';

const readsOf = (
  node: { reads: { requesters: readonly { name: string; counters: { tlps: number } }[] } },
  name: string,
): number => node.reads.requesters.find((requester) => requester.name === name)!.counters.tlps;

describe('receive WQEs', () => {
  it('are fetched several at once, and the doorbell record only when all known ones are used up', async () => {
    const { bench, a, b, bCq, local, remote } = await scene();
    const recordsBefore = readsOf(bench.b, 'receiveRecord');
    for (let index = 0; index < 8; index++) b.receive([remote.part(index * 100, 100)]);
    for (let index = 0; index < 8; index++)
      a.send({ opcode: WqeOpcode.SEND, segments: [local.part(index * 100, 100)] });
    await bench.run(30);
    expect(bCq.drain().map(({ wqeCounter }) => wqeCounter)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(remote.read(0, 800)).toEqual(local.read(0, 800));
    // One read of the record shows eight; two reads of four WQEs fetch them.
    expect(readsOf(bench.b, 'receiveRecord') - recordsBefore).toBe(1);
    expect(readsOf(bench.b, 'receiveWqeRead')).toBe(2);
  });

  for (const [name, hca] of [
    ['', {}],
    [', at the smallest sizes', tightest],
  ] as const)
    it(`sheet 6.1: wrap around a small ring of any stride, before or behind the send queue${name}`, async () => {
      for (const rqLogStride16 of [0, 1, 3, 5]) {
        const { bench, a, b, bCq, local, remote } = await scene({
          hca,
          b: { rqLogCount: 2, rqLogStride16, sqLogStride16: 3 },
        });
        for (let index = 0; index < 11; index++) {
          b.receive([remote.part(index * 64, 64)]);
          a.send({ opcode: WqeOpcode.SEND, segments: [local.part(index * 64, 64)] });
          await bench.until(() => bCq.takenCount() === index + 1, 50);
        }
        expect(remote.read(0, 11 * 64)).toEqual(local.read(0, 11 * 64));
      }
    });

  it('of more queues than there are lines are each their own', async () => {
    const { bench } = await scene({ hca: { receiveQueueLineCount: 2 } });
    const pairs = Array.from({ length: 6 }, () => connectedPair(bench.a, bench.b));
    const from = new Region(bench.a, 8192);
    const to = new Region(bench.b, 8192);
    from.fill(55);
    await bench.run(4);
    for (let round = 0; round < 5; round++)
      for (const [index, { a, b }] of pairs.entries()) {
        const at = (index * 5 + round) * 128;
        b.receive([to.part(at, 128)]);
        a.send({ opcode: WqeOpcode.SEND, segments: [from.part(at, 128)] });
      }
    await bench.until(() => pairs.every(({ bCq }) => bCq.takenCount() === 5), 300);
    expect(to.read(0, 30 * 128)).toEqual(from.read(0, 30 * 128));
    expect(bench.b.dataPath.blocks.receives.evictionCount).toBeGreaterThan(0);
  });

  it('of a queue that is closed and opened again before its turn are looked for once', async () => {
    const { bench, b, bCq, a, local, remote } = await scene();
    const recordsBefore = readsOf(bench.b, 'receiveRecord');
    bench.b.act(() => {
      const { receives } = bench.b.dataPath.blocks;
      for (let generation = 0; generation < 100_000; generation++) {
        receives.close(b.slot);
        receives.open(b.slot);
        receives.prefetch(b.slot, bench.b.domain.cycle);
      }
    });
    await bench.run(5);
    expect(readsOf(bench.b, 'receiveRecord') - recordsBefore).toBe(1);
    b.receive([remote.part(0, 100)]);
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 100)] });
    await bench.until(() => bCq.takenCount() === 1, 50);
  });

  it('sheet 6.7: that cannot be read end in a NAK and event 0x05', async () => {
    const { bench, checkBystanders } = await scene();
    const bCq = new Cq(bench.b);
    const { a, b, aCq } = connectedPair(bench.a, bench.b, {
      b: { sendCq: bCq, fields: { mttAddress: bench.b.writeMtt([-1, -1, -1]) } },
    });
    await bench.run(3);
    b.receive([]);
    a.send({ opcode: WqeOpcode.SEND });
    await bench.run(30);
    expect(syndromesOf(aCq.drain())).toEqual([0x14]);
    expect(bench.b.events.lines).toEqual([`qp 0x${EventType.WQ_CATAS_ERROR} 0x${b.qpn.toString(16)}`]);
    await checkBystanders();
  });

  it('under way for a QP that is destroyed do not keep it, and do not reach the next one', async () => {
    const { bench } = await scene({ hca: { receiveQueueLineCount: 2 } });
    const { qps } = bench.b.dataPath.parts;
    const from = new Region(bench.a, 4096);
    const to = new Region(bench.b, 4096);
    for (let round = 0; round < 20; round++) {
      const { a, b, bCq } = connectedPair(bench.a, bench.b);
      for (let index = 0; index < 3; index++) b.receive([to.part(index * 256, 256)]);
      await bench.run(0.05 + 0.05 * round);
      bench.b.act(() => bench.b.dataPath.control.qpDestroyed(b.slot));
      await bench.until(() => !bench.b.dataPath.control.qpIsBusy(b.slot), 20);
      qps.free(b.slot);
      bench.a.act(() => bench.a.dataPath.control.qpDestroyed(a.slot));
      await bench.until(() => !bench.a.dataPath.control.qpIsBusy(a.slot), 20);
      bench.a.dataPath.parts.qps.free(a.slot);
      expect(bCq.drain()).toEqual([]);
    }
    const { a, b, bCq } = connectedPair(bench.a, bench.b);
    from.write(pattern(7, 4096));
    b.receive([to.part(1000, 256)]);
    await bench.run(3);
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part(0, 256)] });
    await bench.run(20);
    expect(bCq.drain()).toMatchObject([{ wqeCounter: 0, byteCount: 256, syndrome: 0 }]);
    expect(to.read(1000, 256)).toEqual(from.read(0, 256));
  });
});

describe('a shared receive queue', () => {
  it('sheet 6.5: gives its WQEs to whichever QP needs one, in the order of the list', async () => {
    for (const hca of [{}, tightest]) {
      const { bench } = await scene({ hca });
      const srq = new Srq(bench.b, 3);
      const cq = new Cq(bench.b, 7);
      const pairs = Array.from({ length: 3 }, () =>
        connectedPair(bench.a, bench.b, { b: { sendCq: cq, srq } }),
      );
      const from = new Region(bench.a, 4096);
      const to = new Region(bench.b, 32_768);
      from.fill(3);
      await bench.run(4);
      const placeOf = new Map<number, number>();
      let place = 0;
      const post = (): void => {
        placeOf.set(srq.post([to.part(place * 100, 60), to.part(place * 100 + 60, 40)]), place);
        place++;
      };
      for (let index = 0; index < 6; index++) post();
      for (let round = 0; round < 30; round++) {
        pairs[round % 3]!.a.send({ opcode: WqeOpcode.SEND, segments: [from.part(round, 100)] });
        await bench.until(() => {
          const [done] = cq.drain();
          if (done === undefined) return false;
          expect(done).toMatchObject({ qpn: pairs[round % 3]!.b.qpn, byteCount: 100, syndrome: 0 });
          const at = placeOf.get(done.wqeCounter)!;
          expect(at).toBe(round);
          expect(to.read(at * 100, 100)).toEqual(from.read(round, 100));
          srq.release(done.wqeCounter);
          return true;
        }, 50);
        post();
      }
      // A receiver with an SRQ grants no end-to-end credits that count.
      expect(bench.a.port.packets.every(({ syndrome }) => syndrome === 31)).toBe(true);
    }
  });

  it('IBTA 9.7.5.2.8: that is empty answers "receiver not ready" until WQEs are posted', async () => {
    const { bench } = await scene();
    const srq = new Srq(bench.b);
    const { a, aCq, bCq } = connectedPair(bench.a, bench.b, { b: { srq } });
    const to = new Region(bench.b, 4096);
    await bench.run(3);
    a.send({ opcode: WqeOpcode.SEND });
    await bench.run(30);
    expect(aCq.drain()).toEqual([]);
    srq.post([to.part(0, 8)]);
    await bench.run(20);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bCq.drain()).toHaveLength(1);
  });

  it('sheet 3.16: reports once that fewer WQEs than its limit are left, by the record in memory', async () => {
    const { bench } = await scene();
    const srq = new Srq(bench.b, 5);
    const { a, bCq } = connectedPair(bench.a, bench.b, { b: { srq } });
    const to = new Region(bench.b, 4096);
    await bench.run(3);
    for (let index = 0; index < 10; index++) srq.post([to.part(0, 8)]);
    srq.armLimit(5);
    const consume = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index++) a.send({ opcode: WqeOpcode.SEND });
      await bench.run(20);
    };
    await consume(4);
    // Six are left; ten more are posted before the limit is reached.
    for (let index = 0; index < 10; index++) srq.post([to.part(0, 8)]);
    await consume(4);
    expect(bench.b.events.lines).toEqual([]);
    // Twelve are left: after seven more five, after eight more four.
    await consume(7);
    expect(bench.b.events.lines).toEqual([]);
    await consume(1);
    expect(bench.b.events.lines).toEqual([`srq 0x14 0x${srq.srqn.toString(16)}`]);
    await consume(2);
    expect(bench.b.events.lines).toHaveLength(1);
    expect(bCq.drain()).toHaveLength(18);
  });

  it('sheet 5.5: uses regions of its own protection domain', async () => {
    const { bench } = await scene();
    const srq = new Srq(bench.b, 4, { pd: 8 });
    const { a, aCq } = connectedPair(bench.a, bench.b, { b: { srq } });
    const to = new Region(bench.b, 4096, { pd: 8 });
    await bench.run(3);
    srq.post([to.part(0, 8)]);
    a.send({ opcode: WqeOpcode.SEND, inline: pattern(1, 8) });
    await bench.run(20);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(to.read(0, 8)).toEqual(pattern(1, 8));
  });

  it('sheet 6.7: reports that the last WQE of a QP in error was reached, and keeps its WQEs for the others', async () => {
    const { bench } = await scene();
    const srq = new Srq(bench.b);
    const cq = new Cq(bench.b);
    const first = connectedPair(bench.a, bench.b, { b: { sendCq: cq, srq } });
    const second = connectedPair(bench.a, bench.b, { b: { sendCq: cq, srq } });
    const to = new Region(bench.b, 4096);
    await bench.run(3);
    for (let index = 0; index < 3; index++) srq.post([to.part(0, 8)]);
    first.b.toError();
    await bench.run(30);
    expect(bench.b.events.lines).toEqual([`qp 0x13 0x${first.b.qpn.toString(16)}`]);
    expect(cq.drain()).toEqual([]);
    second.a.send({ opcode: WqeOpcode.SEND });
    await bench.run(20);
    expect(summaryOf(cq.drain())).toEqual(['receive 0: 0x0']);
  });

  it('IBTA 10.2.9.3: loses to a QP that fails the WQE of a message half received, and no other', async () => {
    const { bench } = await scene();
    const srq = new Srq(bench.b);
    const cq = new Cq(bench.b);
    const first = connectedPair(bench.a, bench.b, { b: { sendCq: cq, srq } });
    const second = connectedPair(bench.a, bench.b, { b: { sendCq: cq, srq } });
    const [from, to] = [new Region(bench.a, 8192), new Region(bench.b, 8192)];
    await bench.run(3);
    const posted = [0, 1, 2].map((index) => srq.post([to.part(index * 2048, 2048)]));
    let packets = 0;
    bench.b.port.drops = () => packets++ > 0;
    first.a.send({ opcode: WqeOpcode.SEND, segments: [from.part(0, 2048)] });
    await bench.run(20);
    expect(packets).toBe(2);
    expect(cq.drain()).toEqual([]);
    first.b.toError();
    await bench.run(30);
    expect(cq.drain().map(({ qpn, wqeCounter, syndrome }) => [qpn, wqeCounter, syndrome])).toEqual([
      [first.b.qpn, posted[0], CqeSyndrome.WR_FLUSH_ERR],
    ]);
    bench.b.port.drops = () => false;
    for (let message = 0; message < 2; message++) second.a.send({ opcode: WqeOpcode.SEND });
    await bench.run(20);
    expect(cq.drain().map(({ qpn, wqeCounter, syndrome }) => [qpn, wqeCounter, syndrome])).toEqual([
      [second.b.qpn, posted[1], 0],
      [second.b.qpn, posted[2], 0],
    ]);
  });
});

describe('a QP without a receive queue', () => {
  it('IBTA 9.7.5.2.8: answers a SEND as one that has nothing posted', async () => {
    const { bench } = await scene();
    const { a, aCq } = connectedPair(bench.a, bench.b, {
      a: { fields: { rnrRetryCount: 1 } },
      b: { fields: { doorbellRecordAddress: 0n } },
    });
    await bench.run(3);
    a.send({ opcode: WqeOpcode.SEND });
    await bench.run(60);
    expect(syndromesOf(aCq.drain())).toEqual([0x16]);
    expect(new Qp(bench.b, { sendCq: new Cq(bench.b) }).state).toBe(QpState.RST);
  });
});
