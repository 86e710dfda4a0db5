/**
 * Requests that memory protection refuses: wrong keys, lengths, rights and PDs on either side, unaligned atomics, buffers that
 * are too short. Each ends in the completions and the asynchronous event defined by the InfiniBand specification (volume 1,
 * tables 59 and 60, 9.9.3) and the interface sheet (6.6, 6.7); nothing else changes.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { expectUntouched } from './expectations.ts';
import { bystanders, eachPartition, type Outcome, programOf, runPrograms } from './machines.ts';
import { cases } from './programs/protection.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

interface Requester {
  readonly sends: readonly string[];
  readonly ids: readonly number[];
  readonly surplus: readonly string[];
  readonly state: string;
  readonly events: readonly string[];
  readonly isUntouched: boolean;
  readonly companionIsRight: boolean;
  readonly bystanderWentOn: boolean;
}

/** Observations of each side. The requester's second request is always flushed, and its QP always in error. */
interface Ending {
  readonly send: string;
  readonly receives: readonly string[];
  readonly events: readonly string[];
  readonly responderState: string;
}

const flushed = ['WR_FLUSH_ERR', 'WR_FLUSH_ERR'];

/** The requester itself found the error: the responder has noticed nothing. */
const local: Ending = { send: 'LOC_PROT_ERR', receives: [], events: [], responderState: 'RTS' };
/** NAK remote access error; "local access violation" at the responder. */
const refusedAccess: Ending = {
  send: 'REM_ACCESS_ERR',
  receives: flushed,
  events: ['QP_ACCESS_ERR'],
  responderState: 'ERR',
};
/** NAK invalid request; "invalid request local work queue" at the responder. */
const refusedRequest: Ending = {
  send: 'REM_INV_REQ_ERR',
  receives: flushed,
  events: ['QP_REQ_ERR'],
  responderState: 'ERR',
};
/** The responder's own receive was invalid: its completion reports this, without an event. */
const badReceive = (send: string, receive: string): Ending => ({
  send,
  receives: [receive, 'WR_FLUSH_ERR'],
  events: [],
  responderState: 'ERR',
});

const remote = (name: string): [string, Ending][] => [
  [`${name}, wrong rkey`, refusedAccess],
  [`${name}, rkey of nothing`, refusedAccess],
  [`${name}, past the region`, refusedAccess],
  [`${name}, before the region`, refusedAccess],
  [`${name}, rkey of another PD`, refusedAccess],
  [`${name}, region without the right`, refusedAccess],
  [`${name}, QP without the right`, refusedRequest],
];

const endings: readonly [string, Ending][] = [
  ['SEND, wrong lkey', local],
  ['SEND, lkey of nothing', local],
  ['SEND, lkey of another PD', local],
  ['SEND, length past the region', local],
  ['SEND, second segment past the region', local],
  ['WRITE, wrong lkey', local],
  ['READ into memory without local write', local],
  ['READ into memory of another PD', local],
  ['FETCH_ADD into memory without local write', local],
  ...remote('WRITE'),
  ...remote('READ'),
  ...remote('FETCH_ADD'),
  ['FETCH_ADD, unaligned', refusedRequest],
  ['receive, wrong lkey', badReceive('REM_OP_ERR', 'LOC_PROT_ERR')],
  ['receive, past the region', badReceive('REM_OP_ERR', 'LOC_PROT_ERR')],
  ['receive, another PD', badReceive('REM_OP_ERR', 'LOC_PROT_ERR')],
  ['receive, without local write', badReceive('REM_OP_ERR', 'LOC_PROT_ERR')],
  ['receive, shorter than the message', badReceive('REM_INV_REQ_ERR', 'LOC_LEN_ERR')],
  ['receive, shorter than a message of many packets', badReceive('REM_INV_REQ_ERR', 'LOC_LEN_ERR')],
];

it('every case has the expected result', () => {
  expect(endings.map(([name]) => name)).toEqual(Object.keys(cases));
});

describe.each(eachPartition)('in partition %s', (partition) => {
  let outcome: Outcome;
  beforeAll(async () => {
    const programs = [programOf('protection', 'requester', 0), programOf('protection', 'responder', 1)];
    outcome = await runPrograms([...programs, ...bystanders()], { partition });
  });

  it.each(endings)('%s', (name, { send, receives, events, responderState }) => {
    const [requester, responder] = outcome.results as Record<string, Requester>[];
    expect(requester![name]).toEqual({
      sends: [send, 'WR_FLUSH_ERR'],
      ids: [11, 12],
      surplus: [],
      state: 'ERR',
      events: [],
      isUntouched: true,
      companionIsRight: true,
      bystanderWentOn: true,
    });
    expect(responder![name]).toEqual({ receives, events, state: responderState, isUntouched: true });
  });

  it('no other process is affected, and the ledgers balance', () => {
    expectUntouched(outcome);
  });
});
