/** Small messages of QPs configured for inline receives, in the receive WQE itself. */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState, ServiceType } from '../../../abi/qpc.ts';
import { grhBytes } from '../../../abi/wqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { PORT_RECEIVER } from '../memory/index.ts';
import { type BenchOptions, tightest } from '../testing/data-path-bench.ts';
import { pattern, psnA, type Qp } from '../testing/data-path-verbs.ts';
import { datagramQp, datagramScene, datagramTo } from '../testing/datagrams.ts';
import { type Scene, scene, summaryOf, syndromesOf } from '../testing/scenario.ts';

const { SEND, SEND_IMM, RDMA_WRITE_IMM } = WqeOpcode;
const STRIDE = 64;
const MTU = 1024;
const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];
const inlineReceive = 1;
const asking = { b: { rqLogStride16: 2, fields: { inlineReceive } } };

/** Bytes in memory of the WQE with this counter. */
const wqe = (qp: Qp, counter: number, lengthBytes: number): Uint8Array =>
  qp.node.memory.bytes.slice(
    qp.rqAddress + (counter & 15) * STRIDE,
    qp.rqAddress + (counter & 15) * STRIDE + lengthBytes,
  );

const translationsOf = ({ bench }: Scene) => {
  const { mptUses, mttUses } = bench.b.dataPath.parts.translator.port(PORT_RECEIVER);
  return [mptUses, mttUses];
};

describe.each(sizes)('inline receive%s', (_, options) => {
  it('sheet 6.6: puts a message that fits the stride in the WQE, says so in the CQE, and leaves the buffers alone', async () => {
    const given = await scene({ ...options, ...asking });
    const { bench, a, b, bCq, local, remote } = given;
    const before = remote.read().slice();
    const lengths = [1, 16, STRIDE - 1, STRIDE];
    for (const [index] of lengths.entries()) b.receive([remote.part(1000 * index, 1000)]);
    lengths.forEach((length, index) => {
      a.post({
        opcode: index === 1 ? SEND_IMM : SEND,
        immediate: 0x77,
        segments: [local.part(100 * index, length)],
      });
    });
    a.ring();
    const received = [] as ReturnType<typeof bCq.drain>;
    await bench.until(() => received.push(...bCq.drain()) >= lengths.length, 300);
    expect(
      received.map(({ wqeCounter, byteCount, isInline }) => [wqeCounter, byteCount, isInline === true]),
    ).toEqual(lengths.map((length, index) => [index, length, true]));
    lengths.forEach((length, index) => {
      expect(wqe(b, index, length)).toEqual(local.read(100 * index, length));
    });
    expect(remote.read()).toEqual(before);
    const { inlinedCount, inlinedBytes } = bench.b.dataPath.blocks.scatter;
    expect([inlinedCount, inlinedBytes]).toEqual([4, 1 + 16 + 63 + 64]);
  });

  it('sheet 6.6: scatters what is longer, comes in several packets, or is empty, as ever', async () => {
    const given = await scene({ ...options, ...asking });
    const { bench, a, b, bCq, local, remote } = given;
    const lengths = [STRIDE + 1, 500, MTU + 8, 0];
    for (const [index] of lengths.entries()) b.receive([remote.part(2000 * index, 2000)]);
    lengths.forEach((length) => {
      a.post({ opcode: SEND, segments: length === 0 ? [] : [local.part(0, length)] });
    });
    a.ring();
    const received = [] as ReturnType<typeof bCq.drain>;
    await bench.until(() => received.push(...bCq.drain()) >= lengths.length, 300);
    expect(received.map(({ byteCount, isInline }) => [byteCount, isInline === true])).toEqual(
      lengths.map((length) => [length, false]),
    );
    lengths.forEach((length, index) => {
      expect(remote.read(2000 * index, length)).toEqual(local.read(0, length));
    });
    expect(bench.b.dataPath.blocks.scatter.inlinedCount).toBe(0);
  });

  it('puts message after message into WQEs that are used again, and a WRITE’s immediate says nothing of its bytes', async () => {
    const given = await scene({ ...options, ...asking });
    const { bench, a, b, bCq, aCq, local, remote } = given;
    for (let round = 0; round < 40; round++) {
      b.receive([remote.part(0, 64)]);
      local.write(pattern(round, 40), 200);
      const isWrite = round % 5 === 4;
      a.send({
        opcode: isWrite ? RDMA_WRITE_IMM : SEND,
        segments: [local.part(200, 40)],
        remote: { address: remote.address + 512, key: remote.key },
      });
      const received = [] as ReturnType<typeof bCq.drain>;
      await bench.until(() => received.push(...bCq.drain()) >= 1, 100);
      await bench.until(() => aCq.drain().length > 0, 100);
      expect(
        received.map(({ byteCount, isInline, syndrome }) => [byteCount, isInline === true, syndrome]),
      ).toEqual([[40, !isWrite, 0]]);
      const place = isWrite ? remote.read(512, 40) : wqe(b, round, 40);
      expect(place, `round ${round}`).toEqual(pattern(round, 40));
    }
  });
});

