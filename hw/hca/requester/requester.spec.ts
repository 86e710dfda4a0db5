import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../wire/index.ts';
import { tightest } from '../testing/data-path-bench.ts';
import { allRights, Region, type RegionOptions } from '../testing/data-path-verbs.ts';
import { scene, summaryOf, syndromesOf } from '../testing/scenario.ts';

describe('the requester waits', () => {
  it('IBTA 10.8.3.3: with a fenced request until all READs before it are complete', async () => {
    const { bench, a, aCq, local, target } = await scene();
    a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 4000)], remote: target });
    a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(8000, 8)], remote: target, isFenced: true });
    a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(8000, 8)], remote: target });
    a.ring();
    await bench.run(30);
    const answered = bench.a.port.packets.findLast(
      ({ opcode }) => opcode === Opcode.RC_RDMA_READ_RESPONSE_LAST,
    )!;
    const writes = bench.b.port.packets.filter(({ opcode }) => opcode === Opcode.RC_RDMA_WRITE_ONLY);
    expect(writes).toHaveLength(2);
    for (const write of writes) expect(write.timePs).toBeGreaterThan(answered.timePs);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0]);
  });

  /** The payload of a READ is in memory when a fenced request reads it there (IBTA vol 1, 10.8.3.3). */
  it('IBTA 10.8.3.3: with a fenced request until what READs brought has left for memory', async () => {
    for (const hca of [{}, tightest]) {
      const { bench, a, aCq, local, remote, target } = await scene({ hca });
      const back = { ...target, address: target.address + 8192 };
      for (let round = 0; round < 4; round++) {
        remote.write(Uint8Array.from({ length: 4000 }, (_, index) => (round * 37 + index + 1) & 0xff));
        const segments = [local.part(0, 4000)];
        for (let read = 0; read < 3; read++)
          a.post({ opcode: WqeOpcode.RDMA_READ, segments, remote: target });
        a.post({
          opcode: WqeOpcode.RDMA_WRITE,
          segments: [local.part(0, 4000)],
          remote: back,
          isFenced: true,
        });
        a.ring();
        const syndromes: number[] = [];
        await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) === 4, 200);
        expect(remote.read(8192, 4000)).toEqual(remote.read(0, 4000));
      }
    }
  });

  it('sheet 5.1: before more READs than the peer has resources for, and goes on with each answer', async () => {
    const fields = { logMaxRequesterReads: 1, logMaxResponderReads: 1 };
    const { bench, a, aCq, local, target } = await scene({ a: { fields }, b: { fields } });
    for (let index = 0; index < 6; index++)
      a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(index * 2048, 2048)], remote: target });
    a.ring();
    await bench.run(60);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0, 0, 0]);
    const requests = bench.b.port.packets.map(({ timePs }) => timePs);
    const answers = bench.a.port.packets
      .filter(({ opcode }) => opcode === Opcode.RC_RDMA_READ_RESPONSE_LAST)
      .map(({ timePs }) => timePs);
    // At most two are in flight: the third leaves after the first response.
    for (let index = 2; index < 6; index++) expect(requests[index]).toBeGreaterThan(answers[index - 2]!);
    expect(bench.b.dataPath.parts.violations.report()).toEqual({});
  });

  it('between two requests of one QP for the interval of the QP, whenever the doorbells come', async () => {
    for (const gap of [0, 1, 20, 60, 99]) {
      const { bench, a, local, target } = await scene({
        hca: { sameQpIntervalCycles: 100, scheduleCycles: 1 },
      });
      const write = { opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: target };
      for (let index = 0; index < 12; index++) a.post(write);
      for (let index = 0; index < 12; index++) {
        a.ring();
        for (let idle = 0; idle < gap; idle++) bench.a.act(() => undefined);
      }
      await bench.run(20);
      const times = bench.b.port.packets.map(({ timePs }) => timePs);
      expect(times).toHaveLength(12);
      const intervals = times.slice(1).map((time, index) => time - times[index]!);
      // Fetch and translation delay the first ones; after that each follows the one before by 100 cycles of 427 MHz.
      for (const interval of intervals.slice(2)) expect((interval / 1e6) * 427).toBeGreaterThan(95);
    }
  });

  it('behind a WQE whose packet has no room yet as long as the WQE takes', async () => {
    const costs = { wqeDecodeCycles: 40, requestPacketCycles: 6, sameQpIntervalCycles: 1 };
    const { bench, a, aCq, local, target } = await scene({
      hca: { ...costs, transmitBufferPackets: 2, transmitPacketCycles: 200 },
    });
    const requester = bench.a.dataPath.blocks.requester.account;
    const before = requester.busyCycles;
    for (let index = 0; index < 12; index++)
      a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: target });
    a.ring();
    const syndromes: number[] = [];
    await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) === 12, 200);
    expect(requester.busyCycles - before).toBe(12 * (40 + 6));
  });

  it('IBTA 9.7.7.2: for credits of the receiver, without one RNR NAK', async () => {
    const { bench, a, b, aCq, local, remote } = await scene();
    for (let index = 0; index < 4; index++) b.receive([remote.part(0, 64)]);
    // Acknowledgements carry credits: the first is that of the first message.
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 8)] });
    await bench.run(10);
    for (let index = 0; index < 3; index++) a.post({ opcode: WqeOpcode.SEND, segments: [local.part(0, 8)] });
    a.ring();
    await bench.run(20);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0]);
    expect(bench.a.port.packets.every(({ syndrome }) => syndrome < 0x20)).toBe(true);
    expect(bench.b.dataPath.blocks.transmitter.repeatedPacketCount).toBe(0);
  });
});

