import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { PathMtu, QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { ackSyndrome, nakSyndrome, Opcode, rnrNakSyndrome } from '../../../../wire/index.ts';
import { type BenchOptions, tightest } from '../../testing/data-path-bench.ts';
import { psnA, type SendRequest } from '../../testing/data-path-verbs.ts';
import { packetsTo, type Scene, scene, summaryOf, syndromesOf } from '../../testing/scenario.ts';

const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];

const send = ({ local }: Scene, bytes = 100): SendRequest => ({
  opcode: WqeOpcode.SEND,
  segments: [local.part(0, bytes)],
});
const write = ({ local, target }: Scene, bytes = 100): SendRequest => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(0, bytes)],
  remote: target,
});
const read = (given: Scene, bytes = 3000): SendRequest => ({
  ...write(given, bytes),
  opcode: WqeOpcode.RDMA_READ,
});

/** Sends a hand-made answer from b to a. */
async function answer(
  { bench, a }: Scene,
  psn: number,
  syndrome: number,
  opcode: number = Opcode.RC_ACKNOWLEDGE,
): Promise<void> {
  const { b } = bench;
  b.act(() =>
    b.port.inject({ opcode, qpn: a.qpn, psn, aeth: syndrome << 24 }, b.domain.clock.edgePs(b.domain.cycle)),
  );
  await bench.run(5);
}

describe('a READ between ends whose path MTUs differ', () => {
  it.each([
    ['MTU_256', 2047],
    ['MTU_256', 700],
    ['MTU_2048', 1500],
    ['MTU_2048', 2500],
    ['MTU_512', 1025],
  ] as const)(
    'IBTA 9.9.2: ends in a bad response: 1024 here and %s there, %i bytes',
    async (pathMtu, bytes) => {
      const given = await scene({ b: { fields: { pathMtu: PathMtu[pathMtu] } } });
      const { bench, a, aCq, checkBystanders } = given;
      a.send(read(given, bytes));
      const syndromes: number[] = [];
      await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) > 0, 100);
      expect(syndromes).toEqual([CqeSyndrome.BAD_RESP_ERR]);
      expect(a.state).toBe(QpState.ERR);
      await checkBystanders();
    },
  );
});

describe('a receiver that is not ready', () => {
  for (const [name, options] of sizes) {
    it(`IBTA 9.7.5.2.8: is asked again after the time it names, as often as it takes${name}`, async () => {
      const given = await scene(options);
      const { bench, a, b, aCq, bCq, local, remote } = given;
      a.post(send(given));
      a.post(send(given, 2000));
      a.ring();
      await bench.run(100);
      expect(aCq.drain()).toEqual([]);
      const asked = bench.b.port.packets.filter(({ psn }) => psn === psnA(0)).map(({ timePs }) => timePs);
      // Timer code 1 is 0.01 ms; the round trip and the read of the doorbell record take less than 6 us.
      expect(asked.length).toBeGreaterThanOrEqual(6);
      for (const [index, time] of asked.slice(1).entries()) {
        expect(time - asked[index]!).toBeGreaterThanOrEqual(10_000_000);
        expect(time - asked[index]!).toBeLessThan(16_000_000);
      }
      const naks = bench.a.port.packets.map(({ psn, syndrome }) => `${psn} ${syndrome}`);
      expect(new Set(naks)).toEqual(new Set([`${psnA(0)} ${rnrNakSyndrome(1)}`]));
      b.receive([remote.part(0, 100)]);
      b.receive([remote.part(200, 2000)]);
      await bench.run(40);
      expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
      expect(bCq.drain().map(({ byteCount }) => byteCount)).toEqual([100, 2000]);
      expect(remote.read(0, 100)).toEqual(local.read(0, 100));
      expect(remote.read(200, 2000)).toEqual(local.read(0, 2000));
      expect(bench.a.dataPath.blocks.transmitter.repeatedPacketCount).toBeGreaterThan(0);
    });

    it(`IBTA 9.7.5.2.8: fails the request when the retries are used up, and flushes the rest${name}`, async () => {
      const given = await scene({ ...options, a: { fields: { rnrRetryCount: 3 } } });
      const { bench, a, b, aCq, checkBystanders } = given;
      a.post(send(given));
      a.post(write(given));
      a.ring();
      await bench.run(100);
      expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x16', 'send 1: 0x5']);
      // The first time and three more.
      expect(bench.b.port.packets.filter(({ psn }) => psn === psnA(0))).toHaveLength(4);
      expect([a.state, b.state]).toEqual([QpState.ERR, QpState.RTS]);
      await checkBystanders();
    });
  }

  it('IBTA 9.7.5.2.8: gets the last packet only of a WRITE with immediate again', async () => {
    const given = await scene();
    const { bench, a, b, aCq, bCq, local, remote } = given;
    a.send({ ...write(given, 3000), opcode: WqeOpcode.RDMA_WRITE_IMM, immediate: 5 });
    await bench.run(8);
    b.receive([]);
    await bench.run(30);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bCq.drain()).toMatchObject([{ byteCount: 3000, immediate: 5, syndrome: 0 }]);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([psnA(0), psnA(1), psnA(2), psnA(2)]);
    expect(remote.read(0, 3000)).toEqual(local.read(0, 3000));
  });
});

