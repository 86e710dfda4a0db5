import { expect, it } from 'vitest';
import type { WireReport } from '../../machine/index.ts';
import { wireTable } from './render.ts';

const direction: WireReport = {
  ...{ from: 0, to: 2, opcodes: {}, retransmitted: {}, corrupted: 4, dropped: 0, discarded: 0 },
  ...{ packets: 20, bytes: 2000, flowControlPackets: 0, linkBytes: 2400, busyPs: 5 },
  ...{ creditWaitPs: 0, serializerWaitPs: 0 },
};

it('shows packets that a switch accepted with a wrong CRC apart from those that were dropped as corrupted', () => {
  const [plain, damaged] = [direction, { ...direction, relayedDamage: 3 }].map((row) =>
    wireTable({ wire: [row], elapsedPs: 10 }),
  );
  expect(plain).toMatch(/hca 0 → 2 corrupted +│ +4 /);
  expect(plain).not.toContain('wrong CRC');
  expect(damaged).toMatch(/hca 0 → 2 accepted with a wrong CRC +│ +3 /);
});
