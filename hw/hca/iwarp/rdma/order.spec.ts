/** Order, completion and the ends of streams (RFC 5040, 5.5, 6.2 and appendix B). */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome, ReceiveOpcode } from '../../../../abi/cqe.ts';
import { QpState, ServiceType } from '../../../../abi/qpc.ts';
import { RtrKind, TcpEvent } from '../../../../abi/tcp-connection.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { tightest } from '../../testing/data-path-bench.ts';
import { pattern, Region, Srq } from '../../testing/data-path-verbs.ts';
import { fpduOf, taggedSegment, untaggedSegment } from '../testing/hostile-fpdus.ts';
import {
  completionsOf,
  iwarpPair,
  iwarpScene,
  pairOn,
  runJoined,
  untilJoined,
} from '../testing/iwarp-bench.ts';

const { RDMA_READ, RDMA_WRITE, SEND, SEND_INVAL } = WqeOpcode;
const { WR_FLUSH_ERR, LOCAL_QP_OP_ERR } = CqeSyndrome;

const brief = (found: readonly { wqeCounter: number; syndrome: number }[]): string[] =>
  found.map(({ wqeCounter, syndrome }) => `${wqeCounter}: ${syndrome}`);

describe('order at the target', () => {
  it('SEND, SEND: receives complete in order', async () => {
    const { bench, a, b, bCq, local, remote } = await iwarpScene();
    for (const index of [0, 1, 2]) b.receive([remote.part(index * 4000, 4000)]);
    for (const bytes of [3000, 1, 2000]) a.send({ opcode: SEND, segments: [local.part(0, bytes)] });
    const found = await completionsOf(bench, bCq, 3);
    expect(found.map(({ wqeCounter, byteCount }) => `${wqeCounter}: ${byteCount}`)).toEqual([
      '0: 3000',
      '1: 1',
      '2: 2000',
    ]);
  });

  it('WRITE, SEND: the WRITE is placed when the receive completes', async () => {
    const { bench, a, b, bCq, local, remote } = await iwarpScene();
    b.receive([remote.part(15_000, 100)]);
    a.post({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 9000)],
      remote: { address: remote.address, key: remote.key },
    });
    a.post({ opcode: SEND, segments: [local.part(0, 1)] });
    a.ring();
    await completionsOf(bench, bCq, 1);
    expect(remote.read(0, 9000)).toEqual(local.read(0, 9000));
  });

  it('WRITE, READ: the response has the bytes of the WRITE', async () => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    const target = { address: remote.address, key: remote.key };
    a.post({ opcode: RDMA_WRITE, segments: [local.part(0, 5000)], remote: target });
    a.post({ opcode: RDMA_READ, segments: [local.part(8000, 5000)], remote: target });
    a.ring();
    expect(brief(await completionsOf(bench, aCq, 2))).toEqual(['0: 0', '1: 0']);
    expect(local.read(8000, 5000)).toEqual(local.read(0, 5000));
  });

  it('READ, READ: responses come in order, at most ORD at once', async () => {
    const { bench, a, aCq, local, remote } = await iwarpScene({ reads: 2 });
    for (let index = 0; index < 7; index++)
      a.post({
        opcode: RDMA_READ,
        segments: [local.part(index * 2000, 2000)],
        remote: { address: remote.address + index, key: remote.key },
      });
    a.ring();
    let most = 0;
    const found: string[] = [];
    await untilJoined(bench, () => {
      most = Math.max(most, bench.a.dataPath.parts.connections.rows[a.slot]!.receiver.outstanding.count);
      return found.push(...brief(aCq.drain())) >= 7;
    });
    expect(found).toEqual([0, 1, 2, 3, 4, 5, 6].map((index) => `${index}: 0`));
    expect(most).toBe(2);
    for (let index = 0; index < 7; index++)
      expect(local.read(index * 2000, 2000)).toEqual(remote.read(index, 2000));
  });

  it('READ, fenced SEND: the SEND has the bytes that the READ brought', async () => {
    const { bench, a, b, bCq, local, remote } = await iwarpScene();
    b.receive([remote.part(8000, 3000)]);
    a.post({
      opcode: RDMA_READ,
      segments: [local.part(0, 3000)],
      remote: { address: remote.address, key: remote.key },
    });
    a.post({ opcode: SEND, segments: [local.part(0, 3000)], isFenced: true });
    a.ring();
    await completionsOf(bench, bCq, 1);
    expect(remote.read(8000, 3000)).toEqual(remote.read(0, 3000));
  });

  it('READ, SEND: completions come in posting order, though the SEND is accepted first', async () => {
    const { bench, a, b, aCq, local, remote } = await iwarpScene();
    b.receive([remote.part(8000, 3000)]);
    a.post({
      opcode: RDMA_READ,
      segments: [local.part(0, 3000)],
      remote: { address: remote.address, key: remote.key },
    });
    a.post({ opcode: SEND, segments: [local.part(0, 10)] });
    a.ring();
    expect(brief(await completionsOf(bench, aCq, 2))).toEqual(['0: 0', '1: 0']);
  });
});

