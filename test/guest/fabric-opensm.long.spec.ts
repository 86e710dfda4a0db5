/**
 * Stock opensm of a guest brings up a fabric of sixteen hosts, of which two are guests; then those exchange data by its routes, and
 * IP over InfiniBand and rdma_cm work across the switch.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LinuxMachine, type LinuxMachineOptions } from '../../guests/linux/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import { cache, insideBootTimeoutMs, reasonAgainstInside, slowPc } from './inside-suite.ts';

const options = {
  kernel: 'debian',
  cache,
  pc: slowPc,
  hosts: 2,
  topology: parsedTopology('star:16'),
  set: { 'hca.control.embeddedSubnetManager': false },
} as const satisfies LinuxMachineOptions;

const reason = await reasonAgainstInside(options.kernel);

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('sixteen hosts and opensm', () => {
  let machine: LinuxMachine;
  const run = (node: number, command: string, seconds = 60): Promise<string> =>
    machine.check(node, command, command, seconds);

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    machine = await LinuxMachine.start(options);
    await machine.load();
  }, insideBootTimeoutMs);
  afterAll(() => machine?.close());

  it('get LIDs and active ports', { timeout: insideBootTimeoutMs, retry: 0 }, async () => {
    await run(0, 'opensm -B');
    const state = '/sys/class/infiniband/mlx4_0/ports/1/state';
    for (const node of [0, 1])
      await run(node, `until grep -q ACTIVE ${state}; do sleep 0.1; done; sleep 0.5`);
    // Both ends of sixteen cables.
    expect((await run(0, 'iblinkinfo')).match(/Active\/ {2}LinkUp/g)).toHaveLength(32);
  });

  it('carry a ping-pong of two guests', { timeout: insideBootTimeoutMs, retry: 0 }, async () => {
    const server = await machine.startServer(0, 'ibv_rc_pingpong -c -n 50', 30);
    expect(await run(1, 'ibv_rc_pingpong -c -n 50 host0')).toMatch(/^50 iters in /m);
    expect((await machine.finish(server)).exitStatus).toBe(0);
  });

  it('have IP over InfiniBand, whose groups opensm manages', {
    timeout: insideBootTimeoutMs,
    retry: 0,
  }, async () => {
    for (const node of [0, 1])
      await run(node, `modprobe ib_ipoib && ip addr add 10.1.0.${node + 1}/24 dev ib0 && ip link set ib0 up`);
    for (const node of [0, 1])
      await run(node, 'until [ "$(cat /sys/class/net/ib0/operstate)" = up ]; do sleep 0.1; done');
    expect(await run(0, 'ping -c 3 -i 0.1 10.1.0.2')).toContain(' 0% packet loss');
    const server = await machine.startServer(1, 'iperf3 -s -1', 60);
    expect(await run(0, 'iperf3 -c 10.1.0.2 -n 256K')).toContain('receiver');
    expect((await machine.finish(server)).exitStatus).toBe(0);
  });

  it.each([
    ['rping', 'rping -s -C 5 -v', 'rping -c -a 10.1.0.2 -C 5 -v', /ping data: rdma-ping-4/],
    ['ucmatose', 'ucmatose -C 5', 'ucmatose -s 10.1.0.2 -C 5', /return status 0/],
  ])(
    'connect by rdma_cm: %s',
    { timeout: insideBootTimeoutMs, retry: 0 },
    async (_, served, client, said) => {
      const server = await machine.startServer(1, served, 60);
      expect(await run(0, client)).toMatch(said);
      await machine.finish(server);
    },
  );

  it('end with ledgers that balance', () => {
    expect(machine.devices().checks.balanced).toBe(true);
  });
});
