import { describe, expect, it } from 'vitest';
import { cqArmOffset } from '../../../abi/bar-map.ts';
import { cqc } from '../../../abi/cqc.ts';
import { CqArmCommand, cqArm } from '../../../abi/doorbells.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { DataPathNode } from '../testing/data-path-bench.ts';
import { Cq, connectedPair, EQN, Qp, type SendRequest, UAR } from '../testing/data-path-verbs.ts';
import { type Scene, scene, summaryOf, syndromesOf } from '../testing/scenario.ts';

const SOLICITED = 1;
const NEXT = 2;

const write = ({ local, target }: Scene): SendRequest => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(0, 8)],
  remote: target,
});
const nop: SendRequest = { opcode: WqeOpcode.NOP };
const event = (cq: Cq): string => `comp 0x${cq.cqn.toString(16)} eq ${EQN}`;

describe('arming', () => {
  it('sheet 6.10: fires one event at the next CQE, and then none until it is armed again', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    aCq.arm(NEXT);
    await bench.run(2);
    expect(bench.a.events.lines).toEqual([]);
    for (let index = 0; index < 3; index++) a.send(write(given));
    await bench.run(20);
    expect(bench.a.events.lines).toEqual([event(aCq)]);
    aCq.drain();
    aCq.arm(NEXT, 2);
    a.send(write(given));
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([event(aCq), event(aCq)]);
  });

  it('sheet 6.10: fires at once when there are CQEs beyond the consumer counter, and not otherwise', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    a.send(write(given));
    await bench.run(10);
    aCq.arm(NEXT, 1, UAR, 1);
    await bench.run(1);
    expect(bench.a.events.lines).toEqual([]);
    aCq.arm(NEXT, 1, UAR, 0);
    await bench.run(1);
    expect(bench.a.events.lines).toEqual([event(aCq)]);
  });

  it.each([0x70_0000, 0x90_0000, 0xff_fff0])(
    'sheet 6.10: fires at once for a CQE also %i CQEs after the last event, which all were polled',
    async (polled) => {
      const given = await scene();
      const { bench, a, aCq } = given;
      for (const command of [NEXT, SOLICITED]) {
        const queue = bench.a.dataPath.parts.cqs.rows[bench.a.dataPath.parts.cqs.slotOf(aCq.cqn)]!;
        Object.assign(queue, { producer: polled, consumer: polled, lastNotified: 0, solicitedProducer: 0 });
        bench.a.events.lines.length = 0;
        const sequence = command === NEXT ? 1 : 2;
        aCq.arm(command, sequence, UAR, polled);
        await bench.run(1);
        expect(bench.a.events.lines).toEqual([]);
        queue.armState = 0;
        a.send(write(given));
        await bench.run(10);
        // This CQE fires no arm for solicited events: the solicited ones were consumed long ago.
        aCq.arm(command, sequence, UAR, polled);
        await bench.run(1);
        expect(bench.a.events.lines).toEqual(command === NEXT ? [event(aCq)] : []);
      }
    },
  );

  it('sheet 6.10: reports a CQE once, though software arms before it polls, and those after it at once', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    aCq.arm(NEXT, 1, UAR, 0);
    a.send(write(given));
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([event(aCq)]);
    // perftest does the same: it takes the event, arms with the old consumer counter, then polls.
    aCq.arm(NEXT, 2, UAR, 0);
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([event(aCq)]);
    a.send(write(given));
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([event(aCq), event(aCq)]);
    // No event reports the third CQE; arming finds it, wherever the consumer is.
    a.send(write(given));
    await bench.run(10);
    aCq.arm(NEXT, 3, UAR, 0);
    await bench.run(10);
    expect(bench.a.events.lines).toHaveLength(3);
  });

  it('sheet 6.10: refuses requests of a round that has fired, of a foreign UAR, of no CQ and without a command', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    aCq.arm(NEXT, 0);
    aCq.arm(NEXT, 2);
    aCq.arm(NEXT, 1, UAR + 1);
    aCq.arm(3, 1);
    a.send(write(given));
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([]);
    expect(bench.a.dataPath.parts.violations.report()).toEqual({
      armStale: 2,
      armForeignUar: 1,
      armUnknownCq: 1,
    });
  });

  it('IBTA 11.4.2.2: for solicited events passes over others, and counts errors as solicited', async () => {
    const given = await scene();
    const { bench, a, b, bCq, local, remote } = given;
    for (let index = 0; index < 4; index++) b.receive([remote.part(0, 64)]);
    const send = { opcode: WqeOpcode.SEND, segments: [local.part(0, 8)] };
    bCq.arm(SOLICITED);
    a.send(send);
    await bench.run(10);
    expect(bench.b.events.lines).toEqual([]);
    a.send({ ...send, isSolicited: true });
    await bench.run(10);
    expect(bench.b.events.lines).toEqual([event(bCq)]);
    // The solicited one is not consumed yet, but has been reported: armed again, nothing fires.
    bCq.arm(SOLICITED, 2, UAR, 1);
    await bench.run(1);
    expect(bench.b.events.lines).toHaveLength(1);
    bCq.drain();
    b.toError();
    await bench.run(10);
    expect(bench.b.events.lines).toHaveLength(2);
    expect(summaryOf(bCq.drain())).toEqual(['receive 2: 0x5', 'receive 3: 0x5']);
  });

  it('IBTA 11.4.2.2: keeps a pending request for the next completion, whatever is requested after it', async () => {
    const given = await scene();
    const { bench, local, remote } = given;
    const plain: SendRequest = { opcode: WqeOpcode.SEND, segments: [local.part(0, 8)] };
    const requests: Readonly<Record<string, SendRequest>> = {
      plain,
      solicited: { ...plain, isSolicited: true },
      // Longer than the receive buffer: an error at both ends.
      error: { ...plain, segments: [local.part(0, 65)] },
    };
    // Every order of up to three requests of both kinds.
    const orders = [1, 2, 3].flatMap((count) =>
      Array.from({ length: 2 ** count }, (_, bits) =>
        Array.from({ length: count }, (__, at) => (((bits >> at) & 1) === 0 ? SOLICITED : NEXT)),
      ),
    );
    for (const order of orders)
      for (const [kind, request] of Object.entries(requests))
        for (const isLate of [false, true]) {
          const { a, b, bCq } = connectedPair(bench.a, bench.b);
          await bench.run(2);
          b.receive([remote.part(0, 64)]);
          bench.b.events.lines.length = 0;
          const arm = (): void => order.forEach((command) => void bCq.arm(command, 1, UAR, 0));
          if (!isLate) arm();
          a.send(request);
          await bench.run(10);
          if (isLate) arm();
          await bench.run(2);
          const isDue = kind !== 'plain' || order.includes(NEXT);
          const where = `${order}, ${isLate ? 'after' : 'before'} a ${kind} completion`;
          expect(bench.b.events.lines, where).toEqual(isDue ? [event(bCq)] : []);
          expect(bCq.drain(), where).toHaveLength(1);
        }
  });

  it('loses no event when several CQs fire at once and the event queue is full for a while', async () => {
    const given = await scene();
    const { bench } = given;
    const cqs = Array.from({ length: 6 }, () => new Cq(bench.a, 4));
    const qps = cqs.map((cq) => new Qp(bench.a, { sendCq: cq }));
    for (const qp of qps) qp.connect(0, 0, 0);
    await bench.run(5);
    bench.a.events.hasRoom = false;
    // Half of the CQs fire at their next CQE; the other half fire at once, because they are armed after their CQE.
    for (const cq of cqs.slice(0, 3)) cq.arm(NEXT);
    for (const qp of qps) qp.send(nop);
    await bench.run(10);
    for (const cq of cqs.slice(3)) cq.arm(NEXT, 1, UAR, 0);
    await bench.run(2);
    for (const qp of qps) qp.send(nop);
    await bench.run(2);
    expect(bench.a.events.lines).toEqual([]);
    bench.a.act(() => bench.a.events.makeRoom(bench.a.domain.cycle));
    await bench.run(10);
    expect([...bench.a.events.lines].sort()).toEqual(cqs.map(event).sort());
    for (const cq of cqs) expect(syndromesOf(cq.drain())).toEqual([0, 0]);
  });

  it('fires both a CQ that an arm request finds due and another whose CQE is written in the same cycle', async () => {
    const given = await scene({ hca: { completionCycles: 2000 } });
    const { bench } = given;
    const cqs = Array.from({ length: 2 }, () => new Cq(bench.a, 4));
    const qps = cqs.map((cq) => new Qp(bench.a, { sendCq: cq }));
    for (const qp of qps) qp.connect(0, 0, 0);
    await bench.run(5);
    // The first CQ holds a CQE; the writer is busy with its second while the other CQ's waits; then the arm request
    // arrives.
    for (const qp of qps) qp.send(nop);
    await bench.run(20);
    cqs[1]!.drain();
    cqs[1]!.arm(NEXT);
    qps[0]!.send(nop);
    qps[1]!.send(nop);
    await bench.run(3);
    cqs[0]!.arm(NEXT, 1, UAR, 0);
    await bench.run(20);
    expect([...bench.a.events.lines].sort()).toEqual(cqs.map(event).sort());
  });

  it('fires both CQs that arm requests find due, however little time is between the requests', async () => {
    const given = await scene();
    const { bench } = given;
    const { lp, domain, dataPath } = bench.a;
    const cqs = Array.from({ length: 2 }, () => new Cq(bench.a, 6));
    const qps = cqs.map((cq) => new Qp(bench.a, { sendCq: cq }));
    for (const qp of qps) qp.connect(0, 0, 0);
    await bench.run(5);
    // The link delivers doorbells at any time; they take effect at the next edge.
    const arrival = lp.queue.addHandler((index, sequenceNumber) => {
      const { cqn, consumer } = cqs[index]!;
      const bytes = cqArm.encode({ sequenceNumber, command: NEXT, cqn, consumerCounter: consumer });
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      dataPath.blocks.doorbells.barWrite(
        cqArmOffset(UAR),
        view,
        0,
        bytes.length,
        domain.clock.cycleAfter(lp.nowPs),
      );
    });
    for (let round = 1; round <= 20; round++) {
      for (const qp of qps) qp.send(nop);
      await bench.run(20);
      bench.a.events.lines.length = 0;
      lp.queue.schedule(lp.nowPs + 1000, arrival, 0, round & 3);
      lp.queue.schedule(lp.nowPs + 1000 + 500 * round, arrival, 1, round & 3);
      await bench.run(20);
      expect(bench.a.events.lines, `${500 * round} ps apart`).toEqual(cqs.map(event));
      for (const cq of cqs) expect(cq.drain()).toHaveLength(1);
    }
  });

  it('fires each of many CQs whose CQEs and arm requests meet in the same cycles', async () => {
    const given = await scene();
    const { bench } = given;
    const cqs = Array.from({ length: 8 }, () => new Cq(bench.a, 4));
    const qps = cqs.map((cq) => new Qp(bench.a, { sendCq: cq }));
    for (const qp of qps) qp.connect(0, 0, 0);
    await bench.run(5);
    for (let round = 1; round <= 3; round++) {
      for (const [index, cq] of cqs.entries()) {
        qps[index]!.send(nop);
        cq.arm(NEXT, round, UAR, 0);
      }
      await bench.run(20);
      expect(bench.a.events.lines).toHaveLength(8 * round);
    }
  });
});

