/** Start options of each guest of a session. */
import { join } from 'node:path';
import type { OwnFiles } from './image/own-files.ts';
import type { GuestFiles, KernelChoice } from './kernel-choice.ts';
import type { LinuxGuestOptions } from './linux-guest.ts';
import type { PeerNetwork } from './qemu.ts';

/** The guests, and their contents. */
export interface GuestChoice extends KernelChoice {
  readonly hcas: 1 | 2;
  /** A cable between two HCAs; without it each has a loopback plug. */
  readonly cable: boolean;
  /** Two guests have an HCA each; one guest has all. */
  readonly guests: 1 | 2;
  /**
   * With one HCA: guest 1 has no HCA but an ordinary network card at the other end of the HCA's cable, under Linux's
   * Soft-RoCE. Default: no.
   */
  readonly stranger?: 'rxe' | undefined;
  readonly memoryMib: number;
  readonly cpus: number;
  /** QEMU's model of the processors, such as max; left out: QEMU's own choice. */
  readonly cpuModel?: string | undefined;
  /** The user's own files and modules; left out: none. */
  readonly ownFiles?: OwnFiles;
  readonly console: LinuxGuestOptions['console'];
}

/** An emulated boot takes 4 s on an idle machine, and several times that on a busy one. */
const bootTimeoutSeconds = 120;

/**
 * @param sockets at which the HCAs are served
 * @param folder for the sockets that QEMU creates
 * @param peerNetwork of a guest with a simulated host next to it
 * @param wire socket to which a third-party endpoint connects
 */
export function guestOptionsOf(
  { guests, memoryMib, cpus, cpuModel, console }: GuestChoice,
  { qemuRoot, kernel, initramfs }: GuestFiles,
  sockets: readonly string[],
  folder: string,
  kernelParameters: readonly string[] = [],
  peerNetwork?: PeerNetwork,
  wire?: string,
): LinuxGuestOptions[] {
  const network = join(folder, 'network');
  return Array.from({ length: guests }, (_, index) => ({
    ...{
      qemuRoot,
      kernel,
      initramfs,
      memoryMib,
      cpus,
      cpuModel,
      console,
      kernelParameters,
      bootTimeoutSeconds,
    },
    name: `guest${index}`,
    adapters: guests === 1 ? sockets : sockets.slice(index, index + 1),
    wire: index === 1 ? wire : undefined,
    agentSocket: join(folder, `agent${index}`),
    network: guests === 1 ? peerNetwork : { socket: network, isServer: index === 0 },
  }));
}
