import { describe, expect, it } from 'vitest';
import { EventType } from '../../../../abi/eqe.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { tightest } from '../../testing/data-path-bench.ts';
import { connectedPair, psnA, Region } from '../../testing/data-path-verbs.ts';
import { scene, syndromesOf } from '../../testing/scenario.ts';

const at64 = (region: Region, offset: number): bigint =>
  new DataView(region.read(offset, 8).buffer).getBigUint64(0, true);

describe('the response engine', () => {
  it('begins to read for a READ so long after it was accepted, and acknowledges others meanwhile', async () => {
    const answeredPs: number[] = [];
    for (const readResponseLatencyCycles of [0, 1000]) {
      const { bench, a, local, target } = await scene({ hca: { readResponseLatencyCycles } });
      const other = connectedPair(bench.a, bench.b);
      await bench.run(5);
      const beganPs = bench.a.lp.nowPs;
      a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 8)], remote: target });
      other.a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: target });
      await bench.run(20);
      const times = (opcode: number): number[] =>
        bench.a.port.packets
          .filter((packet) => packet.opcode === opcode)
          .map(({ timePs }) => timePs - beganPs);
      answeredPs.push(times(Opcode.RC_RDMA_READ_RESPONSE_ONLY)[0]!);
      expect(times(Opcode.RC_ACKNOWLEDGE)[0]!).toBeLessThan(answeredPs[0]! + 1_000_000);
    }
    // 1000 cycles of 427 MHz, to an edge.
    expect((answeredPs[1]! - answeredPs[0]!) / ((1000 * 1e6) / 427)).toBeCloseTo(1, 2);
  });

  it('begins an atomic when the write of the one before is in host memory, and does not delay its answer', async () => {
    const answersPs: number[][] = [];
    for (const atomicWriteBackCycles of [0, 1000]) {
      const { bench, a, local, target } = await scene({ hca: { atomicWriteBackCycles } });
      const beganPs = bench.a.lp.nowPs;
      for (let place = 0; place < 3; place++)
        a.post({
          opcode: WqeOpcode.ATOMIC_FA,
          swapOrAdd: 1n,
          segments: [local.part(8 * place, 8)],
          remote: target,
        });
      a.ring();
      await bench.run(30);
      const answers = bench.a.port.packets.filter(({ opcode }) => opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE);
      answersPs.push(answers.map(({ timePs }) => timePs - beganPs));
      expect([0, 8, 16].map((offset) => at64(local, offset) - at64(local, 0))).toEqual([0n, 1n, 2n]);
    }
    const [without, occupied] = answersPs as [number[], number[]];
    const cycles = (ps: number): number => (ps * 427) / 1e6;
    expect(occupied[0]).toBe(without[0]);
    // Each next one begins 1000 cycles later, less the few in which the engine would have begun it anyway.
    for (const index of [1, 2]) {
      const added = cycles(occupied[index]! - without[index]!) / index;
      expect(added).toBeGreaterThan(980);
      expect(added).toBeLessThanOrEqual(1001);
    }
  });

  it('IBTA 10.8.3.3: reads what was written before, on one QP', async () => {
    for (const hca of [{}, tightest]) {
      const { bench, a, aCq, local, remote, target } = await scene({ hca });
      for (let round = 0; round < 6; round++) {
        local.write(Uint8Array.from({ length: 3000 }, (_, index) => (round * 31 + index) & 0xff));
        a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 3000)], remote: target });
        a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(4000, 3000)], remote: target });
        a.ring();
        const wanted = 2 * round + 2;
        await bench.until(() => aCq.takenCount() === wanted, 100);
        expect(local.read(4000, 3000)).toEqual(local.read(0, 3000));
        expect(remote.read(0, 3000)).toEqual(local.read(0, 3000));
      }
    }
  });

  it('IBTA 9.4.5: adds up what many QPs count on one place', async () => {
    for (const hca of [{}, tightest]) {
      const { bench } = await scene({ hca });
      const counter = new Region(bench.b, 4096);
      const placement = new Region(bench.a, 8192);
      const pairs = Array.from({ length: 5 }, () => connectedPair(bench.a, bench.b));
      await bench.run(4);
      const seen: bigint[] = [];
      for (const [index, { a }] of pairs.entries()) {
        for (let round = 0; round < 6; round++)
          a.post({
            opcode: WqeOpcode.ATOMIC_FA,
            swapOrAdd: 1n,
            segments: [placement.part((index * 6 + round) * 8, 8)],
            remote: { address: counter.address + 64, key: counter.key },
          });
        a.ring();
      }
      await bench.until(() => pairs.every(({ aCq }) => aCq.takenCount() === 6), 500);
      for (let index = 0; index < 30; index++) seen.push(at64(placement, index * 8));
      expect(at64(counter, 64)).toBe(30n);
      // Each saw another value: nothing was executed twice or lost.
      expect(seen.sort((left, right) => Number(left - right))).toEqual(
        Array.from({ length: 30 }, (_, index) => BigInt(index)),
      );
      expect(bench.b.dataPath.blocks.responses.atomicCount).toBe(30);
    }
  });

  it('IBTA 9.7.5.1: answers in the order of the requests, READs, atomics and acknowledgements alike', async () => {
    const { bench, a, aCq, local, target } = await scene({ hca: { ackDelayCycles: 0 } });
    const part = { segments: [local.part(0, 8)], remote: target };
    a.post({ ...part, opcode: WqeOpcode.RDMA_READ, segments: [local.part(100, 1025)] });
    a.post({
      ...part,
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [local.part(2000, 8)],
      remote: { ...target, address: target.address + 5000 },
    });
    a.post({ ...part, opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n });
    a.post({ ...part, opcode: WqeOpcode.RDMA_READ, segments: [] });
    a.ring();
    await bench.run(30);
    expect(bench.a.port.packets.map(({ opcode, psn }) => [opcode, psn])).toEqual([
      [Opcode.RC_RDMA_READ_RESPONSE_FIRST, psnA(0)],
      [Opcode.RC_RDMA_READ_RESPONSE_LAST, psnA(1)],
      [Opcode.RC_ACKNOWLEDGE, psnA(2)],
      [Opcode.RC_ATOMIC_ACKNOWLEDGE, psnA(3)],
      [Opcode.RC_RDMA_READ_RESPONSE_ONLY, psnA(4)],
    ]);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0]);
  });

  it('IBTA 9.7.5.1: sends no ACK behind the answer of a later request, which has acknowledged as much', async () => {
    const { bench, a, aCq, local, target } = await scene();
    const part = { segments: [local.part(0, 8)], remote: target };
    a.post({ ...part, opcode: WqeOpcode.RDMA_READ, segments: [local.part(100, 8192)] });
    const elsewhere = { ...target, address: target.address + 9000 };
    a.post({ ...part, opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(9000, 8)], remote: elsewhere });
    a.post({ ...part, opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n });
    a.ring();
    await bench.run(40);
    // During the 8 packets of the READ, the WRITE at 8 and the atomic at 9 arrive.
    const answered = bench.a.port.packets.map(({ psn }) => psn);
    expect(answered).toEqual([...Array.from({ length: 8 }, (_, at) => psnA(at)), psnA(9)]);
    expect(bench.b.dataPath.blocks.responses.coalescedCount).toBe(1);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0]);
  });

  /** IBTA vol 1, 9.7.5.1.4: a repeated READ request is executed again, from the PSN that it names. */
  it('IBTA 9.7.5.1.4: answers a READ that is repeated while it is answered from the repeated request on, and not both', async () => {
    const { bench, a, b, aCq, local, remote, target } = await scene({
      hca: { responseBufferPackets: 2 },
      b: { fields: { logMaxResponderReads: 0 } },
    });
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 16_000)], remote: target });
    await bench.until(() => bench.a.port.packets.length >= 2, 20);
    bench.a.act(() =>
      bench.a.port.inject(
        {
          opcode: Opcode.RC_RDMA_READ_REQUEST,
          qpn: b.qpn,
          psn: psnA(2),
          address: target.address + 2048,
          rkey: target.key,
          dmaBytes: 16_000 - 2048,
        },
        bench.a.domain.clock.edgePs(bench.a.domain.cycle),
      ),
    );
    await bench.run(40);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(local.read(0, 16_000)).toEqual(remote.read(0, 16_000));
    const psns = bench.a.port.packets.map(({ psn }) => psn);
    const restart = psns.lastIndexOf(psnA(2));
    // Packets before the restart begin the first answer; those from it on are the rest of the READ, once.
    expect(psns.slice(0, restart)).toEqual(Array.from({ length: restart }, (_, index) => psnA(index)));
    expect(psns.slice(restart)).toEqual(Array.from({ length: 14 }, (_, index) => psnA(2 + index)));
    expect(restart).toBeGreaterThan(psns.indexOf(psnA(2)));
    expect(restart).toBeLessThan(16);
  });

  /**
   * A requester that requests a response again drops all later ones, so these restart from their beginning; otherwise
   * they would signal another loss (9.7.5.1).
   */
  it('IBTA 9.7.5.1.4: answers a READ from its beginning behind an atomic that is repeated while it is answered', async () => {
    const { bench, a, b, aCq, local, remote, target } = await scene({ hca: { responseBufferPackets: 2 } });
    const word = { ...target, address: target.address + 16_000 };
    a.post({ opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n, segments: [local.part(16_000, 8)], remote: word });
    a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 16_000)], remote: target });
    a.ring();
    await bench.until(() => bench.a.port.packets.length >= 3, 20);
    bench.a.act(() =>
      bench.a.port.inject(
        { opcode: Opcode.RC_FETCH_ADD, qpn: b.qpn, psn: psnA(0), address: word.address, rkey: word.key },
        bench.a.domain.clock.edgePs(bench.a.domain.cycle),
      ),
    );
    await bench.run(60);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
    expect(local.read(0, 16_000)).toEqual(remote.read(0, 16_000));
    expect(bench.b.dataPath.blocks.responses.atomicCount).toBe(1);
    const psns = bench.a.port.packets.map(({ psn }) => psn);
    const again = psns.lastIndexOf(psnA(0));
    expect(again).toBeGreaterThan(2);
    expect(again).toBeLessThan(17);
    expect(psns.slice(again)).toEqual(Array.from({ length: 17 }, (_, index) => psnA(index)));
  });

  /** The same, if the response requested again is too late to precede that of an atomic (9.7.5.1). */
  it('IBTA 9.7.5.1.4: answers an atomic again behind a READ that is repeated while the atomic is executed', async () => {
    const { bench, a, b, aCq, local, remote, target } = await scene();
    const word = { ...target, address: target.address + 16_000 };
    a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 3000)], remote: target });
    a.post({ opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n, segments: [local.part(16_000, 8)], remote: word });
    a.ring();
    const { responses } = bench.b.dataPath.blocks;
    for (let tries = 0; tries < 400 && !responses.isInAtomic; tries++) await bench.run(0.05);
    expect(responses.isInAtomic).toBe(true);
    bench.a.act(() => {
      const now = (): number => bench.a.domain.clock.edgePs(bench.a.domain.cycle);
      const read = {
        opcode: Opcode.RC_RDMA_READ_REQUEST,
        address: target.address,
        rkey: target.key,
        dmaBytes: 3000,
      };
      const atomic = { opcode: Opcode.RC_FETCH_ADD, address: word.address, rkey: word.key };
      bench.a.port.inject({ ...read, qpn: b.qpn, psn: psnA(0) }, now());
      bench.a.port.inject({ ...atomic, qpn: b.qpn, psn: psnA(3) }, now());
      bench.a.port.inject({ ...atomic, qpn: b.qpn, psn: psnA(3) }, now());
    });
    await bench.run(60);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
    expect(local.read(0, 3000)).toEqual(remote.read(0, 3000));
    expect(responses.atomicCount).toBe(1);
    const psns = bench.a.port.packets.map(({ psn }) => psn);
    expect(psns).toEqual([0, 1, 2, 3, 0, 1, 2, 3].map(psnA));
  });

  /**
   * The response to the lost request has to precede the later ones, which are dropped while it is missing (IBTA vol 1,
   * 9.7.5.1).
   */
  it.each([1, 3, 5, 8, 20])(
    'IBTA 9.7.5.1: answers repeated requests in the order of their PSNs: response %i of many is lost',
    async (lost) => {
      const { bench, a, aCq, local, remote, target } = await scene();
      const counts = [3, 2, 1, 8, 8, 8, 2];
      for (const [index, packets] of counts.entries()) {
        const [at, bytes] = [64 * index, packets * 1024 - 24];
        const source = { ...target, address: target.address + at };
        a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(7800 + at, bytes)], remote: source });
        const word = { ...target, address: target.address + 12_000 };
        a.post({ opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n, segments: [local.part(0, 8)], remote: word });
      }
      let count = 0;
      bench.a.port.drops = () => ++count === lost;
      a.ring();
      const syndromes: number[] = [];
      await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) === 2 * counts.length, 400);
      expect(bench.a.dataPath.blocks.timers.timeoutCount).toBe(0);
      expect(bench.b.dataPath.blocks.responses.atomicCount).toBe(counts.length);
      expect(syndromes).toEqual(Array.from({ length: 2 * counts.length }, () => 0));
      expect(local.read(7800, 8488)).toEqual(remote.read(0, 8488));
    },
  );

  it('IBTA 9.9.3: refuses a READ whose memory is gone by the time it is answered, and fails the QP', async () => {
    const { bench, a, aCq, local, checkBystanders } = await scene();
    const wrong = new Region(bench.b, 8192, { holes: [1] });
    a.send({
      opcode: WqeOpcode.RDMA_READ,
      segments: [local.part(0, 8192)],
      remote: { address: wrong.address, key: wrong.key },
    });
    await bench.run(60);
    // The first page yields four packets; the fifth is a NAK "remote operational error" for its PSN.
    expect(bench.a.port.packets.at(-1)).toMatchObject({ psn: psnA(4), syndrome: 0x63 });
    expect(syndromesOf(aCq.drain())).toEqual([0x14]);
    await checkBystanders();
  });

  /**
   * The NAK takes the place and the PSN of the response that cannot be sent; later packets of the response do not
   * leave.
   */
  it('IBTA 9.7.5.2: answers a READ whose memory does not answer with a NAK in place of that response, and fails the QP', async () => {
    const { bench, a, b, aCq, local, target, checkBystanders } = await scene();
    const lost = new Region(bench.b, 12_288);
    lost.fill(7);
    lost.loseMemory(1);
    a.post({
      opcode: WqeOpcode.RDMA_READ,
      segments: [local.part(0, 12_288)],
      remote: { address: lost.address, key: lost.key },
    });
    a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(13_000, 100)], remote: target });
    a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 100)], remote: target });
    a.ring();
    await bench.run(60);
    expect(bench.a.port.packets.map(({ opcode, psn }) => [opcode, psn])).toEqual([
      [Opcode.RC_RDMA_READ_RESPONSE_FIRST, psnA(0)],
      ...[1, 2, 3].map((index) => [Opcode.RC_RDMA_READ_RESPONSE_MIDDLE, psnA(index)]),
      [Opcode.RC_ACKNOWLEDGE, psnA(4)],
    ]);
    // Remote operational error: 0x63 in the AETH, 0x14 in the CQE; then flushes.
    expect(bench.a.port.packets.at(-1)).toMatchObject({ syndrome: 0x63 });
    expect(syndromesOf(aCq.drain())).toEqual([0x14, 0x05, 0x05]);
    expect(local.read(0, 4096)).toEqual(lost.read(0, 4096));
    expect([a.state, b.state]).toEqual([QpState.ERR, QpState.ERR]);
    expect(bench.b.events.lines).toEqual([
      `qp 0x${EventType.WQ_ACCESS_ERROR.toString(16)} 0x${b.qpn.toString(16)}`,
    ]);
    await checkBystanders();
  });

  it('IBTA 9.7.5.2: answers with one NAK and one event where two things are wrong with one READ', async () => {
    const { bench, a, b, aCq, local, checkBystanders } = await scene();
    const wrong = new Region(bench.b, 8192, { holes: [1] });
    wrong.loseMemory(0);
    a.send({
      opcode: WqeOpcode.RDMA_READ,
      segments: [local.part(0, 8192)],
      remote: { address: wrong.address, key: wrong.key },
    });
    await bench.run(60);
    expect(bench.a.port.packets.map(({ psn, syndrome }) => [psn, syndrome])).toEqual([[psnA(0), 0x63]]);
    expect(syndromesOf(aCq.drain())).toEqual([0x14]);
    expect(bench.b.events.lines).toEqual([
      `qp 0x${EventType.WQ_ACCESS_ERROR.toString(16)} 0x${b.qpn.toString(16)}`,
    ]);
    await checkBystanders();
  });
});
