import { describe, expect, it } from 'vitest';
import { NEVER } from '../base/units.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes } from './channel.ts';
import { PHASE_SOFTWARE } from './event-queue.ts';
import { LogicalProcess } from './logical-process.ts';
import { Random } from './random.ts';

/** A process that records its actions, with two inbound channels of 100 and 40 ps. */
function noting(shuffle?: () => number) {
  const process = new LogicalProcess('host', shuffle);
  const notes: string[] = [];
  const note = (what: string): number => notes.push(`${what} at ${process.nowPs}`);
  const inbound = ['a', 'b'].map((name, index) => {
    const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
    const reader = new ChannelReader(buffer);
    process.addInbound(reader, index === 0 ? 100 : 40, (offset) => {
      note(`record ${name}`);
      reader.release(offset);
    });
    return new ChannelWriter(buffer);
  });
  const domains = ['x', 'y'].map((name) => {
    const domain = process.addClockDomain(1000);
    return { domain, stage: domain.addStage(() => note(`edge ${name}`)) };
  });
  const software = process.queue.addHandler(() => note('software'), PHASE_SOFTWARE);
  const hardware = process.queue.addHandler(() => note('hardware'));
  return { process, notes, inbound, domains, software, hardware };
}

/** Makes everything due at 5000 ps. */
function makeAllDue({ process, inbound, domains, software, hardware }: ReturnType<typeof noting>): void {
  process.queue.schedule(5000, software);
  process.queue.schedule(5000, hardware);
  for (const { domain, stage } of domains.toReversed()) domain.wake(stage, 5);
  for (const writer of inbound.toReversed()) {
    writer.append(5000, 1, 0);
    writer.publish(4990);
  }
  process.refreshHorizon();
}

describe('logical process', () => {
  it('runs, at one instant, records, edges, hardware and software events, in that order', () => {
    const host = noting();
    makeAllDue(host);
    expect(host.process.nextPs()).toBe(5000);
    expect(host.process.advance(5001)).toBe(false);
    const order = ['record a', 'record b', 'edge x', 'edge y', 'hardware', 'software'];
    expect(host.notes).toEqual(order.map((what) => `${what} at 5000`));
    expect([host.process.recordCount, host.process.nextPs()]).toEqual([2, NEVER]);
  });

  it('under a shuffle does the same in other orders, software last', () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 30; seed++) {
      const host = noting(new Random(seed).unit);
      makeAllDue(host);
      host.process.advance(5001);
      expect(host.notes.length).toBe(6);
      expect(host.notes.at(-1)).toBe('software at 5000');
      orders.add(host.notes.join());
    }
    expect(orders.size).toBeGreaterThan(15);
  });

  it('does nothing at or past its limit', () => {
    const host = noting();
    makeAllDue(host);
    host.process.advance(5000);
    expect(host.notes).toEqual([]);
    expect(host.process.nowPs).toBe(0);
  });

  it('may run to the least promise plus latency', () => {
    const { process, inbound } = noting();
    // a: 0 + 100, b: 0 + 40.
    expect(process.refreshHorizon()).toBe(40);
    inbound[1]!.publish(70);
    expect(process.refreshHorizon()).toBe(100);
    inbound[0]!.publish(500);
    expect(process.refreshHorizon()).toBe(110);
    expect(process.lookaheadPs).toBe(40);
  });

  it('stops when a program was resumed, and continues when it waits again', async () => {
    const { process, notes, hardware } = noting();
    let resume = (): void => undefined;
    const program = async (): Promise<void> => {
      process.runningProgramCount--;
      await new Promise<void>((resolve) => {
        resume = resolve;
      });
      await null;
      notes.push(`program at ${process.nowPs}`);
      process.runningProgramCount--;
    };
    process.runningProgramCount++;
    void program();
    const wake = process.queue.addHandler(() => {
      process.runningProgramCount++;
      resume();
    }, PHASE_SOFTWARE);
    process.queue.schedule(10, wake);
    process.queue.schedule(10, hardware);
    process.queue.schedule(11, hardware);
    expect(process.advance(100)).toBe(true);
    await process.settle();
    expect(process.advance(100)).toBe(false);
    expect(notes).toEqual(['hardware at 10', 'program at 10', 'hardware at 11']);
  });

  it('lets programs settle that wait for slow work outside', async () => {
    const process = new LogicalProcess('host');
    process.runningProgramCount = 1;
    setTimeout(() => {
      process.runningProgramCount = 0;
    }, 20);
    await process.settle();
    expect(process.runningProgramCount).toBe(0);
  });

  it('detects a late record, as from a sender that broke its latency', () => {
    const { process, inbound, hardware } = noting();
    process.queue.schedule(300, hardware);
    process.advance(301);
    inbound[0]!.append(299, 1, 0);
    inbound[0]!.publish(300);
    process.refreshHorizon();
    expect(() => process.advance(400)).toThrow('next instant of host in ps is 299, expected at least 300');
  });

  it('has ended when its last member has, and keeps that instant', () => {
    const { process } = noting();
    expect([process.isEnded, process.endedPs]).toEqual([true, -NEVER]);
    process.addMember();
    process.addMember();
    process.nowPs = 50;
    process.markEnded();
    expect(process.isEnded).toBe(false);
    process.nowPs = 70;
    process.markEnded();
    expect([process.isEnded, process.endedPs]).toEqual([true, 70]);
    expect(() => process.markEnded()).toThrow('members of host is 0');
    // The process behaves as if all had ended, until they are taken back; one of them ends meanwhile.
    process.addMember();
    process.addMember();
    process.setMembersAside();
    expect(process.isEnded).toBe(true);
    process.markEnded();
    process.takeMembersBack();
    expect(process.isEnded).toBe(false);
    process.markEnded();
    expect(process.isEnded).toBe(true);
  });

  describe('with a late sender', () => {
    /** A process whose sender has records to send at each of these instants, and records the clock at each. */
    function sending(atPs: readonly number[], shuffle?: () => number) {
      const process = new LogicalProcess('host', shuffle);
      const notes: string[] = [];
      const hardware = process.queue.addHandler(() => notes.push(`hardware at ${process.nowPs}`));
      const left = [...atPs];
      const sender = {
        sendDue(): void {
          for (; left[0] !== undefined && left[0] <= process.nowPs; left.shift())
            notes.push(`sent ${left[0]} at ${process.nowPs}`);
          process.sendBy(left[0] ?? NEVER);
        },
      };
      process.addLateSender(sender);
      process.sendBy(left[0] ?? NEVER);
      return { process, notes, hardware };
    }
    const kinds: [string, (() => number) | undefined][] = [
      ['in order', undefined],
      ['under a shuffle', new Random(1).unit],
    ];

    it.each(kinds)('makes it send after all else, but within the turn: %s', (_, shuffle) => {
      const { process, notes, hardware } = sending([10, 30, 60], shuffle);
      process.queue.schedule(40, hardware);
      process.advance(60);
      expect(notes).toEqual(['hardware at 40', 'sent 10 at 40', 'sent 30 at 40']);
      expect([process.aheadPs, process.nextPs(), process.dueCount]).toEqual([60, 60, 1]);
      process.advance(61);
      expect(notes.slice(3)).toEqual(['sent 60 at 60']);
      expect([process.aheadPs, process.nextPs(), process.dueCount]).toEqual([NEVER, NEVER, 0]);
    });

    it('stops at instants at which only the sender has work', () => {
      const { process, notes } = sending([10, 30]);
      process.advance(100);
      expect(notes).toEqual(['sent 10 at 10', 'sent 30 at 30']);
    });
  });
});
