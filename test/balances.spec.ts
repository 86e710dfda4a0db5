/**
 * The six balances, after every successful activity of a machine: cycles of cores and blocks, TLPs, interrupts, packets and
 * operations. (The other scenarios of this folder, faults and bad input among them, check them too, with `expectBalanced`;
 * machine/report/checks.spec.ts corrupts each balance to make it fail.)
 */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import type { Report } from '../machine/report/schema.ts';
import { expectBalanced } from './expectations.ts';
import { bystanders, programOf, programsOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 60_000 });

const args = { qps: 2, rounds: 3 };
const scenarios: Readonly<Record<string, readonly [() => ProgramOptions[], MachineOptions]>> = {
  nothing: [() => [], {}],
  polling: [() => programsOf('mixture', 'polling', args), {}],
  'sleeping for events': [() => programsOf('mixture', 'sleeping', args), {}],
  'polling and sleeping': [
    () => [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)],
    {},
  ],
  'four nodes, two cables': [
    () => [0, 1].map((node) => programOf('faulty', node === 0 ? 'sender' : 'receiver', node, { args: {} })),
    { nodes: 4 },
  ],
  'PCIe of generation 1, one lane': [
    () => programsOf('mixture', 'polling', args),
    { set: { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 } },
  ],
  'scattered memory': [
    () => programsOf('mixture', 'polling', args),
    { set: { 'host.memory.framePlacement': 'scattered' } },
  ],
};

const names = ['cpu', 'blocks', 'pcie', 'interrupts', 'wire', 'operations'] as const;

describe.each(Object.entries(scenarios))('after %s', (_name, [programs, options]) => {
  it('all six balances hold', async () => {
    const { report } = await runPrograms(programs(), options);
    for (const name of names) expect(report.checks[name], name).toEqual({ holds: true, failures: [] });
    expect(report.checks.balanced).toBe(true);
  });
});

describe('in the middle of a run', () => {
  it('the balances hold at every instant at which a run is stopped', async () => {
    await using machine = await smallMachine();
    for (const program of programsOf('mixture', 'polling', args)) await machine.load(program);
    const stopsPs = Array.from({ length: 40 }, (_, stop) => 3.85e9 + stop * 20e6 + stop * 12_345);
    for (const stopPs of stopsPs) {
      await machine.runTo(stopPs);
      expectBalanced(await machine.report());
    }
  });

  it('an interrupt message that waits for its turn at the DMA engine does not count as lost', async () => {
    // 900 cycles between writes: each event's message waits 2 µs after its entry, on an otherwise quiet link.
    await using machine = await smallMachine({ set: { 'dma.writeIssueCycles': 900 } });
    for (const program of programsOf('mixture', 'sleeping', args)) await machine.load(program);
    for (let stop = 0; stop < 50; stop++) {
      await machine.runTo(12.45e9 + stop * 20e6);
      expectBalanced(await machine.report());
    }
  });
});

/** System calls of the data path, by node. */
const dataPathCalls = ({ nodes }: Report): number[] => nodes.map(({ cpu }) => cpu.systemCalls.dataPath);

describe('system calls of the data path', () => {
  it('are none when programs poll', async () => {
    const { report, results } = await runPrograms(programsOf('mixture', 'polling', { qps: 4, rounds: 5 }));
    expect(results.map((result) => (result as { mistakes: unknown }).mistakes)).toEqual([[], []]);
    expect(dataPathCalls(report)).toEqual([0, 0]);
    // Five rounds need as many control-path calls as one: a round never enters the kernel.
    const short = (await runPrograms(programsOf('mixture', 'polling', { qps: 4, rounds: 1 }))).report;
    const control = ({ nodes }: Report): number[] => nodes.map(({ cpu }) => cpu.systemCalls.control);
    expect(control(report)).toEqual(control(short));
  });

  it('are one for each event that a sleeping program takes', async () => {
    const { report, results } = await runPrograms(programsOf('mixture', 'sleeping', args));
    expect(dataPathCalls(report)).toEqual(results.map((result) => (result as { events: number }).events));
  });

  it('are none of a bystander either', async () => {
    const { report } = await runPrograms([
      programOf('queues', 'provoker', 0, { args: ['receiverNotReady'] }),
      programOf('queues', 'partner', 1, { args: ['receiverNotReady'] }),
      ...bystanders(),
    ]);
    expect(dataPathCalls(report)).toEqual([0, 0]);
    expectBalanced(report);
  });
});
