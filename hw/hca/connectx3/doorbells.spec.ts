import { describe, expect, it } from 'vitest';
import { cqArmOffset, eqDoorbellOffset, sendDoorbellOffset } from '../../../abi/bar-map.ts';
import { cqArm, eqDoorbell, sendDoorbell } from '../../../abi/doorbells.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { UAR_AREA_BYTES } from '../testing/data-path-bench.ts';
import { Cq, connectedPair, EQN, pattern, Qp, UAR } from '../testing/data-path-verbs.ts';
import { scene, syndromesOf } from '../testing/scenario.ts';

const NOP = { opcode: WqeOpcode.NOP };

describe('send doorbells', () => {
  it('sheet 6.9: are taken on the page of the QP only', async () => {
    const { bench, a, aCq } = await scene();
    a.post(NOP);
    a.ring(UAR + 1);
    await bench.run(10);
    expect(aCq.drain()).toEqual([]);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({ doorbellForeignUar: 1 });
    a.ring();
    await bench.run(10);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bench.a.dataPath.blocks.doorbells.sendCount).toBe(2);
  });

  it('of no QP, of a QP that cannot send, and stores to other places are counted', async () => {
    const { bench } = await scene();
    const cq = new Cq(bench.a);
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.ring();
    bench.a.store(sendDoorbellOffset(UAR), sendDoorbell.encode({ qpn: 0x9999 }));
    bench.a.store(UAR * 4096 + 0x18, new Uint8Array(4));
    bench.a.store(sendDoorbellOffset(UAR), new Uint8Array(8));
    bench.a.store(cqArmOffset(UAR) + 4, new Uint8Array(4));
    bench.a.store(UAR * 4096 + 0x820, new Uint8Array(4));
    await bench.run(2);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({
      doorbellQpState: 1,
      doorbellUnknownQp: 1,
      doorbellOffset: 4,
    });
  });

  it('too many or without a WQE do nothing', async () => {
    const { bench, a, aCq } = await scene();
    for (let index = 0; index < 20; index++) a.ring();
    await bench.run(20);
    a.post(NOP);
    for (let index = 0; index < 20; index++) a.ring();
    await bench.run(20);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bench.b.port.packets).toEqual([]);
  });

  it('sheet 6.2: for several WQEs may be missed: the next one brings them all', async () => {
    const { bench, a, aCq } = await scene();
    for (let index = 0; index < 12; index++) a.post(NOP);
    a.ring();
    await bench.run(30);
    expect(aCq.drain().map(({ wqeCounter }) => wqeCounter)).toEqual(
      Array.from({ length: 12 }, (_, index) => index),
    );
  });
});

describe('other registers of a UAR', () => {
  it('sheet 6.9: CQ arm may come as two halves, and a first half alone is nothing', async () => {
    const { bench, a, aCq } = await scene();
    const arm = cqArm.encode({ sequenceNumber: 1, command: 2, cqn: aCq.cqn, consumerCounter: 0 });
    bench.a.store(cqArmOffset(UAR), arm.subarray(0, 4));
    await bench.run(1);
    bench.a.store(cqArmOffset(UAR + 1) + 4, arm.subarray(4, 8));
    a.send(NOP);
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([]);
    bench.a.store(cqArmOffset(UAR), arm.subarray(0, 4));
    bench.a.store(cqArmOffset(UAR) + 4, arm.subarray(4, 8));
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([`comp 0x${aCq.cqn.toString(16)} eq ${EQN}`]);
  });

  it('sheet 6.9: EQ doorbells go to the four EQs of the page', async () => {
    const { bench } = await scene();
    for (const eqn of [4, 5, 6, 7])
      bench.a.store(
        eqDoorbellOffset(eqn),
        eqDoorbell.encode({ arm: eqn % 2, consumerCounter: 0x1230 + eqn }),
      );
    await bench.run(1);
    expect(bench.a.events.lines).toEqual([
      'eq 4 ci 4660',
      'eq 5 ci 4661 arm',
      'eq 6 ci 4662',
      'eq 7 ci 4663 arm',
    ]);
  });
});

