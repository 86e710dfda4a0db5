import { describe, expect, test } from 'vitest';
import { CqeSyndrome, ReceiveOpcode } from '../../../../abi/cqe.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { grh } from '../../../../wire/headers.ts';
import { Opcode, packetBytesOf } from '../../../../wire/opcodes.ts';
import { dataPathBench, tightest } from '../../testing/data-path-bench.ts';
import { PD, pattern, Region, type SendRequest, Srq } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramScene, datagramTo } from '../../testing/datagrams.ts';

const GID_OF_B = Uint8Array.from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, 2]);
const GROUP = Uint8Array.from([0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);

describe('a datagram', () => {
  test('IBTA 9.8.3: reaches the QP that its WQE names, behind 40 bytes, with its sender in the CQE; the send is complete once sent', async () => {
    const { bench, a, b, from, to } = await datagramScene();
    b.qp.receive([to.part(0, 2000)]);
    const vector = { serviceLevel: 5 };
    a.qp.send({
      opcode: WqeOpcode.SEND,
      datagram: datagramTo(b.qp.qpn, 2, vector),
      segments: [from.part(0, 777)],
    });
    await bench.until(() => a.cq.takenCount() === 1);
    let got = b.cq.poll();
    await bench.until(() => {
      got ??= b.cq.poll();
      return got !== undefined;
    });
    expect(got).toMatchObject({
      qpn: b.qp.qpn,
      opcode: ReceiveOpcode.SEND,
      byteCount: 817,
      sourceLid: 1,
      syndrome: 0,
    });
    expect(b.cq.source).toEqual({ qpn: a.qp.qpn, hasGrh: false, pathBits: 0, serviceLevel: 5 });
    expect(to.read(40, 777)).toEqual(pattern(7, 777));
    const [packet] = bench.b.port.packets;
    expect(packet).toMatchObject({ opcode: Opcode.UD_SEND_ONLY, psn: 100, payloadBytes: 777 });
    // LRH 8, BTH 12, DETH 8, payload padded to 780, ICRC 4, VCRC 2.
    expect(bench.a.wire.transmitted.packetBytes).toBe(814);
    expect(bench.a.port.packets).toEqual([]);
  });

  test('sheet 6.6: carries immediate data; without any, the CQE has the index of the P_Key', async () => {
    const { bench, a, b, to } = await datagramScene();
    bench.b.address.pkeys.set([0xffff, 0x8123]);
    bench.a.address.pkeys[1] = 0x0123;
    const [sender, receiver] = [
      datagramQp(bench.a, { fields: { primaryPath: { pkeyIndex: 1 } } }),
      datagramQp(bench.b),
    ];
    receiver.qp.connect(0, 0, 0, 0, { pkeyIndex: 1 });
    sender.qp.connect(0, 0, 0, 0, { pkeyIndex: 1 });
    b.qp.receive([to.part(0, 100)]);
    receiver.qp.receive([to.part(100, 100)]);
    a.qp.send({
      opcode: WqeOpcode.SEND_IMM,
      immediate: 0xdeadbeef,
      datagram: datagramTo(b.qp.qpn, 2),
      inline: pattern(1, 8),
    });
    await bench.run(3);
    sender.qp.send({
      opcode: WqeOpcode.SEND,
      datagram: datagramTo(receiver.qp.qpn, 2),
      inline: pattern(2, 8),
    });
    await bench.run(20);
    expect(b.cq.poll()).toMatchObject({
      opcode: ReceiveOpcode.SEND_IMM,
      immediate: 0xdeadbeef,
      byteCount: 48,
    });
    expect(receiver.cq.poll()).toMatchObject({ opcode: ReceiveOpcode.SEND, immediate: 1 });
  });

  test('sheet 6.4: with a GRH brings it into the first 40 bytes, 40 bytes longer on the cable, and only to whose GID it has', async () => {
    const { bench, a, b, from, to } = await datagramScene();
    const vector = {
      grhPresent: 1,
      hopLimit: 3,
      trafficClass: 0xab,
      flowLabel: 0x54321,
      destinationGid: GID_OF_B,
    } as const;
    b.qp.receive([to.part(0, 500)]);
    a.qp.send({
      opcode: WqeOpcode.SEND,
      datagram: datagramTo(b.qp.qpn, 2, vector),
      segments: [from.part(0, 65)],
    });
    const foreign = { ...vector, destinationGid: GROUP.map((byte) => byte & 0x7f) };
    a.qp.send({
      opcode: WqeOpcode.SEND,
      datagram: datagramTo(b.qp.qpn, 2, foreign),
      segments: [from.part(0, 65)],
    });
    await bench.run(20);
    expect(b.cq.poll()).toMatchObject({ byteCount: 105 });
    expect(b.cq.source.hasGrh).toBe(true);
    expect(grh.decode(to.read(0, 40))).toMatchObject({
      ipVersion: 6,
      trafficClass: 0xab,
      flowLabel: 0x54321,
      // BTH 12, DETH 8, 65 bytes padded to 68, ICRC 4.
      payloadLength: 92,
      nextHeader: 0x1b,
      hopLimit: 3,
      sourceGid: bench.a.address.gids.slice(0, 16),
      destinationGid: GID_OF_B,
    });
    expect(to.read(40, 65)).toEqual(pattern(7, 65));
    expect(bench.a.wire.transmitted.packetBytes).toBe(2 * (8 + 40 + 12 + 8 + 68 + 6));
    expect(packetBytesOf(Opcode.UD_SEND_ONLY, 65, true)).toBe(142);
    expect(bench.b.dataPath.parts.violations.report()).toEqual({ packetForeignGid: 1 });
    expect(b.cq.poll()).toBeUndefined();
  });

  test('IBTA 9.8.3, 10.9.1.1: is dropped and counted for a wrong Q_Key, a foreign P_Key, two limited members, and without a receive', async () => {
    const { bench, a, b, to } = await datagramScene();
    const send = (datagram: ReturnType<typeof datagramTo>): number =>
      a.qp.send({ opcode: WqeOpcode.SEND, datagram, inline: pattern(1, 4) });
    send(datagramTo(b.qp.qpn, 2));
    await bench.run(10);
    expect(bench.b.dataPath.parts.transport.report()).toEqual({ unreliableNoReceive: 1 });
    b.qp.receive([to.part(0, 100)]);
    send(datagramTo(b.qp.qpn, 2, {}, 0x2222));
    await bench.run(10);
    bench.a.address.pkeys[0] = 0x8001;
    send(datagramTo(b.qp.qpn, 2));
    await bench.run(10);
    bench.a.address.pkeys[0] = 0x7fff;
    bench.b.address.pkeys[0] = 0x7fff;
    send(datagramTo(b.qp.qpn, 2));
    await bench.run(10);
    expect(bench.b.dataPath.parts.violations.report()).toEqual({
      datagramQkey: 1,
      datagramPkey: 2,
    });
    expect([bench.b.address.qkeyViolations, bench.b.address.pkeyViolations]).toEqual([1, 2]);
    bench.b.address.pkeys[0] = 0xffff;
    // Bit 31 selects the sender's own Q_Key.
    send(datagramTo(b.qp.qpn, 2, {}, 0x8000_0000));
    await bench.until(() => b.cq.poll() !== undefined);
    expect(a.cq.drain().map(({ syndrome }) => syndrome)).toEqual([0, 0, 0, 0, 0]);
  });

  test('that finds no receive is dropped at the rate of any other, and a receive posted before it comes is found', async () => {
    const qpCount = 8;
    const perQp = 30;
    const count = qpCount * perQp;
    /** Microseconds until all datagrams of a flood have been dropped: sent with this Q_Key, when no receive is posted. */
    const flood = async (qkey: number | undefined, hca = {}): Promise<number> => {
      const { bench, b, to } = await datagramScene({ hca });
      const senders = Array.from({ length: qpCount }, () => datagramQp(bench.a));
      await bench.run(5);
      for (const { qp } of senders)
        for (let index = 0; index < perQp; index++)
          qp.post({
            opcode: WqeOpcode.SEND,
            isUnsignalled: true,
            datagram: datagramTo(b.qp.qpn, 2, {}, qkey),
            inline: pattern(1, 4),
          });
      const beganPs = bench.b.lp.nowPs;
      for (const { qp } of senders) qp.ring();
      const { violations, transport } = bench.b.dataPath.parts;
      const dropped = (): number =>
        (violations.report()['datagramQkey'] ?? 0) + (transport.report().unreliableNoReceive ?? 0);
      await bench.until(() => dropped() === count);
      const tookUs = (bench.b.lp.nowPs - beganPs) / 1e6;
      // One poll continues for those that arrived meanwhile; the next datagram finds the WQEs posted since.
      b.qp.receive([to.part(0, 100)]);
      senders[0]!.qp.send({
        opcode: WqeOpcode.SEND,
        datagram: datagramTo(b.qp.qpn, 2),
        inline: pattern(1, 4),
      });
      await bench.until(() => b.cq.poll() !== undefined, 50);
      return tookUs;
    };
    const refused = await flood(0x2222);
    const unreceived = await flood(undefined);
    // At one read of the doorbell record per 0.46 us, 240 datagrams would take 110 us. The excess is the first poll.
    expect(refused).toBeLessThan(20);
    expect(unreceived).toBeLessThanOrEqual(refused + 2);
  });

  test('IBTA 10.2.2.2, sheet 6.6: longer than the MTU is a local length error; one of another PD or opcode a local QP operation error', async () => {
    const cases: [Partial<SendRequest>, number][] = [
      [{ segments: [] }, CqeSyndrome.LOCAL_LENGTH_ERR],
      [{ datagram: datagramTo(9, 2, { pd: PD + 1 }) }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.RDMA_WRITE }, CqeSyndrome.LOCAL_QP_OP_ERR],
    ];
    for (const [change, syndrome] of cases) {
      const { bench, a, from } = await datagramScene();
      const segments = change.segments === undefined ? [] : [from.part(0, 2049)];
      a.qp.send({ opcode: WqeOpcode.SEND, datagram: datagramTo(9, 2), ...change, segments });
      await bench.run(20);
      expect(a.cq.poll()?.syndrome).toBe(syndrome);
      expect(bench.b.port.packets).toEqual([]);
    }
  });

  test('sheet 6.6: longer than its receive list ends the receive with a length error', async () => {
    const { bench, a, b, from, to } = await datagramScene();
    b.qp.receive([to.part(0, 139)]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: datagramTo(b.qp.qpn, 2), segments: [from.part(0, 100)] });
    await bench.run(20);
    expect(b.cq.poll()?.syndrome).toBe(CqeSyndrome.LOCAL_LENGTH_ERR);
    expect(b.qp.state).toBe(QpState.ERR);
  });

  test('to the own LID goes by the loopback, to itself as well', async () => {
    const { bench, a, from } = await datagramScene();
    const to = new Region(bench.a, 400);
    a.qp.receive([to.part(0, 300)]);
    bench.a.address.lmc = 1;
    bench.a.address.lid = 4;
    a.qp.send({
      opcode: WqeOpcode.SEND,
      datagram: datagramTo(a.qp.qpn, 5, { sourcePathBits: 1 }),
      segments: [from.part(0, 200)],
    });
    await bench.run(20);
    const done = a.cq.drain();
    expect(done.map(({ isSend }) => isSend)).toEqual([true, false]);
    expect(done[1]).toMatchObject({ sourceLid: 5, byteCount: 240 });
    expect(a.cq.source).toMatchObject({ qpn: a.qp.qpn, pathBits: 1 });
    expect(bench.a.wire.transmitted.packetCount).toBe(0);
    expect(bench.a.dataPath.blocks.loopback.heldCount).toBe(0);
  });

  test('takes its receive from a shared queue', async () => {
    const bench = await dataPathBench();
    const srq = new Srq(bench.b);
    const [a, b] = [datagramQp(bench.a), datagramQp(bench.b, { srq })];
    const to = new Region(bench.b, 400);
    await bench.run(3);
    srq.post([to.part()]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: datagramTo(b.qp.qpn, 2), inline: pattern(3, 20) });
    await bench.until(() => b.cq.poll() !== undefined);
    expect(to.read(40, 20)).toEqual(pattern(3, 20));
  });

  test.each([{}, tightest])('a hundred each way, none lost while there are receives (%o)', async (hca) => {
    const bench = await dataPathBench({ hca });
    const [a, b] = [datagramQp(bench.a), datagramQp(bench.b)];
    const regions = [new Region(bench.a, 4096), new Region(bench.b, 4096)] as const;
    regions[0].fill(1);
    regions[1].fill(2);
    await bench.run(3);
    const sides = [
      { ...a, region: regions[0], peer: b.qp.qpn, lid: 2, sent: 0, received: 0, posted: 0 },
      { ...b, region: regions[1], peer: a.qp.qpn, lid: 1, sent: 0, received: 0, posted: 0 },
    ];
    await bench.until(() => {
      for (const side of sides) {
        for (const { isSend, syndrome } of side.cq.drain()) {
          expect(syndrome).toBe(0);
          if (isSend) side.sent++;
          else side.received++;
        }
        while (side.posted < 100 && side.posted - side.received < 8 && side.posted - side.sent < 8) {
          side.qp.receive([side.region.part(2048, 2048)]);
          side.posted++;
        }
      }
      for (const side of sides)
        while (side.qp.sendCounter < Math.min(...sides.map(({ posted }) => posted)))
          side.qp.send({
            opcode: WqeOpcode.SEND,
            datagram: datagramTo(side.peer, side.lid),
            segments: [side.region.part(0, 1 + ((side.qp.sendCounter * 97) % 2000))],
          });
      return sides.every(({ sent, received }) => sent === 100 && received === 100);
    });
  });
});
