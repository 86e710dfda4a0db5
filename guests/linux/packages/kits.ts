/** The trees of unpacked packages of which a guest consists: the packages, and their Debian suites. */
import type { AptRequest } from './apt.ts';

export interface Kit extends AptRequest {
  /** Also the name of its folder in the cache. */
  readonly name: string;
  /** Title for users, in progress lines. */
  readonly title: string;
  /** Contains kernel modules, whose tables must be created. */
  readonly isKernel: boolean;
}

/** Dependencies of installing and configuring packages that unpacking does not need. */
const installers = [
  ...['adduser', 'base-passwd', 'debconf', 'dpkg', 'init-system-helpers', 'login.defs', 'lsb-base', 'passwd'],
  ...['perl', 'perl-base', 'sysvinit-utils', 'tar', 'udev', 'usrmerge'],
];

/** QEMU with a vfio-user client, which exists from 10.1 on. */
export const qemuKit: Kit = {
  name: 'qemu',
  title: 'QEMU',
  architecture: 'amd64',
  suites: ['trixie', 'trixie-backports'],
  preferredSuite: 'trixie-backports',
  packages: ['qemu-system-x86'],
  standIns: [...installers, 'libpam-modules', 'libpam0g'],
  isKernel: false,
};

/** Programs that run in the guest, and those with which this project makes the guest's files: kmod and xz. */
export const toolsKit: Kit = {
  name: 'tools',
  title: 'rdma-core, perftest and busybox',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: [
    ...['busybox-static', 'kmod', 'xz-utils', 'iproute2', 'pciutils', 'ethtool', 'iperf3'],
    ...[
      'ibverbs-utils',
      'ibverbs-providers',
      'rdmacm-utils',
      'infiniband-diags',
      'opensm',
      'perftest',
      'nvme-cli',
    ],
  ],
  standIns: [...installers, 'libcap2-bin'],
  isKernel: false,
};

/** The same programs for a guest of 32 bits. */
export const insideToolsKit: Kit = {
  ...toolsKit,
  name: 'tools-i386',
  title: `${toolsKit.title} of 32 bits`,
  architecture: 'i386',
};

const kernelStandIns = [...installers, 'coreutils', 'initramfs-tools', 'kmod', 'linux-base'];

/** Kernels by their names for --kernel. */
export const kernelKits = {
  debian: {
    name: 'kernel-debian',
    title: "Debian 12's kernel",
    architecture: 'amd64',
    suites: ['bookworm'],
    preferredSuite: undefined,
    packages: ['linux-image-amd64'],
    standIns: kernelStandIns,
    isKernel: true,
  },
  backports: {
    name: 'kernel-backports',
    title: "Debian 12's newer kernel",
    architecture: 'amd64',
    suites: ['bookworm', 'bookworm-backports'],
    preferredSuite: 'bookworm-backports',
    packages: ['linux-image-amd64'],
    standIns: kernelStandIns,
    isKernel: true,
  },
} as const satisfies Record<string, Kit>;

export type KernelName = keyof typeof kernelKits;

/**
 * Kernels of 32 bits by their names for --kernel: the flavour for any processor since the Pentium, the one with 64-bit page
 * tables (PAE), and a later series.
 */
export const insideKernelKits = {
  debian: {
    name: 'kernel-i386',
    title: "Debian 12's kernel of 32 bits",
    architecture: 'i386',
    suites: ['bookworm'],
    preferredSuite: undefined,
    packages: ['linux-image-686'],
    standIns: kernelStandIns,
    isKernel: true,
  },
  'debian-pae': {
    name: 'kernel-i386-pae',
    title: "Debian 12's kernel of 32 bits with PAE",
    architecture: 'i386',
    suites: ['bookworm'],
    preferredSuite: undefined,
    packages: ['linux-image-686-pae'],
    standIns: kernelStandIns,
    isKernel: true,
  },
  backports: {
    name: 'kernel-i386-backports',
    title: "Debian 12's newer kernel of 32 bits",
    architecture: 'i386',
    suites: ['bookworm', 'bookworm-backports'],
    preferredSuite: 'bookworm-backports',
    // The last one of 32 bits in the backports; no package without a version depends on it any more.
    packages: ['linux-image-6.5.0-0.deb12.4-686'],
    standIns: kernelStandIns,
    isKernel: true,
  },
} as const satisfies Record<string, Kit>;

type InsideKernelName = keyof typeof insideKernelKits;

/**
 * Sources and headers by which a module that Debian leaves out of a kernel is built.
 * @param version as `uname -r` has it, of the kernel that is there
 */
export function moduleSourceKit(kernel: KernelName, version: string): Kit {
  const { suites, preferredSuite } = kernelKits[kernel];
  const release = /^\d+\.\d+/.exec(version)![0];
  return {
    name: `module-source-${version}`,
    title: `sources and headers of Linux ${version}`,
    architecture: 'amd64',
    suites,
    preferredSuite,
    packages: [`linux-headers-${version}`, `linux-source-${release}`],
    // The compiler is this machine's, and so is its C library, which the programs of the headers use.
    standIns: [
      ...[...kernelStandIns, 'binutils', 'bzip2', 'gcc-12', 'libc6', 'libgcc-s1', 'patch', 'pahole'],
      ...['xz-utils'],
    ],
    isKernel: false,
  };
}

export const kernelNames = Object.keys(kernelKits) as KernelName[];
export const insideKernelNames = Object.keys(insideKernelKits) as InsideKernelName[];
