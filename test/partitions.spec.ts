/**
 * A machine's behaviour and report depend only on its configuration, programs and seed: not on the partition, the computer's
 * load, the run, or the order within one instant.
 */
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi } from 'vitest';
import { perfArgsOf } from '../bench/write-load.ts';
import type { ProgramFailedError } from '../host/host-error.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { type Partition, partitions } from '../machine/partition/placement.ts';
import { DeadlockError, WorkerLostError } from '../sim/index.ts';
import {
  bothPartitions,
  bytesOf,
  type Outcome,
  programOf,
  programsOf,
  runPrograms,
  smallMachine,
} from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Two programs on each host, several QPs each; every operation; polling, events and an SRQ. */
function runMixture(options: MachineOptions): Promise<Outcome> {
  const args = { qps: 3, rounds: 4 };
  return runPrograms(
    [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)],
    options,
  );
}

/** WRITEs of 1 MiB, which use most shortcuts. */
function runLongWrites(shortcuts: boolean): Promise<Outcome> {
  const url = new URL('../bench/write-load.ts', import.meta.url);
  const load = { verb: 'write', sizeBytes: 1 << 20, qpCount: 1, messagesPerQp: 8, outstanding: 4 } as const;
  const args = perfArgsOf(load);
  const programs = ['client', 'server'].map((exportName, node) => ({ node, run: { url, exportName }, args }));
  return runPrograms(programs, { shortcuts });
}

let reference: Promise<Outcome> | undefined;
const referenceRun = (): Promise<Outcome> => (reference ??= runMixture({ partition: 'single' }));

/** Occupies a core until it is ended. */
const burner = (): Worker => new Worker('for (;;) Math.sqrt(2);', { eval: true });

describe('the report', () => {
  it('belongs to a run in which every byte and every balance was right', async () => {
    const { results, report } = await referenceRun();
    expect(results.map((result) => (result as { mistakes: unknown }).mistakes)).toEqual([[], [], [], []]);
    expect(report.checks).toMatchObject({ balanced: true });
    const names = Object.keys(report.operations);
    expect(names.length).toBeGreaterThanOrEqual(7);
  });

  it.each(partitions)('is the same, byte for byte, in partition %s', async (partition) => {
    const { report, results } = await runMixture({ partition });
    const expected = await referenceRun();
    expect(results).toEqual(expected.results);
    expect(bytesOf(report)).toBe(bytesOf(expected.report));
  });

  it('is the same, byte for byte, without shortcuts, of all operations and of long messages', async () => {
    const { report, results } = await runMixture({ partition: 'single', shortcuts: false });
    const expected = await referenceRun();
    expect(results).toEqual(expected.results);
    expect(bytesOf(report)).toBe(bytesOf(expected.report));
    const [fast, plain] = await Promise.all([true, false].map(runLongWrites));
    expect(bytesOf(plain!.report)).toBe(bytesOf(fast!.report));
  });

  it('is the same in threads while others occupy every core', async () => {
    const expected = await referenceRun();
    const burners = [burner(), burner()];
    try {
      const { report } = await runMixture({ partition: 'per-device' });
      expect(bytesOf(report)).toBe(bytesOf(expected.report));
    } finally {
      await Promise.all(burners.map((worker) => worker.terminate()));
    }
  });

  it.each([1, 0xdead_beef])(
    'is the same with the events of an instant shuffled by %i',
    async (shuffleSeed) => {
      const { report } = await runMixture({ shuffleSeed });
      expect(bytesOf(report)).toBe(bytesOf((await referenceRun()).report));
    },
  );

  it('is the same with shuffled instants in workers', async () => {
    const { report } = await runMixture({ shuffleSeed: 7, partition: 'per-device' });
    expect(bytesOf(report)).toBe(bytesOf((await referenceRun()).report));
  });

  it('names its configuration, and differs with the seed of the programs', async () => {
    const { report } = await runMixture({ seed: 2 });
    const expected = (await referenceRun()).report;
    expect(report.configHash).not.toBe(expected.configHash);
    expect(report.config.machine.seed).toBe(2);
  });
});

