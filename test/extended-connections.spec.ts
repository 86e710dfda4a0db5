/** XRC by verbs (IBTA vol 1, annex A14): processes that share a target, and what the verbs refuse as libmlx4 does. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { EINVAL } from '../userlib/index.ts';
import { expectBalanced } from './expectations.ts';
import { type Outcome, programOf, runPrograms } from './machines.ts';
import { patternOf } from './programs/requests.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const received = {
  told: {
    statuses: ['SUCCESS', 'SUCCESS'],
    lengths: [700, 100],
    ids: [0, 1],
    first: [...patternOf(3, 4)],
  },
  busy: { xrcd: 'EBUSY', cq: 'EBUSY' },
};

describe('extended reliable connections', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    const programs = [
      programOf('extended', 'sender', 0),
      programOf('extended', 'owner', 1),
      programOf('extended', 'guest', 1),
    ];
    outcome = await runPrograms(programs);
  });

  it('annex A14: one initiator reaches the queues of two processes through one target', () => {
    const [sender, owner, guest] = outcome.results;
    const success = Array.from({ length: 6 }, () => 'SUCCESS');
    expect(sender).toMatchObject({ statuses: success, isRead: true });
    expect(owner).toMatchObject(received);
    expect(guest).toEqual(received);
  });

  it('annex A14: no process’s memory is reached by the queue of another', () => {
    expect(outcome.results[0]).toMatchObject({ wrong: ['REM_ACCESS_ERR'] });
  });

  it('refuse what libibverbs and the kernel refuse, and nothing is left', () => {
    const [sender, owner] = outcome.results;
    // Without a number, with one of 25 bits; and an initiator has no receive queue.
    expect(sender).toMatchObject({ refused: 'EINVAL', errors: [EINVAL, EINVAL, EINVAL] });
    expect(owner).toMatchObject({ again: 'EINVAL', absent: 'EAGAIN', isMarked: true });
    expectBalanced(outcome.report);
  });
});
