import { describe, expect, it } from 'vitest';
import { PathMtu } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { FLAG_ACK_REQUEST, FLAG_SOLICITED, Opcode } from '../../../wire/index.ts';
import { pattern, psnA, type Region } from '../testing/data-path-verbs.ts';
import { packetsTo, scene, syndromesOf } from '../testing/scenario.ts';

const MTU = 1024;

describe('the requester cuts a message into packets', () => {
  const sizes = [0, 1, MTU - 1, MTU, MTU + 1, 3 * MTU, 4095, 4096, 4097];
  for (const size of sizes)
    it(`IBTA 9.2: of ${size} bytes at the MTU, with the opcode of each place and one PSN each`, async () => {
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

  it('sheet 5.1: asks for acknowledgements as often as the QP says, and at the end', async () => {
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

  it('IBTA 9.2: marks the last packet only as solicited', async () => {
    const { bench, a, b, local, remote } = await scene();
    b.receive([remote.part()]);
    a.send({ opcode: WqeOpcode.SEND, isSolicited: true, segments: [local.part(0, 2 * MTU + 1)] });
    await bench.run(20);
    const solicited = bench.b.port.packets.map(({ flags }) => (flags & FLAG_SOLICITED) !== 0);
    expect(solicited).toEqual([false, false, true]);
  });
});

describe('the requester asks for', () => {
  it('IBTA 9.7.3: a READ by one packet that takes as many PSNs as its answer', async () => {
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

  it('IBTA 9.4.5: atomics with 64-bit operands, and puts the old value into the segment', async () => {
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

  it('sheet 6.3: inline data, cut at the 64-byte lines of the WQE, over several packets', async () => {
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
