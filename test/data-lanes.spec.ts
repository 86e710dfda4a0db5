/**
 * Virtual lanes from the service level of a QP to the buffers of the far card. Expected rates are max-min fair shares by hand: in a dumbbell
 * of 8 hosts the output to host 0 serves four inputs in turn (hosts 1, 2, 3 and the trunk), a quarter of a cable each; the flow from host 1
 * to host 7 has the rest of host 1's cable, three quarters, if nothing blocks it, and host 1's own quarter if it is blocked with the incast.
 */
import { describe, expect, it, vi } from 'vitest';
import runFabric from '../experiments/runs/fabric-run.ts';
import type { FabricArgs } from '../experiments/workloads/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';
import { rowsOf } from './extent.ts';
import { bytesOf, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const lanesSet = (dataVls: string) => ({
  'wire.dataVls': dataVls,
  'wire.receiveBufferBytes': 65_536,
  'switch.inputBufferBytes': 65_536,
});

const run = (
  fabric: string,
  args: Partial<FabricArgs>,
  set: Readonly<Record<string, string | number>> = {},
  options: MachineOptions = {},
) => {
  const topology = parsedTopology(fabric);
  const hostCount = topology.nodes.filter(({ kind }) => kind === 'host').length;
  const workload = {
    pattern: 'victim',
    verb: 'write',
    sizeBytes: 65_536,
    messages: 20,
    window: 16,
    ...args,
  } as const;
  return runFabric({
    machine: { topology, ...options, set: { ...smallMemory, ...lanesSet('2'), ...set } },
    args: { hostCount, ...workload },
  });
};

describe('a victim flow', () => {
  const shares = async (victimLevel: number): Promise<readonly number[]> => {
    const row = await run('dumbbell:8', { victimLevel });
    expect(row.isEqual).toBe(true);
    expectBalanced(row.report);
    return row.flows.map(({ bytesPerSecond }) => bytesPerSecond / row.cableBytesPerSecond);
  };

  it('in a lane of its own has what the incast leaves of its cable: three quarters', async () => {
    const [from1, from2, from3, , , , victim] = await shares(1);
    expect(victim!).toBeGreaterThan(0.75 * 0.95);
    expect(victim!).toBeLessThanOrEqual(0.75);
    for (const share of [from1!, from2!, from3!]) expect(Math.abs(share - 0.25)).toBeLessThan(0.01);
  });

  it('in the lane of the incast has about a quarter', async () => {
    const victim = (await shares(0)).at(-1)!;
    expect(victim).toBeLessThan(0.27);
  });
});

describe('lanes of a cable', () => {
  it('are those of the service levels, modulo their number, and each balances', async () => {
    const row = await run('star:3', { pattern: 'outcast', serviceLevel: 3, messages: 4 });
    expectBalanced(row.report);
    for (const { from, packets, lanes } of row.report.wire) {
      const [first, second] = lanes!;
      // The QPs are connected over the exchange, not over the cable.
      expect([from, first!.packets, second!.packets]).toEqual([from, 0, packets]);
      expect(second!.receivedPackets).toBe(packets);
    }
  });

  it('are one by default: service levels change nothing, and the report has no lanes', async () => {
    const set = { 'wire.dataVls': '1' };
    const args = { pattern: 'incast', messages: 4 } as const;
    const [plain, level] = [
      await run('star:3', args, set),
      await run('star:3', { ...args, serviceLevel: 5 }, set),
    ];
    expect(level.durationPs).toBe(plain.durationPs);
    expect(level.report.wire).toEqual(plain.report.wire);
    expect(level.report.wire.some(({ lanes }) => lanes !== undefined)).toBe(false);
  });

  it('discard packets of a service level without a lane: the requester gives up', async () => {
    const set = { 'lanes.slToVl.sl4': 15 };
    await expect(
      run('star:3', { pattern: 'incast', serviceLevel: 4, messages: 1, sizeBytes: 256 }, set),
    ).rejects.toThrow(/RETRY_EXC_ERR/);
  });

  it('share a cable by the weights of the tables', async () => {
    // Weights of 192 and 64 units: 12 KiB and 4 KiB. Both flows leave host 0 by one cable.
    const set = { 'lanes.low.vl0': 192, 'lanes.low.vl1': 64 };
    const flows = [
      { from: 0, to: 1, serviceLevel: 0 },
      { from: 0, to: 2, serviceLevel: 1 },
    ];
    const row = await run('star:3', { pattern: 'outcast', flows, messages: 30 }, set);
    const [heavy] = row.flows;
    const share = heavy!.bytesPerSecond / row.cableBytesPerSecond;
    expect(share).toBeGreaterThan(0.75 * 0.93);
    expect(share).toBeLessThanOrEqual(0.76);
  });
});

describe('a fabric with four lanes', () => {
  const set = { ...lanesSet('4'), 'wire.receiveBufferBytes': 131_072, 'switch.inputBufferBytes': 131_072 };
  const flows = [0, 1, 2, 3].flatMap((from) =>
    [0, 1, 2, 3].filter((to) => to !== from).map((to) => ({ from, to, serviceLevel: from + 4 * (to % 2) })),
  );
  const traffic = (
    options: MachineOptions = {},
    more: Readonly<Record<string, string | number>> = {},
    verb: 'write' | 'read' = 'write',
  ) =>
    run(
      'leaf-spine:2x2:4',
      { pattern: 'all-to-all', flows, verb, messages: 3, window: 2 },
      { ...set, ...more },
      options,
    );

  it.each(rowsOf(['per-device'] as const, ['per-node'] as const))(
    'has the same report in partition %s',
    async (partition) => {
      const single = await traffic();
      expect(single.isEqual).toBe(true);
      expectBalanced(single.report);
      expect(bytesOf((await traffic({ partition })).report)).toBe(bytesOf(single.report));
    },
  );

  it.each(
    rowsOf<readonly [string, MachineOptions]>(
      [['events of an instant in another order', { shuffleSeed: 7 }]],
      [
        ['no shortcuts', { shortcuts: false }],
        ['epochs of 100 us', { epochPs: 100_000_000 }],
      ],
    ),
  )('has the same report with %s', async (_what, options) => {
    expect(bytesOf((await traffic(options)).report)).toBe(bytesOf((await traffic()).report));
  });

  it('carries READs, and packets as bytes, byte for byte', async () => {
    for (const row of [await traffic({}, {}, 'read'), await traffic({}, { 'wire.packetForm': 'bytes' })]) {
      expect(row.isEqual).toBe(true);
      expectBalanced(row.report);
    }
  });
});
