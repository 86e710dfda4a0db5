/**
 * Every verb between the adapter and Linux's Soft-RoCE (rdma_rxe) at the other end of its cable, with each as the requester,
 * over IPv4 and IPv6, at every path MTU, up to 16 MiB, and over a cable that loses, duplicates, damages and reorders packets: a
 * pyverbs program with two ends checks every byte, length, immediate, key and status.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { finishScenario, type Stage, startScenario } from '../../guests/linux/index.ts';
import { gidIndex } from '../../guests/linux/scenarios/ethernet-ends.ts';
import { badCable } from '../../guests/linux/scenarios/soft-roce-faults.ts';
import { softRoceEnds } from '../../guests/linux/scenarios/soft-roce-peer.ts';
import { pythonTree } from './pyverbs.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

const program = fileURLToPath(new URL('./every-verb.py', import.meta.url));
const reason = await reasonAgainst('debian');

const verbs = {
  RC: ['SEND', 'SEND with immediate', 'WRITE', 'WRITE with immediate', 'READ'],
  UC: ['SEND', 'SEND with immediate', 'WRITE', 'WRITE with immediate'],
  UD: ['SEND', 'SEND with immediate'],
};
/** Actions reported by the program, without their counts. */
const reliable = [
  ...[256, 512, 1024, 2048, 4096].flatMap((mtu) => verbs.RC.map((verb) => `${verb} on RC, path MTU ${mtu}`)),
  ...['compare and swap', 'fetch and add', 'SEND with Invalidate'].map(
    (verb) => `${verb} on RC, path MTU 4096`,
  ),
];
const unreliable = (['UC', 'UD'] as const).flatMap((service) =>
  verbs[service].map((verb) => `${verb} on ${service}, path MTU 1024`),
);

const cables = [
  {
    of: 'a good cable',
    faults: [],
    services: 'RC,UC,UD',
    largestBytes: 2 ** 24,
    wanted: [...reliable, ...unreliable],
  },
  { of: 'a bad cable', faults: badCable, services: 'RC', largestBytes: 2 ** 18, wanted: reliable },
];

const mayBeSkipped = reason !== undefined && process.env['CI'] !== 'true';
describe.skipIf(mayBeSkipped).each(cables)('the adapter and Soft-RoCE at $of', (cable) => {
  const { faults, services, largestBytes, wanted } = cable;
  let stage: Stage;

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const { copies } = await pythonTree();
    stage = await startScenario(
      { ...softRoceEnds, name: 'soft-roce-verbs', title: '', faults, steps: [] },
      { ...optionsFor('debian', 1), ownFiles: { copies: [...copies, program], modules: [] } },
    );
  }, bootTimeoutMs);
  afterAll(async () => {
    await stage?.session[Symbol.asyncDispose]();
  });

  it.each(['IPv6', 'IPv4'] as const)(
    'execute every verb correctly, over %s',
    { timeout: 900_000 },
    async (family) => {
      const commandOf = async (guest: 0 | 1, device: string, peer: string): Promise<string> => {
        const index = await gidIndex(stage, { guest, device }, 'v2', family);
        return `python3 /root/every-verb.py ${device} ${index} ${services} ${largestBytes} ${peer}`;
      };
      await stage.check(`test-server '${await commandOf(1, 'rxe0', '')}'`, { guest: 1 });
      const caller = await stage.run(await commandOf(0, 'mlx4_0', 'guest1'), { timeoutSeconds: 800 });
      const waiter = await stage.check('test-server-end; cat /run/server.log', { guest: 1 });
      expect(caller.exitStatus, `${caller.output}\n${waiter}`).toBe(0);
      for (const output of [caller.output, waiter]) {
        const lines = output.trim().split('\n');
        expect(lines.slice(0, -1).map((line) => line.split(':')[0])).toEqual(wanted);
        expect(lines.at(-1)).toBe('all as it should be');
      }
    },
  );

  it('end with ledgers that balance', { timeout: 300_000, retry: 0 }, async () => {
    const { report } = await finishScenario(stage);
    const fired = (report.faults ?? []).reduce((sum, fault) => sum + fault.fired, 0);
    if (faults.length > 0) expect(fired).toBeGreaterThan(40);
  });
});
