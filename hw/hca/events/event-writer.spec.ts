import { beforeEach, describe, expect, it } from 'vitest';
import { QueueStatus } from '../../../abi/cqc.ts';
import {
  completionEqe,
  cqErrorEqe,
  EventType,
  eqe,
  pageRequestEqe,
  portChangeEqe,
  srqEqe,
} from '../../../abi/eqe.ts';
import { viewOf } from '../../../base/index.ts';
import { broughtUp, bufferAddress, createEq, icmBase, icmHostBase, must } from '../testing/bring-up.ts';
import type { ControlBench } from '../testing/control-bench.ts';

let bench: ControlBench;
let eqn: number;

beforeEach(() => {
  bench = broughtUp({ eventFifoDepth: 8 });
  eqn = createEq(bench, 0);
});

const events = () => bench.control.events;
const entry = (index: number, buffer = 0): DataView =>
  viewOf(bench.memory.read(bufferAddress(buffer) + index * 32, 32));
const ownerOf = (view: DataView): number => eqe.fields.owner.get(view, 0);
/** Posts one completion event as the data path would, and lets it be written. */
function post(cqn: number): void {
  events().postCompletion(eqn, cqn, bench.cycle);
  bench.run();
}

describe('the event writer', () => {
  it('sheet 6.7: writes completion events in order, with the owner bit of the pass', () => {
    for (let cqn = 128; cqn < 131; cqn++) events().postCompletion(eqn, cqn, bench.cycle);
    bench.run();
    expect([0, 1, 2].map((index) => completionEqe.fields.cqn.get(entry(index), 0))).toEqual([128, 129, 130]);
    expect([0, 1, 2, 3].map((index) => ownerOf(entry(index)))).toEqual([0, 0, 0, 1]); // entry 3 is not written yet
  });

  it('sheet 6.7: writes an EQE as one write of 32 bytes', () => {
    const before = bench.dma.writeLog.length;
    post(128);
    expect(bench.dma.writeLog.slice(before).map(({ bytes }) => bytes.length)).toEqual([32]);
  });

  it('sheet 6.7: inverts the owner bit on the second pass', () => {
    for (let index = 0; index < 129; index++) {
      post(200 + index);
      events().eqDoorbell(eqn, index + 1, false, bench.cycle);
    }
    expect([ownerOf(entry(0)), ownerOf(entry(1)), completionEqe.fields.cqn.get(entry(0), 0)]).toEqual([
      1, 0, 328,
    ]);
  });

  it('counts the queues of a vector that software has not served since their last message', () => {
    const unserved = (): number[] => [0, 1].map((vector) => bench.control.eqs.unservedOf(vector));
    createEq(bench, 1, 7, { interruptNumber: 1 });
    const arm = (queue: number, consumed: number, isArmed: boolean): void =>
      events().eqDoorbell(queue, consumed, isArmed, bench.cycle);
    expect(unserved()).toEqual([0, 0]);
    post(128);
    expect(unserved()).toEqual([1, 0]); // an entry, and its message
    arm(eqn, 1, false);
    expect(unserved()).toEqual([1, 0]); // consumed, but no message can follow
    arm(eqn, 1, true);
    bench.run();
    expect(unserved()).toEqual([0, 0]);
  });

  it('looks the page up again only when it changes', () => {
    const second = createEq(bench, 1, 8); // 256 entries on two pages
    for (let index = 0; index < 130; index++) {
      events().postCompletion(second, index, bench.cycle);
      bench.run();
    }
    expect(completionEqe.fields.cqn.get(entry(129, 1), 0)).toBe(129);
    // Two MTT reads of 8 bytes, each a stall of the latency and the cycle of its report.
    expect(bench.control.events.account.stalledCycles[0]).toBe(2 * 11);
  });

  it('sheet 3.16: sends asynchronous events where MAP_EQ says, and counts those that go nowhere', () => {
    events().postCqError(130, 1, bench.cycle);
    must(bench, 'MAP_EQ', {
      inParam: 2 ** EventType.CQ_ERROR + 2 ** EventType.SRQ_LIMIT + 2 ** EventType.PORT_CHANGE,
      inputModifier: eqn,
    });
    events().postCqError(131, 1, bench.cycle);
    events().postSrqEvent(EventType.SRQ_LIMIT, 70, bench.cycle);
    events().postPortChange(1, 4, bench.cycle);
    bench.run();
    expect(cqErrorEqe.decode(bench.memory.read(bufferAddress(0), 32))).toMatchObject({
      type: 4,
      cqn: 131,
      syndrome: 1,
    });
    expect(srqEqe.fields.srqn.get(entry(1), 0)).toBe(70);
    expect(portChangeEqe.decode(bench.memory.read(bufferAddress(0) + 64, 32))).toMatchObject({
      subtype: 4,
      port: 1,
    });
    expect(bench.control.violations.report()).toEqual({ eventUnmapped: 1 });
  });

  it('writes all 64 bits of the address that a page request names', () => {
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.PAGE_REQUEST, inputModifier: eqn });
    const page = { side: 1, isWrite: true, qpn: 0x41, key: 0x300, lengthBytes: 5000, token: 9 };
    // The lower part is beyond 2^52 by 0x123 bytes.
    events().postPageRequest({ ...page, address: 2 ** 52 + 0x123, addressTop: 0xabc }, bench.cycle);
    bench.run();
    expect(pageRequestEqe.decode(bench.memory.read(bufferAddress(0), 32))).toMatchObject({
      key: 0x300,
      lengthBytes: 5000,
      address: 0xabd0_0000_0000_0123n,
    });
  });

  it('pushes back when its fifo is full, and calls its posters when there is room', () => {
    let notified = 0;
    bench.posters.push({ eventSpace: () => notified++ });
    for (let index = 0; index < 8; index++) {
      expect(events().canPost()).toBe(true);
      events().postCompletion(eqn, index, bench.cycle);
    }
    expect(events().canPost()).toBe(false);
    expect(() => events().postCompletion(eqn, 9, bench.cycle)).toThrow(RangeError);
    bench.run();
    expect([events().canPost(), notified]).toEqual([true, 1]);
  });

  it('writes what had not left anew, in its place, when DMA was dropped', () => {
    post(1);
    for (const cqn of [2, 3]) events().postCompletion(eqn, cqn, bench.cycle);
    const before = events().writtenCount;
    for (let cycle = 0; cycle < 1000 && events().writtenCount < before + 2; cycle++) bench.run(1);
    expect([events().writtenCount, events().isIdle]).toEqual([before + 2, false]);
    bench.dma.reset();
    events().writeAnew();
    bench.run();
    expect([0, 1, 2].map((index) => completionEqe.fields.cqn.get(entry(index), 0))).toEqual([1, 2, 3]);
    expect([0, 1, 2].map((index) => ownerOf(entry(index)))).toEqual([0, 0, 0]);
    expect([events().writtenCount, events().isIdle]).toEqual([before + 2, true]);
  });

  it('sheet 6.7: drops what software leaves no room for, stops the EQ and reports it by event 0x0f', () => {
    const reporter = createEq(bench, 1);
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.EQ_OVERFLOW, inputModifier: reporter });
    for (let index = 0; index < 129; index++) post(index);
    const slot = bench.control.eqs.slotOf(eqn);
    expect(bench.control.eqs.status[slot]).toBe(QueueStatus.OVERFLOW);
    expect(completionEqe.fields.cqn.get(entry(0), 0)).toBe(0); // nothing was overwritten
    expect(eqe.fields.type.get(entry(0, 1), 0)).toBe(EventType.EQ_OVERFLOW);
    events().eqDoorbell(eqn, 128, false, bench.cycle);
    post(500);
    expect([events().writtenCount, events().droppedCount]).toEqual([129, 2]);
    expect(bench.control.violations.report()).toEqual({ eventQueueOverrun: 1 });
  });

  it('sheet 5.3: overwrites when the EQ ignores overrun', () => {
    const second = createEq(bench, 1, 7, { ignoreOverrun: 1 });
    for (let index = 0; index < 129; index++) {
      events().postCompletion(second, index, bench.cycle);
      bench.run();
    }
    expect(completionEqe.fields.cqn.get(entry(0, 1), 0)).toBe(128);
  });

  it('sheet 5.3: puts an EQ whose page is gone into write failure', () => {
    bench.memory.write(icmHostBase + icmBase.mtt, new Uint8Array(8));
    post(128);
    expect(bench.control.eqs.status[bench.control.eqs.slotOf(eqn)]).toBe(QueueStatus.WRITE_FAILURE);
    expect(bench.control.violations.report()).toEqual({ eventQueueAccess: 1 });
    const second = createEq(bench, 1);
    must(bench, 'UNMAP_ICM', { inParam: icmBase.mtt, inputModifier: 64 });
    events().postCompletion(second, 1, bench.cycle);
    bench.run();
    expect(bench.control.violations.report()).toEqual({ eventQueueAccess: 2 });
  });

  it('drops events for an EQ that does not exist, and counts doorbells for one', () => {
    events().postCompletion(99, 128, bench.cycle);
    bench.run();
    events().eqDoorbell(99, 0, true, bench.cycle);
    expect(events().droppedCount).toBe(1);
    expect(bench.control.violations.report()).toEqual({ eventQueueUnknown: 1 });
  });

  it('accounts every cycle as busy, stalled or idle', () => {
    for (let index = 0; index < 8; index++) events().postCompletion(eqn, index, bench.cycle);
    bench.run(1000);
    const { account } = events();
    account.close(bench.cycle);
    const stalled = account.stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
    expect(account.busyCycles).toBe(8 * bench.config.eventCycles);
    expect(account.busyCycles + stalled + account.idleCycles).toBe(bench.cycle);
    expect(account.overlapCount).toBe(0);
  });
});