describe('moderation', () => {
  const moderate = (node: DataPathNode, cq: Cq, count: number, periodUs: number): void =>
    node.act(() => {
      const { cqs } = node.dataPath.parts;
      cqc.fields.moderationCount.set(cqs.view, cqs.offsetOf(cq.slot), count);
      cqc.fields.moderationPeriodUs.set(cqs.view, cqs.offsetOf(cq.slot), periodUs);
      node.dataPath.control.cqModerated(cq.slot);
    });

  it('sheet 5.2: holds the event back until so many CQEs have come', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    moderate(bench.a, aCq, 3, 1000);
    aCq.arm(NEXT);
    for (let index = 1; index <= 3; index++) {
      a.send(write(given));
      await bench.run(10);
      expect(bench.a.events.lines).toHaveLength(index === 3 ? 1 : 0);
    }
    expect(bench.a.dataPath.blocks.completions.notifier.moderatedCount).toBe(2);
  });

  it('begins the period anew with each round: a timer of the one before fires nothing', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    moderate(bench.a, aCq, 2, 50);
    aCq.arm(NEXT);
    for (let index = 0; index < 2; index++) {
      a.send(write(given));
      await bench.run(10);
    }
    expect(bench.a.events.lines).toHaveLength(1);
    aCq.drain();
    aCq.armSequence++;
    aCq.arm(NEXT);
    a.send(write(given));
    // The first round's timer would be over 50 us after its first CQE, this round's 20 us later.
    await bench.run(40);
    expect(bench.a.events.lines).toHaveLength(1);
    await bench.run(20);
    expect(bench.a.events.lines).toHaveLength(2);
  });

  it('sheet 5.2: or until the period since the first one is over', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    moderate(bench.a, aCq, 10, 50);
    aCq.arm(NEXT);
    a.send(write(given));
    await bench.until(() => aCq.takenCount() > 0, 10);
    const beganCycle = bench.a.domain.cycle;
    await bench.run(45);
    expect(bench.a.events.lines).toEqual([]);
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([event(aCq)]);
    // 50 us of 427 MHz are 21,350 cycles; the CQE was seen in memory at most 3 us after its issue.
    const waited = bench.a.events.cycles[0]! - beganCycle;
    expect(waited).toBeLessThanOrEqual(21_350 + 3);
    expect(waited).toBeGreaterThan(21_350 - 3 * 427);
  });

  it('drops the event of a period that ends as the CQ is armed anew, before or after', async () => {
    for (const isBehind of [false, true]) {
      const given = await scene();
      const { bench, a, aCq } = given;
      const { lp, dataPath } = bench.a;
      const periodPs = 50_000_000;
      moderate(bench.a, aCq, 3, 50);
      aCq.arm(NEXT);
      let duePs = Number.NaN;
      const rearmed = lp.queue.addHandler(() =>
        dataPath.blocks.completions.notifier.arm(aCq.slot, CqArmCommand.NEXT, 1, bench.a.domain.cycle),
      );
      const schedule = lp.queue.schedule.bind(lp.queue);
      lp.queue.schedule = (atPs, ...effect) => {
        if (atPs - lp.nowPs !== periodPs) return schedule(atPs, ...effect);
        duePs = atPs;
        if (!isBehind) schedule(atPs, rearmed);
        const timer = schedule(atPs, ...effect);
        if (isBehind) schedule(atPs, rearmed);
        return timer;
      };
      a.send(write(given));
      await bench.run(80);
      expect(lp.nowPs).toBeGreaterThan(duePs);
      expect(bench.a.events.lines).toEqual([]);
      lp.queue.schedule = schedule;
      a.send(write(given));
      await bench.run(60);
      expect(bench.a.events.lines).toEqual([event(aCq)]);
    }
  });

  it('reports CQs whose periods end at one instant in the order of their places', async () => {
    for (const shuffleSeed of [undefined, 1, 2, 3, 4, 5]) {
      const { bench } = await scene(shuffleSeed === undefined ? {} : { shuffleSeed });
      const cqs = [new Cq(bench.a), new Cq(bench.a), new Cq(bench.a)];
      await bench.run(2);
      for (const cq of cqs) {
        moderate(bench.a, cq, 3, 20);
        cq.arm(NEXT);
      }
      await bench.run(2);
      bench.a.act(() => {
        const { notifier } = bench.a.dataPath.blocks.completions;
        for (const cq of cqs.toReversed()) notifier.issued(cq.slot, true, bench.a.domain.cycle);
      });
      await bench.run(30);
      expect(cqs.map(({ slot }) => slot)).toEqual(cqs.map(({ slot }) => slot).toSorted((l, r) => l - r));
      expect(bench.a.events.lines).toEqual(cqs.map(event));
    }
  });
});