describe('a WRITE', () => {
  it('completes when TCP has accepted it, before its peer has it', async () => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    a.send({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 100)],
      remote: { address: remote.address, key: remote.key },
    });
    // Nothing crosses.
    await bench.until(() => aCq.takenCount() === 1, 50);
    expect(remote.read(0, 100)).toEqual(pattern(101, 16_384).slice(0, 100));
  });

  it('of 1 MiB passes a send buffer of 20 KiB, and leaves the queue to others meanwhile', async () => {
    const { bench, a, aCq, streams } = await iwarpScene();
    const MIB = 1 << 20;
    const other = iwarpPair(bench);
    await runJoined(bench, 5);
    const from = new Region(bench.a, MIB);
    const to = new Region(bench.b, MIB);
    from.write(pattern(3, MIB));
    await runJoined(bench, 3);
    streams.a.connection(other.connection - 1).roomBytes = 20_000;
    a.send({
      opcode: RDMA_WRITE,
      segments: [from.part(0, MIB)],
      remote: { address: to.address, key: to.key },
    });
    await bench.run(40);
    expect(aCq.takenCount()).toBe(0);
    other.a.send({
      opcode: RDMA_WRITE,
      segments: [from.part(0, 100)],
      remote: { address: to.address, key: to.key },
    });
    await bench.until(() => other.aCq.takenCount() === 1, 50);
    await untilJoined(bench, () => aCq.takenCount() === 1);
    await runJoined(bench, 30);
    expect(Buffer.from(to.read()).equals(Buffer.from(from.read()))).toBe(true);
  }, 30_000);
});

