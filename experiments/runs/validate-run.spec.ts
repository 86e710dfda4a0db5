import { expect, it } from 'vitest';
import type { Point } from '../validate/index.ts';
import { machineOf } from './validate-run.ts';

it('a changed parameter overrides the point’s own value, and the others stay', () => {
  const own = { 'hca.wqeDecodeCycles': 3, 'host.core.clockMHz': 2500 };
  const point: Point = { machine: { profile: 'connectx3-qdr', set: own }, workload: { kind: 'constant' } };
  expect(machineOf({ point, set: { 'hca.wqeDecodeCycles': 9, 'wire.speed': 'FDR' } })).toEqual({
    profile: 'connectx3-qdr',
    set: { 'hca.wqeDecodeCycles': 9, 'host.core.clockMHz': 2500, 'wire.speed': 'FDR' },
  });
});
