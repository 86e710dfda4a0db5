import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import {
  AethKind,
  creditCountByCode,
  NakCode,
  nakSyndrome,
  Opcode,
  syndromeKind,
  syndromeValue,
} from '../../../../wire/index.ts';
import { type BenchOptions, tightest } from '../../testing/data-path-bench.ts';
import { allRights, psnA, Region, type SendRequest } from '../../testing/data-path-verbs.ts';
import { packetsTo, type Scene, scene, summaryOf, syndromesOf } from '../../testing/scenario.ts';

const write = ({ local, target }: Scene, change: Partial<SendRequest['remote']> = {}): SendRequest => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(0, 3000)],
  remote: { ...target, ...change },
});
const read = (given: Scene, change: Partial<SendRequest['remote']> = {}): SendRequest => ({
  ...write(given, change),
  opcode: WqeOpcode.RDMA_READ,
});
const atomic = ({ local, target }: Scene, change: Partial<SendRequest['remote']> = {}): SendRequest => ({
  opcode: WqeOpcode.ATOMIC_FA,
  segments: [local.part(0, 8)],
  remote: { ...target, ...change },
  swapOrAdd: 1n,
});
const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];

describe('the responder', () => {
  it('IBTA 9.7.5.1: still answers what it accepted before the request that it refuses', async () => {
    for (const [, options] of sizes) {
      const given = await scene(options);
      const { bench, a, aCq, local, remote } = given;
      a.post({ ...read(given), segments: [local.part(4000, 9000)] });
      a.post({ ...atomic(given, { address: remote.address + 16 }), segments: [local.part(14_000, 8)] });
      a.post(write(given, { key: 0xf_ff00 }));
      a.ring();
      await bench.run(80);
      expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x0', 'send 1: 0x0', 'send 2: 0x13']);
      expect(local.read(4000, 16)).toEqual(remote.read(0, 16));
      expect(local.read(4000 + 24, 8976)).toEqual(remote.read(24, 8976));
    }
  });

  it('IBTA 10.3.1: flushes the receive WQE that a refused WRITE with immediate had taken', async () => {
    const given = await scene();
    const { bench, a, b, bCq, remote } = given;
    b.receive([remote.part(0, 64)]);
    b.receive([remote.part(0, 64)]);
    a.send({
      ...write(given, { key: 0xf_ff00 }),
      segments: [given.local.part(0, 100)],
      opcode: WqeOpcode.RDMA_WRITE_IMM,
    });
    await bench.run(60);
    expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x5', 'receive 1: 0x5']);
  });

  it('sheet 6.6: completes a receive WQE that is too short in error and reports it to the sender', async () => {
    for (const bytes of [0, 1, 1023, 1024, 1025, 2999]) {
      const given = await scene();
      const { bench, a, b, aCq, bCq, remote, checkBystanders } = given;
      b.receive(bytes === 0 ? [] : [remote.part(0, bytes)]);
      b.receive([remote.part(8000, 64)]);
      a.send({ opcode: WqeOpcode.SEND, segments: [given.local.part(0, 3000)] });
      await bench.run(60);
      expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x1', 'receive 1: 0x5']);
      expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.REMOTE_INVAL_REQ_ERR]);
      await checkBystanders();
    }
  });

  it('sheet 6.6: completes a receive WQE whose memory may not be written in error', async () => {
    const wrong: Record<string, ConstructorParameters<typeof Region>[2]> = {
      'protection domain': { pd: 6 },
      right: { rights: { ...allRights, localWrite: false } },
      page: { holes: [0] },
    };
    for (const options of Object.values(wrong)) {
      const given = await scene();
      const { bench, a, b, aCq, bCq, remote } = given;
      const refused = new Region(bench.b, 4096, options);
      b.receive([remote.part(0, 100), refused.part(0, 100)]);
      a.send({ opcode: WqeOpcode.SEND, segments: [given.local.part(0, 150)] });
      await bench.run(60);
      expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x4']);
      expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.REMOTE_OP_ERR]);
    }
  });

  it('sheet 6.4: scatters a message over segments of any length, up to the terminator', async () => {
    const given = await scene({ b: { rqLogStride16: 4 } });
    const { bench, a, b, bCq, local, remote } = given;
    const cuts = [1, 63, 1000, 1, 935, 1000];
    b.receive(cuts.map((bytes, place) => remote.part(5 + place * 1200, bytes)));
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(7, 3000)] });
    await bench.run(60);
    expect(bCq.drain()).toMatchObject([{ syndrome: 0, byteCount: 3000, wqeCounter: 0, sourceLid: 1 }]);
    let taken = 7;
    cuts.forEach((bytes, index) => {
      expect(remote.read(5 + index * 1200, bytes)).toEqual(local.read(taken, bytes));
      taken += bytes;
    });
    expect(remote.read(5 + 5 * 1200 + 1000, 1)).toEqual(Uint8Array.of((101 + 7005 * 7 + (7005 >> 8)) & 0xff));
  });

  it('sheet 6.7: reports that communication is established at the first packet in RTR, once', async () => {
    const given = await scene();
    const { bench, a, b } = given;
    b.node.act(() => {
      b.node.dataPath.parts.qps.rows[b.slot]!.state = QpState.RTR;
    });
    a.send(write(given));
    a.send(write(given));
    await bench.run(40);
    expect(bench.b.events.lines).toEqual([`qp 0x2 0x${b.qpn.toString(16)}`]);
  });
});

