/**
 * The state of a Linux before a driver uses its HCA: files, users, kernel settings and loaded modules of others.
 * Machines continue from it as from the boot that the cache keeps, each with a fresh HCA:
 *
 *     start ─► run … ─► snapshot() ─► start({ snapshot }) ─► load(), run …
 *                                 └─► start({ snapshot }) ─► …
 *
 * The HCA's own state is not kept, so a snapshot after a driver's first access would be one whose driver talks to an
 * HCA that was reset.
 */
import { ConfigurationError } from '../../../base/index.ts';
import type { BootedPc, LinuxHost } from '../booted/index.ts';
import { GuestError } from '../guest-error.ts';

export interface LinuxSnapshot {
  /** Names kernel, files and parameters of the PC: a machine with others cannot continue from it. */
  readonly inputs: string;
  /** @internal */
  readonly booted: BootedPc;
}

/** @throws GuestError if a command runs in the host, it has ended, or its HCA was accessed: no snapshot can be taken */
export function checkForSnapshot({ name, pc, isReady, isBusy }: SnapshotHost): void {
  if (!isReady) throw new GuestError(`${name} does not run`);
  if (isBusy) throw new GuestError(`a command still runs in ${name}: take the snapshot when it has ended`);
  const { loadCount, storeCount } = pc.function;
  if (loadCount + storeCount > 0)
    throw new GuestError(
      `a driver of ${name} has accessed the HCA ${loadCount + storeCount} times: take the snapshot before it is loaded`,
    );
}

/** Takes the snapshot of a host. @throws GuestError as {@link checkForSnapshot} */
export async function takeSnapshot(host: SnapshotHost, inputs: string): Promise<LinuxSnapshot> {
  checkForSnapshot(host);
  return { inputs, booted: { pc: await host.pc.snapshot(), consoleText: host.consoleText } };
}

/** Members of a host that a snapshot needs. */
type SnapshotHost = Pick<LinuxHost, 'name' | 'isReady' | 'isBusy' | 'consoleText'> & {
  readonly pc: {
    readonly function: Pick<LinuxHost['pc']['function'], 'loadCount' | 'storeCount'>;
    snapshot(): Promise<BootedPc['pc']>;
  };
};

/**
 * The state to continue from.
 * @param inputs of the machine that continues
 * @throws ConfigurationError if the snapshot's are others
 */
export function bootedOfSnapshot(snapshot: LinuxSnapshot, inputs: string): BootedPc {
  if (snapshot.inputs !== inputs)
    throw new ConfigurationError('snapshot', snapshot.inputs, `${inputs}: of the same kernel, files and PC`);
  return snapshot.booted;
}
