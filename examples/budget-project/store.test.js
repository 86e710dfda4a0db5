import { expect, test } from 'hca-emulator/vitest';
import { client, server } from './store.js';

test('a put rings one doorbell, reads its WQE and its payload, and asks the kernel nothing', async ({
  hca,
}) => {
  const costs = await hca.run({ node: 0, run: client }, { node: 1, run: server });
  expect(costs.named('put')).toHaveLength(4);
  expect(costs.named('put')).toCost({ mmioWrites: 1, dmaReads: 2, interrupts: 0, systemCalls: 0 });
  expect(costs.named('get')).toCostAtMost({ mmioWrites: 1, dmaReads: 1, dmaWrites: 2 });
});

test('puts and gets cost what the baseline has', async ({ hca }) => {
  const costs = await hca.run({ node: 0, run: client }, { node: 1, run: server });
  await expect(costs.operations).toMatchBaseline('__budgets__/store.json');
});
