/**
 * Budgets of operations in vitest (docs/how-to/budgets.md):
 *
 *     import { expect, test } from 'hca-emulator/vitest';
 *
 *     test('a put rings one doorbell', async ({ hca }) => {
 *       const costs = await hca.run({ node: 0, run: client }, { node: 1, run: server });
 *       expect(costs.the('put')).toCost({ mmioWrites: 1, dmaReads: 2, interrupts: 0, systemCalls: 0 });
 *     });
 */
import { expect } from 'vitest';
import '../../runtime/node.ts';
import { costMatchers } from './matchers.ts';

expect.extend(costMatchers);

export type { DeviceCost, OperationCost, OtherCost } from '../../machine/costs/index.ts';
export type { Budget } from './cost-text.ts';
export { Costs, type HcaFixture, test } from './fixture.ts';
export { type BaselineOptions, costMatchers } from './matchers.ts';
export { expect };
