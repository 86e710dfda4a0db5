/** Eight PCs of this process on one switch, with InfiniBand: all have drivers, and pairs of them exchange data at the same time. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LinuxMachine, linuxFaultsOf, linuxReportOf } from '../../guests/linux/index.ts';
import { cache, insideBootTimeoutMs, reasonAgainstInside, slowPc } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const hostCount = 8;
const pairs = [0, 1, 2, 3];

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('eight stock Linuxes', () => {
  let machine: LinuxMachine;
  beforeAll(async () => {
    expect(reason).toBeUndefined();
    machine = await LinuxMachine.start({ kernel: 'debian', cache, pc: slowPc, hosts: hostCount });
    await machine.load();
  }, 2 * insideBootTimeoutMs);
  afterAll(() => machine?.close());

  it('have GUIDs of their own', { timeout: insideBootTimeoutMs, retry: 0 }, async () => {
    for (let node = 0; node < hostCount; node++)
      expect(await machine.check(node, 'ibv_devinfo')).toContain(`node_guid:\t\t\t0002:c903:0000:00${node}0`);
  });

  it('exchange data in four pairs at once', { timeout: insideBootTimeoutMs, retry: 0 }, async () => {
    const test = 'ibv_rc_pingpong -c -n 20';
    const limits = { timeoutSeconds: 60 };
    const servers = [];
    for (const node of pairs) servers.push(await machine.startServer(node, test, 60));
    const clients = pairs.map((node) => machine.host(node + 4).start(`${test} host${node}`, limits));
    for (const each of [...clients, ...servers]) {
      const { exitStatus, output } = await machine.finish(each);
      expect([exitStatus, output]).toEqual([0, expect.stringMatching(/^20 iters in /m)]);
    }
  });

  it('end with a report of each host', { timeout: insideBootTimeoutMs, retry: 0 }, async () => {
    const report = linuxReportOf(machine, [], await machine.compareInterrupts());
    expect(linuxFaultsOf(report)).toEqual([]);
    expect(report.hosts.map(({ name }) => name)).toEqual(
      Array.from({ length: hostCount }, (_, node) => `host${node}`),
    );
  });
});