describe('BlueFlame', () => {
  const inlineWrite = (target: { address: number; key: number }, seed: number, bytes: number) => ({
    opcode: WqeOpcode.RDMA_WRITE,
    inline: pattern(seed, bytes),
    remote: target,
  });
  /** 16 control + 16 remote address + inline headers and data, padded. */
  const wqeBytes = (bytes: number): number =>
    32 + Math.ceil((bytes + 4 * Math.ceil(bytes / 60 + 0.5)) / 16) * 16;

  for (const [bytes, pieceBytes] of [
    [20, 64],
    [20, 8],
    [20, 4],
    [150, 64],
    [150, 32],
    [150, 8],
    [150, 4],
  ] as const)
    it(`sheet 6.9: executes a WQE of ${bytes} bytes of data, stored in pieces of ${pieceBytes}, without a read of the WQE`, async () => {
      const { bench, a, aCq, remote, target } = await scene({ a: { sqLogStride16: 4 } });
      for (let index = 0; index < 5; index++) {
        const counter = a.post(inlineWrite(target, index, bytes));
        a.blueFlame(counter, wqeBytes(bytes), index & 1, pieceBytes);
        await bench.run(10);
        expect(remote.read(0, bytes)).toEqual(pattern(index, bytes));
      }
      expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0, 0]);
      expect(bench.a.dataPath.blocks.doorbells.blueFlameCount).toBe(5);
      expect(bench.a.reads.requesters.find(({ name }) => name === 'wqeRead')!.counters.tlps).toBe(0);
      expect(bench.a.dataPath.parts.violations.report()).toEqual({});
    });

  it('sheet 6.9: executes a torn post from memory', async () => {
    const { bench, a, aCq, remote, target } = await scene({ a: { sqLogStride16: 4 } });
    const counter = a.post(inlineWrite(target, 1, 150));
    // The first piece of 64 bytes, then a new post of another WQE into the same half.
    bench.a.store(UAR_AREA_BYTES + UAR * 4096, a.wqeBytes(counter, 64));
    await bench.run(10);
    expect(aCq.drain()).toEqual([]);
    const next = a.post(inlineWrite({ ...target, address: target.address + 1000 }, 2, 150));
    a.blueFlame(next, 256, 0);
    await bench.run(10);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
    expect([remote.read(0, 150), remote.read(1000, 150)]).toEqual([pattern(1, 150), pattern(2, 150)]);
    expect(bench.a.dataPath.parts.violations.report()).toMatchObject({ blueFlameTorn: 1 });
  });

  it('executes torn posts of other pages too, however many are open', async () => {
    const { bench } = await scene();
    const pairs = Array.from({ length: 20 }, (_, index) =>
      connectedPair(bench.a, bench.b, { a: { sqLogStride16: 4, fields: { uarPage: 20 + index } } }),
    );
    await bench.run(5);
    for (const [index, { a }] of pairs.entries()) {
      const counter = a.post({ ...NOP, inline: pattern(1, 150) });
      bench.a.store(UAR_AREA_BYTES + (20 + index) * 4096, a.wqeBytes(counter, 64));
    }
    await bench.run(30);
    // Sixteen posts can be assembled at once: the first four were abandoned, and are executed from memory.
    expect(pairs.map(({ aCq }) => aCq.drain().length)).toEqual(
      Array.from({ length: 20 }, (_, index) => (index < 4 ? 1 : 0)),
    );
    expect(bench.a.dataPath.parts.violations.report()).toEqual({ blueFlameTorn: 4 });
  });

  it('keeps WQEs that come by BlueFlame one after the other, as many as the card does, and reads further ones', async () => {
    for (const [blueFlameWqes, fromMemory] of [
      [8, 0],
      // All five arrive before the first is served.
      [3, 2],
    ] as const) {
      const { bench, a, aCq, remote, target } = await scene({
        a: { sqLogStride16: 2 },
        hca: { blueFlameWqes },
      });
      // The QP is not served again before its interval is over: the others wait on chip.
      for (let index = 0; index < 5; index++)
        a.blueFlame(
          a.post(inlineWrite({ ...target, address: target.address + 64 * index }, index, 20)),
          64,
          index & 1,
        );
      await bench.run(20);
      expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0, 0, 0]);
      for (let index = 0; index < 5; index++) expect(remote.read(64 * index, 20)).toEqual(pattern(index, 20));
      const { blueFlameFromMemoryCount } = bench.a.dataPath.blocks.doorbells;
      expect(blueFlameFromMemoryCount).toBe(fromMemory);
      expect(bench.a.reads.requesters.find(({ name }) => name === 'wqeRead')!.counters.tlps > 0).toBe(
        fromMemory > 0,
      );
    }
  });

  it('takes a stale or early post as a doorbell', async () => {
    const { bench, a, aCq } = await scene({ a: { sqLogStride16: 4 } });
    const first = a.post(NOP);
    const second = a.post(NOP);
    a.blueFlame(second, 64);
    await bench.run(10);
    expect(aCq.drain().map(({ wqeCounter }) => wqeCounter)).toEqual([0, 1]);
    a.blueFlame(first, 64);
    await bench.run(10);
    expect(aCq.drain()).toEqual([]);
    expect(bench.a.dataPath.blocks.doorbells.blueFlameFromMemoryCount).toBe(2);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({});
  });

  it('sheet 6.9: refuses a post on a foreign page', async () => {
    const { bench, a, aCq } = await scene({ a: { sqLogStride16: 4 } });
    const counter = a.post(NOP);
    a.blueFlame(counter, 64, 0, 64, UAR + 1);
    await bench.run(10);
    expect(aCq.drain()).toEqual([]);
    expect(bench.a.dataPath.parts.violations.report()).toMatchObject({ doorbellForeignUar: 1 });
  });

  it('takes no work from a QP whose line it needs', async () => {
    const { bench } = await scene({ hca: { wqeLineCount: 2 } });
    const pairs = Array.from({ length: 4 }, () =>
      connectedPair(bench.a, bench.b, { a: { sqLogStride16: 4 } }),
    );
    await bench.run(5);
    const [busy, ...others] = pairs;
    for (let index = 0; index < 20; index++) busy!.a.post(NOP);
    busy!.a.ring();
    let posted = 0;
    for (let round = 0; round < 40; round++) {
      for (const { a, aCq } of others) {
        if (aCq.takenCount() < Math.floor(posted / others.length)) continue;
        a.blueFlame(a.post(NOP), 64);
      }
      posted += others.length;
      await bench.run(0.3);
      if (round % 8 === 7) await bench.run(4);
    }
    await bench.run(40);
    expect(busy!.aCq.drain()).toHaveLength(20);
    for (const { a, aCq } of others) expect(aCq.takenCount()).toBe(a.sendCounter);
  });
});
