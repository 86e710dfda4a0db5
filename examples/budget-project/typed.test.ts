import { type Budget, test as base, expect } from 'hca-emulator/vitest';
import { client, server } from './store.js';

const test = base.extend({ machineOptions: { set: { 'host.memory.sizeMib': 64 } } });

const put: Budget = {
  mmioWrites: 1,
  systemCalls: 0,
  readTlps: { wqeRead: 1, payloadRead: 1 },
  writeTlps: { cqe: 1 },
  peer: { dmaWrites: 1, dmaReads: 0, interrupts: 0 },
};

test('a put leaves the processor of the server alone', async ({ hca }) => {
  const costs = await hca.run({ node: 0, run: client }, { node: 1, run: server });
  for (const cost of costs.named('put')) expect(cost).toCost(put);
  // @ts-expect-error: no such figure
  expect(() => expect(costs.named('put')).toCost({ doorbells: 1 })).toThrow('doorbells');
});
