import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { MoveArgs, MoveReceiverResult, MoveSenderResult } from '../experiments/workloads/move-plan.ts';
import { Random } from '../sim/index.ts';
import { itOfAll } from '../test/extent.ts';
import { Machine, type MachineOptions } from './machine.ts';
import { partitions } from './partition/placement.ts';
import type { JsonValue } from './program.ts';
import { returnedNames, thrownNames } from './testing-programs.ts';

// Whole simulations, some in worker threads on machines with few cores.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const programs = new URL('./testing-programs.ts', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'hca-machine-'));
afterAll(() => rmSync(folder, { recursive: true }));
/** Small hosts build faster. */
/** Partitions: in the spec's thread, and in four separate ones. */
const bothPartitions = ['single', 'per-device'] as const;
const small = { 'host.memory.sizeMib': 128, 'host.core.count': 2 };

function fileOf(bytes: number): string {
  const random = new Random(bytes);
  const file = join(folder, `${bytes}.bin`);
  writeFileSync(
    file,
    Uint8Array.from({ length: bytes }, () => random.below(256)),
  );
  return file;
}

async function moved(bytes: number, chunkBytes: number, options: MachineOptions) {
  await using machine = await Machine.create({ set: small, ...options });
  const args: MoveArgs = { file: fileOf(bytes), fileBytes: bytes, chunkBytes, window: 4, atomicCount: 5 };
  const load = (node: number, module: string, exportName: string) => {
    const url = new URL(`../experiments/workloads/${module}.ts`, import.meta.url);
    return machine.load({ node, run: { url, exportName }, args });
  };
  await load(0, 'move-sender', 'send');
  await load(1, 'move-receiver', 'receive');
  await machine.run();
  const [sender, receiver] = await machine.results<[MoveSenderResult, MoveReceiverResult]>();
  return { sender, receiver, report: await machine.report() };
}

describe('a machine', () => {
  it('rejects an unknown option, which JavaScript may pass, and creates nothing', async () => {
    const misspelt: object = { sets: small };
    await expect(Machine.create(misspelt)).rejects.toThrow(
      /option of a machine is "sets", expected one of profile, set, /,
    );
    const leftOut: object = { set: small, trace: undefined };
    await using machine = await Machine.create(leftOut);
    expect(machine.nowPs).toBe(0);
  });

  it('moves files of awkward sizes by every path, and its statistics balance', async () => {
    for (const [bytes, chunk] of [
      [0, 4096],
      [1, 4096],
      [4097, 4096],
      [70_001, 1000],
    ] as const) {
      const { sender, receiver, report } = await moved(bytes, chunk, {});
      expect(receiver.legs.map(({ sha256 }) => sha256)).toEqual(sender.legs.map(({ sha256 }) => sha256));
      expect([receiver.fetchAddTotal, receiver.compareSwapTotal]).toEqual([5, 5]);
      expect(report.checks).toMatchObject({ balanced: true });
      expect(report.nodes.map(({ cpu }) => cpu.systemCalls.dataPath)).toEqual([0, 0]);
    }
  });

  itOfAll('gives the same report, byte for byte, in every partition and whenever it is run', async () => {
    const reports: string[] = [];
    for (const partition of [...partitions, 'single'] as const)
      reports.push(JSON.stringify((await moved(20_000, 4096, { partition })).report));
    expect(new Set(reports).size).toBe(1);
  });

  it('gives the same report when events of one instant are reshuffled', async () => {
    const plain = JSON.stringify((await moved(9000, 4096, {})).report);
    for (const shuffleSeed of [1, 2, 3]) {
      const shuffled = JSON.stringify((await moved(9000, 4096, { shuffleSeed })).report);
      expect(shuffled === plain, `seed ${shuffleSeed}`).toBe(true);
    }
  });

  it('exchanges values between programs with exactly the latency of the exchange', async () => {
    await using machine = await Machine.create({ set: { ...small, 'machine.exchangeLatencyNs': 50_000 } });
    for (const node of [0, 1])
      await machine.load({ node, run: { url: programs, exportName: 'exchangeNames' } });
    await machine.run();
    const results = (await machine.results()) as { found: JsonValue; tookPs: number }[];
    expect(results.map(({ found }) => found)).toEqual([{ node: 1 }, { node: 0 }]);
    // Both values are put at the same instant, 50 µs before both arrive; then 3000 cycles of 400 ps switch the thread
    // in.
    for (const { tookPs } of results) expect(tookPs).toBe(50_000_000 + 3000 * 400);
  });

  it('runs to an instant, until a condition, and on', async () => {
    await using machine = await Machine.create({ set: small });
    await machine.load({ node: 0, run: { url: programs, exportName: 'nap' } });
    expect(await machine.runTo(1_000_000)).toEqual({ reason: 'limit', stoppedPs: 1_000_000 });
    const ended = async () => (await machine.programs()).every(({ endedPs }) => endedPs !== undefined);
    expect(await machine.runUntil(ended, 100_000_000, 200_000_000)).toBe(false);
    expect(await machine.runUntil(ended, 100_000_000)).toBe(true);
    expect((await machine.run()).reason).toBe('ended');
  });

  it('shows configuration space, registers and memory from outside', async () => {
    for (const partition of ['single', 'per-device'] as const) {
      await using machine = await Machine.create({ set: small, partition });
      await machine.load({ node: 1, name: 'marker', run: { url: programs, exportName: 'leaveMark' } });
      await machine.runTo(3_800_000_000);
      const [result] = (await machine.results()) as [{ address: number; physical: number } | undefined];
      expect(result, partition).toBeDefined();
      const bytes = await machine.readPhysical(1, result!.physical, 4);
      expect([...bytes]).toEqual([1, 2, 3, 4]);
      // Device 0x1003 of vendor 0x15b3.
      expect(await machine.readConfig32(0, 0)).toBe(0x1003_15b3);
      expect(await machine.readRegister32(0, 2, 0)).toBe(0);
    }
  });

  it('removes its drivers, and all resources return', async () => {
    await using machine = await Machine.create({ set: small });
    await machine.run();
    await machine.removeDrivers();
    expect((await machine.report()).checks.balanced).toBe(true);
  });
});