describe('forms of SEND', () => {
  it('from inline data, solicited, and with a key that is invalidated', async () => {
    const { bench, a, b, bCq, remote } = await iwarpScene();
    const window = new Region(bench.b, 4096);
    await runJoined(bench, 3);
    const data = pattern(9, 60);
    for (const index of [0, 1, 2]) b.receive([remote.part(index * 100, 100)]);
    a.send({ opcode: SEND, inline: data });
    a.send({ opcode: SEND, inline: data, isSolicited: true });
    a.send({ opcode: SEND_INVAL, inline: data, isSolicited: true, immediate: window.key });
    const found = await completionsOf(bench, bCq, 3);
    expect(found.map(({ opcode, byteCount, immediate }) => [opcode, byteCount, immediate])).toEqual([
      [ReceiveOpcode.SEND, 60, 0],
      [ReceiveOpcode.SEND, 60, 0],
      [ReceiveOpcode.SEND_INVAL, 60, window.key],
    ]);
    expect(remote.read(200, 60)).toEqual(data);
    const { segments } = bench.b.dataPath.parts.segmentCounters.received;
    // RDMAP's opcodes 3, 5 and 6: SEND, with solicited event, with both.
    expect([segments[3], segments[4], segments[5], segments[6]]).toEqual([1, 0, 1, 1]);
    // The key is invalid now.
    a.send({ opcode: RDMA_WRITE, inline: data, remote: { address: window.address, key: window.key } });
    await runJoined(bench, 20);
    expect(b.state).toBe(QpState.ERR);
  });

  it('take receives of a shared queue', async () => {
    const { bench, local, remote } = await iwarpScene();
    const srq = new Srq(bench.b);
    const { a, bCq } = iwarpPair(bench, {}, { b: { srq } });
    srq.post([remote.part(0, 2000)]);
    srq.post([remote.part(4000, 2000)]);
    await runJoined(bench, 5);
    a.send({ opcode: SEND, segments: [local.part(0, 1900)] });
    a.send({ opcode: SEND, segments: [local.part(2000, 20)] });
    expect((await completionsOf(bench, bCq, 2)).map(({ byteCount }) => byteCount)).toEqual([1900, 20]);
    expect(remote.read(4000, 20)).toEqual(local.read(2000, 20));
  });

  it.each([
    ['immediate data', { opcode: WqeOpcode.SEND_IMM, immediate: 5 }],
    ['a WRITE with immediate data', { opcode: WqeOpcode.RDMA_WRITE_IMM, immediate: 5 }],
    ['an atomic', { opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n }],
  ])('%s needs RFC 7306, and is refused as a local QP operation', async (_, request) => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    a.send({
      ...request,
      segments: [local.part(0, 8)],
      remote: { address: remote.address, key: remote.key },
    });
    expect(brief(await completionsOf(bench, aCq, 1))).toEqual([`0: ${LOCAL_QP_OP_ERR}`]);
    expect(a.state).toBe(QpState.ERR);
  });

  it('a READ into two places is refused, since it names one sink', async () => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    a.send({
      opcode: RDMA_READ,
      segments: [local.part(0, 8), local.part(100, 8)],
      remote: { address: remote.address, key: remote.key },
    });
    expect(brief(await completionsOf(bench, aCq, 1))).toEqual([`0: ${LOCAL_QP_OP_ERR}`]);
  });
});

describe('the first message', () => {
  it('RFC 5044, 7.1.2: a responder sends nothing before the first FPDU of its peer', async () => {
    const { bench, a, b, bCq, aCq, local, remote, streams } = await iwarpScene();
    b.send({
      opcode: RDMA_WRITE,
      segments: [remote.part(0, 10)],
      remote: { address: local.address, key: local.key },
    });
    await runJoined(bench, 30);
    expect([streams.b.sent.length, bCq.takenCount()]).toEqual([0, 0]);
    a.send({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 10)],
      remote: { address: remote.address, key: remote.key },
    });
    await untilJoined(bench, () => aCq.takenCount() + bCq.takenCount() === 2, 100);
  });

  it.each([
    ['WRITE', RtrKind.WRITE, 'c140'],
    ['SEND', RtrKind.SEND, '4143'],
    ['READ', RtrKind.READ, '4141'],
  ])('RFC 6581, 4.3: is an empty %s in peer-to-peer mode', async (_, rtr, head) => {
    const { bench, b, bCq, local, remote, streams } = await iwarpScene({ rtr });
    await runJoined(bench, 5);
    expect(Buffer.from(streams.a.sent[0]!.subarray(2, 4)).toString('hex')).toBe(head);
    b.send({
      opcode: RDMA_WRITE,
      segments: [remote.part(0, 10)],
      remote: { address: local.address, key: local.key },
    });
    await untilJoined(bench, () => bCq.takenCount() === 1, 100);
  });
});