describe('the requester refuses', () => {
  const wrongRegions: Record<string, RegionOptions> = {
    'another protection domain': { pd: 6 },
    'no local read': { rights: { ...allRights, localRead: false } },
    'a page that is not present': { holes: [0] },
  };
  for (const hca of [{}, tightest])
    for (const [name, options] of Object.entries(wrongRegions))
      it(`sheet 6.6: a segment of ${name} behind work that still completes${hca === tightest ? ', at the smallest sizes' : ''}`, async () => {
        const { bench, a, b, aCq, local, target, checkBystanders } = await scene({ hca });
        const wrong = new Region(bench.a, 4096, options);
        const good = { opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 1500)], remote: target };
        a.post(good);
        a.post({ ...good, segments: [local.part(0, 1500), wrong.part(0, 10)] });
        a.post(good);
        a.ring();
        await bench.run(60);
        expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x0', 'send 1: 0x4', 'send 2: 0x5']);
        expect([a.state, b.state]).toEqual([QpState.ERR, QpState.RTS]);
        expect(bench.a.events.lines).toEqual([]);
        await checkBystanders();
        await bench.until(() => !bench.a.dataPath.control.qpIsBusy(a.slot), 10);
      });

  it('sheet 6.6: a key of no region, a wrong variant, and bytes outside of the region', async () => {
    for (const change of [{ key: 0xfff00 }, { key: -1 }, { address: -1 }, { address: 16_384 - 9 }]) {
      const { bench, a, aCq, local, target } = await scene();
      const key = change.key === undefined ? local.key : change.key === -1 ? local.key + 1 : change.key;
      a.send({
        opcode: WqeOpcode.RDMA_WRITE,
        segments: [{ address: local.address + (change.address ?? 0), bytes: 10, key }],
        remote: target,
      });
      await bench.run(30);
      expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.LOCAL_PROT_ERR]);
      expect(bench.b.port.packets).toEqual([]);
    }
  });

  it('sheet 6.6: opcodes that it does not execute, WQEs cut short, atomics of other lengths and messages over the limit', async () => {
    const cases = [
      [{ opcode: WqeOpcode.LOCAL_INVAL }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.FMR }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.BIND_MW }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: 0x1f }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: 0x02 }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [
        { opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n, segments: [{ address: 0, bytes: 4, key: 0 }] },
        CqeSyndrome.LOCAL_LENGTH_ERR,
      ],
      [
        { opcode: WqeOpcode.RDMA_WRITE, segments: [{ address: 0, bytes: 2 ** 14 + 1, key: 0 }] },
        CqeSyndrome.LOCAL_LENGTH_ERR,
      ],
    ] as const;
    for (const [request, syndrome] of cases) {
      const { bench, a, aCq, checkBystanders } = await scene({ a: { fields: { logMaxMessage: 14 } } });
      a.send(request);
      a.send({ opcode: WqeOpcode.NOP });
      await bench.run(40);
      expect(syndromesOf(aCq.drain())).toEqual([syndrome, CqeSyndrome.WR_FLUSH_ERR]);
      await checkBystanders();
    }
  });

  it('sheet 6.6: a READ whose answer may not be written, when the answer comes', async () => {
    const { bench, a, aCq, target } = await scene();
    const wrong = new Region(bench.a, 4096, { rights: { ...allRights, localWrite: false } });
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [wrong.part(0, 100)], remote: target });
    await bench.run(30);
    expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.LOCAL_PROT_ERR]);
    expect(wrong.read()).toEqual(new Uint8Array(4096));
  });

  it('payload that host memory does not answer for', async () => {
    const { bench, a, aCq, target, checkBystanders } = await scene();
    const far = new Region(bench.a, 4096);
    far.loseMemory(0);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [far.part(0, 10)], remote: target });
    a.send({ opcode: WqeOpcode.NOP });
    await bench.run(40);
    expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.LOCAL_PROT_ERR, CqeSyndrome.WR_FLUSH_ERR]);
    await checkBystanders();
  });
});