describe('rejects runs that are impossible', () => {
  it('functions in worker partitions, with an alternative', async () => {
    await using machine = await Machine.create({ set: small, partition: 'per-node' });
    await expect(machine.load({ node: 0, run: async () => undefined })).rejects.toThrow(
      'program program0 is "a function", expected a module',
    );
  });

  it('modules and exports that do not exist, in every partition', async () => {
    for (const partition of ['single', 'per-node'] as const) {
      await using machine = await Machine.create({ set: small, partition });
      const run = { url: programs, exportName: 'napp' };
      await expect(machine.load({ node: 0, run })).rejects.toThrow(/is "napp", expected one of .*\bnap\b/);
      await expect(machine.load({ node: 0, run: { url: 'file:///none.ts' } })).rejects.toThrow(
        'a module that loads',
      );
      await expect(machine.load({ node: 2, run })).rejects.toThrow(
        'node is 2, expected an integer from 0 to 1',
      );
    }
  });

  it('more programs than cores', async () => {
    await using machine = await Machine.create({ set: small });
    for (let count = 0; count < 2; count++) await machine.load({ node: 0, run: async () => undefined });
    await expect(machine.load({ node: 0, run: async () => undefined })).rejects.toThrow('one for each core');
  });

  it('an inspection of absent things, by name', async () => {
    await using machine = await Machine.create({ set: small });
    const bytes = 128 * 1024 ** 2;
    const refused: [() => unknown, string][] = [
      [() => machine.readPhysical(0, bytes - 2, 4), 'lengthBytes is 4, expected an integer from 0 to 2'],
      [() => machine.readPhysical(0, -4, 4), 'address is -4'],
      [() => machine.readVirtual(0, 'nobody', 0, -1), 'lengthBytes is -1'],
      [() => machine.readVirtual(0, 'nobody', 0, 1), 'process is "nobody"'],
      [() => machine.readConfig32(0, 4096), 'offset is 4096, expected a multiple of 4 from 0 to 4092'],
      [() => machine.readRegister32(0, 0, 2), 'offset is 2, expected a multiple of 4'],
      [() => machine.readRegister32(0, 2, 2 ** 40), 'offset is 1099511627776'],
      [() => machine.readRegister32(0, 1 as 0, 0), 'bar is 1, expected 0 or 2'],
      [async () => machine.progressOf(2), 'node is 2'],
      [() => Machine.create({ watch: 'all' as 'races' }), 'watch is "all", expected one of races, accesses'],
      [
        () => Machine.create({ set: { 'hca.capability.linkLayer': 'ethernet' } }),
        'hca.capability.roce is "none", expected v1 or v2',
      ],
      [
        () =>
          Machine.create({
            set: {
              'hca.capability.linkLayer': 'ethernet',
              'hca.capability.roce': 'v2',
              'ethernet.mtuBytes': 351,
            },
          }),
        'ethernet.mtuBytes is 351, expected at least 352',
      ],
      [
        () => Machine.create({ set: { 'hca.capability.linkLayer': 'ethernet' } }),
        'hca.capability.roce is "none", expected v1 or v2, or hca.capability.transport=iwarp: simulated hosts',
      ],
      [
        () => Machine.create({ set: { 'hca.capability.roce': 'v2' } }),
        'hca.capability.roce is "v2", expected none where ports are of InfiniBand',
      ],
      [
        () => Machine.create({ set: { 'machine.adapter': 'nic', 'net.driver.mtu': 9000 } }),
        'net.driver.mtu is 9000, expected at most ethernet.mtuBytes (1500)',
      ],
    ];
    for (const [look, words] of refused) {
      const error: unknown = await Promise.resolve(look()).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: 'ConfigurationError', message: expect.stringContaining(words) });
    }
    expect(await machine.readConfig32(0, 4092)).toBe(0);
    expect(await machine.readPhysical(0, bytes, 0)).toHaveLength(0);
  });

  it('bad fault plans, naming entry and field', async () => {
    await expect(Machine.create({ faults: [{ packet: 'late', node: 2, nth: 1 }] })).rejects.toThrow(
      'fault 1, field node, is 2, expected an integer from 0 to 1',
    );
    await expect(Machine.create({ faults: [{ packet: 'corrupted', nth: 0 }] })).rejects.toThrow(
      'fault 1 (packet), field nth, is 0',
    );
  });
});