describe('the stream of a QP', () => {
  it('is none of a QP of another service, whatever its context has there', async () => {
    const { bench } = await iwarpScene();
    const fields = { serviceType: ServiceType.UC };
    const { a } = iwarpPair(bench, {}, { a: { fields } });
    await runJoined(bench, 5);
    expect(bench.a.dataPath.parts.connections.rows[a.slot]).toBeUndefined();
  });

  it('is none that another QP has', async () => {
    const { bench, connection, a, local, remote, aCq } = await iwarpScene();
    const other = pairOn(bench, { a: connection, b: connection });
    await runJoined(bench, 5);
    const { connections } = bench.a.dataPath.parts;
    expect([connections.rows[other.a.slot], connections.refusedCount]).toEqual([undefined, 1]);
    a.send({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 10)],
      remote: { address: remote.address, key: remote.key },
    });
    expect(brief(await completionsOf(bench, aCq, 1))).toEqual(['0: 0']);
  });
});

describe('the end of a stream', () => {
  it('2ERR resets the connection and flushes; the peer goes to error, too', async () => {
    const { bench, a, b, aCq, bCq, connection, remote, streams } = await iwarpScene();
    a.receive([]);
    b.receive([remote.part(0, 10)]);
    a.toError();
    expect((await completionsOf(bench, aCq, 1))[0]).toMatchObject({ syndrome: WR_FLUSH_ERR, isSend: false });
    expect((await completionsOf(bench, bCq, 1))[0]).toMatchObject({ syndrome: WR_FLUSH_ERR, isSend: false });
    expect([streams.a.log, streams.b.log]).toEqual([[`${connection} abort`], [`${connection} reset`]]);
    expect(b.state).toBe(QpState.ERR);
  });

  it('2RST of an open stream resets the connection: the peer goes to error and flushes', async () => {
    const { bench, a, b, bCq, connection, remote, streams } = await iwarpScene();
    b.receive([remote.part(0, 10)]);
    bench.a.act(() => bench.a.dataPath.control.qpDestroyed(a.slot));
    expect((await completionsOf(bench, bCq, 1))[0]).toMatchObject({ syndrome: WR_FLUSH_ERR, isSend: false });
    expect([streams.a.log, streams.b.log]).toEqual([[`${connection} abort`], [`${connection} reset`]]);
    expect(b.state).toBe(QpState.ERR);
  });

  it('2RST during an orderly close sends FIN, and not RST', async () => {
    const { bench, a, connection, streams } = await iwarpScene();
    const { stream } = streams.a.connection(connection);
    bench.a.act(() => stream!.closeRequested(bench.a.domain.cycle));
    bench.a.act(() => bench.a.dataPath.control.qpDestroyed(a.slot));
    await runJoined(bench, 20);
    expect(streams.a.connection(connection).hasFinSent).toBe(true);
    expect(streams.b.log).toEqual([]);
  });

  it('a close does not wait for a READ that the peer cannot answer after its FIN', async () => {
    const { bench, a, b, aCq, connection, local, remote, streams } = await iwarpScene();
    const { stream } = streams.b.connection(connection);
    bench.b.act(() => stream!.closeRequested(bench.b.domain.cycle));
    await untilJoined(bench, () => streams.a.connection(connection).hasFinReceived);
    a.send({
      opcode: RDMA_READ,
      segments: [local.part(0, 10)],
      remote: { address: remote.address, key: remote.key },
    });
    await runJoined(bench, 20);
    expect(bench.b.dataPath.parts.connections.rows[b.slot]!.reads.count).toBe(0);
    bench.a.act(() => streams.a.connection(connection).stream!.closeRequested(bench.a.domain.cycle));
    expect(brief(await completionsOf(bench, aCq, 1))).toEqual([`0: ${WR_FLUSH_ERR}`]);
    expect(a.state).toBe(QpState.ERR);
  });

  it('an orderly close sends FIN after what was posted, and flushes when both sides have closed', async () => {
    const { bench, a, b, aCq, bCq, connection, local, remote, streams } = await iwarpScene();
    b.receive([remote.part(0, 9000)]);
    b.receive([remote.part(0, 9000)]);
    a.send({ opcode: SEND, segments: [local.part(0, 9000)] });
    const { stream } = streams.a.connection(connection);
    bench.a.act(() => stream!.closeRequested(bench.a.domain.cycle));
    expect(brief(await completionsOf(bench, bCq, 1))).toEqual(['0: 0']);
    await runJoined(bench, 20);
    expect([a.state, b.state, aCq.takenCount()]).toEqual([QpState.RTS, QpState.RTS, 1]);
    expect(streams.a.connection(connection).hasFinSent).toBe(true);
    bench.b.act(() => streams.b.connection(connection).stream!.closeRequested(bench.b.domain.cycle));
    expect(brief(await completionsOf(bench, bCq, 1))).toEqual([`1: ${WR_FLUSH_ERR}`]);
    expect([a.state, b.state]).toEqual([QpState.ERR, QpState.ERR]);
    expect(streams.a.log).toEqual([`${connection} closed`]);
  });

  it('software ends it with a Terminate of its choice', async () => {
    const { bench, a, connection, streams } = await iwarpScene();
    const { stream } = streams.a.connection(connection);
    bench.a.act(() => stream!.terminateRequested(0x2006, bench.a.domain.cycle));
    await runJoined(bench, 20);
    expect(streams.b.log[0]).toBe(`${connection} terminate received 0x2006`);
    expect(a.state).toBe(QpState.ERR);
  });

  it('a lost connection flushes what waits for an answer', async () => {
    const { bench, a, aCq, connection, local, remote, streams } = await iwarpScene();
    a.send({
      opcode: RDMA_READ,
      segments: [local.part(0, 10)],
      remote: { address: remote.address, key: remote.key },
    });
    await bench.run(20);
    bench.a.act(() => streams.a.end(connection, TcpEvent.TIMED_OUT, bench.a.domain.cycle));
    expect(brief(await completionsOf(bench, aCq, 1))).toEqual([`0: ${WR_FLUSH_ERR}`]);
  });

  it('segments that arrive before the end are placed', async () => {
    const { bench, b, bCq, connection, remote, streams } = await iwarpScene();
    b.receive([remote.part(0, 100)]);
    const bytes = fpduOf(untaggedSegment({ payload: pattern(4, 77) }));
    streams.a.inject(connection, Buffer.concat([bytes, fpduOf(taggedSegment({ tag: 1, offset: 0 }))]));
    streams.a.abort(connection);
    // RST and the segment cross in the same microsecond.
    const target = streams.b.connection(connection);
    target.inbound.push(...streams.a.connection(connection).outbound);
    bench.b.act(() => streams.b.deliver(connection, target.inbound.shift()!));
    expect(brief(await completionsOf(bench, bCq, 1))).toEqual(['0: 0']);
    await runJoined(bench, 10);
    expect(b.state).toBe(QpState.ERR);
  });
});

