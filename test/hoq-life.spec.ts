/**
 * A receiver that stands still congests a tree of two switches, and a flow that does not go there waits, too: unless
 * the output to the receiver drops packets that are the first of their queues for too long (IBTA volume 1, 18.2.5.4).
 *
 *     host 0 ═╗                ╔═ host 1 sends to hosts 0 and 3
 *             ╠ switch 4 ═══ 5 ╣
 *     host 2 ═╝                ╚═ host 3
 */
import { describe, expect, it, vi } from 'vitest';
import { FabricRunError } from '../experiments/runs/fabric-failure.ts';
import runFabric from '../experiments/runs/fabric-run.ts';
import { type Link, parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';
import { smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const pauseMs = 20;
/** 4.096 us x 2^6. */
const lifeMs = 0.262_144;

const cable = (node: number, at: number, port: number, limits: Partial<Link> = {}): Link => ({
  ends: [
    { node, port: node === 4 ? 3 : 1 },
    { node: at, port },
  ],
  ...limits,
});

/** The cable of host 0 is held up with its 40th packet, which came from host 2. All others have HOQLife 18: 1.07 s. */
function congested(limits: Partial<Link>) {
  const nodes = ['host', 'host', 'host', 'host', 'switch', 'switch'].map((kind) => ({
    kind: kind as 'host' | 'switch',
  }));
  const links = [cable(0, 4, 1, limits), cable(2, 4, 2), cable(1, 5, 1), cable(3, 5, 2), cable(4, 5, 3)];
  const faults = [{ packet: 'late', node: 4, to: 0, nth: 40, delay: `${pauseMs}ms` } as const];
  const args = { pattern: 'victim', verb: 'write', hostCount: 4, sizeBytes: 16_384 } as const;
  return runFabric({
    machine: { topology: { nodes, links }, set: smallMemory, faults },
    args: { ...args, messages: 30, window: 8 },
  });
}

describe('a receiver that stands still', () => {
  const victimMs = async (limits: Partial<Link>) => {
    const { report, flows, isEqual } = await congested(limits);
    expect(isEqual).toBe(true);
    expectBalanced(report);
    const [own, other] = report.switches!;
    expect(other!.ports.map(({ notForwarded }) => notForwarded)).toEqual([{}, {}, {}]);
    const { durationPs } = flows.find(({ from, to }) => from === 1 && to === 3)!;
    return { ms: durationPs / 1e9, drops: own!.ports[2]!.notForwarded };
  };

  it('delays a victim until it moves again, if HOQLife is longer than that', async () => {
    const { ms, drops } = await victimMs({});
    expect(ms).toBeGreaterThan(pauseMs);
    expect(drops).toEqual({});
  });

  it('delays it by HOQLife for each packet that waits before it: 8 messages of 4 packets', async () => {
    const { ms, drops } = await victimMs({ hoqLife: 6 });
    expect(drops).toEqual({ hoqLife: 32 });
    expect(ms).toBeLessThanOrEqual(33 * lifeMs);
    expect(ms).toBeGreaterThan(20 * lifeMs);
  });

  it('delays it by HOQLife twice with VLStallCount 2: the other packets before it are dropped at once', async () => {
    const { ms, drops } = await victimMs({ hoqLife: 6, vlStallCount: 2 });
    expect(drops).toEqual({ hoqLife: 2, vlStalled: 30 });
    expect(ms).toBeGreaterThan(2 * lifeMs);
    expect(ms).toBeLessThan(3 * lifeMs);
  });
});

describe('a run that fails', () => {
  it.each([
    [{ 'switch.vlStallCount': 1 }, /HOQLife, and \d+ in lanes that these drops had stalled \(VLStallCount\)/],
    [
      { 'switch.hoqLife': 20, 'switch.lifetimeValue': 18 },
      /dropped \d+ packets that had been in a switch longer than LifeTimeValue/,
    ],
  ])('names the limits that dropped packets: %j', async (set, message) => {
    const failed = runFabric({
      machine: { topology: parsedTopology('ring:6'), set: { ...smallMemory, ...set } },
      args: {
        ...{ pattern: 'all-to-all', verb: 'write', hostCount: 6, sizeBytes: 65_536, messages: 8, window: 16 },
      },
    });
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.toThrow(FabricRunError);
  });
});