describe('inline receive', () => {
  it('looks up no key: a list that names none is as good, and no entry of the region’s tables is used', async () => {
    const plain = await scene();
    const inlined = await scene(asking);
    for (const given of [plain, inlined]) {
      given.b.receive([{ ...given.remote.part(0, 64), key: 0xf_ff00 }]);
      given.a.send({ opcode: SEND, segments: [given.local.part(0, 40)] });
      await given.bench.run(60);
    }
    expect(syndromesOf(plain.bCq.drain())).toEqual([CqeSyndrome.LOCAL_PROT_ERR]);
    expect(syndromesOf(inlined.bCq.drain())).toEqual([0]);
    expect(translationsOf(inlined)[0]).toBe(0);
  });

  it('takes one write where the buffers of the list would take several', async () => {
    const writes: number[] = [];
    for (const options of [{}, asking]) {
      const given = await scene(options);
      const { bench, a, b, bCq, local, remote } = given;
      b.receive([remote.part(0, 10), remote.part(4000, 10), remote.part(9000, 44)]);
      const before = bench.b.dataPath.blocks.writer.requestedCount;
      a.send({ opcode: SEND, segments: [local.part(0, 60)] });
      await bench.until(() => bCq.drain().length > 0, 100);
      writes.push(bench.b.dataPath.blocks.writer.requestedCount - before);
    }
    expect(writes).toEqual([3, 1]);
  });

  it('is left to software where the list is shorter than the message', async () => {
    const { bench, a, b, bCq, local, remote } = await scene(asking);
    b.receive([remote.part(0, 8)]);
    a.send({ opcode: SEND, segments: [local.part(0, 40)] });
    await bench.run(60);
    expect(bCq.drain()).toMatchObject([{ byteCount: 40, isInline: true, syndrome: 0 }]);
    expect([a.state, b.state]).toEqual([QpState.RTS, QpState.RTS]);
  });

  it('IBTA 9.8.2: of an unreliable connection takes the WQE that a message left which was abandoned', async () => {
    const serviceType = ServiceType.UC;
    const { bench, a, b, bCq, local, remote } = await scene({
      a: { fields: { serviceType } },
      b: { rqLogStride16: 2, fields: { serviceType, inlineReceive } },
    });
    bench.b.port.drops = ({ psn }) => psn === psnA(1);
    b.receive([remote.part(0, 4000)]);
    a.send({ opcode: SEND, segments: [local.part(0, 3000)] });
    a.send({ opcode: SEND, segments: [local.part(0, 40)] });
    await bench.run(60);
    expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x0']);
    expect(wqe(b, 0, 40)).toEqual(local.read(0, 40));
  });
});

describe('inline receive of datagrams', () => {
  it('sheet 6.4: counts the 40 bytes of the GRH, which are in front of the payload', async () => {
    const { bench, a, from, to } = await datagramScene();
    const receiver = datagramQp(bench.b, { rqLogStride16: 2, fields: { inlineReceive } });
    const lengths = [STRIDE - grhBytes, STRIDE - grhBytes + 1];
    for (const [index, length] of lengths.entries()) {
      receiver.qp.receive([to.part(1000 * index, 1000)]);
      const datagram = datagramTo(receiver.qp.qpn, 2);
      a.qp.send({ opcode: SEND, datagram, segments: [from.part(0, length)] });
    }
    const received = [] as ReturnType<typeof receiver.cq.drain>;
    await bench.until(() => received.push(...receiver.cq.drain()) >= 2);
    expect(received.map(({ byteCount, isInline }) => [byteCount, isInline === true])).toEqual([
      [STRIDE, true],
      [STRIDE + 1, false],
    ]);
    expect(wqe(receiver.qp, 0, STRIDE).subarray(grhBytes)).toEqual(from.read(0, STRIDE - grhBytes));
    expect(to.read(1000 + grhBytes, lengths[1]!)).toEqual(from.read(0, lengths[1]!));
  });
});
