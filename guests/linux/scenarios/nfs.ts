/**
 * Files over RDMA between two guests, by stock modules of the kernel: nfsd and the NFS client over rpcrdma (RFC 8166, 8267).
 * The client registers its buffers by fast registration, at addresses with the number of the call in their upper half, above
 * 2^53; the server reads and writes them, and its answers invalidate the keys. The kernel's files are used directly, as
 * programs of nfs-utils would.
 */
import { proDeviceId } from './ethernet-ends.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure } from './stage.ts';
import { storageStep } from './storage.ts';
import { address, ipStep } from './subnet-manager.ts';

/** The ports of NFS over RDMA (RFC 8267), of the MOUNT protocol here, and of rpcbind (RFC 1833). */
const nfsPort = 20_049;
const mountPort = 20_048;
const rpcbindPort = 111;
const server = 1;

/** Exported to the client: insecure ports, asynchronous, no check of subtrees, a number instead of the file system's (linux/nfsd/export.h). */
const exportFlags = 0x2 + 0x10 + 0x400 + 0x2000;
/** Expiry in seconds since 1970: never. */
const expiry = 2_147_483_647;
const authentication = '/proc/net/rpc/auth.unix.ip/channel';
const channelOf = (kind: 'fh' | 'export'): string => `/proc/net/rpc/nfsd.${kind}/channel`;

/**
 * A program for `nc -e` that answers calls of RPC (RFC 5531): each is a record, and its answer, accepted and successful, has
 * the same number; the procedure's number, in hexadecimal, selects the rest.
 */
const answerer = (answerOf: string): string => `#!/bin/sh
take() { dd bs=1 count=$1 2>/dev/null | xxd -p | tr -d '\\n'; }
while mark=$(take 4); [ \${#mark} = 8 ]; do
  call=$(take $((0x$mark & 0x7fffffff)))
  procedure=$(echo $call | cut -c41-48)
  answer=$(echo $call | cut -c1-8)0000000100000000000000000000000000000000${answerOf}
  printf '%08x%s' $((0x80000000 + \${#answer} / 2)) $answer | xxd -r -p
done
`;

/** Makes a port of TCP answer with such a program. */
const answerAt = (port: number, answerOf: string): string =>
  [
    `cat >/run/answer-${port} <<'END'\n${answerer(answerOf)}END`,
    `chmod +x /run/answer-${port}; (nc -ll -p ${port} -e /run/answer-${port} </dev/null >/run/answer-${port}.log 2>&1 &)`,
  ].join('\n');

/** Guest 1 offers a folder in its memory, at the port for RDMA alone. */
const serve = [
  'set -e; modprobe -a nfsd rpcrdma; mkdir -p /export; mount -t tmpfs tmpfs /export; ip link set lo up',
  // NFS 3 needs lockd, which registers its ports: this rpcbind accepts everything.
  answerAt(rpcbindPort, '00000001'),
  // No client has locks to reclaim: the grace period is as short as possible.
  'mount -t nfsd nfsd /proc/fs/nfsd; cd /proc/fs/nfsd; echo 10 >nfsv4leasetime; echo 10 >nfsv4gracetime',
  `echo "+3 +4 +4.1 +4.2" >versions; echo "nfsd ${address(0)} ${expiry} client" >${authentication}`,
  `echo "client /export ${expiry} ${exportFlags} 65534 65534 0" >${channelOf('export')}`,
  `echo 'client 1 \\x00000000 ${expiry} /export' >${channelOf('fh')}`,
  `echo "rdma ${nfsPort}" >portlist; echo 4 >threads; cat portlist`,
].join('\n');

/**
 * MNT, the procedure 1 of the MOUNT protocol (RFC 1813, appendix I), by which clients of NFS 3 get the handle of a folder: no
 * error, the handle's length, the handle, and one authentication flavour, Unix.
 */
const answerMounts = [
  'set -e; exec 3<>/proc/fs/nfsd/filehandle; echo "client /export 64" >&3; read -r handle <&3; exec 3>&-',
  `handle=\${handle#?x}; printf '00000000%08x%s0000000100000001' $((\${#handle} / 2)) $handle >/run/mounted`,
  answerAt(mountPort, '$([ $procedure = 00000001 ] && cat /run/mounted)'),
].join('\n');

const versions = ['4.0', '4.1', '4.2', '3'] as const;
type Version = (typeof versions)[number];

