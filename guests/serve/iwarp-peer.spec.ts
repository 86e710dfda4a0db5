/** A guest's slot at one end of an Ethernet cable, a simulated host with an iWARP card at the other. */
import { expect, it, vi } from 'vitest';
import { buildServeReport } from './serve-report.ts';
import { reportPartsOfIdle } from './testing/report-parts.ts';

vi.setConfig({ testTimeout: 120_000 });

const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };

it('has a ledger of iWARP, and the card of a guest that has no software for it has none', async () => {
  const { nodes, peer, checks } = buildServeReport(await reportPartsOfIdle(set));
  expect(peer!.node.hca!.iwarp).toMatchObject({ sent: {}, received: {}, frames: 0 });
  expect(nodes[0]!.hca).not.toHaveProperty('iwarp');
  expect(checks.balanced).toBe(true);
});

it('a report does not balance with one more frame at either end', async () => {
  for (const end of ['guest', 'peer'] as const) {
    const parts = await reportPartsOfIdle(set);
    const hca = end === 'guest' ? parts.slots[0]!.hca : parts.peer!.hca!;
    const { transmitted } = hca.ethernet!;
    Object.assign(transmitted, { frames: (transmitted['frames'] ?? 0) + 1 });
    expect(buildServeReport(parts).checks.balanced).toBe(false);
  }
});