describe('a run that fails ends with its error and its time', () => {
  it('when a program throws', async () => {
    for (const partition of bothPartitions) {
      await using machine = await Machine.create({ set: small, partition });
      await machine.load({ node: 0, name: 'breaker', run: { url: programs, exportName: 'breakDown' } });
      await machine.load({ node: 1, run: { url: programs, exportName: 'nap' } });
      await expect(machine.run(), partition).rejects.toMatchObject({
        name: 'ProgramFailedError',
        programName: 'breaker',
        message: expect.stringContaining('the program broke'),
        instantPs: expect.any(Number),
      });
    }
  });

  it.each(thrownNames)('when a program throws something %s', async (name) => {
    // The error's text is built in the host's thread. One value represents all others here, in a separate thread too.
    for (const partition of name === 'whose toString throws' ? bothPartitions : (['single'] as const)) {
      await using machine = await Machine.create({ set: small, partition });
      const run = { url: programs, exportName: 'throwAnything' };
      await machine.load({ node: 0, name: 'breaker', run, args: name });
      await expect(machine.run(), partition).rejects.toMatchObject({
        name: 'ProgramFailedError',
        programName: 'breaker',
        instantPs: expect.any(Number),
      });
    }
  });

  it('if a program awaits something outside the simulation that never settles, after the configured patience', async () => {
    for (const partition of bothPartitions) {
      await using machine = await Machine.create({ set: small, partition, programPatienceMs: 200 });
      await machine.load({ node: 1, run: { url: programs, exportName: 'nap' } });
      await machine.load({ node: 0, name: 'stuck', run: { url: programs, exportName: 'awaitNothing' } });
      await expect(machine.run(), partition).rejects.toMatchObject({
        name: 'ProgramFailedError',
        programName: 'stuck',
        message: expect.stringContaining('200 ms of real time'),
      });
    }
  });

  it('but not if the awaited promise settles in time', async () => {
    await using machine = await Machine.create({ set: small });
    await machine.load({ node: 0, run: { url: programs, exportName: 'awaitTimer' } });
    expect((await machine.run()).reason).toBe('ended');
    await expect(Machine.create({ programPatienceMs: Number.NaN })).rejects.toThrow(
      'programPatienceMs is NaN',
    );
  });

  it.each(returnedNames)('when a program returns %s, which no thread can be given', async (name) => {
    for (const partition of name === 'a function' ? bothPartitions : (['single'] as const)) {
      await using machine = await Machine.create({ set: small, partition });
      const run = { url: programs, exportName: 'returnAnything' };
      await machine.load({ node: 0, name: 'odd', run, args: name });
      await expect(machine.run(), partition).rejects.toMatchObject({
        name: 'ProgramFailedError',
        programName: 'odd',
        message: expect.stringContaining('result'),
      });
    }
  });

  it('if programs wait for an event that never occurs', async () => {
    for (const partition of bothPartitions) {
      await using machine = await Machine.create({ set: small, partition });
      await machine.load({ node: 1, run: { url: programs, exportName: 'waitForever' } });
      await expect(machine.run(), partition).rejects.toMatchObject({
        name: 'DeadlockError',
        message: expect.stringContaining('host1'),
      });
    }
  });

  it('if programs have not ended within the step limit', async () => {
    for (const partition of bothPartitions) {
      await using machine = await Machine.create({ set: small, partition, stepLimit: 50_000 });
      await machine.load({ node: 1, name: 'restless', run: { url: programs, exportName: 'runForever' } });
      await expect(machine.run(), partition).rejects.toMatchObject({
        name: 'StepLimitError',
        busiest: 'host1',
        programs: ["program 'restless' on node 1 waits in its own code"],
      });
    }
  });

  it('if a worker is lost', async () => {
    await using machine = await Machine.create({ set: small, partition: 'per-device' });
    await machine.load({ node: 0, run: { url: programs, exportName: 'runForever' } });
    const run = machine.run();
    setTimeout(() => void machine.terminateWorker(1), 300);
    await expect(run).rejects.toMatchObject({ name: 'WorkerLostError', processName: 'hca0' });
  });
});