describe('packets that are lost', () => {
  for (const [name, options] of sizes) {
    const lose = (given: Scene, side: 'a' | 'b', which: readonly number[]): void => {
      let count = 0;
      given.bench[side].port.drops = () => which.includes(count++);
    };
    for (const lost of [[0], [1], [2], [0, 1, 2], [1, 4]])
      it(`IBTA 9.9.2: requests ${lost} are sent again from the gap on${name}`, async () => {
        const given = await scene({ ...options, ackTimeout: 2 });
        const { bench, a, b, aCq, bCq, local, remote } = given;
        b.receive([remote.part(9000, 2000)]);
        lose(given, 'b', lost);
        a.post(write(given, 3000));
        a.post(send(given, 2000));
        a.post({ ...read(given), segments: [local.part(4000, 3000)] });
        a.ring();
        await bench.run(200);
        expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0]);
        expect(bCq.drain()).toMatchObject([{ byteCount: 2000, syndrome: 0 }]);
        expect(remote.read(0, 3000)).toEqual(local.read(0, 3000));
        expect(remote.read(9000, 2000)).toEqual(local.read(0, 2000));
        expect(local.read(4000, 3000)).toEqual(remote.read(0, 3000));
      });

    for (const lost of [[0], [1], [2], [3], [0, 1, 2, 3, 4]])
      it(`IBTA 9.7.6.1.3: answers ${lost} are asked for again after the timeout${name}`, async () => {
        const given = await scene({ ...options, ackTimeout: 2 });
        const { bench, a, aCq, local, remote } = given;
        const counter = remote.read(16, 8);
        lose(given, 'a', lost);
        a.post({ ...read(given), segments: [local.part(4000, 3000)] });
        a.post({
          opcode: WqeOpcode.ATOMIC_FA,
          swapOrAdd: 1n,
          segments: [local.part(0, 8)],
          remote: { ...given.target, address: remote.address + 16 },
        });
        a.post({
          ...write(given),
          segments: [local.part(100, 8)],
          remote: { ...given.target, address: remote.address + 9000 },
        });
        a.ring();
        await bench.run(300);
        expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0]);
        expect(local.read(4000, 16)).toEqual(remote.read(0, 16));
        expect(local.read(4024, 2976)).toEqual(remote.read(24, 2976));
        // Executed once, whatever was lost.
        const view = new DataView(counter.buffer);
        const old = view.getBigUint64(0, true);
        view.setBigUint64(0, old + 1n, true);
        expect(remote.read(16, 8)).toEqual(counter);
        expect(new DataView(local.read(0, 8).buffer).getBigUint64(0, true)).toBe(old);
        expect(remote.read(9000, 8)).toEqual(local.read(100, 8));
      });

    it(`an answer that a fenced request waits for is asked for again${name}`, async () => {
      const given = await scene({ ...options, ackTimeout: 2 });
      const { bench, a, aCq } = given;
      lose(given, 'b', [0]);
      a.post(read(given));
      a.post({ ...write(given), isFenced: true });
      a.ring();
      await bench.run(200);
      expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
    });

    it(`a READ that others wait for at the limit is asked for again${name}`, async () => {
      const given = await scene({ ...options, ackTimeout: 2, a: { fields: { logMaxRequesterReads: 0 } } });
      const { bench, a, aCq } = given;
      lose(given, 'b', [0]);
      a.post(read(given));
      a.post(read(given));
      a.ring();
      await bench.run(200);
      expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
    });

    it(`what stands before a work request refused on this side is still sent again${name}`, async () => {
      const given = await scene({ ...options, ackTimeout: 2 });
      const { bench, a, aCq, local, remote } = given;
      lose(given, 'b', [0]);
      a.post(write(given));
      a.post({ ...write(given), segments: [{ ...local.part(0, 8), key: 0xfff00 }] });
      a.post(write(given));
      a.ring();
      await bench.run(300);
      expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x0', 'send 1: 0x4', 'send 2: 0x5']);
      expect(remote.read(0, 100)).toEqual(local.read(0, 100));
    });
  }
});

