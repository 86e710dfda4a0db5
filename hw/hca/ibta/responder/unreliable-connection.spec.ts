import { describe, expect, test } from 'vitest';
import { CqeSyndrome, ReceiveOpcode } from '../../../../abi/cqe.ts';
import { QpState, ServiceType } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/opcodes.ts';
import { dataPathBench, tightest } from '../../testing/data-path-bench.ts';
import { connectedPair, FIRST_PSN_A, pattern, psnA, Region } from '../../testing/data-path-verbs.ts';
import { summaryOf } from '../../testing/scenario.ts';

const uc = { fields: { serviceType: ServiceType.UC } } as const;

async function scene(hca: Parameters<typeof dataPathBench>[0] = {}) {
  const bench = await dataPathBench(hca);
  const pair = connectedPair(bench.a, bench.b, { a: uc, b: uc });
  const [from, to] = [new Region(bench.a, 8192, { pageOffset: 100 }), new Region(bench.b, 8192)];
  from.fill(11);
  await bench.run(3);
  return { bench, ...pair, from, to };
}

describe('an unreliable connection', () => {
  test.each([{}, tightest])(
    'IBTA 9.8.2: moves SENDs and WRITEs of many packets without a packet back (%o)',
    async (hca) => {
      const { bench, a, b, aCq, bCq, from, to } = await scene({ hca });
      b.receive([to.part(4096, 2500)]);
      b.receive([]);
      a.send({
        opcode: WqeOpcode.RDMA_WRITE,
        segments: [from.part(0, 3000)],
        remote: { address: to.address + 5, key: to.key },
      });
      a.send({ opcode: WqeOpcode.SEND_IMM, immediate: 77, segments: [from.part(1, 2500)] });
      a.send({
        opcode: WqeOpcode.RDMA_WRITE_IMM,
        immediate: 78,
        segments: [from.part(0, 5)],
        remote: { address: to.address, key: to.key },
      });
      await bench.until(() => aCq.takenCount() === 3);
      const received: unknown[] = [];
      await bench.until(() => {
        received.push(...bCq.drain());
        return received.length === 2;
      });
      expect(received).toMatchObject([
        { opcode: ReceiveOpcode.SEND_IMM, byteCount: 2500, immediate: 77 },
        { opcode: ReceiveOpcode.RDMA_WRITE_IMM, byteCount: 5, immediate: 78 },
      ]);
      expect(to.read(5, 3000)).toEqual(pattern(11, 3000));
      expect(to.read(4096, 2500)).toEqual(from.read(1, 2500));
      expect(bench.b.port.packets.map(({ opcode, psn, flags }) => [opcode, psn, flags])).toEqual(
        [
          Opcode.UC_RDMA_WRITE_FIRST,
          Opcode.UC_RDMA_WRITE_MIDDLE,
          Opcode.UC_RDMA_WRITE_LAST,
          Opcode.UC_SEND_FIRST,
          Opcode.UC_SEND_MIDDLE,
          Opcode.UC_SEND_LAST_WITH_IMMEDIATE,
          Opcode.UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE,
        ].map((opcode, index) => [opcode, psnA(index), 0]),
      );
      expect(bench.a.port.packets).toEqual([]);
    },
  );

  test('IBTA 9.8.2: gives a message up of which a packet is missing, and puts the next one into its receive', async () => {
    const { bench, a, b, aCq, bCq, from, to } = await scene();
    bench.b.port.drops = ({ psn }) => psn === psnA(1);
    b.receive([to.part(0, 4000)]);
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part(0, 3000)] });
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part(500, 1800)] });
    await bench.until(() => aCq.takenCount() === 2);
    await bench.run(10);
    expect(bCq.drain()).toMatchObject([{ wqeCounter: 0, byteCount: 1800, syndrome: 0 }]);
    expect(to.read(0, 1800)).toEqual(from.read(500, 1800));
    expect(bench.b.dataPath.parts.transport.report()).toEqual({ requestOutOfSequence: 1 });
    expect(b.state).toBe(QpState.RTS);
  });

  test('IBTA 9.8.2: drops in silence what finds no receive, may not be written, or follows no rule', async () => {
    const { bench, a, b, aCq, bCq, from, to } = await scene();
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part(0, 1500)] });
    a.send({
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [from.part(0, 1500)],
      remote: { address: to.address, key: to.key + 1 },
    });
    await bench.until(() => aCq.takenCount() === 2);
    await bench.run(10);
    const misrouted = { qpn: b.qpn, psn: psnA(4) };
    bench.a.act(() =>
      bench.a.port.inject(
        { ...misrouted, opcode: Opcode.UC_SEND_LAST, payload: pattern(1, 9) },
        bench.a.lp.nowPs,
      ),
    );
    await bench.run(5);
    bench.a.act(() => bench.a.port.inject({ ...misrouted, opcode: Opcode.RC_SEND_ONLY }, bench.a.lp.nowPs));
    await bench.run(5);
    expect([b.state, bCq.poll(), bench.a.port.packets]).toEqual([QpState.RTS, undefined, []]);
    expect(bench.b.dataPath.parts.transport.report()).toEqual({
      unreliableNoReceive: 1,
      unreliableRefused: 1,
    });
    expect(bench.b.dataPath.parts.violations.report()).toEqual({ packetOpcode: 1 });
    expect(bench.b.dataPath.parts.states.rows[b.slot]!.expectedPsn).toBe(psnA(5));
  });

  test('sheet 6.4: refuses READ and atomics as local QP operation errors', async () => {
    for (const opcode of [WqeOpcode.RDMA_READ, WqeOpcode.ATOMIC_FA]) {
      const { bench, a, aCq, from, to } = await scene();
      const remote = { address: to.address, key: to.key };
      a.send({
        opcode,
        segments: [from.part(0, 8)],
        remote,
        ...(opcode === WqeOpcode.ATOMIC_FA ? { swapOrAdd: 1n } : {}),
      });
      await bench.run(20);
      expect(aCq.poll()?.syndrome).toBe(CqeSyndrome.LOCAL_QP_OP_ERR);
      expect(bench.b.port.packets).toEqual([]);
    }
  });

  /** IBTA vol 1, 10.3.1: a completion in error takes the send queue alone to the SQ error state, from which RTS leads. */
  test.each([{}, tightest])(
    'IBTA 10.3.1: fails in its send queue alone, which can be brought back (%o)',
    async (hca) => {
      const { bench, a, b, aCq, bCq, from, to } = await scene({ hca });
      const write = {
        opcode: WqeOpcode.RDMA_WRITE,
        segments: [from.part(0, 3000)],
        remote: { address: to.address, key: to.key },
      };
      a.receive([from.part(4000, 100)]);
      a.post({ ...write, isUnsignalled: true });
      a.post({ ...write, opcode: WqeOpcode.RDMA_READ });
      a.post(write);
      a.post(write);
      a.ring();
      await bench.run(30);
      expect(summaryOf(aCq.drain())).toEqual(['send 1: 0x2', 'send 2: 0x5', 'send 3: 0x5']);
      expect([a.state, b.state, bench.a.dataPath.control.qpIsFlushing(a.slot)]).toEqual([
        QpState.SQER,
        QpState.RTS,
        false,
      ]);
      a.send(write);
      b.send({ opcode: WqeOpcode.SEND, segments: [to.part(0, 100)] });
      await bench.run(30);
      const lines = summaryOf(aCq.drain());
      expect(lines.sort()).toEqual(['receive 0: 0x0', 'send 4: 0x5']);
      a.modify({ state: QpState.RTS });
      b.receive([to.part(4096, 200)]);
      a.send({ opcode: WqeOpcode.SEND, segments: [from.part(7, 200)] });
      await bench.run(30);
      expect(summaryOf(aCq.drain())).toEqual(['send 5: 0x0']);
      expect(summaryOf(bCq.drain())).toEqual(['send 0: 0x0', 'receive 0: 0x0']);
      expect(to.read(4096, 200)).toEqual(from.read(7, 200));
    },
  );

  test('IBTA 10.3.1: goes on receiving in the middle of a message while its send queue fails', async () => {
    const { bench, a, b, aCq, from, to } = await scene();
    a.receive([from.part(0, 8000)]);
    b.send({ opcode: WqeOpcode.SEND, segments: [to.part(0, 8000)] });
    await bench.until(() => bench.a.port.packets.length >= 2, 20);
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [from.part(0, 8)], remote: { address: 0, key: 0 } });
    await bench.run(30);
    expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x2', 'receive 0: 0x0']);
    expect([a.state, from.read(0, 8000)]).toEqual([QpState.SQER, to.read(0, 8000)]);
  });

  test('IBTA 10.7.3.1: completes unsignalled messages without a CQE and goes on behind a window of them', async () => {
    const { bench, a, b, aCq, bCq, to } = await scene({ hca: { outstandingWqesPerQp: 2 } });
    for (let index = 0; index < 12; index++) b.receive([to.part(index * 16, 16)]);
    for (let index = 0; index < 12; index++)
      a.post({ opcode: WqeOpcode.SEND, inline: pattern(index, 16), isUnsignalled: index < 11 });
    a.ring();
    await bench.until(() => aCq.takenCount() === 1);
    await bench.until(() => bCq.takenCount() === 12);
    expect(to.read(11 * 16, 16)).toEqual(pattern(11, 16));
    expect(FIRST_PSN_A).toBe(psnA(0));
  });
});