describe('a full placement queue', () => {
  it('stalls TCP and loses nothing, with the smallest of everything', async () => {
    const options = { hca: tightest, iwarp: { placementSegments: 1 } };
    const { bench, a, aCq, b, bCq, local, remote, streams } = await iwarpScene({ hasMarkers: true }, options);
    const target = { address: remote.address, key: remote.key };
    for (let round = 0; round < 4; round++) {
      b.receive([remote.part(8000, 6000)]);
      a.post({ opcode: RDMA_WRITE, segments: [local.part(0, 7000)], remote: target });
      a.post({ opcode: RDMA_READ, segments: [local.part(8000, 3000)], remote: target });
      a.post({ opcode: SEND, segments: [local.part(0, 6000)] });
    }
    a.ring();
    const found: string[] = [];
    await untilJoined(bench, () => found.push(...brief(aCq.drain())) >= 12);
    expect(found).toEqual(Array.from({ length: 12 }, (_, index) => `${index}: 0`));
    await untilJoined(bench, () => bCq.takenCount() === 4, 200);
    expect(remote.read(8000, 6000)).toEqual(local.read(0, 6000));
    expect(local.read(8000, 3000)).toEqual(local.read(0, 3000));
    expect(Array.from(streams.b.held).every((count) => count === 0)).toBe(true);
    expect(streams.b.busyCount).toBeGreaterThan(0);
  });
});
