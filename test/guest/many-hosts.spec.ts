/** PCs of this process that continue from one snapshot, each as a host of its own. */
import { beforeAll, describe, expect, it } from 'vitest';
import { LinuxMachine, type LinuxMachineOptions } from '../../guests/linux/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import { cache, reasonAgainstInside } from './inside-suite.ts';

const options = {
  kernel: 'debian',
  cache,
  pc: { coreMhz: 200, memoryMib: 160 },
} as const satisfies LinuxMachineOptions;

const reason = await reasonAgainstInside(options.kernel);
const bootTimeoutMs = 300_000;
const hostCount = 4;

/** Fields that tell a host from others: its random numbers, its name and the address of its Ethernet card. */
const identity = 'cat /proc/sys/kernel/random/boot_id; hostname; cat /sys/class/net/eth0/address';

async function identitiesWith(seed: number): Promise<string[]> {
  const machine = await LinuxMachine.start({ ...options, hosts: hostCount, seed });
  await machine.joinHosts();
  const found: string[] = [];
  for (let node = 0; node < hostCount; node++) found.push(await machine.check(node, identity));
  const { output } = await machine.run(0, 'ping -c 1 host3', { timeoutSeconds: 10 });
  machine.close();
  expect(output).toContain(' 0% packet loss');
  return found;
}

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('hosts of one snapshot', () => {
  let first: string[];
  beforeAll(async () => {
    expect(reason).toBeUndefined();
    first = await identitiesWith(5);
  }, bootTimeoutMs);

  it('have random numbers, a name and an Ethernet address of their own', () => {
    const fields = first.map((text) => text.trim().split('\n'));
    expect(new Set(fields.map(([random]) => random)).size).toBe(hostCount);
    expect(fields.map(([, ...others]) => others)).toEqual(
      [0, 1, 2, 3].map((node) => [`host${node}`, `02:00:00:00:00:0${node + 1}`]),
    );
  });

  it('are the same for the same seed', { timeout: bootTimeoutMs }, async () => {
    expect(await identitiesWith(5)).toEqual(first);
  });
});

it.each([
  [{ hosts: 9 }, 'hosts is 9, expected an integer from 1 to 8'],
  [{ hosts: 1.5 }, 'hosts is 1.5, expected an integer from 1 to 8'],
  [{ hosts: 3, topology: '0-1' }, 'hcas is 3, expected an integer from 1 to 2'],
] as const)('are refused if their number is %j', async (chosen, message) => {
  const topology = 'topology' in chosen ? { topology: parsedTopology(chosen.topology) } : {};
  await expect(LinuxMachine.start({ ...options, hosts: chosen.hosts, ...topology })).rejects.toThrow(message);
});
