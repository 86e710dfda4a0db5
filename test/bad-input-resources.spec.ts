/**
 * Resources that are removed while in use, or are missing: regions deregistered and processes ended with work in flight, the
 * pin limit, physical memory, the tables of the device. Nothing leaks, and no other program is affected.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { expectUntouched } from './expectations.ts';
import { bystanders, type Outcome, programOf, runPrograms } from './machines.ts';
import type { Told } from './programs/companion.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

/** Runs the scenarios of these names. */
function run(names: string[], set: Record<string, number | string>) {
  const args = { args: names };
  return runPrograms(
    [
      programOf('resources', 'provoker', 0, args),
      programOf('resources', 'partner', 1, args),
      ...(names.includes('processEnded')
        ? [programOf('leaver', 'leave', 0), programOf('leaver', 'stay', 1)]
        : []),
      ...bystanders(),
    ],
    { set },
  );
}

const toldOf = ({ results }: Outcome, name: string): Told & Record<string, unknown> =>
  (results[0] as Record<string, Told & Record<string, unknown>>)[name]!;
const partnerOf = ({ results }: Outcome, name: string): unknown =>
  (results[1] as Record<string, unknown>)[name];
const undisturbed = { companionIsRight: true, bystanderWentOn: true };

describe('resources', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    const names = ['deregisteredLocally', 'deregisteredRemotely', 'processEnded', 'pinLimit'];
    outcome = await run(names, { 'host.memory.memlockLimitKib': 1024 });
  });

  // Each of the twelve requests completes once, in order: some successfully, one with the error, the rest flushed.
  it('deregistering a region under the requester fails the request that needs it', () => {
    expect(toldOf(outcome, 'deregisteredLocally')).toEqual({
      told: {
        runs: ['SUCCESS', 'LOC_PROT_ERR', 'WR_FLUSH_ERR'],
        failures: 1,
        isInOrder: true,
        state: 'ERR',
        events: [],
      },
      ...undisturbed,
    });
    expect(partnerOf(outcome, 'deregisteredLocally')).toEqual({ state: 'RTS', events: [] });
  });

  it('a region deregistered under the responder refuses accesses, and is not written any more', () => {
    expect(toldOf(outcome, 'deregisteredRemotely')).toEqual({
      told: {
        runs: ['SUCCESS', 'REM_ACCESS_ERR', 'WR_FLUSH_ERR'],
        failures: 1,
        isInOrder: true,
        state: 'ERR',
        events: [],
      },
      ...undisturbed,
    });
    expect(partnerOf(outcome, 'deregisteredRemotely')).toEqual({
      wasWritten: true,
      isClear: true,
      state: 'ERR',
      events: ['QP_ACCESS_ERR'],
    });
  });

  it('a process that ends with work in flight leaves nothing; its peer exhausts its retries', () => {
    expect(toldOf(outcome, 'processEnded')).toEqual({ told: { isGivenBack: true }, ...undisturbed });
    const [leaver, peer] = outcome.results.slice(2, 4) as [{ pinnedBytes: number }, unknown];
    expect(leaver.pinnedBytes).toBeGreaterThan(262_144);
    expect(peer).toEqual({
      statuses: ['SUCCESS', 'RETRY_EXC_ERR', 'WR_FLUSH_ERR'],
      last: ['WR_FLUSH_ERR'],
      state: 'ERR',
      events: [],
    });
    expect(outcome.report.nodes[0]!.hca.violations['packetUnknownQp']).toBeGreaterThan(0);
  });

  it('the pin limit refuses with ENOMEM and leaves nothing pinned', () => {
    expect(toldOf(outcome, 'pinLimit')).toEqual({
      told: {
        tooMuch: 'ENOMEM',
        isUnchanged: true,
        oneMore: 'ENOMEM',
        cq: 'ENOMEM',
        srq: 'ENOMEM',
        isGivenBack: true,
      },
      ...undisturbed,
    });
  });

  it('no other process is affected, and the ledgers balance', () => {
    expectUntouched(outcome);
  });
});

describe('with small tables in the device', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await run(['outOfMemory', 'outOfIcm'], {
      'driver.logCqs': 8,
      'driver.logSrqs': 7,
      'driver.logMpts': 9,
      'driver.logMtts': 14,
      'hca.capability.logMaxQps': 10,
      // Single pages: each costs an entry of the MTT.
      'host.memory.framePlacement': 'scattered',
    });
  });

  it('queues need physical memory: ENOMEM at the last frame, then everything is released', () => {
    expect(toldOf(outcome, 'outOfMemory')).toEqual({
      told: {
        cq: 'ENOMEM',
        qp: 'ENOMEM',
        srq: 'ENOMEM',
        mr: 'ok',
        isUnchanged: true,
        isGivenBack: true,
        again: 'ok',
      },
      ...undisturbed,
    });
  });

  it('a full table is ENOMEM for its objects, and has room again when one is destroyed', () => {
    const { told, ...others } = toldOf(outcome, 'outOfIcm');
    expect(others).toEqual(undisturbed);
    // Tables also hold entries of the bystander and the companion, and reserved ones: a little less than their size is left.
    const sizes = { cqs: 256, srqs: 128, regions: 512, translations: 128, qps: 1024 };
    const { isGivenBack, ...tables } = told as unknown as Record<string, unknown>;
    expect(isGivenBack).toBe(true);
    for (const [name, size] of Object.entries(sizes)) {
      const table = tables[name] as { code: string; again: string; count: number };
      expect(table, name).toMatchObject({ code: 'ENOMEM', again: 'ok' });
      expect(table.count, name).toBeLessThanOrEqual(size);
      expect(table.count, name).toBeGreaterThan(size / 4);
    }
    expect(tables['contexts']).toMatchObject({ code: 'ENOMEM', again: 'ok' });
  });

  it('no other process is affected, and the ledgers balance', () => {
    expectUntouched(outcome);
  });
});
