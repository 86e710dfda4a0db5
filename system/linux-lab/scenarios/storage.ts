/**
 * Storage over RDMA between two guests, by stock modules of the kernel: the initiator registers its buffers by fast registration, the
 * target reads and writes them, and its answers invalidate the keys.
 */
import type { Step } from './scenario.ts';
import { ScenarioFailure } from './stage.ts';

const subsystem = 'disk';

/** A guest offers a disk in its memory at `address`, by configfs as nvmetcli would write it. */
const target = (address: string): string =>
  [
    'set -e; mkdir -p /sys/kernel/config; mount -t configfs none /sys/kernel/config 2>/dev/null || true',
    'modprobe brd rd_nr=1 rd_size=65536; modprobe nvmet_rdma; cd /sys/kernel/config/nvmet',
    `mkdir -p subsystems/${subsystem}/namespaces/1; echo 1 >subsystems/${subsystem}/attr_allow_any_host`,
    `printf /dev/ram0 >subsystems/${subsystem}/namespaces/1/device_path; echo 1 >subsystems/${subsystem}/namespaces/1/enable`,
    'mkdir ports/1; echo rdma >ports/1/addr_trtype; echo ipv4 >ports/1/addr_adrfam',
    `echo ${address} >ports/1/addr_traddr; echo 4420 >ports/1/addr_trsvcid`,
    `ln -s /sys/kernel/config/nvmet/subsystems/${subsystem} ports/1/subsystems/`,
  ].join('\n');

/** Another connects, writes a file to the disk, forgets what it has cached, and reads it back. */
const initiator = (address: string): string =>
  [
    `set -e; modprobe nvme_rdma; nvme connect -t rdma -n ${subsystem} -a ${address} -s 4420 -i 2 >&2`,
    'for t in $(seq 100); do [ -b /dev/nvme0n1 ] && break; sleep 0.1; done',
    'dd if=/dev/urandom of=/run/file bs=64k count=64 2>/dev/null',
    'dd if=/run/file of=/dev/nvme0n1 bs=64k conv=fsync 2>/dev/null; echo 3 >/proc/sys/vm/drop_caches',
    'dd if=/dev/nvme0n1 bs=64k count=64 2>/dev/null | sha256sum | cut -c1-64; sha256sum /run/file | cut -c1-64',
  ].join('\n');

const title =
  'NVMe over RDMA: 4 MiB to a disk of the other guest and back, by fast registration and SEND with Invalidate';

/** @param address of the guest that has the disk, where the connection manager finds it */
export const storageStep = (address: string, server: 0 | 1, suffix = ''): Step => ({
  title: title + suffix,
  async run(stage) {
    const client = { guest: server === 1 ? 0 : 1 };
    await stage.check(target(address), { guest: server });
    const [read, written] = (await stage.check(initiator(address), client)).trim().split('\n').slice(-2);
    if (read === undefined || read !== written) throw new ScenarioFailure(`read ${read}, wrote ${written}`);
    await stage.check(`nvme disconnect -n ${subsystem} >&2; rm /run/file`, client);
    return '4 MiB';
  },
});
