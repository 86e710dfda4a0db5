/** Points as other machines receive them, their refusals, and the checks of their outcomes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Assignment, assignmentOf, orderOf, outcomeFrom } from './assignment.ts';
import { pointsOf } from './expansion.ts';
import type { PointToRun } from './runner.ts';
import { checkedSpec } from './spec.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-assignment-'));
afterAll(() => rmSync(folder, { recursive: true }));

const profile = join(folder, 'own.json');
writeFileSync(
  profile,
  JSON.stringify({
    extends: 'connectx3-fdr',
    values: { hca: { mttCacheLines: 32 }, pcie: { link: { lanes: 4 } } },
  }),
);

const pointsWith = (machine: object): PointToRun[] =>
  pointsOf(
    checkedSpec({
      workload: 'write-bw,iters=10',
      machine,
      vary: { size: [64, 128], 'pcie.link.lanes': [4, 8], test: ['write-bw', 'send-bw'] },
    }),
  ).map(({ hash, order }) => ({ hash, order: order! }));

const machines = [
  {},
  { profile: 'connectx3-fdr', seed: 7, set: { 'hca.mttCacheLines': '64' } },
  { profile, faults: [{ packet: 'corrupted', nth: 5 }] },
];
const points = machines.flatMap(pointsWith);

/** The assignment as it arrives on another machine. */
const sent = (point: PointToRun): Assignment =>
  JSON.parse(JSON.stringify(assignmentOf(point, { partition: 'per-node', shortcuts: false })));

describe('an assignment', () => {
  it('is the same point elsewhere, with the intended workload and way of running', () => {
    expect(points).toHaveLength(24);
    for (const point of points) {
      const { machine, args } = orderOf(sent(point), point.hash);
      expect(args).toEqual(point.order.args);
      expect(machine).toMatchObject({ partition: 'per-node', shortcuts: false });
    }
  });

  it('needs no profile file', () => {
    const point = pointsWith({ profile })[0]!;
    const assignment = sent(point);
    expect(JSON.stringify(assignment)).not.toContain(profile);
    rmSync(profile);
    expect(orderOf(assignment, point.hash).machine.set).toMatchObject({ 'hca.mttCacheLines': 32 });
  });

  it.each([
    ['another version', { version: '0.0.9' }, 'version of the sweep is "0.0.9", expected'],
    ['no version', { version: undefined }, 'version of the sweep is undefined'],
    ['another machine', { machine: { set: { 'hca.mttCacheLines': 16 } } }, 'as this emulator knows it'],
    ['another workload', { workload: 'write-bw,size=64,iters=11' }, 'as this emulator knows it'],
    ['a parameter that there is not', { machine: { set: { 'hca.none': 1 } } }, 'hca.none'],
    ['no machine', { machine: 7 }, 'machine is "7"'],
    ['no workload', { workload: 7 }, 'workload is "7"'],
    ['a manner that there is not', { manner: { partition: 'all' } }, 'a partition of single'],
    ['a shortcut that is no truth value', { manner: { shortcuts: 1 } }, 'a partition of single'],
  ])('is rejected with %s', (_, change, words) => {
    const point = points[0]!;
    expect(() => orderOf({ ...sent(point), ...change }, point.hash)).toThrow(words);
    expect(() => orderOf(null, point.hash)).toThrow('version of the sweep');
  });

  it('is rejected under the hash of another point', () => {
    expect(() => orderOf(sent(points[0]!), points[1]!.hash)).toThrow('as this emulator knows it');
  });
});

describe('an answer of another machine', () => {
  it('is an outcome', () => {
    const done = { status: 'done', figures: { rate: 1.5, name: 'x', isBalanced: true } } as const;
    expect(outcomeFrom({ ...done, more: 1 })).toEqual(done);
    expect(outcomeFrom({ status: 'failed', error: 'it broke' })).toEqual({
      status: 'failed',
      error: 'it broke',
    });
    expect(outcomeFrom({ status: 'refused', error: '' })).toEqual({ status: 'refused', error: '' });
  });

  it.each([
    undefined,
    null,
    7,
    {},
    { status: 'done' },
    { status: 'done', figures: [1] },
    { status: 'done', figures: { rate: null } },
    { status: 'failed' },
    { status: 'gone', error: 'x' },
  ])('is not an outcome: %j', (value) => {
    expect(outcomeFrom(value)).toBeUndefined();
  });
});
