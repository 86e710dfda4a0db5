/**
 * Stock management tools and stock opensm of a Linux in this process, on a fabric of simulated hosts and a switch. What they must show
 * is the topology: host n at port n + 1 of switch 4.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { insideFiles, LinuxMachine, type LinuxMachineOptions } from '../../guests/linux/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import { reasonAgainstInside } from './inside-suite.ts';
import { cache } from './suite.ts';

const options = {
  kernel: 'debian',
  cache,
  pc: { coreMhz: 200, memoryMib: 160 },
  topology: parsedTopology('star:4'),
} as const satisfies LinuxMachineOptions;

const reason = await reasonAgainstInside(options.kernel);
const bootTimeoutMs = 300_000;

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('a guest on a fabric', () => {
  let machine: LinuxMachine;
  const start = async (set: LinuxMachineOptions['set'] = {}): Promise<void> => {
    expect(reason).toBeUndefined();
    await insideFiles(options, cache);
    machine = await LinuxMachine.start({ ...options, set });
    await machine.load();
  };
  const run = (command: string): Promise<string> => machine.check(0, command);

  describe('that the embedded subnet manager has configured', () => {
    beforeAll(() => start(), bootTimeoutMs);
    afterAll(() => machine?.close());

    it('shows all nodes and cables to ibnetdiscover', async () => {
      const listing = await run('ibnetdiscover');
      expect(listing).toContain('Switch\t4 "S-0002c90300000040"');
      for (const node of [0, 1, 2, 3])
        expect(listing).toContain(
          `[${node + 1}]\t"H-0002c903000000${node}0"[1](2c903000000${node}1) \t\t# "hca-emulator node ${node}" lid ${node + 1} 4xQDR`,
        );
    });

    it('has links that are up and active for iblinkinfo', async () => {
      expect((await run('iblinkinfo')).match(/Active\/ {2}LinkUp/g)).toHaveLength(8);
    });

    it('has a route of two links for ibtracert', async () => {
      expect(await run('ibtracert 1 4')).toMatch(
        /From ca .* lid 1-1 [\s\S]*\[4\] -> ca port .*\[1\] lid 4-4/,
      );
    });

    it('answers ibqueryerrors for every port', async () => {
      expect(await run('ibqueryerrors || true')).toMatch(/5 nodes checked[\s\S]*8 ports checked/);
    });
  });

  describe('that nothing has configured', () => {
    beforeAll(() => start({ 'hca.control.embeddedSubnetManager': false }), bootTimeoutMs);
    afterAll(() => machine?.close());

    it('has ports that wait in Init', async () => {
      expect((await run('iblinkinfo')).match(/Initialize\/ {2}LinkUp/g)).toHaveLength(8);
    });

    it('gets LIDs, routes and active ports from opensm', async () => {
      // The state of the own port is set together with those of all others.
      const state = '/sys/class/infiniband/mlx4_0/ports/1/state';
      await run(`opensm -B; until grep -q ACTIVE ${state}; do sleep 0.1; done; sleep 0.5`);
      expect((await run('iblinkinfo')).match(/Active\/ {2}LinkUp/g)).toHaveLength(8);
      const lid = (
        await run("smpquery -D nodedesc 0,1 >/dev/null; smpquery -D portinfo 0,1 0 | sed -n 's/^Lid:\\.*//p'")
      ).trim();
      // Five nodes, a LID each; the switch's own leads to port 0.
      expect(await run(`ibroute ${lid}`)).toContain('5 valid lids dumped');
    });

    it('carries packets of data by these routes: the counters of another host', async () => {
      expect(await run('perfquery 2 1')).toMatch(/PortRcvPkts:\.+[1-9]/);
      expect(await run('ibqueryerrors || true')).toMatch(/5 nodes checked/);
      expect(machine.devices().checks.balanced).toBe(true);
    });
  });
});
