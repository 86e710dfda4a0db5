import { describe, expect, it } from 'vitest';
import { EventType } from '../../../abi/eqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { TrafficClass } from '../../dma/index.ts';
import { READ_POISONED } from '../../pcie/root-complex/root-complex-interfaces.ts';
import { STATUS_SUCCESS } from '../../pcie/tlp/tlp.ts';
import { Cq, connectedPair, pattern, Qp } from '../testing/data-path-verbs.ts';
import { type Scene, scene, syndromesOf } from '../testing/scenario.ts';

/** Memory reads of WQEs that a node has sent. */
const wqeReadsOf = ({ bench }: Scene): number =>
  bench.a.reads.requesters.find(({ name }) => name === 'wqeRead')!.counters.tlps;

describe('the WQE fetch', () => {
  it('reads several WQEs at once, and looks again only while there may be more', async () => {
    const given = await scene({ a: { sqLogStride16: 2 } });
    const { bench, a, aCq } = given;
    for (let index = 0; index < 8; index++) a.post({ opcode: WqeOpcode.NOP });
    a.ring();
    await bench.run(30);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    // Four WQEs of 64 bytes a read: two reads bring eight, and a third finds that nothing follows.
    expect(wqeReadsOf(given)).toBe(3);
    expect(TrafficClass.wqeRead).toBe(3);
  });

  // Inline data distinguishes WQEs, so a WQE that were executed twice, too early or overwritten would show.
  for (const sqLogStride16 of [2, 3, 4, 5, 6])
    for (const [wqePrefetchCount, sameQpIntervalCycles] of [
      [1, 1],
      [2, 1],
      [4, 1],
      [4, 400],
      [16, 1],
      [16, 400],
    ] as const)
      it(`executes every WQE once: stride ${16 << sqLogStride16}, ${wqePrefetchCount} a read, one in ${sameQpIntervalCycles} cycles`, async () => {
        const given = await scene({
          hca: { wqePrefetchCount, sameQpIntervalCycles },
          a: { sqLogStride16, sqLogCount: 5 },
        });
        const { bench, a, aCq, remote, target } = given;
        let posted = 0;
        const post = (): void => {
          const at = (posted % 64) * 32;
          a.post({
            opcode: WqeOpcode.RDMA_WRITE,
            inline: pattern(posted * 3, 20),
            remote: { ...target, address: target.address + at },
          });
          posted++;
        };
        for (let round = 0; round < 6; round++) {
          for (let index = 0; index < 10; index++) post();
          a.ring();
          // Doorbells of more WQEs arrive while the first are being fetched and executed.
          for (let index = 0; index < 7; index++) {
            await bench.run(0.1);
            post();
            a.ring();
          }
          const all = round * 17 + 17;
          await bench.until(() => aCq.takenCount() >= all, 100);
        }
        expect(aCq.consumer).toBe(6 * 17);
        for (let index = posted - 64; index < posted; index++)
          expect(remote.read((index % 64) * 32, 20), `WQE ${index}`).toEqual(pattern(index * 3, 20));
        expect(bench.a.dataPath.parts.lines.rows.every(({ isFetching }) => isFetching === 0)).toBe(true);
      });

  it('serves more QPs than there are lines, each in turn', async () => {
    const given = await scene({ hca: { wqeLineCount: 2 } });
    const { bench } = given;
    const pairs = Array.from({ length: 6 }, () => connectedPair(bench.a, bench.b));
    await bench.run(3);
    for (const { a } of pairs) {
      for (let index = 0; index < 9; index++) a.post({ opcode: WqeOpcode.NOP });
      a.ring();
    }
    await bench.until(() => pairs.every(({ aCq }) => aCq.takenCount() === 9), 300);
    expect(bench.a.dataPath.parts.lines.evictionCount).toBeGreaterThan(0);
  });

  it('sheet 6.7: takes the QP down with event 0x05 when its queue cannot be read', async () => {
    for (const page of [-1, 2 ** 40]) {
      const given = await scene();
      const { bench, checkBystanders } = given;
      const cq = new Cq(bench.a);
      const qp = new Qp(bench.a, { sendCq: cq, fields: { mttAddress: bench.a.writeMtt([page, page]) } });
      qp.connect(0, 0, 0);
      qp.send({ opcode: WqeOpcode.NOP });
      await bench.run(20);
      expect(qp.state).toBe(QpState.ERR);
      expect(bench.a.events.lines).toEqual([
        `qp 0x${EventType.WQ_CATAS_ERROR.toString(16)} 0x${qp.qpn.toString(16)}`,
      ]);
      await checkBystanders();
    }
  });

  it('reads the next WQE alone when a read of several fails, and fails the queue when that cannot be read either', async () => {
    for (const [poisonedReads, isAlive] of [
      [1, true],
      [2, false],
    ] as const) {
      const given = await scene();
      const { bench, a, aCq } = given;
      let left: number = poisonedReads;
      const answerTo = (trafficClass: number): number =>
        trafficClass === TrafficClass.wqeRead && left-- > 0 ? READ_POISONED : STATUS_SUCCESS;
      bench.a.rootComplex.reads.faults = { answerTo };
      a.post({ opcode: WqeOpcode.NOP });
      a.send({ opcode: WqeOpcode.NOP });
      await bench.run(30);
      expect(a.state).toBe(isAlive ? QpState.RTS : QpState.ERR);
      if (isAlive) expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
      else expect(bench.a.events.lines).toHaveLength(1);
    }
  });

  it('gives the line of a QP destroyed during a fetch to others', async () => {
    const given = await scene({ hca: { wqeLineCount: 2 } });
    const { bench } = given;
    for (let round = 0; round < 6; round++) {
      const { a } = connectedPair(bench.a, bench.b);
      await bench.run(2);
      a.send({ opcode: WqeOpcode.NOP });
      const { qps } = bench.a.dataPath.parts;
      for (let step = 0; step < 100 && qps.rows[a.slot]!.isFetching === 0; step++) await bench.run(0.05);
      expect(qps.rows[a.slot]!.isFetching).toBe(1);
      bench.a.act(() => bench.a.dataPath.control.qpDestroyed(a.slot));
      await bench.until(() => !bench.a.dataPath.control.qpIsBusy(a.slot), 10);
      qps.free(a.slot);
    }
    const { lines } = bench.a.dataPath.parts;
    expect(lines.rows.map(({ qp }) => qp)).toEqual([-1, -1]);
    await given.checkBystanders();
  });
});
