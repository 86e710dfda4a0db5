/**
 * DPDK's mlx4 driver on an Ethernet port: a stock testpmd answers pings of a second guest, whose interface uses mlx4_en. It
 * creates work queues with an indirection table, a raw-packet QP for sending, and rules of device-managed steering.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GuestSession } from '../../guests/linux/index.ts';
import { ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { bootTimeoutMs, cache, optionsFor, reasonAgainst } from './suite.ts';

const dpdkKit: Kit = {
  name: 'dpdk',
  title: 'DPDK',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['dpdk-dev', 'librte-net-mlx4-23', 'librte-mempool-ring23'],
  standIns: [
    ...[
      'debconf',
      'dpkg',
      'ucf',
      'adduser',
      'passwd',
      'base-passwd',
      'login.defs',
      'perl',
      'perl-base',
      'tar',
    ],
    ...['init-system-helpers', 'lsb-base', 'sysvinit-utils', 'sensible-utils', 'systemd', 'udev', 'usrmerge'],
    ...['media-types', 'libpam-modules', 'libpam0g', 'python3', 'pciutils', 'hwdata'],
  ],
  isKernel: false,
};

const libraries = 'lib/x86_64-linux-gnu';
const reason = await reasonAgainst('debian');
const addressOf = (guest: number): string => `10.2.0.${guest + 1}`;
const log = '/tmp/testpmd';

/** Drivers of rings and of the card; testpmd is linked with the others, which find no card. */
const drivers = ['librte_mempool_ring.so.23', 'librte_net_mlx4.so.23', 'librte_bus_pci.so.23']
  .map((file) => `-d /usr/${libraries}/${file}`)
  .join(' ');

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')("DPDK's mlx4 driver", () => {
  let session: GuestSession;

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const [tree] = await ensureKits([dpdkKit], cache);
    const place = (path: string, to = `/${path}`): string => `${join(tree!, path)}:${to}`;
    session = await GuestSession.start({
      ...optionsFor('debian', 2),
      ...{ hcas: 2, guests: 2, cable: true, cpuModel: 'max' },
      serve: { set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1' } },
      ownFiles: {
        copies: [
          place('usr/bin/dpdk-testpmd'),
          place(libraries, `/usr/${libraries}`),
          place(`usr/${libraries}`),
        ],
        modules: [],
      },
    });
  }, bootTimeoutMs);
  afterAll(() => session?.[Symbol.asyncDispose]());

  const run = async (guest: number, command: string): Promise<string> => {
    const { output, exitStatus } = await session.run(guest, command, { timeoutSeconds: 150 });
    expect(exitStatus, output).toBe(0);
    return output;
  };

  it('starts on a port of mlx4_en with device-managed steering', { timeout: 400_000 }, async () => {
    // DPDK loads no driver from below a world-writable folder.
    await run(0, 'chmod 755 / /usr');
    await run(0, 'modprobe mlx4_core log_num_mgm_entry_size=-1 && modprobe -a mlx4_en mlx4_ib ib_uverbs');
    await run(1, 'modprobe mlx4_en');
    for (const guest of [0, 1])
      await run(guest, 'until [ -d /sys/class/net/eth0 ]; do sleep 0.1; done; ip link set eth0 up');
    await run(1, `ip addr add ${addressOf(1)}/24 dev eth0`);
    const device = (await run(0, 'basename $(readlink /sys/class/net/eth0/device)')).trim();
    const command = `dpdk-testpmd --no-huge -m 256 -l 0,1 ${drivers} -a ${device} -- --auto-start --forward-mode=icmpecho --total-num-mbufs=4096 --no-mlockall --stats-period 1`;
    await run(0, `(${command} </dev/null >${log} 2>&1; echo "ended $?" >>${log}) & sleep 1`);
    const said = await run(
      0,
      `for i in $(seq 100); do grep -qE 'ended|Port statistics|NIC statistics' ${log} && break; sleep 1; done; cat ${log}`,
    );
    expect(said).toContain('net_mlx4');
    expect(said).toMatch(/Port 0: ([0-9A-F]{2}:){5}[0-9A-F]{2}/);
    expect(said).not.toContain('ended');
  });

  it('answers the ARP requests and pings of the second guest', { timeout: 400_000 }, async () => {
    for (const bytes of [56, 1400]) {
      const said = await run(1, `ping -c 5 -i 0.2 -W 10 -s ${bytes} ${addressOf(0)}; true`);
      expect(said).toMatch(/5 (packets )?received, (\+\d+ duplicates, )?0% packet loss/);
    }
  });
});
