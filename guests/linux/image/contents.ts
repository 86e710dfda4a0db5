/** Contents of the guest's initial file system: programs, plug-ins, data files and kernel modules. */

/** Programs, by their paths in Debian's packages; the required libraries are found automatically. */
export const programs: readonly string[] = [
  'bin/busybox',
  'bin/kmod',
  'bin/ip',
  'usr/bin/rdma',
  'usr/bin/lspci',
  'usr/bin/setpci',
  'sbin/ethtool',
  'usr/bin/iperf3',
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
  'usr/sbin/nvme',
  ...['rping', 'ucmatose', 'udaddy'].map((test) => `usr/bin/${test}`),
  ...['ibstat', 'ibaddr', 'perfquery', 'smpquery', 'saquery', 'sminfo', 'ibportstate', 'opensm'].map(
    (tool) => `usr/sbin/${tool}`,
  ),
];

/** Plug-ins of libibverbs, loaded by name: our adapter's, Soft-RoCE's and Soft-iWARP's. */
export const plugIns: readonly string[] = ['mlx4', 'rxe', 'siw'].map(
  (name) => `usr/lib/x86_64-linux-gnu/libibverbs/lib${name}-rdmav34.so`,
);

/** Libraries that libraries load by name on first use, and that no list of needed libraries contains. */
export const lateLibraries: readonly string[] = [
  // pthread_cancel and pthread_exit unwind the stack with it (glibc, sysdeps/nptl/unwind-forcedunwind.c), or abort the program.
  'libgcc_s.so.1',
];

/** Files copied unchanged. */
export const dataFiles: readonly string[] = [
  'etc/libibverbs.d/mlx4.driver',
  'etc/libibverbs.d/rxe.driver',
  'etc/libibverbs.d/siw.driver',
  'usr/share/misc/pci.ids',
];

/** Names by which kmod selects its function. */
export const kmodNames: readonly string[] = ['modprobe', 'rmmod', 'insmod', 'lsmod', 'modinfo', 'depmod'];

/** Kernel modules: the adapter's drivers, their interfaces for user space and tests, and Soft-RoCE for comparison. */
export const modules: readonly string[] = [
  'mlx4_core',
  'mlx4_ib',
  'mlx4_en',
  'ib_uverbs',
  'ib_umad',
  'rdma_ucm',
  'ib_ipoib',
  'rdma_rxe',
  'dummy',
  '8021q',
  'crc32_generic',
  'crc32_pclmul',
  // Soft-iWARP's own module is built (soft-iwarp.ts); these are what it needs.
  ...['ib_core', 'iw_cm', 'libcrc32c', 'crc32c_generic'],
  'virtio_pci',
  'virtio_net',
  // Storage over RDMA, both sides, and its backing stores.
  ...['nvme_rdma', 'nvmet_rdma', 'ib_srp', 'ib_srpt', 'target_core_file', 'target_core_iblock', 'sd_mod'],
  ...['brd', 'loop', 'ext4', 'rds_rdma', 'rds'],
  // Files over RDMA: NFS, both sides, and its RDMA transport.
  ...['nfs', 'nfsv3', 'nfsv4', 'nfsd', 'rpcrdma'],
];
