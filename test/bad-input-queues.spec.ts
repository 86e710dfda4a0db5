/**
 * Misused queues: QPs in the wrong state, full queues, too many buffers, CQs that overrun, missing receives. The verbs refuse
 * with libibverbs' error codes and never post partially; the device ends work with the statuses and events of InfiniBand volume
 * 1 (10.3.1, 11.6.2) and of the interface sheet (3.17, 6.6, 6.7).
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { EINVAL, ENOMEM } from '../userlib/index.ts';
import { expectUntouched } from './expectations.ts';
import { bystanders, type Outcome, programOf, runPrograms } from './machines.ts';
import type { Told } from './programs/companion.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const flushed = 'WR_FLUSH_ERR';

/** Results of the provoker and its partner for each scenario. */
const expected: Readonly<Record<string, readonly [unknown, unknown]>> = {
  wrongStates: [
    {
      inReset: {
        send: EINVAL,
        receive: EINVAL,
        toRtr: 'EINVAL',
        toRts: 'EINVAL',
        withoutPort: 'EINVAL',
        portThree: 'EINVAL',
        state: 'RESET',
      },
      inInit: {
        send: EINVAL,
        toRts: 'EINVAL',
        toSqd: 'EINVAL',
        toRtrIncomplete: 'EINVAL',
        tooManyReads: 'EINVAL',
        state: 'INIT',
      },
      inRtr: { send: EINVAL, toInit: 'EINVAL', toSqd: 'EINVAL', state: 'RTR' },
      inRts: { toInit: 'EINVAL', toRtr: 'EINVAL', state: 'RTS' },
      inError: { send: 0, receive: 0, sent: [flushed], received: [flushed], toRts: 'EINVAL', state: 'ERR' },
      toReset: 'ok',
      events: [],
    },
    null,
  ],
  // 15 are granted for 4 requested: 2048 bytes of headroom, then a power of two (libmlx4).
  sendQueueFull: [
    {
      maxSendWr: 15,
      error: ENOMEM,
      again: ENOMEM,
      badIndex: 15,
      isBad: true,
      ids: Array.from({ length: 15 }, (_, id) => id),
      surplus: [],
      retried: 0,
      statuses: ['SUCCESS'],
    },
    // The fifteen and the one posted again; never the seventeenth.
    { written: 16 },
  ],
  receiveQueueFull: [
    {
      queue: { maxRecvWr: 4, error: ENOMEM, badIndex: 4 },
      flushed: [0, 1, 2, 3].map((id) => `${id} ${flushed}`),
      shared: { error: ENOMEM, badIndex: 3 },
    },
    null,
  ],
  overTheLimits: [
    {
      created: {
        sendSge: 'EINVAL',
        receiveSge: 'EINVAL',
        sendWr: 'EINVAL',
        receiveWr: 'EINVAL',
        inline: 'EINVAL',
        cq: 'EINVAL',
        emptyCq: 'EINVAL',
        srqWr: 'EINVAL',
        srqSge: 'EINVAL',
      },
      posted: {
        send: EINVAL,
        badIndex: 1,
        isBad: true,
        receive: EINVAL,
        inline: EINVAL,
        opcode: EINVAL,
        atomicOfTwo: EINVAL,
        done: ['5 SUCCESS'],
        most: 0,
        mostStatus: ['SUCCESS'],
        state: 'RTS',
      },
    },
    { state: 'RTS', events: [] },
  ],
  receiverNotReady: [
    { statuses: ['SUCCESS'], waited: true, state: 'RTS' },
    { status: 'SUCCESS', byteLen: 3000 },
  ],
  receiverNeverReady: [
    { statuses: ['RNR_RETRY_EXC_ERR', flushed], waited: true, state: 'ERR', events: [] },
    { state: 'RTS', events: [] },
  ],
  // Both QPs of the CQ enter the error state, including the uninvolved one; the third QP has another CQ.
  completionQueueOverrun: [
    {
      statuses: Array.from({ length: 6 }, () => 'SUCCESS'),
      events: ['CQ_ERR'],
      states: ['ERR', 'ERR', 'RTS'],
      destroyed: 'ok',
      entries: 1,
    },
    { states: ['RTS', 'RTS', 'RTS'], events: [] },
  ],
};

describe('queues', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    const programs = [programOf('queues', 'provoker', 0), programOf('queues', 'partner', 1)];
    outcome = await runPrograms([...programs, ...bystanders()]);
  });

  it.each(Object.keys(expected))('%s', (name) => {
    const [provoker, partner] = outcome.results as [Record<string, Told>, Record<string, unknown>];
    const [own, other] = expected[name]!;
    expect(provoker[name]).toEqual({ told: own, companionIsRight: true, bystanderWentOn: true });
    expect(partner[name]).toEqual(other);
  });

  it('covers every scenario; no other process is affected, and the ledgers balance', () => {
    expect(Object.keys(outcome.results[0] as object)).toEqual(Object.keys(expected));
    expectUntouched(outcome);
  });
});
