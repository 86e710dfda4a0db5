import { describe, expect, test } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { PathMtu, ServiceType } from '../../../abi/qpc.ts';
import { linesOf, readGolden } from '../../../abi/testing/golden.ts';
import { mlxControlSegment } from '../../../abi/wqe.ts';
import { fromHex } from '../../../base/index.ts';
import { Opcode } from '../../../wire/opcodes.ts';
import { type DataPathNode, dataPathBench } from '../testing/data-path-bench.ts';
import { Cq, pattern, Qp, Region } from '../testing/data-path-verbs.ts';

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
  ] as const)(
    'sheet 7.2: %s of the Linux driver reaches the other node’s',
    async (_name, qpn, wireQpn, lane) => {
      const bench = await dataPathBench();
      const [a, b] = [specialQps(bench.a), specialQps(bench.b)];
      const [mad, to] = [new Region(bench.a, 256), new Region(bench.b, 512)];
      mad.fill(5);
      await bench.run(3);
      (qpn === BASE ? b.qp0 : b.qp1).receive([to.part(0, 296)]);
      (qpn === BASE ? a.qp0 : a.qp1).sendBytes(capturedWqe(qpn, mad));
      await bench.run(30);
      expect(a.cq.drain().map(({ isSend, syndrome }) => [isSend, syndrome])).toEqual([[true, 0]]);
      expect(bench.b.dataPath.parts.violations.report()).toEqual({});
      // The driver writes path bits, here none, as source LID: the port supplies its own LID.
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
    },
  );

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
      // A datagram to LID 1, which is the port's own.
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

  test('a query to the embedded subnet manager comes back as its answer, from its LID, and leaves by no cable', async () => {
    const bench = await dataPathBench();
    const a = specialQps(bench.a);
    const [mad, to] = [new Region(bench.a, 256), new Region(bench.a, 1024)];
    mad.fill(5);
    await bench.run(3);
    const asked: Uint8Array[] = [];
    bench.a.address.embeddedManagerLid = 0x900;
    bench.a.answers = (bytes) => {
      asked.push(bytes.slice());
      bytes[0] = 77;
      return asked.length === 1;
    };
    const wqe = (): Uint8Array => {
      const bytes = capturedWqe(BASE + 2, mad);
      mlxControlSegment.fields.remoteLid.set(new DataView(bytes.buffer), 0, 0x900);
      bytes.set([9, 0], 20 + 2);
      return bytes;
    };
    a.qp1.receive([to.part(0, 296)]);
    a.qp1.receive([to.part(512, 296)]);
    a.qp1.sendBytes(wqe());
    await bench.run(30);
    const [sent, received, ...more] = a.cq
      .drain()
      .toSorted((left, right) => (left.isSend ? -1 : 1) - (right.isSend ? -1 : 1));
    expect(more).toEqual([]);
    expect(sent).toMatchObject({ isSend: true, syndrome: 0 });
    expect(received).toMatchObject({ isSend: false, byteCount: 296, syndrome: 0, sourceLid: 0x900 });
    expect(asked).toEqual([pattern(5, 256)]);
    expect(to.read(40, 256)).toEqual(Uint8Array.from([77, ...pattern(5, 256).subarray(1)]));
    // A MAD that the subnet manager does not answer produces no response.
    a.qp1.sendBytes(wqe());
    await bench.run(30);
    expect(a.cq.drain().map(({ isSend }) => isSend)).toEqual([true]);
    expect(asked.length).toBe(2);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({});
    // The manager has only QP0 and QP1.
    const other = wqe();
    other.set([0, 0, 0x55], 20 + 13);
    a.qp1.sendBytes(other);
    await bench.run(30);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({ packetForeignLid: 1 });
    expect(bench.a.wire.transmitted.packetCount).toBe(0);
    expect(bench.a.dataPath.parts.loopback.heldCount).toBe(0);
  });

  test('an answer of the embedded subnet manager that goes on in further MADs comes as so many datagrams, in order', async () => {
    const bench = await dataPathBench();
    const a = specialQps(bench.a);
    const [mad, to] = [new Region(bench.a, 256), new Region(bench.a, 4096)];
    mad.fill(5);
    await bench.run(3);
    bench.a.address.embeddedManagerLid = 0x900;
    bench.a.answers = (bytes) => {
      bytes[0] = 0;
      for (const number of [1, 2]) bench.a.following.push((next) => next.fill(number, 0, 1));
      return true;
    };
    const wqe = capturedWqe(BASE + 2, mad);
    mlxControlSegment.fields.remoteLid.set(new DataView(wqe.buffer), 0, 0x900);
    wqe.set([9, 0], 20 + 2);
    for (let place = 0; place < 4; place++) a.qp1.receive([to.part(place * 512, 296)]);
    a.qp1.sendBytes(wqe);
    await bench.run(40);
    const received = a.cq.drain().filter(({ isSend }) => !isSend);
    expect(received.map(({ byteCount, sourceLid }) => [byteCount, sourceLid])).toEqual([
      [296, 0x900],
      [296, 0x900],
      [296, 0x900],
    ]);
    expect([0, 1, 2].map((place) => to.read(place * 512 + 40, 1)[0])).toEqual([0, 1, 2]);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({});
    expect(bench.a.dataPath.parts.loopback.heldCount).toBe(0);
  });

  test('sheet 6.3: a WQE whose headers are no UD packet is a local QP operation error', async () => {
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

  test('sheet 3.17: are unknown while CONF_SPECIAL_QP has named none', async () => {
    const bench = await dataPathBench();
    const a = specialQps(bench.a);
    const mad = new Region(bench.a, 256);
    await bench.run(3);
    a.qp0.sendBytes(capturedWqe(BASE, mad));
    await bench.run(20);
    expect(bench.b.dataPath.parts.violations.report()).toEqual({ packetUnknownQp: 1 });
  });
});