describe('packets that should not come', () => {
  const only = (given: Scene, psn: number, change: object = {}) => ({
    opcode: Opcode.RC_RDMA_WRITE_ONLY,
    qpn: given.b.qpn,
    psn,
    address: given.remote.address,
    rkey: given.remote.key,
    payload: Uint8Array.of(1, 2, 3, 4),
    flags: 1,
    ...change,
  });
  const inject = async (given: Scene, ...packets: ReturnType<typeof only>[]): Promise<void> => {
    for (const packet of packets)
      given.bench.a.act(() =>
        given.bench.a.port.inject(packet, given.bench.a.domain.clock.edgePs(given.bench.a.domain.cycle)),
      );
    await given.bench.run(10);
  };

  it('C9-105: acknowledges a duplicate again with the newest PSN, and does not execute it', async () => {
    const given = await scene();
    const { bench, a, remote } = given;
    a.send(write(given));
    await bench.run(20);
    const after = remote.read();
    await inject(given, only(given, psnA(1)));
    expect(remote.read()).toEqual(after);
    // Three packets of a WRITE of 3000 bytes: the newest is the third.
    expect(packetsTo(a).slice(-2)).toEqual([
      { opcode: Opcode.RC_ACKNOWLEDGE, psn: psnA(2) },
      { opcode: Opcode.RC_ACKNOWLEDGE, psn: psnA(2) },
    ]);
    expect(bench.b.dataPath.parts.transport.report()).toEqual({ duplicateRequest: 1 });
  });

  it('IBTA 9.7.5.1: acknowledges no later READ with a duplicate in front of it', async () => {
    const given = await scene();
    const { bench, a } = given;
    a.send(write(given));
    a.send(read(given));
    await bench.run(20);
    const answers = packetsTo(a).length;
    await inject(given, only(given, psnA(1)));
    // The WRITE is acknowledged as far as it has been repeated; an ACK for a PSN of the READ would signal that its
    // response was lost.
    expect(packetsTo(a).slice(answers)).toEqual([{ opcode: Opcode.RC_ACKNOWLEDGE, psn: psnA(1) }]);
  });

  it('IBTA 9.7.5.2: sends one NAK for a gap, and takes up again with the expected packet', async () => {
    const given = await scene();
    const { bench, a, remote } = given;
    await inject(given, only(given, psnA(2)), only(given, psnA(3)), only(given, psnA(4)));
    await inject(given, only(given, psnA(0)));
    await inject(given, only(given, psnA(2)));
    expect(bench.a.port.packets.map(({ psn, syndrome }) => [psn, syndrome >= 0x60])).toEqual([
      [psnA(0), true],
      [psnA(0), false],
      [psnA(1), true],
    ]);
    expect(remote.read(0, 4)).toEqual(Uint8Array.of(1, 2, 3, 4));
    expect(bench.b.dataPath.parts.transport.report()).toEqual({
      sequenceNakSent: 2,
      requestOutOfSequence: 4,
    });
    // No request of a waits for these responses.
    expect(a.state).toBe(QpState.RTS);
  });

  it('IBTA 9.7.4.1.1: looks at the PSN before all else: behind a gap or repeated, a wrong request is no error', async () => {
    const wrong = [
      { opcode: Opcode.RC_SEND_MIDDLE, payload: new Uint8Array(1024) },
      { opcode: Opcode.RC_RDMA_WRITE_LAST },
      { dmaBytes: 5 },
      { rkey: 0xf_ff00 },
    ];
    for (const change of wrong) {
      const given = await scene();
      const { bench, a, b, remote } = given;
      await inject(given, only(given, psnA(0)));
      const before = remote.read();
      await inject(given, only(given, psnA(2), change), only(given, psnA(0), change));
      // The first is acknowledged, the second requested again from the gap on, the repeated one acknowledged again.
      expect(bench.a.port.packets.map(({ psn, syndrome }) => [psn, syndromeKind(syndrome)])).toEqual([
        [psnA(0), AethKind.ACK],
        [psnA(1), AethKind.NAK],
        [psnA(0), AethKind.ACK],
      ]);
      expect(bench.a.port.packets[1]!.syndrome).toBe(nakSyndrome(NakCode.PSN_SEQUENCE_ERROR));
      expect([a.state, b.state, bench.b.events.lines]).toEqual([QpState.RTS, QpState.RTS, []]);
      expect(remote.read()).toEqual(before);
    }
  });

  it('IBTA 9.7.4.1.1: looks at opcode and length before the rights', async () => {
    const key = { rkey: 0xf_ff00 };
    for (const change of [{ ...key, opcode: Opcode.RC_RDMA_WRITE_LAST }, { ...key, dmaBytes: 5 }, key]) {
      const given = await scene();
      await inject(given, only(given, psnA(0), change));
      const code = change === key ? NakCode.REMOTE_ACCESS_ERROR : NakCode.INVALID_REQUEST;
      expect(given.bench.a.port.packets.map(({ syndrome }) => syndrome)).toEqual([nakSyndrome(code)]);
    }
  });

  it('C9-148: counts each message once in the MSN, a READ before its own answer, and none that is repeated', async () => {
    const given = await scene({ hca: { ackDelayCycles: 0 } });
    const { bench, a } = given;
    const answers = (): [number, number][] =>
      bench.a.port.packets.splice(0).map(({ opcode, msn }) => [opcode, msn]);
    a.send(write(given));
    await bench.run(20);
    expect(answers().at(-1)).toEqual([Opcode.RC_ACKNOWLEDGE, 1]);
    a.send({ ...read(given), segments: [given.local.part(0, 2048)] });
    await bench.run(20);
    expect(answers()).toEqual([
      [Opcode.RC_RDMA_READ_RESPONSE_FIRST, 2],
      [Opcode.RC_RDMA_READ_RESPONSE_LAST, 2],
    ]);
    a.send(atomic(given));
    await bench.run(20);
    expect(answers()).toEqual([[Opcode.RC_ATOMIC_ACKNOWLEDGE, 3]]);
    await inject(given, only(given, psnA(0)));
    expect(answers()).toEqual([[Opcode.RC_ACKNOWLEDGE, 3]]);
  });

  it('C9-148: counts an atomic in the MSN from its own answer on, whatever has come behind it', async () => {
    const given = await scene({ hca: { ackDelayCycles: 0 } });
    const { bench, a, b, remote } = given;
    for (let at = 0; at < 6; at++) b.receive([remote.part(8000 + 64 * at, 64)]);
    const send: SendRequest = { opcode: WqeOpcode.SEND, segments: [given.local.part(0, 8)] };
    a.send(send);
    await bench.run(20);
    bench.a.port.packets.splice(0);
    a.post(atomic(given));
    a.post({ ...read(given), segments: [given.local.part(0, 8)] });
    a.post(atomic(given));
    a.post(send);
    a.post(send);
    a.post(atomic(given));
    a.ring();
    await bench.run(40);
    const { RC_ACKNOWLEDGE, RC_ATOMIC_ACKNOWLEDGE, RC_RDMA_READ_RESPONSE_ONLY } = Opcode;
    // Five receives are granted beyond the messages so far (4: the next code is 6); the SENDs consume one each.
    expect(
      bench.a.port.packets.map(({ opcode, msn, syndrome }) => [
        opcode,
        msn,
        creditCountByCode[syndromeValue(syndrome)],
      ]),
    ).toEqual([
      [RC_ATOMIC_ACKNOWLEDGE, 2, 4],
      [RC_RDMA_READ_RESPONSE_ONLY, 3, 4],
      [RC_ATOMIC_ACKNOWLEDGE, 4, 4],
      [RC_ACKNOWLEDGE, 5, 4],
      [RC_ACKNOWLEDGE, 6, 3],
      [RC_ATOMIC_ACKNOWLEDGE, 7, 3],
    ]);
  });

  it('IBTA 9.7.5.1.4: executes a repeated READ again, whole or from its middle', async () => {
    const given = await scene();
    const { bench, a, local, remote, aCq } = given;
    a.send({ ...read(given), segments: [local.part(0, 3000)] });
    await bench.run(20);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    const answers = packetsTo(a).length;
    await inject(
      given,
      only(given, psnA(1), {
        opcode: Opcode.RC_RDMA_READ_REQUEST,
        address: remote.address + 1024,
        dmaBytes: 1976,
        payload: undefined,
      }),
    );
    expect(packetsTo(a).slice(answers)).toEqual([
      { opcode: Opcode.RC_RDMA_READ_RESPONSE_FIRST, psn: psnA(1) },
      { opcode: Opcode.RC_RDMA_READ_RESPONSE_LAST, psn: psnA(2) },
    ]);
    expect(bench.a.dataPath.parts.transport.report()).toEqual({ unexpectedResponse: 2 });
  });

  it('IBTA 9.7.5.1.4: answers a repeated atomic from the result kept, without executing it again', async () => {
    const given = await scene();
    const { bench, a, remote } = given;
    const old = remote.read(0, 8);
    a.send(atomic(given));
    await bench.run(20);
    const after = remote.read(0, 8);
    expect(after).not.toEqual(old);
    const repeated = { opcode: Opcode.RC_FETCH_ADD, payload: undefined, operands: [1, 0, 0, 0] };
    await inject(given, only(given, psnA(0), repeated));
    expect(remote.read(0, 8)).toEqual(after);
    const answers = bench.a.port.packets.filter(({ opcode }) => opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE);
    const view = new DataView(old.buffer);
    const words = [view.getInt32(0, true), view.getInt32(4, true)];
    expect(answers.map(({ psn, operands }) => [psn, operands])).toEqual([
      [psnA(0), words],
      [psnA(0), words],
    ]);
    expect(bench.b.dataPath.blocks.responses.atomicCount).toBe(1);
  });

  const illegal: Record<string, object[]> = {
    'a middle packet without a first': [{ opcode: Opcode.RC_SEND_MIDDLE, payload: new Uint8Array(1024) }],
    'a last packet without a first': [{ opcode: Opcode.RC_RDMA_WRITE_LAST }],
    'a middle packet shorter than the MTU': [
      { opcode: Opcode.RC_RDMA_WRITE_FIRST, payload: new Uint8Array(1024), dmaBytes: 3000 },
      { opcode: Opcode.RC_RDMA_WRITE_MIDDLE, payload: new Uint8Array(1000) },
    ],
    'a first packet within an open message': [
      { opcode: Opcode.RC_RDMA_WRITE_FIRST, payload: new Uint8Array(1024), dmaBytes: 3000 },
      { opcode: Opcode.RC_RDMA_WRITE_FIRST, payload: new Uint8Array(1024), dmaBytes: 3000 },
    ],
    'a message that goes on as another kind': [
      { opcode: Opcode.RC_RDMA_WRITE_FIRST, payload: new Uint8Array(1024), dmaBytes: 2048 },
      { opcode: Opcode.RC_SEND_LAST, payload: new Uint8Array(1024) },
    ],
    'a READ within an open message': [
      { opcode: Opcode.RC_RDMA_WRITE_FIRST, payload: new Uint8Array(1024), dmaBytes: 2048 },
      { opcode: Opcode.RC_RDMA_READ_REQUEST, payload: undefined, dmaBytes: 10 },
    ],
    'a WRITE longer than it announced': [{ opcode: Opcode.RC_RDMA_WRITE_ONLY, dmaBytes: 3 }],
    'a WRITE shorter than it announced': [{ opcode: Opcode.RC_RDMA_WRITE_ONLY, dmaBytes: 5 }],
    'an empty last packet': [
      { opcode: Opcode.RC_RDMA_WRITE_FIRST, payload: new Uint8Array(1024), dmaBytes: 1024 + 1 },
      { opcode: Opcode.RC_RDMA_WRITE_LAST, payload: new Uint8Array(0) },
    ],
    'a packet longer than the MTU': [{ opcode: Opcode.RC_RDMA_WRITE_ONLY, payload: new Uint8Array(1025) }],
  };
  for (const [name, packets] of Object.entries(illegal))
    it(`IBTA 9.7.4.1: refuses ${name} as an invalid request`, async () => {
      const given = await scene();
      const { bench, a, b } = given;
      await inject(
        given,
        ...packets.map((packet, index) => only(given, psnA(index), { flags: 0, ...packet })),
      );
      const [last] = bench.a.port.packets.slice(-1);
      expect([last?.psn, last?.syndrome]).toEqual([
        psnA(packets.length - 1),
        nakSyndrome(NakCode.INVALID_REQUEST),
      ]);
      expect(bench.b.events.lines).toEqual([`qp 0x10 0x${b.qpn.toString(16)}`]);
      expect([a.state, b.state]).toEqual([QpState.RTS, QpState.ERR]);
    });

  it('IBTA 9.7.5.1: sends no NAK of a request that came again and was answered before the NAK left', async () => {
    const given = await scene();
    const request = { opcode: Opcode.RC_RDMA_READ_REQUEST, payload: undefined, dmaBytes: 12 * 1024 };
    // While the first READ is answered its successor is missed, and then arrives.
    await inject(given, ...[0, 13, 12].map((index) => only(given, psnA(index), request)));
    expect(given.bench.a.port.packets.map(({ psn }) => psn)).toEqual(
      Array.from({ length: 24 }, (_, index) => psnA(index)),
    );
    expect(given.bench.b.dataPath.parts.transport.report()).toEqual({ requestOutOfSequence: 1 });
  });

  it('IBTA 9.7.4.1: refuses more READs than the QP has resources for', async () => {
    const given = await scene({ b: { fields: { logMaxResponderReads: 1 } } });
    const { bench } = given;
    const request = { opcode: Opcode.RC_RDMA_READ_REQUEST, payload: undefined, dmaBytes: 12 * 1024 };
    await inject(given, ...[0, 12, 24].map((index) => only(given, psnA(index), request)));
    // Both READs are answered in full, each by 12 packets, and the NAK follows them.
    const naks = bench.a.port.packets.flatMap(({ psn, syndrome }, index) =>
      syndrome >= 0x60 ? [[index, psn]] : [],
    );
    expect(naks).toEqual([[24, psnA(24)]]);
  });

  it('IBTA 9.6: drops what is for no QP, for a QP that takes nothing, or of another service', async () => {
    const given = await scene();
    const { bench, b } = given;
    await inject(
      given,
      only(given, psnA(0), { qpn: 0x999 }),
      only(given, psnA(0), { opcode: Opcode.UC_SEND_ONLY }),
    );
    b.toError();
    await bench.run(1);
    await inject(given, only(given, psnA(0)));
    expect(bench.b.dataPath.parts.violations.report()).toEqual({
      packetUnknownQp: 1,
      packetOpcode: 1,
      packetQpState: 1,
    });
    expect(bench.a.port.packets).toEqual([]);
    expect(bench.b.wire.receiveBufferedBytes).toBe(0);
  });
});