/** A lost response is an implied NAK: the requester retries once for it, and the retry counts (IBTA vol 1, 9.9.2). */
describe('a response of a READ that is lost', () => {
  const BYTES = 16_000;
  const requests = ({ bench }: Scene): number[] =>
    bench.b.port.packets.filter(({ opcode }) => opcode === Opcode.RC_RDMA_READ_REQUEST).map(({ psn }) => psn);
  /** READs 16,000 bytes, 16 responses; each response in `lost` is lost `times` times before it arrives. */
  const reading = async (given: Scene, lost: readonly number[], times = 1): Promise<void> => {
    let at = 0;
    let count = 0;
    given.bench.a.port.drops = ({ psn }) => {
      if (at === lost.length || psn !== psnA(lost[at]!)) return false;
      if (count++ < times) return true;
      at++;
      count = 0;
      return false;
    };
    given.a.send(read(given, BYTES));
    await given.bench.run(60);
  };

  for (const [name, options] of sizes) {
    it(`IBTA 9.7.3.2, 9.9.2.1: is asked for once, whatever follows it${name}`, async () => {
      const given = await scene(options);
      await reading(given, [2]);
      expect(syndromesOf(given.aCq.drain())).toEqual([0]);
      expect(requests(given)).toEqual([psnA(0), psnA(2)]);
      expect(given.local.read(0, BYTES)).toEqual(given.remote.read(0, BYTES));
      expect(given.bench.a.dataPath.parts.transport.report()).toMatchObject({ missingResponse: 1 });
    });

    it(`IBTA 9.9.2.1: costs a retry, which is given back when it has come${name}`, async () => {
      const given = await scene({ ...options, a: { fields: { retryCount: 1 } } });
      await reading(given, [2, 9]);
      expect(syndromesOf(given.aCq.drain())).toEqual([0]);
      expect(requests(given)).toEqual([0, 2, 9].map(psnA));
    });

    it(`IBTA 9.9.2.1: fails the READ when no retry is left${name}`, async () => {
      const given = await scene({ ...options, a: { fields: { retryCount: 0 } } });
      await reading(given, [2]);
      expect(syndromesOf(given.aCq.drain())).toEqual([CqeSyndrome.TRANSPORT_RETRY_EXC_ERR]);
      expect(requests(given)).toEqual([psnA(0)]);
      expect([given.a.state, given.b.state]).toEqual([QpState.ERR, QpState.RTS]);
      await given.checkBystanders();
    });

    it(`IBTA 9.7.6.1.3: waits for the ACK timeout when the repeated one is lost, too${name}`, async () => {
      const given = await scene({ ...options, ackTimeout: 4, a: { fields: { retryCount: 2 } } });
      await reading(given, [2], 2);
      expect([requests(given), given.aCq.drain()]).toEqual([[psnA(0), psnA(2)], []]);
      // 4.096 us times 2 to the power of 4.
      await given.bench.run(66);
      expect(syndromesOf(given.aCq.drain())).toEqual([0]);
      expect(requests(given)).toEqual([0, 2, 2].map(psnA));
      expect(given.local.read(0, BYTES)).toEqual(given.remote.read(0, BYTES));
    });
  }

  it('IBTA 10.8.3.3: is asked for before a later request is failed by its refusal', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    a.post(read(given, 1000));
    a.post(write(given));
    a.ring();
    await bench.run(10);
    bench.b.port.drops = () => false;
    await answer(given, psnA(1), nakSyndrome(2));
    await bench.run(10);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([0, 1, 0, 1].map(psnA));
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
  });

  it('IBTA 9.9.2.1.1: is asked for at once where a later request is answered RNR NAK, whose delay and retry are not taken', async () => {
    const given = await scene({ a: { fields: { rnrRetryCount: 0 } } });
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    a.post(read(given, 1000));
    a.post(write(given));
    a.ring();
    await bench.run(10);
    bench.b.port.drops = () => false;
    // RNR timer code 31: 491.52 ms (IBTA vol 1, table 45).
    await answer(given, psnA(1), 0x20 | 31);
    await bench.run(10);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([0, 1, 0, 1].map(psnA));
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
    expect(bench.a.dataPath.parts.transport.report()).toMatchObject({ missingResponse: 1 });
  });
});

