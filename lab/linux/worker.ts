/** The worker that runs a stock Linux. It alone may fetch, and only from the lab's own server (cli/lab/lab-server.ts). */
import { expose } from 'comlink';
import { type LinuxOffer, linuxPaths } from '../../guests/linux/booted/index.ts';
import type {
  LabLinux,
  LinuxEvent,
  LinuxInput,
  LinuxMoment,
  LinuxOrder,
  LinuxProgress,
} from '../protocol.ts';
import { LinuxSession } from './linux-session.ts';

// v86 would start a worker of its own, for turns of the event loop that it does not take here.
Reflect.deleteProperty(globalThis, 'Worker');

async function fetched(path: string): Promise<Response> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`the lab's server has no ${path} (${response.status})`);
  return response;
}

async function bytesOf(path: string): Promise<Uint8Array> {
  const response = await fetched(path);
  return new Uint8Array(await response.arrayBuffer());
}

class LinuxWorker implements LabLinux {
  #session: LinuxSession | undefined;
  /** Both files are kept, so that going back needs no server. */
  #files: Promise<readonly [coreCode: Uint8Array, snapshot: Uint8Array]> | undefined;

  async snapshotState(): Promise<LinuxOffer | undefined> {
    const response = await fetch(linuxPaths.offer);
    return response.ok ? ((await response.json()) as LinuxOffer) : undefined;
  }

  async make(): Promise<void> {
    await fetch(linuxPaths.snapshot, { method: 'POST' });
  }

  async run(order: LinuxOrder, onProgress: (progress: LinuxProgress) => void): Promise<void> {
    this.#session?.stop();
    const offer = await this.snapshotState();
    if (offer?.pc === undefined || offer.versions === undefined)
      throw new Error('the snapshot is yet to be made');
    this.#files ??= Promise.all([bytesOf(linuxPaths.core), bytesOf(linuxPaths.snapshot)]);
    const [coreCode, snapshot] = await this.#files;
    this.#session = new LinuxSession(order, onProgress);
    await this.#session.run({ coreCode, snapshot, pc: offer.pc, versions: offer.versions });
  }

  type(host: number, text: string): void {
    this.#session?.type(host, text);
  }

  pause(): void {
    this.#session?.pause();
  }

  resume(event?: LinuxEvent): void {
    this.#session?.resume(event);
  }

  moment(): LinuxMoment | undefined {
    return this.#session?.moment();
  }

  inputs(): readonly LinuxInput[] {
    return this.#session?.inputs ?? [];
  }

  eventStepBefore(step: number): number | undefined {
    return this.#session?.eventStepBefore(step);
  }

  report(): string {
    return this.#session?.report() ?? '';
  }
}

expose(new LinuxWorker());
