/**
 * Runs cancelled by a signal, and the turns of the calling thread's event loop while a machine runs. Real time only limits the
 * tests, by their time-outs.
 */
import { describe, expect, it, vi } from 'vitest';
import type { Machine } from '../machine/machine.ts';
import type { Partition } from '../machine/partition/placement.ts';
import { RunAbortedError } from '../sim/index.ts';
import { bytesOf, programOf, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 60_000 });

const partitions: readonly Partition[] = ['single', 'per-node', 'per-device'];

async function endless(
  partition: Partition,
  name: 'worksOn' | 'waitsForTheWorld' = 'worksOn',
): Promise<Machine> {
  const machine = await smallMachine({ partition });
  await machine.load(programOf('endless', name, 0));
  return machine;
}

const inMs = (ms: number): AbortSignal => AbortSignal.timeout(ms);

describe.each(partitions)('a run in partition %s', (partition) => {
  it('lets timers of its thread fire meanwhile', async () => {
    await using machine = await endless(partition);
    const stop = new AbortController();
    let ticks = 0;
    const timer = setInterval(() => {
      if (++ticks === 3) stop.abort();
    }, 10);
    await expect(machine.run({ signal: stop.signal })).rejects.toBeInstanceOf(RunAbortedError);
    clearInterval(timer);
    expect(ticks).toBeGreaterThanOrEqual(3);
  });

  it('is cancelled by a signal, whose reason is the cause, and is the last one', async () => {
    await using machine = await endless(partition);
    await machine.runTo(10e9);
    const signal = inMs(100);
    const error: unknown = await machine.run({ signal }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunAbortedError);
    expect((error as RunAbortedError).cause).toBe(signal.reason);
    expect((error as RunAbortedError).message).toContain('the run was called off: TimeoutError');
    await expect(machine.run()).rejects.toBeInstanceOf(RunAbortedError);
    await expect(machine.runTo(1e12)).rejects.toBeInstanceOf(RunAbortedError);
    // Everything up to then is present.
    expect((await machine.log()).map(({ text }) => text)).toEqual(['begun']);
    expect(await machine.programs()).toMatchObject([
      { name: 'worksOn0', endedPs: undefined, result: undefined },
    ]);
    expect(await machine.readConfig32(0, 0)).toBe(0x1003_15b3);
    expect((await machine.physicalMemory(0)).length).toBe(64 * 2 ** 20);
    const { nodes, elapsedPs } = await machine.report();
    expect(nodes).toHaveLength(2);
    // A single thread keeps its instant; ended threads have reached the last common stop.
    if (partition === 'single') expect(elapsedPs).toBeGreaterThan(10e9);
    else expect(elapsedPs).toBe(10e9);
    expect((await machine.ledgers()).hosts).toHaveLength(2);
  });

  it('does not begin with an already aborted signal, and may begin later', async () => {
    await using machine = await endless(partition);
    const signal = AbortSignal.abort('no');
    await expect(machine.run({ signal })).rejects.toMatchObject({ name: 'RunAbortedError', cause: 'no' });
    expect(machine.nowPs).toBe(0);
    expect(await machine.runTo(1e9)).toMatchObject({ stoppedPs: 1e9 });
  });

  it('that is not cancelled is the same with a signal, and leaves no listener on it', async () => {
    const listeners: string[] = [];
    const signal = {
      aborted: false,
      reason: undefined,
      addEventListener: (): void => void listeners.push('add'),
      removeEventListener: (): void => void listeners.push('remove'),
    };
    const reports: string[] = [];
    for (const limits of [{}, { signal }]) {
      await using machine = await endless(partition);
      await machine.run({ limitPs: 6e9, ...limits });
      reports.push(bytesOf(await machine.report()));
    }
    expect(reports[1]).toBe(reports[0]);
    expect(listeners).toEqual(['add', 'remove']);
  });

  it('is cancelled while a program waits for something not simulated', async () => {
    await using machine = await endless(partition, 'waitsForTheWorld');
    await expect(machine.run({ signal: inMs(200) })).rejects.toBeInstanceOf(RunAbortedError);
  });

  it('ends with an error when its machine is closed', async () => {
    const machine = await endless(partition);
    const run = machine.run();
    setTimeout(() => void machine.close(), 50);
    await expect(run).rejects.toThrow('the machine was closed');
  });

  it('ends with an error when its machine is closed before its threads have begun', async () => {
    const machine = await endless(partition);
    const run = expect(machine.run()).rejects.toThrow('the machine was closed');
    await machine.close();
    await run;
  });

  it('by steps until a condition holds is cancelled, too', async () => {
    await using machine = await endless(partition);
    const run = machine.runUntil(() => false, 1e8, { signal: inMs(100) });
    await expect(run).rejects.toBeInstanceOf(RunAbortedError);
  });
});

it.each([5, {}, 'now', { aborted: false }])('an invalid signal is rejected: %j', async (signal) => {
  await using machine = await endless('single');
  await expect(machine.run({ signal: signal as unknown as AbortSignal })).rejects.toMatchObject({
    field: 'signal',
    range: 'an AbortSignal',
  });
});
