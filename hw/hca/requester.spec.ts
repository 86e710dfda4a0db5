import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../abi/cqe.ts';
import { PathMtu, QpState } from '../../abi/qpc.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { FLAG_ACK_REQUEST, FLAG_SOLICITED, Opcode } from '../../wire/index.ts';
import { tightest } from './testing/data-path-bench.ts';
import {
  allRights,
  connectedPair,
  pattern,
  psnA,
  Region,
  type RegionOptions,
} from './testing/data-path-verbs.ts';
import { packetsTo, scene, summaryOf, syndromesOf } from './testing/scenario.ts';

const MTU = 1024;

describe('the requester cuts a message into packets', () => {
  const sizes = [0, 1, MTU - 1, MTU, MTU + 1, 3 * MTU, 4095, 4096, 4097];
  for (const size of sizes)
    it(`of ${size} bytes at the MTU, with the opcode of each place and one PSN each`, async () => {
      for (const [opcode, first, middle, last, only] of [
        [
          WqeOpcode.RDMA_WRITE,
          Opcode.RC_RDMA_WRITE_FIRST,
          Opcode.RC_RDMA_WRITE_MIDDLE,
          Opcode.RC_RDMA_WRITE_LAST,
          Opcode.RC_RDMA_WRITE_ONLY,
        ],
        [
          WqeOpcode.RDMA_WRITE_IMM,
          Opcode.RC_RDMA_WRITE_FIRST,
          Opcode.RC_RDMA_WRITE_MIDDLE,
          Opcode.RC_RDMA_WRITE_LAST_WITH_IMMEDIATE,
          Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE,
        ],
        [
          WqeOpcode.SEND,
          Opcode.RC_SEND_FIRST,
          Opcode.RC_SEND_MIDDLE,
          Opcode.RC_SEND_LAST,
          Opcode.RC_SEND_ONLY,
        ],
        [
          WqeOpcode.SEND_IMM,
          Opcode.RC_SEND_FIRST,
          Opcode.RC_SEND_MIDDLE,
          Opcode.RC_SEND_LAST_WITH_IMMEDIATE,
          Opcode.RC_SEND_ONLY_WITH_IMMEDIATE,
        ],
      ] as const) {
        const { bench, a, b, aCq, bCq, local, remote, target } = await scene();
        b.receive([remote.part(0, 8000)]);
        a.send({
          opcode,
          segments: size === 0 ? [] : [local.part(0, size)],
          remote: target,
          immediate: 0x1234_5678,
        });
        await bench.run(30);
        const count = Math.max(1, Math.ceil(size / MTU));
        const wanted = Array.from({ length: count }, (_, index) => {
          const isLast = index === count - 1;
          const place = count === 1 ? only : index === 0 ? first : isLast ? last : middle;
          return [place, psnA(index), isLast ? size - (count - 1) * MTU : MTU, FLAG_ACK_REQUEST];
        });
        const { packets } = bench.b.port;
        expect(packets.map((one) => [one.opcode, one.psn, one.payloadBytes, one.flags])).toEqual(wanted);
        const isWrite = opcode === WqeOpcode.RDMA_WRITE || opcode === WqeOpcode.RDMA_WRITE_IMM;
        if (isWrite)
          expect(packets[0]).toMatchObject({ address: target.address, rkey: target.key, dmaBytes: size });
        expect(packets[0]!.lids).toBe((1 << 16) | 2);
        expect(remote.read(0, size)).toEqual(local.read(0, size));
        expect(aCq.drain()).toEqual([
          {
            qpn: a.qpn,
            isSend: true,
            opcode,
            wqeCounter: 0,
            byteCount: 0,
            immediate: 0,
            sourceLid: 0,
            syndrome: 0,
          },
        ]);
        const withImmediate = opcode === WqeOpcode.RDMA_WRITE_IMM || opcode === WqeOpcode.SEND_IMM;
        const received =
          opcode === WqeOpcode.RDMA_WRITE
            ? []
            : [
                {
                  qpn: b.qpn,
                  isSend: false,
                  wqeCounter: 0,
                  byteCount: size,
                  immediate: withImmediate ? 0x1234_5678 : 0,
                  sourceLid: 1,
                  syndrome: 0,
                },
              ];
        expect(bCq.drain()).toMatchObject(received);
      }
    });

  for (const [code, mtu] of [
    [PathMtu.MTU_256, 256],
    [PathMtu.MTU_512, 512],
    [PathMtu.MTU_2048, 2048],
    [PathMtu.MTU_4096, 4096],
  ] as const)
    it(`at an MTU of ${mtu}`, async () => {
      const fields = { pathMtu: code };
      const { bench, a, aCq, local, remote, target } = await scene({ a: { fields }, b: { fields } });
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 10_000)], remote: target });
      a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(10_000, 6000)], remote: target });
      await bench.run(40);
      expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
      const writes = bench.b.port.packets.filter(({ payloadBytes }) => payloadBytes > 0);
      expect(writes.map(({ payloadBytes }) => payloadBytes)).toEqual(
        Array.from({ length: Math.ceil(10_000 / mtu) }, (_, index) => Math.min(mtu, 10_000 - index * mtu)),
      );
      expect(local.read(10_000, 6000)).toEqual(remote.read(0, 6000));
    });

  it('asks for acknowledgements as often as the QP says, and at the end', async () => {
    const { bench, a, aCq, local, target } = await scene({ a: { fields: { ackRequestFrequency: 2 } } });
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 10 * MTU)], remote: target });
    await bench.run(40);
    // Every fourth packet and the tenth.
    const asking = bench.b.port.packets.flatMap(({ flags }, index) =>
      (flags & FLAG_ACK_REQUEST) !== 0 ? [index] : [],
    );
    expect(asking).toEqual([3, 7, 9]);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
  });

  it('marks the last packet only as solicited', async () => {
    const { bench, a, b, local, remote } = await scene();
    b.receive([remote.part()]);
    a.send({ opcode: WqeOpcode.SEND, isSolicited: true, segments: [local.part(0, 2 * MTU + 1)] });
    await bench.run(20);
    const solicited = bench.b.port.packets.map(({ flags }) => (flags & FLAG_SOLICITED) !== 0);
    expect(solicited).toEqual([false, false, true]);
  });
});

