/** Contents of the guest's initial file system: programs, plug-ins, data files and kernel modules. */
import { type Architecture, layoutOf } from '../packages/architecture.ts';

/**
 * How much an initial file system holds: what tests of the adapter and of its networks need; or also block devices and files over
 * RDMA.
 */
export type ImageExtent = 'adapter' | 'all';

/** The lists of an image. */
export interface ImageContents {
  readonly architecture: Architecture;
  /** Paths in Debian's packages; the required libraries are found automatically. */
  readonly programs: readonly string[];
  /** Plug-ins of libibverbs, loaded by name: our adapter's, Soft-RoCE's and Soft-iWARP's. */
  readonly plugIns: readonly string[];
  /** Libraries that libraries load by name on first use, and that no list of needed libraries contains. */
  readonly lateLibraries: readonly string[];
  /** Files copied unchanged. */
  readonly dataFiles: readonly string[];
  /** Names by which kmod selects its function. */
  readonly kmodNames: readonly string[];
  /** Kernel modules that every kernel must have, as modules or built in. */
  readonly modules: readonly string[];
  /** Kernel modules that are left out if the kernel does not have them. */
  readonly optionalModules: readonly string[];
}

const adapterPrograms = [
  ...['bin/busybox', 'bin/kmod', 'bin/ip', 'usr/bin/rdma', 'usr/bin/lspci', 'usr/bin/setpci'],
  ...['sbin/ethtool', 'usr/bin/iperf3'],
  ...[
    'devices',
    'devinfo',
    'asyncwatch',
    'rc_pingpong',
    'uc_pingpong',
    'ud_pingpong',
    'srq_pingpong',
    'xsrq_pingpong',
  ].map((test) => `usr/bin/ibv_${test}`),
  ...['write', 'read', 'send', 'atomic'].flatMap((kind) => [
    `usr/bin/ib_${kind}_bw`,
    `usr/bin/ib_${kind}_lat`,
  ]),
  ...['bw', 'lat'].map((figure) => `usr/bin/raw_ethernet_${figure}`),
  ...['rping', 'ucmatose', 'udaddy'].map((test) => `usr/bin/${test}`),
  ...[
    ...['ibstat', 'ibaddr', 'perfquery', 'smpquery', 'saquery', 'sminfo', 'ibportstate'],
    ...['ibnetdiscover', 'iblinkinfo', 'ibtracert', 'ibqueryerrors', 'ibroute', 'opensm'],
  ].map((tool) => `usr/sbin/${tool}`),
];

const otherPrograms = ['usr/sbin/nvme'];

/** The adapter's drivers, their interfaces for user space and tests. */
const adapterModules = [
  ...['mlx4_core', 'mlx4_ib', 'mlx4_en', 'ib_uverbs', 'ib_umad', 'rdma_ucm', 'ib_ipoib'],
  ...['dummy', '8021q', 'virtio_pci', 'virtio_net'],
];

const otherModules = [
  // Storage over RDMA, both sides, and its backing stores.
  ...['nvme_rdma', 'nvmet_rdma', 'ib_srp', 'ib_srpt', 'target_core_file', 'target_core_iblock', 'sd_mod'],
  ...['brd', 'loop', 'ext4', 'rds_rdma', 'rds'],
  // Files over RDMA: NFS, both sides, and its RDMA transport.
  ...['nfs', 'nfsv3', 'nfsv4', 'nfsd', 'rpcrdma'],
];

/** Soft-RoCE for comparison, and the needs of Soft-iWARP, whose own module is built (soft-iwarp.ts). */
const softwareAdapterModules = [
  ...['rdma_rxe', 'crc32_generic', 'crc32_pclmul'],
  ...['ib_core', 'iw_cm', 'libcrc32c', 'crc32c_generic'],
];

const modulesOf: Readonly<Record<Architecture, Pick<ImageContents, 'modules' | 'optionalModules'>>> = {
  amd64: { modules: [...adapterModules, ...softwareAdapterModules], optionalModules: [] },
  // The Ethernet of the PC is an NE2000. Software adapters exist in kernels without high memory only, which Debian's are not.
  i386: { modules: [...adapterModules, 'ne2k_pci'], optionalModules: [...softwareAdapterModules, 'siw'] },
};

/** The lists for guests of that architecture. */
export function contentsOf(architecture: Architecture, extent: ImageExtent): ImageContents {
  const { modules, optionalModules } = modulesOf[architecture];
  const isAll = extent === 'all';
  return {
    architecture,
    programs: [...adapterPrograms, ...(isAll ? otherPrograms : [])],
    plugIns: ['mlx4', 'rxe', 'siw'].map(
      (name) => `usr/lib/${layoutOf[architecture].libraryFolder}/libibverbs/lib${name}-rdmav34.so`,
    ),
    // pthread_cancel and pthread_exit unwind the stack with it (glibc, sysdeps/nptl/unwind-forcedunwind.c), or abort the program.
    lateLibraries: ['libgcc_s.so.1'],
    dataFiles: [
      'etc/libibverbs.d/mlx4.driver',
      'etc/libibverbs.d/rxe.driver',
      'etc/libibverbs.d/siw.driver',
      'usr/share/misc/pci.ids',
    ],
    kmodNames: ['modprobe', 'rmmod', 'insmod', 'lsmod', 'modinfo', 'depmod'],
    modules: [...modules, ...(isAll ? otherModules : [])],
    optionalModules,
  };
}
