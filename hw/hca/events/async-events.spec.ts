import { describe, expect, it } from 'vitest';
import { EventType } from '../../../abi/eqe.ts';
import { LogicalProcess } from '../../../sim/index.ts';
import { EventLog } from '../testing/event-log.ts';
import { AsyncEvents } from './async-events.ts';

function bench() {
  const lp = new LogicalProcess('hca');
  const domain = lp.addClockDomain(1000);
  const log = new EventLog();
  const events = new AsyncEvents({ domain });
  events.connect({ eventQueues: log });
  log.connect({ posters: [events] });
  return { lp, domain, log, events };
}

describe('AsyncEvents', () => {
  it('sheet 6.7: hands events on in order, one a cycle, by the kind of their object', () => {
    const { lp, log, events } = bench();
    events.post(EventType.COMM_EST, 0x40, 0, 5);
    events.post(EventType.CQ_ERROR, 0x41, 2, 5);
    events.post(EventType.SRQ_LIMIT, 0x42, 0, 5);
    events.post(EventType.SRQ_CATAS_ERROR, 0x43, 0, 5);
    lp.advance(100_000);
    expect(log.lines).toEqual(['qp 0x2 0x40', 'cq 2 0x41', 'srq 0x14 0x42', 'srq 0x12 0x43']);
    expect(log.cycles).toEqual([6, 7, 8, 9]);
    events.account.close(100);
    expect([events.account.busyCycles, events.account.idleCycles, events.account.stalledCycles[0]]).toEqual([
      4, 96, 0,
    ]);
  });

  it('waits while there is no room, and accounts for it', () => {
    const { lp, log, events } = bench();
    log.hasRoom = false;
    events.post(EventType.COMM_EST, 1, 0, 5);
    lp.advance(50_000);
    expect(log.lines).toEqual([]);
    log.makeRoom(49);
    lp.advance(100_000);
    expect(log.cycles).toEqual([50]);
    events.account.close(100);
    // Stalled from cycle 6, at which it could have been handed on, to cycle 50.
    expect([events.account.stalledCycles[0], events.account.busyCycles, events.account.overlapCount]).toEqual(
      [44, 1, 0],
    );
  });

  it('loses and counts what comes when 1024 are waiting', () => {
    const { lp, log, events } = bench();
    log.hasRoom = false;
    for (let index = 0; index < 1030; index++) events.post(EventType.COMM_EST, index, 0, 0);
    expect(events.lostCount).toBe(6);
    log.makeRoom(1);
    lp.advance(3_000_000);
    expect(log.lines).toHaveLength(1024);
  });

  it('forgets all at a reset', () => {
    const { lp, log, events } = bench();
    events.post(EventType.COMM_EST, 1, 0, 5);
    events.reset();
    lp.advance(100_000);
    expect(log.lines).toEqual([]);
  });
});
