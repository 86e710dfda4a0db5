import { expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { closedLanes } from './closed-lanes.ts';

const args = { pattern: 'victim', hostCount: 4, serviceLevel: 0, victimLevel: 1 } as const;
const twoLanes = { 'wire.dataVls': '2', 'wire.receiveBufferBytes': 65_536 };

it('names the table that closes the lane of a flow', () => {
  const reasonOf = (set: Readonly<Record<string, number>>) =>
    closedLanes(args, configurationOf({ set: { ...twoLanes, ...set } }));
  expect(closedLanes(args, configurationOf())).toBeUndefined();
  expect(reasonOf({})).toBeUndefined();
  expect(reasonOf({ 'lanes.low.vl1': 0, 'lanes.high.vl1': 1 })).toBeUndefined();
  expect(reasonOf({ 'lanes.slToVl.sl7': 15 })).toBeUndefined();
  expect(reasonOf({ 'lanes.low.vl1': 0 })).toBe(
    'Packets of service level 1 never leave: lanes.low.vl1 and lanes.high.vl1 are 0',
  );
  expect(reasonOf({ 'lanes.slToVl.sl1': 15 })).toBe(
    'Ports discard packets of service level 1: lanes.slToVl.sl1 is 15',
  );
});