describe.each(bothPartitions)('a run in partition %s', (partition) => {
  it('that stops half-way and continues reports the same as an unbroken one', async () => {
    await using machine = await smallMachine({ partition });
    const args = { qps: 3, rounds: 4 };
    const programs = [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)];
    for (const program of programs) await machine.load(program);
    for (const limitPs of [1, 3.9e9, 4.2e9]) await machine.runTo(limitPs);
    await machine.run();
    expect(bytesOf(await machine.report())).toBe(bytesOf((await referenceRun()).report));
  });

  it('ends with the error of a program that throws, and with its time', async () => {
    await using machine = await smallMachine({ partition });
    await machine.load(programOf('endings', 'goesOn', 0));
    await machine.load(programOf('endings', 'throws', 1));
    const error: unknown = await machine.run().catch((caught: unknown) => caught);
    const instantPs = await instantOfThrow();
    expect(error).toMatchObject({ name: 'ProgramFailedError', programName: 'throws1', instantPs });
    expect((error as Error).message).toContain('RangeError: throws1 has 1 device and gives up');
  });

  it('ends when programs wait for events that never occur, and names their hosts', async () => {
    await using machine = await smallMachine({ partition });
    await machine.load(programOf('endings', 'waitsForNothing', 0));
    const error: unknown = await machine.run().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(DeadlockError);
    expect((error as DeadlockError).message).toContain('host0');
  });

  it('ends when programs poll in a loop for events that never occur, and reports since when', async () => {
    await using machine = await smallMachine({ partition, set: { 'machine.pollPatienceMs': 2 } });
    await machine.load(programOf('endings', 'pollsInALoop', 0));
    await machine.load(programOf('endings', 'sendsLate', 1, { args: 0 }));
    const error: unknown = await machine.run().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(DeadlockError);
    expect((error as Error).message).toMatch(
      /programs only poll, .*machine.pollPatienceMs, .* host0 at \d+ ps;/,
    );
    expect((error as Error).message).toMatch(
      /; program 'pollsInALoop0' on node 0 waits in ibv_poll_cq for CQ/,
    );
    // Stretches of 2 ms and 4 ms, then one of 2 ms in which it only polled: since the end of the second.
    expect((error as DeadlockError).waiting).toEqual([{ name: 'host0', instantPs: 6e9 }]);
  });

  it('continues polling while anything is due anywhere, for any time', async () => {
    await using machine = await smallMachine({ partition, set: { 'machine.pollPatienceMs': 1 } });
    await machine.load(programOf('endings', 'pollsInALoop', 0));
    await machine.load(programOf('endings', 'sendsLate', 1, { args: 20 }));
    await machine.run();
    const [receivedPs, sent] = await machine.results();
    expect([(receivedPs as number) > 20e9, sent]).toEqual([true, 1]);
  });

  it('rejects a past limit, and continues afterwards', async () => {
    await using machine = await smallMachine({ partition });
    await machine.runTo(1e6);
    for (const limitPs of [1, 1e6 + 0.5, Number.NaN]) {
      await expect(machine.runTo(limitPs)).rejects.toThrow('expected a whole number of at least 1000000');
      await expect(machine.run(limitPs)).rejects.toThrow('expected a whole number of at least 1000000');
    }
    expect(await machine.runTo(2e6)).toEqual({ reason: 'limit', stoppedPs: 2e6 });
  });
});

it('is cut into stretches without any effect, in each partition', async () => {
  const nodesOf = async (pollPatienceMs: number, partition: Partition) => {
    const set = { 'machine.pollPatienceMs': pollPatienceMs, 'machine.drainNs': 5e6 };
    const { machine, report } = await runMixture({ partition, set });
    return { nodes: report.nodes, nowPs: machine.nowPs };
  };
  // The programs end after about 4 ms, followed by 5 ms of waiting: several stretches end in each part.
  const whole = await nodesOf(100, 'single');
  for (const partition of bothPartitions) expect(await nodesOf(1, partition)).toEqual(whole);
});

/** Probing, then 250 µs: the same in every partition. */
let throwPs: Promise<number> | undefined;
function instantOfThrow(): Promise<number> {
  throwPs ??= (async () => {
    await using machine = await smallMachine();
    await machine.load(programOf('endings', 'throws', 1));
    const error: unknown = await machine.run().catch((caught: unknown) => caught);
    return Number((error as ProgramFailedError).instantPs);
  })();
  return throwPs;
}

describe.each([
  { partition: 'per-node', thread: 1, names: ['host1', 'hca1'] },
  { partition: 'per-device', thread: 1, names: ['hca0'] },
] as const)('a worker of partition $partition that is terminated', ({ partition, thread, names }) => {
  it('ends the run with its name and its time', async () => {
    await using machine = await smallMachine({ partition });
    await machine.load(programOf('endings', 'goesOn', 0));
    await machine.runTo(4e9);
    const run = machine.run().catch((caught: unknown) => caught);
    setTimeout(() => void machine.terminateWorker(thread), 100);
    const error = await run;
    expect(error).toBeInstanceOf(WorkerLostError);
    expect(names).toContain((error as WorkerLostError).processName);
    expect((error as WorkerLostError).instantPs).toBeGreaterThanOrEqual(4e9);
  });
});