function mount(version: Version): string {
  const over = `proto=rdma,port=${nfsPort},addr=${address(server)},hard`;
  return version === '3'
    ? `mount -i -t nfs -o vers=3,${over},nolock,mountvers=3,mountproto=tcp,mountport=${mountPort},mountaddr=${address(server)} ${address(server)}:/export /mnt`
    : `mount -i -t nfs4 -o vers=${version},${over},clientaddr=${address(0)} ${address(server)}:/ /mnt`;
}

/** Sizes from data inside the message to data of many requests; less and more than pages. */
const sizesBytes = [1, 1000, 4096, 5000, 65_536, 1_000_001, 8_388_608] as const;

/** Files of all sizes, and their contents as seen through `folder`. */
const write = (folder: string): string =>
  sizesBytes.map((bytes) => `head -c ${bytes} /dev/urandom >${folder}/${bytes}`).join('\n');
const sums = (folder: string): string =>
  `cd ${folder} && sha256sum ${sizesBytes.join(' ')} && ls | wc -l && cd /`;

const mountStep = (version: Version): Step => ({
  title: `NFS ${version} over RDMA: files of 1 byte to 8 MiB written and read, the same at both ends`,
  async run(stage) {
    await stage.check(`mkdir -p /mnt; modprobe -a nfs nfsv3 nfsv4 rpcrdma; ${mount(version)}`);
    const mounted = await stage.check('grep " /mnt " /proc/mounts');
    if (!mounted.includes('proto=rdma') || !mounted.includes(`vers=${version}`))
      throw new ScenarioFailure(`mounted otherwise: ${mounted}`);
    // Written by the client, and by the server; read by the opposite one, whose cache is empty.
    for (const writer of ['client', 'server']) {
      const isClient = writer === 'client';
      await stage.check(`set -e\n${write(isClient ? '/mnt' : '/export')}\nsync`, {
        guest: isClient ? 0 : server,
      });
      await stage.check('echo 3 >/proc/sys/vm/drop_caches');
      const [there, here] = [
        await stage.check(sums('/export'), { guest: server }),
        await stage.check(sums('/mnt')),
      ];
      if (there !== here) throw new ScenarioFailure(`the server has\n${there}the client\n${here}`);
      await stage.check(isClient ? 'rm /mnt/*' : 'mv /mnt/1 /mnt/one && rm /mnt/*');
    }
    const left = await stage.check('umount /mnt && grep -c " /mnt " /proc/mounts || true; ls /mnt');
    if (left.trim() !== '0') throw new ScenarioFailure(`left over: ${left}`);
    const onServer = await stage.check('ls /export', { guest: server });
    if (onServer !== '') throw new ScenarioFailure(`not removed: ${onServer}`);
    return undefined;
  },
});

const steps: readonly Step[] = [
  {
    title: 'nfsd of guest 1 listens for RDMA',
    async run(stage) {
      const listens = await stage.check(serve, { guest: server });
      if (!listens.includes(`rdma ${nfsPort}`)) throw new ScenarioFailure(`listens at: ${listens}`);
      await stage.check(answerMounts, { guest: server });
      return undefined;
    },
  },
  ...versions.map(mountStep),
];

/** The adapters' interfaces have the addresses that IP over InfiniBand has elsewhere. */
const interfacesStep: Step = {
  title: 'the interfaces of both adapters have addresses, and ping each other',
  async run(stage) {
    for (const guest of [0, 1])
      await stage.check(
        `ip addr add ${address(guest)}/24 dev $(basename /sys/bus/pci/drivers/mlx4_core/0*/net/*)`,
        {
          guest,
        },
      );
    const output = await stage.check(`ping -c 3 ${address(1)}`);
    return output.split('\n').find((line) => line.includes('packet loss'));
  },
};

const common = {
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  isLoaded: true,
} as const;

export const nfs: Scenario = {
  ...common,
  name: 'nfs',
  title: 'files over RDMA: the NFS server of a guest, and the client of another',
  steps: [ipStep, ...steps],
};

/** The same by RoCE of ConnectX-3 Pros, and a disk next to it. */
export const nfsRoce: Scenario = {
  ...common,
  name: 'nfs-roce',
  title: 'files over RDMA by RoCE: the NFS server of a guest, and the client of another',
  set: {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': 'v2',
    'pcie.function.deviceId': proDeviceId,
    'ethernet.gigabitsPerSecond': 40,
  },
  steps: [interfacesStep, ...steps, storageStep(address(1), 1)],
};
