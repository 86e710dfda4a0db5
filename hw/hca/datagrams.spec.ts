import { describe, expect, test } from 'vitest';
import { CqeSyndrome, ReceiveOpcode } from '../../abi/cqe.ts';
import { mcgEntry } from '../../abi/mcg.ts';
import { PathMtu, QpState, ServiceType } from '../../abi/qpc.ts';
import { linesOf, readGolden } from '../../abi/testing/golden.ts';
import { type addressVector, mlxControlSegment } from '../../abi/wqe.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { fromHex, type Initial } from '../../base/index.ts';
import { grh } from '../../wire/headers.ts';
import { Opcode, packetBytesOf } from '../../wire/opcodes.ts';
import { type DataPathBench, type DataPathNode, dataPathBench, tightest } from './testing/data-path-bench.ts';
import {
  Cq,
  PD,
  pattern,
  Qp,
  type QpOptions,
  Region,
  type SendRequest,
  Srq,
} from './testing/data-path-verbs.ts';

const QKEY = 0x1111_1111;
const ud = { serviceType: ServiceType.UD, qkey: QKEY, pathMtu: PathMtu.MTU_2048, logMaxMessage: 13 } as const;
const GID_OF_B = Uint8Array.from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, 2]);
const GROUP = Uint8Array.from([0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);

/** A datagram QP in RTS, with a CQ of its own. */
function datagramQp(node: DataPathNode, options: Partial<QpOptions> = {}) {
  const cq = new Cq(node);
  const qp = new Qp(node, { sendCq: cq, ...options, fields: { ...ud, ...options.fields } });
  qp.connect(0, 100, 0);
  return { qp, cq };
}

function datagramTo(
  qpn: number,
  lid: number,
  vector: Initial<typeof addressVector> = {},
  qkey = QKEY,
): Required<Pick<SendRequest, 'datagram'>>['datagram'] {
  return {
    addressVector: { port: 1, pd: PD, destinationLid: lid, ...vector },
    destinationQpn: qpn,
    qkey,
  };
}

interface Scene {
  bench: DataPathBench;
  a: ReturnType<typeof datagramQp>;
  b: ReturnType<typeof datagramQp>;
  from: Region;
  to: Region;
}

async function scene(options: Parameters<typeof dataPathBench>[0] = {}): Promise<Scene> {
  const bench = await dataPathBench(options);
  const [a, b] = [datagramQp(bench.a), datagramQp(bench.b)];
  const [from, to] = [new Region(bench.a, 4096), new Region(bench.b, 4096, { pageOffset: 1000 })];
  from.fill(7);
  await bench.run(3);
  return { bench, a, b, from, to };
}

describe('a datagram', () => {
  test('reaches the QP that its WQE names, behind 40 bytes, with its sender in the CQE; the send is complete once sent', async () => {
    const { bench, a, b, from, to } = await scene();
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

  test('carries immediate data; without any, the CQE has the index of the P_Key', async () => {
    const { bench, a, b, to } = await scene();
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

  test('with a GRH brings it into the first 40 bytes, 40 bytes longer on the cable, and only to whose GID it has', async () => {
    const { bench, a, b, from, to } = await scene();
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
    expect(bench.b.dataPath.violations.report()).toEqual({ packetForeignGid: 1 });
    expect(b.cq.poll()).toBeUndefined();
  });

  test('is dropped and counted for a wrong Q_Key, a foreign P_Key, two limited members, and without a receive', async () => {
    const { bench, a, b, to } = await scene();
    const send = (datagram: ReturnType<typeof datagramTo>): number =>
      a.qp.send({ opcode: WqeOpcode.SEND, datagram, inline: pattern(1, 4) });
    send(datagramTo(b.qp.qpn, 2));
    await bench.run(10);
    expect(bench.b.dataPath.violations.report()).toEqual({ unreliableNoReceive: 1 });
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
    expect(bench.b.dataPath.violations.report()).toEqual({
      unreliableNoReceive: 1,
      datagramQkey: 1,
      datagramPkey: 2,
    });
    expect([bench.b.address.qkeyViolations, bench.b.address.pkeyViolations]).toEqual([1, 2]);
    bench.b.address.pkeys[0] = 0xffff;
    // Bit 31 stands for the sender's own Q_Key.
    send(datagramTo(b.qp.qpn, 2, {}, 0x8000_0000));
    await bench.until(() => b.cq.poll() !== undefined);
    expect(a.cq.drain().map(({ syndrome }) => syndrome)).toEqual([0, 0, 0, 0, 0]);
  });

  test('longer than the MTU is a local length error; one of another PD or opcode a local QP operation error', async () => {
    const cases: [Partial<SendRequest>, number][] = [
      [{ segments: [] }, CqeSyndrome.LOCAL_LENGTH_ERR],
      [{ datagram: datagramTo(9, 2, { pd: PD + 1 }) }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.RDMA_WRITE }, CqeSyndrome.LOCAL_QP_OP_ERR],
    ];
    for (const [change, syndrome] of cases) {
      const { bench, a, from } = await scene();
      const segments = change.segments === undefined ? [] : [from.part(0, 2049)];
      a.qp.send({ opcode: WqeOpcode.SEND, datagram: datagramTo(9, 2), ...change, segments });
      await bench.run(20);
      expect(a.cq.poll()?.syndrome).toBe(syndrome);
      expect(bench.b.port.packets).toEqual([]);
    }
  });

  test('longer than its receive list ends the receive with a length error', async () => {
    const { bench, a, b, from, to } = await scene();
    b.qp.receive([to.part(0, 139)]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: datagramTo(b.qp.qpn, 2), segments: [from.part(0, 100)] });
    await bench.run(20);
    expect(b.cq.poll()?.syndrome).toBe(CqeSyndrome.LOCAL_LENGTH_ERR);
    expect(b.qp.state).toBe(QpState.ERR);
  });

  test('to the own LID goes by the loopback, to itself as well', async () => {
    const { bench, a, from } = await scene();
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
    expect(bench.a.dataPath.loopback.heldCount).toBe(0);
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

describe('a multicast datagram', () => {
  const toGroup = datagramTo(0xffffff, 0xc009, { grhPresent: 1, destinationGid: GROUP });
  const join = (node: DataPathNode, members: readonly { qpn: number; blockLoopback?: 0 | 1 }[]): void =>
    node.groups.set(3, mcgEntry.encode({ memberCount: members.length, mgid: GROUP, members: [...members] }));

  test('reaches every member at either end, the sender too unless it does not want to', async () => {
    const { bench, a, b, to } = await scene();
    const second = datagramQp(bench.b);
    const echo = datagramQp(bench.a);
    const own = new Region(bench.a, 1000);
    await bench.run(3);
    join(bench.a, [{ qpn: a.qp.qpn, blockLoopback: 1 }, { qpn: echo.qp.qpn }]);
    join(bench.b, [{ qpn: b.qp.qpn }, { qpn: second.qp.qpn }, { qpn: 0x999 }]);
    a.qp.receive([own.part(0, 200)]);
    echo.qp.receive([own.part(200, 200)]);
    b.qp.receive([to.part(0, 200)]);
    second.qp.receive([to.part(200, 200)]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(9, 30) });
    await bench.run(20);
    for (const { cq } of [echo, b, second])
      expect(cq.drain().map(({ byteCount }) => byteCount)).toEqual([70]);
    expect(a.cq.drain().map(({ isSend }) => isSend)).toEqual([true]);
    expect([to.read(40, 30), to.read(240, 30), own.read(240, 30)]).toEqual(Array(3).fill(pattern(9, 30)));
    echo.qp.receive([own.part(200, 200)]);
    echo.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(8, 30) });
    await bench.run(20);
    expect(echo.cq.drain().map(({ isSend }) => isSend)).toEqual([true, false]);
  });

  test('of a group that nobody here has joined is nobody’s business', async () => {
    const { bench, a } = await scene();
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(9, 30) });
    await bench.run(20);
    expect(bench.b.port.packets).toHaveLength(1);
    expect([bench.a, bench.b].map(({ dataPath }) => dataPath.violations.report())).toEqual([{}, {}]);
  });
});

describe('QP0 and QP1', () => {
  const special = { serviceType: ServiceType.MLX, pathMtu: PathMtu.MTU_4096, logMaxMessage: 11 } as const;
  const BASE = 0x200;

  /** QP0 and QP1 of a node's port, as mlx4_ib makes them: one CQ, Q_Keys 0 and 0x80010000. */
  function specialQps(node: DataPathNode) {
    const cq = new Cq(node);
    node.specialQpBase = BASE;
    const qp0 = new Qp(node, { sendCq: cq, qpn: BASE, sqLogStride16: 4, fields: special });
    const qp1 = new Qp(node, {
      sendCq: cq,
      qpn: BASE + 2,
      sqLogStride16: 4,
      fields: { ...special, qkey: 0x8001_0000 },
    });
    qp0.connect(0, 0, 0);
    qp1.connect(0, 0, 0);
    return { cq, qp0, qp1 };
  }

  /** A MAD of the stock Linux driver as captured: its WQE, with data pointers into `region`. */
  function capturedWqe(qpn: number, region: Region): Uint8Array {
    const line = linesOf(readGolden(), 'wqe').find(
      (each) => each.file === 'x-kernel-mads' && each.qpn === qpn,
    )!;
    const wqe = fromHex(line.bytes);
    const view = new DataView(wqe.buffer);
    // Control 16, inline header 4 and 28 bytes of headers; then two pointers of 24 and 232 bytes.
    [48, 64].forEach((at, index) => {
      view.setUint32(at + 4, region.key);
      view.setBigUint64(at + 8, BigInt(region.address + 24 * index));
    });
    return wqe;
  }

  test.each([
    ['a subnet management packet to QP0', BASE, 0, 15],
    ['a performance query to QP1', BASE + 2, 1, 0],
  ] as const)('%s of the Linux driver reaches the other node’s', async (_name, qpn, wireQpn, lane) => {
    const bench = await dataPathBench();
    const [a, b] = [specialQps(bench.a), specialQps(bench.b)];
    const [mad, to] = [new Region(bench.a, 256), new Region(bench.b, 512)];
    mad.fill(5);
    await bench.run(3);
    (qpn === BASE ? b.qp0 : b.qp1).receive([to.part(0, 296)]);
    (qpn === BASE ? a.qp0 : a.qp1).sendBytes(capturedWqe(qpn, mad));
    await bench.run(30);
    expect(a.cq.drain().map(({ isSend, syndrome }) => [isSend, syndrome])).toEqual([[true, 0]]);
    expect(bench.b.dataPath.violations.report()).toEqual({});
    // The driver writes path bits, here none, as source LID: the port's own LID is the port's matter.
    expect(b.cq.poll()).toMatchObject({ qpn, byteCount: 296, syndrome: 0, sourceLid: 1 });
    expect(b.cq.source).toMatchObject({ qpn: wireQpn, hasGrh: false });
    expect(to.read(40, 256)).toEqual(pattern(5, 256));
    expect(bench.b.port.packets[0]).toMatchObject({
      opcode: Opcode.UD_SEND_ONLY,
      qpn: wireQpn,
      payloadBytes: 256,
    });
    // LRH 8, BTH 12, DETH 8, a MAD, ICRC 4, VCRC 2.
    expect(bench.a.wire.transmitted.packetBytes).toBe(290);
    expect(bench.b.port.packets[0]!.virtualLane).toBe(lane);
  });

  test('subnet management goes on before the port is active, general services do not come back', async () => {
    const bench = await dataPathBench();
    const a = specialQps(bench.a);
    const [mad, to] = [new Region(bench.a, 256), new Region(bench.a, 1024)];
    await bench.run(3);
    bench.a.address.isActive = false;
    a.qp0.receive([to.part(0, 296)]);
    a.qp1.receive([to.part(512, 296)]);
    for (const [qp, qpn] of [
      [a.qp0, BASE],
      [a.qp1, BASE + 2],
    ] as const) {
      const wqe = capturedWqe(qpn, mad);
      // To LID 1, which is the port's own.
      mlxControlSegment.fields.remoteLid.set(new DataView(wqe.buffer), 0, 1);
      wqe[20 + 3] = 1;
      qp.sendBytes(wqe);
    }
    await bench.run(30);
    expect(a.cq.drain().map(({ qpn, isSend }) => [qpn, isSend])).toEqual(
      expect.arrayContaining([
        [BASE, true],
        [BASE, false],
        [BASE + 2, true],
      ]),
    );
    expect(a.cq.takenCount()).toBe(3);
  });

  test('a WQE whose headers are no UD packet is a local QP operation error', async () => {
    const bench = await dataPathBench();
    const a = specialQps(bench.a);
    const mad = new Region(bench.a, 256);
    await bench.run(3);
    const wqe = capturedWqe(BASE, mad);
    wqe[20 + 8] = Opcode.RC_SEND_ONLY;
    a.qp0.sendBytes(wqe);
    await bench.run(20);
    expect(a.cq.poll()?.syndrome).toBe(CqeSyndrome.LOCAL_QP_OP_ERR);
  });

  test('are unknown while CONF_SPECIAL_QP has named none', async () => {
    const bench = await dataPathBench();
    const a = specialQps(bench.a);
    const mad = new Region(bench.a, 256);
    await bench.run(3);
    a.qp0.sendBytes(capturedWqe(BASE, mad));
    await bench.run(20);
    expect(bench.b.dataPath.violations.report()).toEqual({ packetUnknownQp: 1 });
  });
});