describe('injected faults', () => {
  it('on packets are recovered from, and the cable counts them', async () => {
    const faults = [{ packet: 'corrupted', nth: 40 }];
    const { receiver, sender, report } = await moved(20_000, 1000, { faults });
    expect(receiver.legs.map(({ sha256 }) => sha256)).toEqual(sender.legs.map(({ sha256 }) => sha256));
    expect(report.wire[0]!.corrupted).toBe(1);
    expect(report.checks).toMatchObject({ balanced: true });
  });

  it('on interrupts show in the rows of their vectors', async () => {
    await using machine = await Machine.create({
      set: small,
      faults: [{ interrupt: 'spurious', vector: 31, at: '3ms' }],
    });
    await machine.run();
    const report = await machine.report();
    expect(report.nodes[0]!.interrupts.find(({ vector }) => vector === 31)).toMatchObject({
      sent: 0,
      spurious: 1,
    });
    expect(report.checks.balanced).toBe(true);
  });

  it('on commands reach the driver as their status', async () => {
    await using machine = await Machine.create({
      set: small,
      faults: [{ command: 'QUERY_DEV_CAP', status: 'BAD_INDEX' }],
    });
    await expect(machine.run()).rejects.toThrow(/boot failed at \d+ ps: .*QUERY_DEV_CAP/);
  });

  it('on the cable take the port down and bring it up again', async () => {
    const faults = [{ port: 'down', at: '3.7ms', for: '0.1ms' }];
    await using machine = await Machine.create({ set: { ...small, 'machine.drainNs': 1_000_000 }, faults });
    await machine.run();
    const { nodes, checks } = await machine.report();
    // At least one event for each change, in addition to those of start-up.
    await using quiet = await Machine.create({ set: { ...small, 'machine.drainNs': 1_000_000 } });
    await quiet.run();
    const before = (await quiet.report()).nodes;
    for (const node of [0, 1])
      expect(nodes[node]!.interrupts[0]!.handled).toBeGreaterThan(before[node]!.interrupts[0]!.handled);
    expect(checks.balanced).toBe(true);
  });
});
