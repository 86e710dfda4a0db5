import { describe, expect, it } from 'vitest';
import { congestionTable } from './render.ts';

describe('the counters of congestion control', () => {
  it('are a table with a column for each card, and none without it', () => {
    expect(congestionTable([{ hca: {} }])).toEqual([]);
    const congestion = { npEcnMarkedRocePackets: 1234, npCnpSent: 5, rpCnpHandled: 6, rpCnpIgnored: 7 };
    const [table] = congestionTable([{ hca: {} }, { hca: { congestion } }]);
    expect(table).toMatch(/npEcnMarkedRocePackets │ +0 │ 1,234 │/);
    expect(table).toMatch(/rpCnpIgnored +│ +0 │ +7 │/);
  });
});
