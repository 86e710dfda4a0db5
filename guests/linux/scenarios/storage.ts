/**
 * Storage over RDMA between two guests, by stock modules of the kernel: the initiator registers its buffers by fast registration, the
 * target reads and writes them, and its answers invalidate the keys.
 */
import type { Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const subsystem = 'disk';

/** A guest offers a disk in its memory at `address`, through configfs as nvmetcli would. */
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

/** Writes a file of 4 MiB to a disk, drops caches, and prints the checksums of the data read back and of the data written. */
const copy = (disk: string): readonly string[] => [
  `for t in $(seq 100); do [ -b ${disk} ] && break; sleep 0.1; done; [ -b ${disk} ]`,
  'dd if=/dev/urandom of=/run/file bs=64k count=64 2>/dev/null',
  `dd if=/run/file of=${disk} bs=64k conv=fsync 2>/dev/null; echo 3 >/proc/sys/vm/drop_caches`,
  `dd if=${disk} bs=64k count=64 2>/dev/null | sha256sum | cut -c1-64; sha256sum /run/file | cut -c1-64`,
];

/** The second guest connects, writes a file to the disk, drops its caches, and reads it back. */
const initiator = (address: string): string =>
  [
    `set -e; modprobe nvme_rdma; nvme connect -t rdma -n ${subsystem} -a ${address} -s 4420 -i 2 >&2`,
    ...copy('/dev/nvme0n1'),
  ].join('\n');

const title =
  'NVMe over RDMA: 4 MiB to a disk of the other guest and back, by fast registration and SEND with Invalidate';

/** @param address of the guest with the disk, used by the connection manager */
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

const guidOf = 'G=$(tr -d : </sys/class/infiniband/mlx4_0/node_guid)';
const gidOf = 'D=$(tr -d : </sys/class/infiniband/mlx4_0/ports/1/gids/0)';

/** A guest offers a file in its memory at its port, through configfs as targetcli would, to the port of this GUID. */
const srpTarget = (initiatorPort: string): string =>
  [
    `set -e; ${gidOf}; mkdir -p /sys/kernel/config; mount -t configfs none /sys/kernel/config 2>/dev/null || true`,
    'modprobe target_core_file; modprobe ib_srpt; dd if=/dev/zero of=/run/disk bs=1M count=16 2>/dev/null',
    'cd /sys/kernel/config/target; mkdir -p core/fileio_0/disk srpt; P=srpt/0x$D/0x$D',
    'echo fd_dev_name=/run/disk,fd_dev_size=16777216 >core/fileio_0/disk/control; echo 1 >core/fileio_0/disk/enable',
    'mkdir srpt/0x$D; mkdir $P; mkdir $P/lun/lun_0; T=/sys/kernel/config/target',
    'ln -s $T/core/fileio_0/disk $P/lun/lun_0/disk',
    `A=$P/acls/0x0000000000000000${initiatorPort}; mkdir $A; mkdir $A/lun_0; ln -s $T/$P/lun/lun_0 $A/lun_0/disk`,
    `echo 1 >$P/enable; ${guidOf}; echo $G $D`,
  ].join('\n');

/** The second guest logs in at that port, and uses the disk. */
const srpInitiator = (guid: string, gid: string): string =>
  [
    'set -e; modprobe -a sd_mod ib_srp',
    'for t in $(seq 50); do [ -e /sys/class/infiniband_srp/srp-mlx4_0-1 ] && break; sleep 0.1; done',
    `echo id_ext=${guid},ioc_guid=${guid},dgid=${gid},pkey=ffff,service_id=${guid} >/sys/class/infiniband_srp/srp-mlx4_0-1/add_target`,
    ...copy('/dev/sda'),
  ].join('\n');

/** A guest offers a disk by SRP, the second one logs in, writes a file and reads it back; the session remains. */
export async function loginBySrp(stage: Stage): Promise<void> {
  const own = (await stage.check(`${gidOf}; echo $D`)).trim();
  const answer = (await stage.check(srpTarget(own.slice(16)), { guest: 1 })).trim().split('\n').at(-1) ?? '';
  await useSrpDisk(stage, answer);
}

/** Guest 0 logs in at a target that guest 1 already offers. @param target its GUID and GID */
export async function useSrpDisk(stage: Stage, target: string): Promise<void> {
  const [guid = '', gid = ''] = target.split(' ');
  const [read, written] = (await stage.check(srpInitiator(guid, gid))).trim().split('\n').slice(-2);
  if (read === undefined || read !== written) throw new ScenarioFailure(`read ${read}, wrote ${written}`);
}

/** GUID and GID of the target in guest 1. */
export const srpTargetNames = (stage: Stage): Promise<string> =>
  stage.check(`${gidOf}; ${guidOf}; echo $G $D`, { guest: 1 }).then((names) => names.trim());

/** SRP step: the ports find each other by path records and connection messages on QP1. */
export const srpStep: Step = {
  title: 'SRP (ib_srp, ib_srpt): 4 MiB to a disk of the other guest and back',
  async run(stage) {
    await loginBySrp(stage);
    await stage.check('echo 1 >/sys/block/sda/device/delete; rm /run/file');
    return '4 MiB';
  },
};
