/** Budgets that the matchers reject: a figure that was never counted would always hold. */
import { it, expect as plainExpect } from 'vitest';
import type { OperationCost } from '../../machine/costs/index.ts';
import { expect } from './index.ts';

const device = { dmaReads: 1, dmaWrites: 0, interrupts: 0, readTlps: { wqeRead: 1 }, writeTlps: {} };
const put: OperationCost = {
  ...device,
  ...{ node: 0, program: 'client', name: 'put', beganPs: 0, endedPs: 10 },
  ...{ workRequests: 1, mmioWrites: 1, mmioReads: 0, systemCalls: 0, cpuCycles: 5, cycles: {} },
  peer: device,
};

it('an unknown class of TLPs is rejected: it would count as 0, and hold', () => {
  expect(put).toCost({ readTlps: { wqeRead: 1, payloadRead: 0 }, peer: { readTlps: { wqeRead: 1 } } });
  plainExpect(() => expect(put).toCost({ readTlps: { payloadReads: 0 } })).toThrow(
    /readTlps\.payloadReads: .*payloadRead/,
  );
  plainExpect(() => expect(put).toCostAtMost({ peer: { writeTlps: { cqes: 5 } } })).toThrow(
    /peer\.writeTlps\.cqes/,
  );
});

it('an empty list fails every matcher', async () => {
  plainExpect(() => expect([]).toCost({ mmioWrites: 1 })).toThrow(/nothing was compared/);
  plainExpect(() => expect([]).not.toCost({ mmioWrites: 1 })).toThrow(/nothing was compared/);
  plainExpect(() => expect([]).toCostAtMost({ mmioWrites: 1 })).toThrow(/nothing was compared/);
  await plainExpect(expect([]).toMatchBaseline('none.json')).rejects.toThrow(/nothing was compared/);
});
