/** The Linux that the lab's server offers to its page. */
import type { PcConfig } from '../../pc/index.ts';
import type { LinuxVersions } from './booted-linux.ts';

export interface LinuxOffer {
  /** `absent`: it must first be made. */
  readonly phase: 'absent' | 'making' | 'ready' | 'failed';
  /** The command that makes it. */
  readonly command: string;
  /** Lines that the command has printed so far. */
  readonly notices: readonly string[];
  /** Parameters of the PC, and versions; undefined unless it is ready. */
  readonly pc?: PcConfig;
  readonly versions?: LinuxVersions;
}

/** Paths at the lab's server. */
export const linuxPaths = {
  /** Answers with a {@link LinuxOffer}. */
  offer: '/linux/offer',
  /** GET: the snapshot as bytes (booted-pc.ts). POST: begins to make it. */
  snapshot: '/linux/snapshot',
  /** v86's machine code. */
  core: '/linux/core.wasm',
} as const;
