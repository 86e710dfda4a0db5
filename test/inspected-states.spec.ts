/** `machine.inspect()` depends only on the machine: it is the same at every instant, for every partition and for every order within an instant. */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import type { BlockState } from '../sim/index.ts';
import { differencesOf } from '../torture/index.ts';
import { programOf, programsOf, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

interface Scenario {
  readonly set: NonNullable<MachineOptions['set']>;
  readonly programs: () => ProgramOptions[];
  /** The first inspected instant, and the step to the next: while programs drive the devices. */
  readonly fromPs: bigint;
  readonly stepPs: bigint;
  /** Blocks that only this machine has. */
  readonly blocks: readonly string[];
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'a NIC that loses frames': {
    set: { 'machine.adapter': 'nic', 'ethernet.lossPerMillion': 30_000 },
    programs: () =>
      [0, 1].map((node) =>
        programOf('traditional', 'stream', node, {
          args: { bytes: 60_000, port: 80, callBytes: 8_192, from: 0 },
        }),
      ),
    fromPs: 10_000_000n,
    stepPs: 3_777_777n,
    blocks: ['transmitEngine', 'receiveMac', 'registers', 'port', 'systemDma', 'memoryBus'],
  },
  'an HCA behind an IOMMU': {
    set: { 'pcie.iommu.isEnabled': true },
    programs: () => programsOf('mixture', 'polling', { qps: 3, rounds: 4 }),
    fromPs: 4_000_000_000n,
    stepPs: 17_777_777n,
    blocks: ['requester', 'receiver', 'wirePort', 'iommu'],
  },
};

const INSTANTS = 60n;

async function statesOf(
  { set, programs, fromPs, stepPs }: Scenario,
  how: MachineOptions,
): Promise<BlockState[][]> {
  await using machine = await smallMachine({ ...how, set });
  for (const program of programs()) await machine.load(program);
  const seen: BlockState[][] = [];
  for (let step = 0n; step < INSTANTS; step++) {
    await machine.runTo(fromPs + step * stepPs);
    seen.push(await machine.inspect());
  }
  return seen;
}

describe.each(Object.entries(scenarios))('the states of the blocks of %s', (_, scenario) => {
  let reference: Promise<BlockState[][]> | undefined;
  const expected = (): Promise<BlockState[][]> => (reference ??= statesOf(scenario, { partition: 'single' }));

  it('include all of them, and change', async () => {
    const states = await expected();
    for (const block of ['host', 'processor', ...scenario.blocks])
      for (const state of states[0]!) expect(Object.keys(state)).toContain(block);
    expect(new Set(states.map((state) => JSON.stringify(state))).size).toBeGreaterThan(20);
  });

  it.each<MachineOptions>([{ partition: 'per-device' }, { partition: 'single', shuffleSeed: 3 }])(
    'are the same with %o',
    async (how) => {
      const others = await statesOf(scenario, how);
      for (const [step, states] of (await expected()).entries())
        for (const [node, state] of states.entries())
          expect(differencesOf(`step ${step}, node ${node}`, state, others[step]![node])).toEqual([]);
    },
  );
});
