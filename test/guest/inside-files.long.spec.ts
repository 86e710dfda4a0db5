/**
 * The software of a guest of 32 bits, on QEMU: each named kernel boots from its image, and the stock driver and programs of
 * 32 bits work with a served HCA. The PC of this process runs the same files.
 */
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type InsideFiles,
  insideFiles,
  insideKernelNames,
  makeTemporaryFolder,
} from '../../guests/linux/index.ts';
import { LinuxGuest } from '../../guests/linux/linux-guest.ts';
import { ensureKits } from '../../guests/linux/packages/cache.ts';
import { qemuKit } from '../../guests/linux/packages/kits.ts';
import { serve } from '../../guests/serve/index.ts';
import { bootTimeoutMs, cache, reasonAgainst } from './suite.ts';

const reason = await reasonAgainst('debian');

/** Memory of the PC in this process. */
const memoryMib = 192;

async function start(files: InsideFiles): Promise<LinuxGuest> {
  const [qemuRoot] = await ensureKits([qemuKit], cache);
  const { path: folder, remove } = makeTemporaryFolder('hca-inside-');
  onTestFinished(remove);
  const machine = await serve({ socket: join(folder, 'hca'), hcas: 1, cable: false }, { onNotice: () => {} });
  onTestFinished(async () => {
    await machine.close();
  });
  const guest = await LinuxGuest.start({
    qemuRoot: qemuRoot!,
    kernel: files.bzImage,
    initramfs: files.initramfs,
    ...{ name: 'inside', memoryMib, cpus: 1, cpuModel: 'pentium3' },
    adapters: machine.sockets,
    agentSocket: join(folder, 'agent'),
    network: undefined,
    kernelParameters: [],
    console: 'kept',
    bootTimeoutSeconds: 120,
  });
  onTestFinished(() => guest.dispose());
  return guest;
}

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('a guest of 32 bits', () => {
  it.each(insideKernelNames)(
    'loads the stock driver of kernel %s and exchanges messages by its HCA',
    async (kernel) => {
      expect(reason).toBeUndefined();
      const files = await insideFiles({ kernel }, cache);
      const guest = await start(files);
      expect((await guest.check('uname -rm')).trim()).toBe(`${files.kernelVersion} i686`);
      for (const module of ['mlx4_ib', 'mlx4_en', 'ib_umad', 'rdma_ucm', 'ib_ipoib', 'ne2k_pci'])
        await guest.check(`modprobe ${module}`);
      await guest.check('until ibv_devinfo | grep -q PORT_ACTIVE; do sleep 0.2; done');
      const sides = "pair 'ibv_rc_pingpong -n 100 -g 0 -e' 'ibv_rc_pingpong -n 100 -g 0 -e localhost'";
      expect(await guest.check(sides)).toContain('100 iters in');
      for (const program of [
        '/usr/bin/ip -V',
        'rdma dev',
        'lspci -nn',
        'ethtool --version',
        'iperf3 -v',
        'ibstat',
        'ib_write_bw --version | grep Version',
      ])
        await guest.check(program);
      expect(await guest.check('/usr/sbin/modprobe -c | wc -l; dmesg')).not.toMatch(/WARNING|BUG|Call Trace/);
    },
    bootTimeoutMs,
  );

  it(
    'has storage and files over RDMA, and the subnet manager, if asked for all',
    async () => {
      const guest = await start(await insideFiles({ kernel: 'debian', extent: 'all' }, cache));
      for (const module of [
        'nvme_rdma',
        'nvmet_rdma',
        'ib_srp',
        'ib_srpt',
        'rpcrdma',
        'nfsd',
        'nfsv4',
        'rds_rdma',
      ])
        await guest.check(`modprobe ${module}`);
      expect(await guest.check('nvme version')).toContain('nvme version');
      expect(await guest.check('opensm --version')).toContain('OpenSM');
    },
    bootTimeoutMs,
  );
});