describe('the requester asks for', () => {
  it('a READ by one packet that takes as many PSNs as its answer', async () => {
    const { bench, a, aCq, local, remote, target } = await scene();
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(1, 3000)], remote: target });
    a.send({
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [local.part(5000, 1)],
      remote: { ...target, address: target.address + 8000 },
    });
    await bench.run(30);
    expect(packetsTo(a)).toEqual([
      { opcode: Opcode.RC_RDMA_READ_RESPONSE_FIRST, psn: psnA(0) },
      { opcode: Opcode.RC_RDMA_READ_RESPONSE_MIDDLE, psn: psnA(1) },
      { opcode: Opcode.RC_RDMA_READ_RESPONSE_LAST, psn: psnA(2) },
      { opcode: Opcode.RC_ACKNOWLEDGE, psn: psnA(3) },
    ]);
    expect(
      bench.b.port.packets.map(({ opcode, psn, dmaBytes, payloadBytes }) => [
        opcode,
        psn,
        dmaBytes,
        payloadBytes,
      ]),
    ).toEqual([
      [Opcode.RC_RDMA_READ_REQUEST, psnA(0), 3000, 0],
      [Opcode.RC_RDMA_WRITE_ONLY, psnA(3), 1, 1],
    ]);
    expect(local.read(1, 3000)).toEqual(remote.read(0, 3000));
    expect(aCq.drain()).toMatchObject([
      { opcode: WqeOpcode.RDMA_READ, byteCount: 3000, syndrome: 0 },
      { opcode: WqeOpcode.RDMA_WRITE, byteCount: 0, syndrome: 0 },
    ]);
  });

  it('atomics with 64-bit operands, and puts the old value into the segment', async () => {
    const { bench, a, aCq, local, remote, target } = await scene();
    const at64 = (region: Region, offset: number): bigint =>
      new DataView(region.read(offset, 8).buffer).getBigUint64(0, true);
    const set64 = (offset: number, value: bigint): void => {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigUint64(0, value, true);
      remote.write(bytes, offset);
    };
    const values = [0xffff_ffffn, 0xffff_ffff_ffff_ffffn, 7n, 7n];
    values.forEach((value, index) => {
      set64(index * 8, value);
    });
    const part = (index: number) => ({
      segments: [local.part(index * 8, 8)],
      remote: { ...target, address: target.address + index * 8 },
    });
    a.send({ opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 1n, ...part(0) });
    a.send({ opcode: WqeOpcode.ATOMIC_FA, swapOrAdd: 2n, ...part(1) });
    a.send({ opcode: WqeOpcode.ATOMIC_CS, swapOrAdd: 0x1_0000_0002n, compare: 7n, ...part(2) });
    a.send({ opcode: WqeOpcode.ATOMIC_CS, swapOrAdd: 9n, compare: 0x1_0000_0007n, ...part(3) });
    await bench.run(30);
    expect([0, 8, 16, 24].map((offset) => at64(remote, offset))).toEqual([
      0x1_0000_0000n,
      1n,
      0x1_0000_0002n,
      7n,
    ]);
    expect([0, 8, 16, 24].map((offset) => at64(local, offset))).toEqual(values);
    expect(aCq.drain().map(({ opcode, byteCount }) => [opcode, byteCount])).toEqual([
      [WqeOpcode.ATOMIC_FA, 8],
      [WqeOpcode.ATOMIC_FA, 8],
      [WqeOpcode.ATOMIC_CS, 8],
      [WqeOpcode.ATOMIC_CS, 8],
    ]);
  });
});

