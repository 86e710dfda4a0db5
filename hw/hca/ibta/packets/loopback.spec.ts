import { describe, expect, test } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/opcodes.ts';
import { type DataPathBench, dataPathBench, tightest } from '../../testing/data-path-bench.ts';
import { Cq, pattern, Qp, Region } from '../../testing/data-path-verbs.ts';
import { runMixedTraffic } from '../../testing/mixed-traffic.ts';

/** Two QPs of node a, each the other's peer. */
function pairOn({ a }: DataPathBench, path: { remoteLid?: number } = {}, ackTimeout = 0) {
  const cqs = [new Cq(a), new Cq(a)] as const;
  const [left, right] = [new Qp(a, { sendCq: cqs[0] }), new Qp(a, { sendCq: cqs[1] })];
  left.connect(right.qpn, 5, 9, ackTimeout, { remoteLid: a.address.lid, ...path });
  right.connect(left.qpn, 9, 5, ackTimeout, { remoteLid: a.address.lid, ...path });
  return { left, right, leftCq: cqs[0], rightCq: cqs[1] };
}

async function sendOne(bench: DataPathBench, pair: ReturnType<typeof pairOn>, size = 3000) {
  const from = new Region(bench.a, size);
  const to = new Region(bench.a, size);
  from.write(pattern(3, size));
  pair.right.receive([to.part()]);
  pair.left.send({ opcode: WqeOpcode.SEND, segments: [from.part()] });
  const startPs = bench.a.lp.nowPs;
  await bench.until(() => pair.rightCq.takenCount() === 1);
  expect(to.read(0, size)).toEqual(pattern(3, size));
  return bench.a.lp.nowPs - startPs;
}