describe('answers made by hand', () => {
  it('IBTA 9.7.5.1.2: complete all requests up to their PSN', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    for (let index = 0; index < 4; index++) a.send(write(given));
    await bench.run(10);
    await answer(given, psnA(2), ackSyndrome(31));
    expect(aCq.drain().map(({ wqeCounter }) => wqeCounter)).toEqual([0, 1, 2]);
    await answer(given, psnA(1), ackSyndrome(31));
    await answer(given, psnA(4), ackSyndrome(31));
    expect(aCq.drain()).toEqual([]);
    expect(bench.a.dataPath.parts.transport.report()).toEqual({ unexpectedResponse: 1 });
  });

  const codes: [number, number][] = [
    [1, CqeSyndrome.REMOTE_INVAL_REQ_ERR],
    [2, CqeSyndrome.REMOTE_ACCESS_ERR],
    [3, CqeSyndrome.REMOTE_OP_ERR],
    [4, CqeSyndrome.REMOTE_INVAL_REQ_ERR],
  ];
  for (const [code, syndrome] of codes)
    it(`IBTA 9.9.2: NAK code ${code} completes what is before it and fails the request it names`, async () => {
      const given = await scene();
      const { bench, a, aCq } = given;
      bench.b.port.drops = () => true;
      for (let index = 0; index < 3; index++) a.send(write(given));
      await bench.run(10);
      await answer(given, psnA(1), nakSyndrome(code));
      expect(syndromesOf(aCq.drain())).toEqual([0, syndrome, CqeSyndrome.WR_FLUSH_ERR]);
      expect(a.state).toBe(QpState.ERR);
    });

  it('IBTA 9.9.2: a NAK for a gap sends again from there, until the retries are used up', async () => {
    const given = await scene({ a: { fields: { retryCount: 2 } } });
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    for (let index = 0; index < 3; index++) a.send(write(given));
    await bench.run(10);
    await answer(given, psnA(1), nakSyndrome(0));
    await answer(given, psnA(1), nakSyndrome(0));
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([0, 1, 2, 1, 2, 1, 2].map(psnA));
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    await answer(given, psnA(1), nakSyndrome(0));
    expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.TRANSPORT_RETRY_EXC_ERR, CqeSyndrome.WR_FLUSH_ERR]);
  });

  it('IBTA 9.7.6: a response to no request is counted and changes nothing', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    await answer(given, psnA(3), ackSyndrome(31), Opcode.RC_RDMA_READ_RESPONSE_ONLY);
    await answer(given, psnA(0), nakSyndrome(2));
    expect(bench.a.dataPath.parts.transport.report()).toEqual({ errorNakReceived: 1, unexpectedResponse: 2 });
    expect([a.state, aCq.drain()]).toEqual([QpState.RTS, []]);
  });

  it('IBTA 9.9.2.1: an acknowledgement that passes over a READ asks for the READ again', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    a.post(read(given, 1000));
    a.post(write(given));
    a.ring();
    await bench.run(10);
    bench.b.port.drops = () => false;
    await answer(given, psnA(1), ackSyndrome(31));
    await bench.run(10);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([0, 1, 0, 1].map(psnA));
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
  });

  it('IBTA 9.9.2: a READ answered by fewer bytes than asked for is a bad response', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    a.send(read(given, 3000));
    await bench.run(10);
    await answer(given, psnA(0), ackSyndrome(31), Opcode.RC_RDMA_READ_RESPONSE_ONLY);
    expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.BAD_RESP_ERR]);
  });

  const readBytes = 3000;
  const ofRead = (given: Scene): SendRequest => read(given, readBytes);
  const ofAtomic = ({ local, target }: Scene): SendRequest => ({
    opcode: WqeOpcode.ATOMIC_FA,
    segments: [local.part(0, 8)],
    remote: target,
    swapOrAdd: 1n,
  });
  const { RC_RDMA_READ_RESPONSE_ONLY, RC_RDMA_READ_RESPONSE_MIDDLE, RC_RDMA_READ_RESPONSE_LAST } = Opcode;
  it.each([
    ['a READ by the result of an atomic', ofRead, Opcode.RC_ATOMIC_ACKNOWLEDGE, undefined],
    [
      'a short READ by the result of an atomic',
      (given: Scene) => read(given, 8),
      Opcode.RC_ATOMIC_ACKNOWLEDGE,
      undefined,
    ],
    ['a READ by its second packet first', ofRead, RC_RDMA_READ_RESPONSE_MIDDLE, 1024],
    ['a short READ by a last packet', (given: Scene) => read(given, 100), RC_RDMA_READ_RESPONSE_LAST, 100],
    ['an atomic by the bytes of a READ', ofAtomic, RC_RDMA_READ_RESPONSE_ONLY, 8],
    [
      'a READ by more bytes than it asked for',
      (given: Scene) => read(given, 100),
      RC_RDMA_READ_RESPONSE_ONLY,
      101,
    ],
  ] as const)(
    'IBTA 9.9.2.4.1: of another kind at the expected PSN is a bad one, and is not placed: %s',
    async (_what, request, opcode, bytes) => {
      const given = await scene();
      const { bench, a, aCq, local } = given;
      bench.b.port.drops = () => true;
      a.send(request(given));
      await bench.run(10);
      const before = local.read();
      const payload = new Uint8Array(bytes ?? 0).fill(0xa5);
      const packet = { opcode, qpn: a.qpn, psn: psnA(0), aeth: 1, payload, operands: [1, 2] };
      bench.b.act(() => bench.b.port.inject(packet, bench.b.domain.clock.edgePs(bench.b.domain.cycle)));
      await bench.run(10);
      expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.BAD_RESP_ERR]);
      expect([a.state, local.read()]).toEqual([QpState.ERR, before]);
    },
  );

  it.each([1, 2 ** 22, 2 ** 23 - 2, 2 ** 23, 2 ** 24 - 2])(
    'IBTA 9.7.2: of a PSN that was never sent changes nothing: %i after the last one',
    async (beyond) => {
      const given = await scene();
      const { bench, a, aCq } = given;
      bench.b.port.drops = () => true;
      a.send(write(given));
      await bench.run(10);
      for (const syndrome of [ackSyndrome(31), nakSyndrome(2), rnrNakSyndrome(1)])
        await answer(given, psnA(beyond), syndrome);
      expect([a.state, aCq.drain()]).toEqual([QpState.RTS, []]);
      expect(bench.b.port.packets).toHaveLength(1);
      await answer(given, psnA(0), ackSyndrome(31));
      expect(syndromesOf(aCq.drain())).toEqual([0]);
    },
  );
});