describe('the requester gathers', () => {
  it('a list of segments of any length across pages and packets', async () => {
    const { bench, a, local, remote, target } = await scene({ a: { sqLogStride16: 4 } });
    const cuts = [1, 4096, 63, 1, 1000, 3, 2000];
    const places = cuts.map(
      (_, index) => 3 + cuts.slice(0, index).reduce((sum, bytes) => sum + bytes + 5, 0),
    );
    const segments = cuts.map((bytes, index) => local.part(places[index]!, bytes));
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments, remote: target });
    await bench.run(40);
    const total = cuts.reduce((sum, bytes) => sum + bytes, 0);
    const wanted = segments.flatMap(({ address, bytes }) => [...local.read(address - local.address, bytes)]);
    expect([...remote.read(0, total)]).toEqual(wanted);
  });

  it('inline data, cut at the 64-byte lines of the WQE, over several packets', async () => {
    for (const bytes of [1, 28, 29, 44, 200, 256, 900]) {
      const fields = { pathMtu: PathMtu.MTU_256 };
      const { bench, a, aCq, remote, target } = await scene({
        a: { sqLogStride16: 6, fields },
        b: { fields },
      });
      a.send({ opcode: WqeOpcode.RDMA_WRITE, inline: pattern(77, bytes), remote: target });
      await bench.run(20);
      expect(remote.read(0, bytes)).toEqual(pattern(77, bytes));
      expect(syndromesOf(aCq.drain())).toEqual([0]);
      expect(bench.a.reads.requesters.find(({ name }) => name === 'payloadRead')?.counters.tlps).toBe(0);
    }
  });
});