describe('two QPs of one HCA', () => {
  test('reach each other by the port’s own LID, and nothing of it is seen on the cable', async () => {
    const bench = await dataPathBench();
    const pair = pairOn(bench);
    await sendOne(bench, pair);
    await bench.until(() => pair.leftCq.takenCount() === 1);
    const { wire, dataPath } = bench.a;
    expect([wire.transmitted.packetCount, wire.received.delivered.packetTotal]).toEqual([0, 0]);
    expect(bench.b.port.packets).toEqual([]);
    const { first, delivered } = dataPath.blocks.loopback;
    expect([
      first.rows[Opcode.RC_SEND_FIRST]?.packets,
      first.rows[Opcode.RC_SEND_MIDDLE]?.packets,
      first.rows[Opcode.RC_SEND_LAST]?.packets,
      first.rows[Opcode.RC_ACKNOWLEDGE]?.packets,
    ]).toEqual([1, 1, 1, 3]);
    expect([delivered.packetTotal, delivered.byteTotal]).toEqual([first.packetTotal, first.byteTotal]);
    // LRH 8, BTH 12, ICRC 4, VCRC 2 around every packet; AETH 4 in the acknowledgements, which every packet requests.
    expect(first.byteTotal).toBe(3000 + 3 * 26 + 3 * (26 + 4));
    expect(dataPath.blocks.loopback.heldCount).toBe(0);
  });

  test('reach each other by any LID that the LMC makes ours', async () => {
    const bench = await dataPathBench();
    bench.a.address.lid = 8;
    bench.a.address.lmc = 2;
    await sendOne(bench, pairOn(bench, { remoteLid: 11 }));
    expect(bench.a.wire.transmitted.packetCount).toBe(0);
  });

  test('are sooner with each other than across the cable, by its flight and the two ports at least', async () => {
    const bench = await dataPathBench();
    const own = await sendOne(bench, pairOn(bench), 64);
    const far = await dataPathBench();
    const [aCq, bCq] = [new Cq(far.a), new Cq(far.b)];
    const [a, b] = [new Qp(far.a, { sendCq: aCq }), new Qp(far.b, { sendCq: bCq })];
    a.connect(b.qpn, 5, 9);
    b.connect(a.qpn, 9, 5);
    const [from, to] = [new Region(far.a, 64), new Region(far.b, 64)];
    b.receive([to.part()]);
    const startPs = far.a.lp.nowPs;
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part()] });
    await far.until(() => bCq.takenCount() === 1);
    expect(own).toBeLessThanOrEqual(far.a.lp.nowPs - startPs);
  });

  test.each([1, 2, 3])('carry everything at once, both ways, seed %i', async (seed) => {
    const bench = await dataPathBench({ shuffleSeed: seed });
    await runMixedTraffic(bench, 4, 40, seed, 0, { a: bench.a, b: bench.a });
    expect(bench.a.wire.transmitted.packetCount).toBe(0);
    expect(bench.a.dataPath.blocks.loopback.heldCount).toBe(0);
  });

  test('never wait in a circle, with one packet of room and every other bound at its smallest', async () => {
    const bench = await dataPathBench({ hca: { ...tightest, loopbackBufferPackets: 1 } });
    await runMixedTraffic(bench, 3, 24, 7, 0, { a: bench.a, b: bench.a });
    expect(
      bench.a.dataPath.accounts.find(({ name }) => name === 'transmitter')!.stalledCycles[3],
    ).toBeGreaterThan(0);
  });

  test('share the HCA with traffic of the cable in both directions', async () => {
    const bench = await dataPathBench({ hca: { loopbackBufferPackets: 2 } });
    const looped = runMixedTraffic(bench, 2, 24, 1, 0, { a: bench.a, b: bench.a });
    await looped;
    await runMixedTraffic(bench, 2, 24, 2);
    expect(bench.a.dataPath.blocks.loopback.delivered.packetTotal).toBeGreaterThan(0);
    expect(bench.b.port.packets.length).toBeGreaterThan(0);
  });

  test('lose each other when the port is not active, and fail when the retries are used up', async () => {
    const bench = await dataPathBench();
    const pair = pairOn(bench, {}, 1);
    bench.a.address.isActive = false;
    bench.a.wire.setEnabled(false);
    await bench.run(100);
    pair.left.send({ opcode: WqeOpcode.SEND, segments: [] });
    await bench.until(() => pair.left.state === QpState.ERR);
    await bench.run(50);
    expect(pair.leftCq.poll()?.syndrome).toBe(CqeSyndrome.TRANSPORT_RETRY_EXC_ERR);
    expect(bench.a.dataPath.blocks.loopback.first.packetTotal).toBe(0);
  });

  test('are forgotten by a reset with packets under way, and a later pair works', async () => {
    const bench = await dataPathBench();
    const pair = pairOn(bench);
    const region = new Region(bench.a, 4096);
    for (let count = 0; count < 8; count++) {
      pair.right.receive([region.part()]);
      pair.left.send({ opcode: WqeOpcode.SEND, segments: [region.part()] });
    }
    await bench.until(() => bench.a.dataPath.blocks.loopback.heldCount > 2);
    bench.a.act(() => {
      bench.a.writes.reset(bench.a.domain.cycle);
      bench.a.reads.reset(bench.a.domain.cycle);
      bench.a.dataPath.control.resetAll();
    });
    await bench.run(10);
    expect(bench.a.dataPath.blocks.loopback.heldCount).toBe(0);
    await sendOne(bench, pairOn(bench));
  });

  test('IBTA 9.6: packets that come by the cable for another port are dropped and counted', async () => {
    const bench = await dataPathBench();
    const { right, rightCq } = pairOn(bench);
    const packet = { opcode: Opcode.RC_SEND_ONLY, qpn: right.qpn, psn: 5 };
    right.receive([]);
    await bench.run(5);
    bench.b.act(() => bench.b.port.inject({ ...packet, lids: (2 << 16) | 9 }, bench.b.lp.nowPs));
    await bench.run(5);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({ packetForeignLid: 1 });
    expect(rightCq.poll()).toBeUndefined();
    bench.b.act(() => bench.b.port.inject({ ...packet, lids: (2 << 16) | 1 }, bench.b.lp.nowPs));
    await bench.until(() => rightCq.poll() !== undefined);
  });
});