describe('acknowledgements', () => {
  it('IBTA 9.7.5.1.2: of packets that come close together are one', async () => {
    const given = await scene({ hca: { ackDelayCycles: 2000 } });
    const { bench, a, aCq } = given;
    a.send(write(given, 8192));
    await bench.run(30);
    expect(packetsTo(a)).toEqual([{ opcode: Opcode.RC_ACKNOWLEDGE, psn: psnA(7) }]);
    expect(bench.b.dataPath.blocks.responses.coalescedCount).toBe(7);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
  });

  it('IBTA 9.7.7.2: grant as many credits as receives are known to be posted, or none that count', async () => {
    const given = await scene({ a: { fields: { ric: 1 } } });
    const { bench, a, b, remote } = given;
    for (let index = 0; index < 7; index++) b.receive([remote.part(0, 100)]);
    a.send(send(given));
    await bench.run(10);
    // Six are left: credit code 5 promises 6 messages; the sequence number counts one message.
    expect(bench.a.port.packets.map(({ syndrome, msn }) => [syndrome, msn])).toEqual([[ackSyndrome(5), 1]]);
    b.send({ opcode: WqeOpcode.RDMA_WRITE, remote: { address: 0, key: 0 } });
    await bench.run(10);
    expect(bench.b.port.packets.at(-1)?.syndrome).toBe(ackSyndrome(31));
  });
});
