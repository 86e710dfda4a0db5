import { describe, expect, it } from 'vitest';
import { QpTable } from '../objects/qp-table.ts';
import { infinibandQpContext } from '../testing/contexts.ts';
import { NOT_PARKED, PARKED_CONTEXT, PARKED_FENCE, PARKED_WINDOW, SendScheduler } from './send-scheduler.ts';

function bench(capacity = 8) {
  const qps = new QpTable(capacity, infinibandQpContext);
  for (let qpn = 0; qpn < capacity; qpn++) qps.allocate(qpn);
  const wakes: number[] = [];
  const scheduler = new SendScheduler();
  scheduler.connect({ requester: { wake: (cycle) => wakes.push(cycle) } });
  return { qps, wakes, scheduler };
}

/** All QPs that can be taken at `cycle`, in order. */
function takeAll(scheduler: SendScheduler, cycle: number): number[] {
  const taken: number[] = [];
  for (let pair = scheduler.take(cycle); pair !== undefined; pair = scheduler.take(cycle))
    taken.push(pair.slot);
  return taken;
}

describe('SendScheduler', () => {
  it('serves QPs in the order in which they became ready, from their cycle on', () => {
    const { qps, scheduler, wakes } = bench();
    scheduler.makeReady(qps.rows[3]!, 10);
    scheduler.makeReady(qps.rows[1]!, 10);
    scheduler.makeReady(qps.rows[2]!, 12);
    expect(wakes).toEqual([10, 10, 12]);
    expect(scheduler.nextCycle).toBe(10);
    expect(takeAll(scheduler, 9)).toEqual([]);
    expect(takeAll(scheduler, 10)).toEqual([3, 1]);
    expect(scheduler.nextCycle).toBe(12);
    expect(takeAll(scheduler, 12)).toEqual([2]);
    expect(scheduler.nextCycle).toBe(Number.POSITIVE_INFINITY);
  });

  it('holds a QP once, however often it becomes ready', () => {
    const { qps, scheduler } = bench();
    for (let index = 0; index < 100; index++) scheduler.makeReady(qps.rows[5]!, 10);
    expect(takeAll(scheduler, 20)).toEqual([5]);
  });

  it('brings a QP that has sent back no earlier than its interval, also when a doorbell comes meanwhile', () => {
    const { qps, scheduler } = bench();
    scheduler.makeReady(qps.rows[5]!, 10);
    expect(scheduler.take(10)?.slot).toBe(5);
    // The doorbell is rung while the QP is being served, and again while it waits.
    scheduler.makeReady(qps.rows[5]!, 12);
    scheduler.makeReadyLater(qps.rows[5]!, 90);
    scheduler.makeReady(qps.rows[5]!, 40);
    expect(takeAll(scheduler, 89)).toEqual([]);
    expect(takeAll(scheduler, 90)).toEqual([5]);
    expect(takeAll(scheduler, 200)).toEqual([]);
  });

  it('takes those whose contexts have been read before all others, in the order in which these came', () => {
    const { qps, scheduler, wakes } = bench();
    for (const slot of [1, 2, 3]) scheduler.makeReady(qps.rows[slot]!, 10);
    expect([scheduler.take(10)?.slot, scheduler.take(10)?.slot]).toEqual([1, 2]);
    for (const slot of [1, 2]) scheduler.park(qps.rows[slot]!, PARKED_CONTEXT);
    for (const slot of [4, 5]) scheduler.makeReady(qps.rows[slot]!, 11);
    scheduler.unparkFirst(qps.rows[2]!, 20);
    scheduler.unparkFirst(qps.rows[1]!, 21);
    expect(wakes.slice(-2)).toEqual([20, 21]);
    // QPs of the ring need not wait for it.
    expect(scheduler.take(19)?.slot).toBe(3);
    expect(scheduler.heldCount).toBe(4);
    expect(scheduler.inspect()).toEqual({ front: [2, 1], ring: [4, 5], delayed: [], paced: [] });
    scheduler.makeReady(qps.rows[1]!, 12);
    expect(takeAll(scheduler, 20)).toEqual([2, 4, 5]);
    expect(scheduler.nextCycle).toBe(21);
    expect(takeAll(scheduler, 21)).toEqual([1]);
    scheduler.unparkFirst(qps.rows[1]!, 22);
    scheduler.reset();
    expect([scheduler.heldCount, qps.rows[1]!.isScheduled]).toEqual([0, 0]);
  });

  it('keeps many QPs apart, turn after turn', () => {
    const { qps, scheduler } = bench(4);
    const served: number[][] = [[], [], [], []];
    for (let qp = 0; qp < 4; qp++) scheduler.makeReady(qps.rows[qp]!, 1);
    for (let cycle = 1; cycle < 1000; cycle++) {
      const pair = scheduler.take(cycle);
      if (pair === undefined) continue;
      served[pair.slot]!.push(cycle);
      scheduler.makeReady(pair, cycle + 1);
      scheduler.makeReadyLater(pair, cycle + 50);
    }
    for (const cycles of served) {
      expect(cycles.length).toBeGreaterThan(15);
      for (const [index, cycle] of cycles.slice(1).entries())
        expect(cycle - cycles[index]!).toBeGreaterThanOrEqual(50);
    }
  });

  it('takes QPs with a rate from their cycles on, in the order of these, and before the ring', () => {
    const { qps, scheduler } = bench();
    const at = [30, 10, 20, 20];
    for (const [slot, cycle] of at.entries()) scheduler.makeReadyAt(qps.rows[slot]!, cycle);
    expect([scheduler.inspect()['paced'], scheduler.heldCount, scheduler.nextCycle]).toEqual([
      [1, 2, 3, 0],
      4,
      10,
    ]);
    scheduler.makeReady(qps.rows[4]!, 15);
    // A doorbell does not bring a QP forward; an error removes it.
    scheduler.makeReady(qps.rows[0]!, 15);
    scheduler.remove(qps.rows[3]!);
    expect([scheduler.hasPacedAt(9), scheduler.hasPacedAt(10)]).toEqual([false, true]);
    expect(takeAll(scheduler, 15)).toEqual([1, 4]);
    scheduler.makeReady(qps.rows[4]!, 19);
    expect(takeAll(scheduler, 20)).toEqual([2, 4]);
    expect([scheduler.hasPaced, scheduler.nextCycle]).toEqual([true, 30]);
    // One that has become ready while it was served waits for its rate as well.
    scheduler.makeReady(qps.rows[1]!, 25);
    scheduler.makeReadyAt(qps.rows[1]!, 29);
    expect(takeAll(scheduler, 28)).toEqual([]);
    expect(takeAll(scheduler, 30)).toEqual([1, 0]);
    expect(scheduler.hasPaced).toBe(false);
  });

  it('leaves out a parked QP until it is unparked', () => {
    const { scheduler, qps } = bench();
    scheduler.park(qps.rows[2]!, PARKED_FENCE);
    scheduler.makeReady(qps.rows[2]!, 10);
    expect(takeAll(scheduler, 10)).toEqual([]);
    scheduler.unpark(qps.rows[2]!, 11);
    expect(qps.rows[2]!.parkedFor).toBe(NOT_PARKED);
    expect(takeAll(scheduler, 11)).toEqual([2]);
    scheduler.unpark(qps.rows[2]!, 12);
    expect(takeAll(scheduler, 12)).toEqual([]);
    scheduler.park(qps.rows[2]!, PARKED_WINDOW);
    scheduler.makeReadyLater(qps.rows[2]!, 20);
    expect(takeAll(scheduler, 20)).toEqual([2]);
  });

  it('leaves out a QP that was removed, from either place, until it is ready again', () => {
    const { scheduler, qps } = bench();
    scheduler.makeReady(qps.rows[2]!, 10);
    scheduler.makeReady(qps.rows[3]!, 10);
    scheduler.makeReadyLater(qps.rows[4]!, 10);
    scheduler.remove(qps.rows[2]!);
    scheduler.remove(qps.rows[4]!);
    scheduler.remove(qps.rows[5]!);
    expect(takeAll(scheduler, 10)).toEqual([3]);
    scheduler.makeReady(qps.rows[2]!, 11);
    expect(takeAll(scheduler, 11)).toEqual([2]);
  });

  it('holds each QP once when all are rung in every turn, for as long as the ring is never empty', () => {
    const count = 4;
    const { qps, scheduler } = bench(count);
    const turns = new Array<number>(count).fill(0);
    for (const pair of qps.rows) scheduler.makeReady(pair, 0);
    // A turn takes 20 cycles, and a QP may return after 77: with four of them one always waits, and doorbells keep
    // arriving.
    let cycle = 0;
    for (let turn = 0; turn < 10_000; turn++, cycle += 20) {
      const pair = scheduler.take(cycle)!;
      turns[pair.slot]!++;
      for (const rung of qps.rows) scheduler.makeReady(rung, cycle + 4);
      scheduler.makeReadyLater(pair, cycle + 77);
    }
    // Each QP has one entry, also the one that was just being served.
    expect(takeAll(scheduler, cycle + 77).sort()).toEqual([0, 1, 2, 3]);
    expect(turns).toEqual(new Array(count).fill(10_000 / count));
  });

  it('forgets everything at a reset', () => {
    const { qps, scheduler } = bench();
    scheduler.makeReady(qps.rows[1]!, 1);
    scheduler.makeReadyLater(qps.rows[2]!, 1);
    scheduler.reset();
    expect(takeAll(scheduler, 100)).toEqual([]);
  });
});
