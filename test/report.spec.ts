/** The report as programs read it: the fields of `hca-report/1`, by name, and the relations between them. */
import { describe, expect, it, vi } from 'vitest';
import type { Report } from '../machine/report/schema.ts';
import { programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

let made: Promise<Report> | undefined;
/** Returns the report as a reader of the file has it: plain JSON. */
const reportOf = (): Promise<Report> =>
  (made ??= runPrograms(programsOf('mixture', 'polling', { qps: 2, rounds: 3 })).then(
    ({ report }) => JSON.parse(JSON.stringify(report)) as Report,
  ));

const count = expect.any(Number) as number;
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe('a report', () => {
  it('has the fields that hca-report/1 promises', async () => {
    const report = await reportOf();
    expect(report).toMatchObject({
      schema: 'hca-report/1',
      configHash: expect.stringMatching(/^[\da-f]{64}$/),
      config: { hca: { mttCacheLines: count }, machine: { seed: 1 } },
      elapsedPs: count,
      checks: { balanced: true, cpu: {}, blocks: {}, pcie: {}, interrupts: {}, wire: {}, operations: {} },
    });
    expect(report.nodes).toHaveLength(2);
    for (const node of report.nodes) {
      expect(node.cpu.cores[0]!.cycles).toMatchObject({
        total: count,
        post: count,
        poll: count,
        idle: count,
      });
      expect(node.cpu.systemCalls).toMatchObject({ control: count, dataPath: 0 });
      const vector = { vector: 0, requested: count, moderated: count, masked: count };
      expect(node.interrupts[0]).toMatchObject({ ...vector, delivered: count, handled: count });
      expect(node.pcie.toDevice.classes).toMatchObject({ doorbell: { tlps: count, bytes: count } });
      expect(node.pcie.toHost.classes).toMatchObject({ cqe: { tlps: count, bytes: count } });
      for (const cache of ['qpc', 'cqc', 'eqc', 'srqc', 'mpt', 'mtt']) {
        const { users = {}, ...row } = node.hca!.caches[cache]!;
        expect(row, cache).toEqual({ hits: count, misses: count, evictions: count });
        for (const user of Object.values(users)) expect(user, cache).toEqual({ hits: count, misses: count });
      }
    }
    for (const operation of ['SEND', 'READ', 'CMP_SWAP', 'FETCH_ADD'])
      expect(report.operations[operation], operation).toMatchObject({
        count,
        latencyPs: { min: count, p50: count, p99: count, max: count },
        milestonesPs: { doorbell: count, transmit: count, remote: count, completion: count },
      });
    // None of these WRITEs is signalled: an operation without a visible end has no latency, instead of one of 0.
    expect(report.operations['WRITE']).toMatchObject({ count, silent: count, latencyPs: null });
  });

  it('accounts for every cycle of every block and core', async () => {
    const { nodes } = await reportOf();
    for (const { hca, cpu } of nodes) {
      const blocks = Object.entries(hca!.blocks);
      expect(blocks.length).toBeGreaterThan(10);
      for (const [name, { elapsedCycles, busyCycles, idleCycles, stalledCycles }] of blocks)
        expect(busyCycles + idleCycles + sum(Object.values(stalledCycles)), name).toBe(elapsedCycles);
      for (const { cycles } of cpu.cores) {
        const { total, ahead, ...causes } = cycles;
        expect(sum(Object.values(causes))).toBe(total + ahead);
      }
    }
  });

  it('orders its latencies', async () => {
    const { operations, elapsedPs } = await reportOf();
    const latencies = Object.values(operations).flatMap(({ latencyPs }) => latencyPs ?? []);
    expect(latencies.length).toBeGreaterThanOrEqual(4);
    for (const { min, p50, p99, max } of latencies) {
      expect([min, p50, p99, max]).toEqual([min, p50, p99, max].toSorted((left, right) => left - right));
      expect(min).toBeGreaterThan(0);
      expect(max).toBeLessThan(elapsedPs);
    }
  });

  it('contains nothing of threads, partition and wall clock', async () => {
    const { config: _, ...rest } = await reportOf();
    expect(JSON.stringify(rest)).not.toMatch(/thread|partition|wall|node":"v|cpus/i);
  });
});
