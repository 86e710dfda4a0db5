/** XRC by verbs (IBTA vol 1, annex A14): processes that share a target, and the refusals of the verbs, as in libmlx4. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
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

const ethernet = { 'hca.capability.linkLayer': 'ethernet', 'ethernet.mtuBytes': 4200 };
const links: Readonly<Record<string, ParameterValues>> = {
  InfiniBand: {},
  'RoCE v1': { ...ethernet, 'hca.capability.roce': 'v1' },
  'RoCE v2': { ...ethernet, 'hca.capability.roce': 'v2' },
};
const losses = [0, 1].map((node) => ({ packet: 'lost', node, chance: 0.1 }) as const);
const cases = Object.entries(links).flatMap(([link, set]): readonly [string, MachineOptions][] => [
  [link, { set }],
  [`${link} with losses`, { set, faults: losses }],
]);

describe.each(cases)('extended reliable connections over %s', (_name, options) => {
  let outcome: Outcome;
  beforeAll(async () => {
    const programs = [
      programOf('extended', 'sender', 0),
      programOf('extended', 'owner', 1),
      programOf('extended', 'guest', 1),
    ];
    outcome = await runPrograms(programs, options);
  });

  it('annex A14: one initiator reaches the queues of two processes through one target', () => {
    const [sender, owner, guest] = outcome.results;
    const success = Array.from({ length: 16 }, () => 'SUCCESS');
    // Old value, result of the addition, result of the swap: each from the second queue.
    expect(sender).toMatchObject({ statuses: success, isRead: true, atomics: [0, 5, 9] });
    expect(owner).toMatchObject(received);
    expect(guest).toMatchObject(received);
  });

  it('annex A14: no process’s memory is reached through the queue of another', () => {
    expect(outcome.results[0]).toMatchObject({ wrong: ['REM_ACCESS_ERR'] });
  });

  it('Linux, ib_open_qp: a target is opened by another process, gets its events there, and remains after its creator has closed it', () => {
    const [, owner, guest] = outcome.results;
    // RTR when it is opened, ERR after the refused request.
    expect(guest).toMatchObject({ opened: 2, left: 6, unopened: ['EINVAL', 'EINVAL'] });
    const events = ['COMM_EST', 'QP_ACCESS_ERR'];
    expect(owner).toMatchObject({ events });
    expect(guest).toMatchObject({ events });
  });

  it('reject the same requests as libibverbs and the kernel, and nothing is left', () => {
    const [sender, owner] = outcome.results;
    // SRQs without a number, and with one of 25 bits, are refused; and an initiator has no receive queue.
    expect(sender).toMatchObject({ refused: 'EINVAL', errors: [EINVAL, EINVAL, EINVAL] });
    expect(owner).toMatchObject({ again: 'EINVAL', absent: 'EAGAIN', isMarked: true });
    expectBalanced(outcome.report);
  });
});
