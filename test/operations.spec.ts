/**
 * Every operation in every form, at the sizes and offsets at which packets, pages and lists begin and end: payload is right
 * byte by byte, completions are correct, and interrupts occur as often as requested. The same with the smallest possible caches
 * and fifos of the device.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { ParameterValues } from '../machine/profile/index.ts';
import {
  EINVAL,
  IBV_WC_RDMA_WRITE,
  IBV_WC_RECV,
  IBV_WC_RECV_RDMA_WITH_IMM,
  IBV_WC_SEND,
} from '../userlib/index.ts';
import { expectBalanced } from './expectations.ts';
import { type Outcome, programOf, programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

/** One entry, one way, one slot wherever that is allowed. */
const smallest: ParameterValues = {
  'hca.wqePrefetchCount': 1,
  'hca.wqeLineCount': 2,
  'hca.wqeFetchOutstanding': 1,
  'hca.burstPackets': 1,
  'hca.outstandingWqes': 4,
  'hca.outstandingWqesPerQp': 1,
  'hca.transmitBufferPackets': 2,
  'hca.responseBufferPackets': 2,
  'hca.receiveQueueLineCount': 2,
  'hca.receivePrefetchCount': 1,
  'hca.completionFifoDepth': 2,
  'hca.qpcCacheEntries': 1,
  'hca.qpcCacheWays': 1,
  'hca.cqcCacheEntries': 1,
  'hca.cqcCacheWays': 1,
  'hca.srqcCacheEntries': 1,
  'hca.srqcCacheWays': 1,
  'hca.mptCacheEntries': 1,
  'hca.mptCacheWays': 1,
  'hca.mttCacheLines': 1,
  'hca.mttCacheWays': 1,
  'host.memory.framePlacement': 'scattered',
};

