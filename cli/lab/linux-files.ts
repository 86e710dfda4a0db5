/**
 * The files of the lab's stock Linux: v86's machine code, and the snapshot that `hca linux` keeps in its cache. Nothing is read or
 * computed before the page requests it. A missing snapshot is made by the command itself, in a process of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bytesOfBooted, type LinuxOffer } from '../../guests/linux/booted/index.ts';
import {
  defaultCache,
  type KeptLinux,
  keptLinux,
  type LinuxMachineOptions,
  readSnapshot,
} from '../../guests/linux/index.ts';
import { coreCode } from '../../guests/pc/index.ts';
import { packageFolder } from '../../runtime/package-folder.ts';

/** A slow processor: perftest measures its clock for half a second of simulated time, which the page must compute. */
const labMhz = 500;
const words = ['linux', '--pc', `coreMhz=${labMhz}`, '--run', 'true'] as const;
const noticesMax = 100;

export class LinuxFiles implements Disposable {
  readonly #options: LinuxMachineOptions;
  #making: ChildProcess | undefined;
  #hasFailed = false;
  readonly #notices: string[] = [];

  constructor(
    options: LinuxMachineOptions = { kernel: 'debian', cache: defaultCache(), pc: { coreMhz: labMhz } },
  ) {
    this.#options = options;
  }

  async offer(): Promise<LinuxOffer> {
    const common = { command: `npx hca ${words.join(' ')}`, notices: this.#notices };
    if (this.#making !== undefined) return { phase: 'making', ...common };
    const kept = await this.#kept();
    if (kept !== undefined) return { phase: 'ready', ...common, pc: kept.pc, versions: kept.versions };
    return { phase: this.#hasFailed ? 'failed' : 'absent', ...common };
  }

  /** Undefined if it is yet to be made. */
  async snapshot(): Promise<Uint8Array | undefined> {
    const kept = await this.#kept();
    const booted = kept === undefined ? undefined : readSnapshot(kept.path);
    return booted === undefined ? undefined : bytesOfBooted(booted);
  }

  core(): Uint8Array {
    return coreCode();
  }

  /** Begins to make the snapshot, unless that is under way. */
  make(): void {
    if (this.#making !== undefined) return;
    this.#notices.length = 0;
    this.#hasFailed = false;
    const child = spawn(process.execPath, [join(packageFolder, 'bin/hca.js'), ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#making = child;
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (this.#notices.length < noticesMax) this.#notices.push(line);
    });
    child.on('error', ({ message }) => this.#notices.push(message));
    child.on('close', (code) => {
      this.#hasFailed = code !== 0;
      this.#making = undefined;
    });
  }

  [Symbol.dispose](): void {
    this.#making?.kill();
  }

  async #kept(): Promise<KeptLinux | undefined> {
    return await keptLinux(this.#options);
  }
}
