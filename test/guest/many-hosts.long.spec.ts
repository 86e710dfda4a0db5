/**
 * Eight PCs of this process on one switch, with InfiniBand: all have drivers, and pairs of them exchange data at the same time,
 * the same in every run of a seed.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { LinuxMachine, type LinuxReport, linuxFaultsOf, linuxReportOf } from '../../guests/linux/index.ts';
import { cache, insideBootTimeoutMs, reasonAgainstInside, slowPc } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const hostCount = 8;
const nodes = Array.from({ length: hostCount }, (_, node) => node);
const pairs = [0, 1, 2, 3];

/** A run: its devices, its report with all that programs printed, and the consoles, which have the kernels' messages at the end. */
interface Run {
  readonly devices: readonly string[];
  readonly report: LinuxReport;
  readonly consoles: string;
}

async function runOf(seed: number): Promise<Run> {
  const consoles = nodes.map(() => '');
  const machine = await LinuxMachine.start({
    ...{ kernel: 'debian', cache, pc: slowPc, hosts: hostCount, seed },
    onConsole: (host, text) => {
      consoles[Number(host.slice(-1))] += text;
    },
  });
  await machine.load();
  const devices: string[] = [];
  for (const node of nodes) devices.push(await machine.check(node, 'ibv_devinfo'));
  const test = 'ibv_rc_pingpong -c -n 20';
  const servers = [];
  for (const node of pairs) servers.push(await machine.startServer(node, test, 60));
  const limits = { timeoutSeconds: 60 };
  const clients = pairs.map((node) => machine.host(node + 4).start(`${test} host${node}`, limits));
  const commands = [];
  for (const [at, running] of [...clients, ...servers].entries())
    commands.push({ host: (at + 4) % hostCount, ...(await machine.finish(running)) });
  for (const node of nodes) await machine.check(node, 'dmesg >/dev/console');
  const report = linuxReportOf(machine, commands, await machine.compareInterrupts());
  machine.close();
  return { devices, report, consoles: consoles.join('\n') };
}

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('eight stock Linuxes', () => {
  let first: Run;
  beforeAll(async () => {
    expect(reason).toBeUndefined();
    first = await runOf(5);
  }, 2 * insideBootTimeoutMs);

  it('have GUIDs of their own', () => {
    for (const node of nodes)
      expect(first.devices[node]).toContain(`node_guid:\t\t\t0002:c903:0000:00${node}0`);
  });

  it('exchange data in four pairs at once', () => {
    expect(first.report.commands.map(({ host }) => host)).toEqual([4, 5, 6, 7, 0, 1, 2, 3]);
    for (const { exitStatus, output } of first.report.commands)
      expect([exitStatus, output]).toEqual([0, expect.stringMatching(/^20 iters in /m)]);
  });

  it('end with a report of each host', () => {
    expect(linuxFaultsOf(first.report)).toEqual([]);
    expect(first.report.hosts.map(({ name }) => name)).toEqual(nodes.map((node) => `host${node}`));
  });

  it('have the same report and consoles in another run of the seed, byte for byte', {
    timeout: 2 * insideBootTimeoutMs,
    retry: 0,
  }, async () => {
    expect(first.consoles).toContain('mlx4_core 0000:00:06.0');
    expect(JSON.stringify(await runOf(5))).toBe(JSON.stringify(first));
  });
});