describe('the requester waits', () => {
  it('with a fenced request until all READs before it are complete', async () => {
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

  it('before more READs than the peer has resources for, and goes on with each answer', async () => {
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
    // At most two are under way: the third leaves behind the first answer.
    for (let index = 2; index < 6; index++) expect(requests[index]).toBeGreaterThan(answers[index - 2]!);
    expect(bench.b.dataPath.violations.report()).toEqual({});
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
      // The first ones are held up by fetch and translation; then each is 100 cycles of 427 MHz behind the one before.
      for (const interval of intervals.slice(2)) expect((interval / 1e6) * 427).toBeGreaterThan(95);
    }
  });

  it('for credits of the receiver, without one RNR NAK', async () => {
    const { bench, a, b, aCq, local, remote } = await scene();
    for (let index = 0; index < 4; index++) b.receive([remote.part(0, 64)]);
    // Credits are learned from acknowledgements: the first message tells.
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 8)] });
    await bench.run(10);
    for (let index = 0; index < 3; index++) a.post({ opcode: WqeOpcode.SEND, segments: [local.part(0, 8)] });
    a.ring();
    await bench.run(20);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0]);
    expect(bench.a.port.packets.every(({ syndrome }) => syndrome < 0x20)).toBe(true);
    expect(bench.b.dataPath.transmitter.repeatedPacketCount).toBe(0);
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
      it(`a segment of ${name} behind work that still completes${hca === tightest ? ', at the smallest sizes' : ''}`, async () => {
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

  it('a key of no region, a wrong variant, and bytes outside of the region', async () => {
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

  it('opcodes that it does not execute, WQEs cut short, atomics of other lengths and messages over the limit', async () => {
    const cases = [
      [{ opcode: WqeOpcode.LOCAL_INVAL }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.FMR }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.BIND_MW }, CqeSyndrome.LOCAL_QP_OP_ERR],
      [{ opcode: WqeOpcode.SEND_INVAL }, CqeSyndrome.LOCAL_QP_OP_ERR],
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

  it('a READ whose answer may not be written, when the answer comes', async () => {
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
    // The page lies beyond the memory of the host: the root complex answers "unsupported request".
    const entry = bench.a.writeMtt([2 ** 40]);
    expect(entry % 8).toBe(0);
    const at = bench.a.icm.mttEntryAddress(entry - 8);
    bench.a.view.setUint32(at, 0x100);
    bench.a.view.setUint32(at + 4, 1);
    bench.a.act(() => bench.a.dataPath.control.translationChanged());
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [far.part(0, 10)], remote: target });
    a.send({ opcode: WqeOpcode.NOP });
    await bench.run(40);
    expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.LOCAL_PROT_ERR, CqeSyndrome.WR_FLUSH_ERR]);
    await checkBystanders();
  });
});

describe('the requester keeps the order of completions', () => {
  it('of unsignalled requests, NOPs, READs and WRITEs in one queue', async () => {
    for (const hca of [{}, tightest, { completionFifoDepth: 2 }]) {
      const { bench, a, aCq, local, target } = await scene({ hca });
      const write = { opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 10)], remote: target };
      a.post(write);
      a.post({ ...write, isUnsignalled: true });
      a.post({ opcode: WqeOpcode.NOP });
      a.post({ ...write, opcode: WqeOpcode.RDMA_READ });
      a.post({ opcode: WqeOpcode.NOP });
      a.post({ opcode: WqeOpcode.NOP, isUnsignalled: true });
      a.post({ opcode: WqeOpcode.NOP });
      a.post({ ...write, isUnsignalled: true });
      a.post(write);
      a.post({ opcode: WqeOpcode.NOP });
      a.ring();
      await bench.run(60);
      expect(aCq.drain().map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual(
        [0, 2, 3, 4, 6, 8, 9].map((counter) => [counter, 0]),
      );
      expect(bench.a.dataPath.records.freeCount).toBe(bench.a.dataPath.records.capacity);
    }
  });

  it('over many turns of a small ring', async () => {
    const { bench, a, aCq, local, remote, target } = await scene({ a: { sqLogCount: 2 } });
    for (let index = 0; index < 70; index++) {
      const at = (index * 64) % 8192;
      a.send({
        opcode: WqeOpcode.RDMA_WRITE,
        segments: [local.part(at, 64)],
        remote: { ...target, address: target.address + at },
      });
      const before = aCq.consumer;
      await bench.until(() => aCq.takenCount() > before, 30);
    }
    expect(aCq.consumer).toBe(70);
    expect(remote.read(0, 64 * 70)).toEqual(local.read(0, 64 * 70));
  });

  it('when many QPs send at once, none is left out', async () => {
    const { bench } = await scene({ hca: { outstandingWqes: 4 } });
    const pairs = Array.from({ length: 8 }, () => connectedPair(bench.a, bench.b));
    const from = new Region(bench.a, 8192);
    const to = new Region(bench.b, 8192);
    await bench.run(2);
    for (const { a } of pairs)
      for (let index = 0; index < 5; index++)
        a.send({
          opcode: WqeOpcode.RDMA_WRITE,
          segments: [from.part(0, 5000)],
          remote: { address: to.address, key: to.key },
        });
    await bench.until(() => pairs.every(({ aCq }) => aCq.takenCount() >= 5), 300);
  });
});
