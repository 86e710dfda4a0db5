/**
 * FETCH_ADDs that are lost, repeated or answered twice: each is executed once and completes once, and both ends have exactly
 * the same counts. Six are posted together; the fault is on the third.
 */
import { describe, expect, it, vi } from 'vitest';
import type { FaultPlan } from '../machine/faults/index.ts';
import { expectBalanced } from './expectations.ts';
import { programOf, smallMachine } from './machines.ts';
import { type CountedResult, type CounterResult, countings } from './programs/counting.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Packets of an opcode: first transmissions, retransmissions, received. */
type Packets = readonly [first: number, again: number, received: number];

interface Expected {
  readonly requests: Packets;
  readonly answers: Packets;
  /** Recovery counters of either end's transport. */
  readonly requester: Readonly<Record<string, number>>;
  readonly responder: Readonly<Record<string, number>>;
}

const cases: Readonly<Record<string, readonly [FaultPlan, Expected]>> = {
  'nothing is lost': [[], { requests: [6, 0, 6], answers: [6, 0, 6], requester: {}, responder: {} }],
  // The fourth to the sixth are ahead of the expected PSN; one NAK for all, and four requests are retransmitted.
  'the request is lost': [
    [{ packet: 'lost', opcode: 'RC_FETCH_ADD', nth: 3 }],
    {
      requests: [6, 4, 9],
      answers: [6, 0, 6],
      requester: { sequenceNakReceived: 1 },
      responder: { sequenceNakSent: 1, requestOutOfSequence: 3 },
    },
  ],
  // While the first still has to be executed: one answer is enough.
  'the request comes twice at once': [
    [{ packet: 'duplicated', opcode: 'RC_FETCH_ADD', nth: 3, delay: '1ns' }],
    { requests: [6, 0, 7], answers: [6, 0, 6], requester: {}, responder: { duplicateRequest: 1 } },
  ],
  // After it was answered: it is answered again, from the kept result.
  'the request comes again later': [
    [{ packet: 'duplicated', opcode: 'RC_FETCH_ADD', nth: 3, delay: '20us' }],
    {
      requests: [6, 0, 7],
      answers: [6, 1, 7],
      requester: { unexpectedResponse: 1 },
      responder: { duplicateRequest: 1 },
    },
  ],
  // The fourth answer reveals the loss: four requests are retransmitted, and answered from the kept results.
  'the answer is lost': [
    [{ packet: 'lost', opcode: 'RC_ATOMIC_ACKNOWLEDGE', node: 1, nth: 3 }],
    {
      requests: [6, 4, 10],
      answers: [6, 4, 9],
      requester: { missingResponse: 1, unexpectedResponse: 3 },
      responder: { duplicateRequest: 4 },
    },
  ],
  'the answer comes twice': [
    [{ packet: 'duplicated', opcode: 'RC_ATOMIC_ACKNOWLEDGE', node: 1, nth: 3 }],
    { requests: [6, 0, 6], answers: [6, 0, 7], requester: { unexpectedResponse: 1 }, responder: {} },
  ],
};

const packetsIn = (
  byOpcode: Readonly<Record<string, { readonly packets: number }>>,
  opcode: string,
): number => byOpcode[opcode]?.packets ?? 0;

describe.each(Object.entries(cases))(
  'of six FETCH_ADDs, when of the third %s',
  (_name, [faults, expected]) => {
    it('each is executed once, completes once, and is counted so at both ends', async () => {
      await using machine = await smallMachine({ faults });
      await machine.load(programOf('counting', 'counter', 0));
      await machine.load(programOf('counting', 'counted', 1));
      await machine.run();
      const [counter, counted] = await machine.results<[CounterResult, CountedResult]>();
      expect(counter).toEqual({
        statuses: Array.from({ length: countings }, () => 'SUCCESS'),
        found: Array.from({ length: countings }, (_, index) => index),
        surplus: [],
      });
      expect(counted.count).toBe(countings);
      expectBalanced(await machine.report());
      const { hosts, hcas } = await machine.ledgers();
      const [near, far] = [hcas[0]!, hcas[1]!];
      const packets = (from: typeof near, to: typeof near, opcode: string): Packets => [
        packetsIn(from.wire.transmitted, opcode),
        packetsIn(from.wire.retransmitted, opcode),
        packetsIn(to.wire.received, opcode),
      ];
      expect(packets(near, far, 'RC_FETCH_ADD')).toEqual(expected.requests);
      expect(packets(far, near, 'RC_ATOMIC_ACKNOWLEDGE')).toEqual(expected.answers);
      expect([near.transport, far.transport]).toEqual([expected.requester, expected.responder]);
      const requests = near.operations.map(({ name, count, failed, silent }) => [
        name,
        count,
        failed,
        silent,
      ]);
      expect([requests, far.operations]).toEqual([[['FETCH_ADD', countings, 0, 0]], []]);
      const [posted] = hosts[0]!.operations;
      expect([posted!.posted, posted!.completed]).toEqual([countings, countings]);
      // An executed atomic reads and writes its word, and nothing else here does.
      const { payloadRead, payloadWrite } = hosts[1]!.pcie.received;
      expect([payloadRead!.tlps, payloadWrite!.tlps, payloadWrite!.payloadBytes]).toEqual([6, 6, 48]);
    });
  },
);