describe.each<[string, ParameterValues]>([
  ['on the default device', {}],
  ['with the smallest caches and fifos', smallest],
])('%s', (_name, set) => {
  let outcome: Outcome;
  let own: Record<string, unknown>;
  let peer: Record<string, unknown>;
  beforeAll(async () => {
    outcome = await runPrograms(
      [programOf('operations', 'provoker', 0), programOf('operations', 'partner', 1)],
      { set },
    );
    [own, peer] = outcome.results as [Record<string, unknown>, Record<string, unknown>];
  });

  it('WRITE, READ and SEND of 0, 1, MTU − 1, MTU, MTU + 1 and more bytes, over 4 KiB pages', () => {
    expect([own['sweep'], peer['sweep']]).toEqual([[], []]);
  });

  it('messages over the boundary of two 2 MiB pages, and over small ones on the peer', () => {
    expect([own['hugePages'], peer['hugePages']]).toEqual([[], []]);
  });

  it('lists of buffers at both ends, inline data, immediate data, empty messages, unsignalled requests', () => {
    expect(own['forms']).toMatchObject({
      errors: [],
      sent: Array.from({ length: 6 }, () => 'SUCCESS'),
      opcodes: [IBV_WC_SEND, IBV_WC_SEND, IBV_WC_SEND, ...Array.from({ length: 3 }, () => IBV_WC_RDMA_WRITE)],
      // The five earlier unsignalled ones have completed with it, without completions.
      signalled: [[9, 'SUCCESS', 1 + 1500 + 12 + 777]],
      surplus: [],
      isScattered: true,
    });
    expect(peer['forms']).toEqual({
      received: [
        [0, 'SUCCESS', IBV_WC_RECV, 2290],
        [1, 'SUCCESS', IBV_WC_RECV, 0, 0xdead_beef],
        [2, 'SUCCESS', IBV_WC_RECV, 200],
        [3, 'SUCCESS', IBV_WC_RECV_RDMA_WITH_IMM, 2000, 0x8000_0001],
      ],
      isScattered: true,
      isInline: true,
      isWritten: true,
      isInlineWritten: true,
    });
  });

  it('atomics return the old value, swap only on a match, and add modulo 2^64', () => {
    const { atomics } = own['forms'] as { atomics: unknown };
    expect(atomics).toEqual([
      `SUCCESS 8 ${2n ** 63n - 1n}`, // + 1
      `SUCCESS 8 ${2n ** 63n}`, // is not 0: stays
      `SUCCESS 8 ${2n ** 63n}`, // is: becomes 2^64 − 1
      `SUCCESS 8 ${2n ** 64n - 1n}`, // + 3
      'SUCCESS 8 2',
    ]);
  });

  it('a fenced WRITE sends the result of the READ before it', () => {
    // The word counts the rounds.
    expect(own['fence']).toEqual([0, 1, 2, 3]);
  });

  it('an SRQ serves two QPs in order, reports its limit once, and the last WQE of a QP in error', () => {
    expect(own['sharedQueue']).toEqual({
      armed: 5,
      after: 0,
      slots: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      statuses: ['SUCCESS'],
      areRight: true,
      events: ['SRQ_LIMIT_REACHED'],
      eventsOfError: ['QP_LAST_WQE_REACHED'],
      postRecv: EINVAL,
    });
    expect(peer['sharedQueue']).toEqual(['SUCCESS']);
  });

  it('a CQ wakes the thread that armed it, once; on request only for solicited or failed completions', () => {
    expect(own['wakeUps']).toEqual({
      notArmed: false,
      armed: true,
      onlyOnce: false,
      solicitedOnlyByPlain: false,
      solicitedOnlyBySolicited: true,
      solicitedOnlyByError: true,
    });
  });

  it('moderation holds an event back until there are four completions, or the period is over', () => {
    expect(own['moderation']).toEqual({ wakes: [false, true, false], late: true });
  });

  it('interrupts are as many as there were causes, by vector', () => {
    const [requester, responder] = outcome.report.nodes.map(({ interrupts }) => interrupts);
    const row = (vector: number, count: number, moderated = 0) => ({
      vector,
      requested: count + moderated,
      moderated,
      masked: 0,
      coalesced: 0,
      sent: count,
      delivered: count,
      handled: count,
      merged: 0,
      spurious: 0,
    });
    // Vector 0 serves commands and asynchronous events. wakeUps uses completion vector 2: armed, solicited, error; moderation
    // uses vector 3: for three completions one event, at the next arm; for the last one after the period.
    expect(requester!.filter(({ vector }) => vector !== 0)).toEqual([row(3, 3), row(4, 2, 2)]);
    expect(responder!.filter(({ vector }) => vector !== 0)).toEqual([]);
  });

  it('a CQ that grows and shrinks under traffic loses nothing and repeats nothing', () => {
    expect(own['resizing']).toEqual({
      isInOrder: true,
      count: 200,
      statuses: ['SUCCESS'],
      surplus: 0,
      size: 63,
    });
  });

  it('a drained QP finishes requests that had begun, reports it, and holds later ones until it sends again', () => {
    expect(own['draining']).toEqual({
      events: ['SQ_DRAINED'],
      state: 'SQD',
      posted: 0,
      held: [],
      ids: [0, 1, 2, 3, 10],
      statuses: ['SUCCESS'],
    });
  });

  it('the ledgers balance', () => {
    expectBalanced(outcome.report);
  });
});

it('all operations at once move the same bytes through the smallest device', async () => {
  const args = { qps: 3, rounds: 4 };
  const programs = [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)];
  const usual = await runPrograms(programs);
  const small = await runPrograms(programs, { set: smallest });
  expectBalanced(small.report);
  const mistakes = small.results.map((result) => (result as { mistakes: unknown }).mistakes);
  expect(mistakes).toEqual([[], [], [], []]);
  // The digests of written, read and counted values.
  expect(small.results.slice(0, 2)).toEqual(usual.results.slice(0, 2));
  expect(small.report.elapsedPs).toBeGreaterThan(usual.report.elapsedPs);
});
