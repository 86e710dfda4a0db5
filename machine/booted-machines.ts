/**
 * Machines for many short runs: restores a booted machine instead of booting another one of the same kind.
 *
 *     take: the 1st of a kind ─► fresh machine (where images are taken of the second: most kinds of a sweep are run once)
 *           the 2nd           ─► fresh machine, run until its drivers have probed, image taken, run on
 *           from then on      ─► image put back, other programs begin
 *
 * The report equals that of a fresh machine, byte for byte (test/machine-image.spec.ts). Two runs are of one kind if
 * everything before a program's own code is equal: every parameter, the seed, the faults, and the placement of
 * programs. The code and the arguments of the programs may differ.
 */
import { type ObjectImage, seesPrivateFields } from '../base/index.ts';
import { RunError } from '../sim/index.ts';
import { Machine, type MachineOptions } from './machine.ts';
import { configuredOf } from './machine-hash.ts';
import { canonicalJson, type MachineConfig } from './profile/index.ts';
import type { ProgramOptions } from './program.ts';

/** A machine with its programs loaded, for one run. Disposing of it returns the machine. */
export interface MachineLease extends AsyncDisposable {
  readonly machine: Machine;
}

/** Source of machines for a command. */
export interface MachineSource {
  /**
   * @param programsOf returns the programs to load for a configuration
   * @throws ConfigurationError as {@link Machine.create} and {@link Machine.load}
   */
  take(
    options: MachineOptions,
    programsOf: (config: MachineConfig) => readonly ProgramOptions[],
  ): Promise<MachineLease>;
}

/** A new machine for each run. */
export const freshMachines: MachineSource = {
  async take(options, programsOf) {
    const machine = await loadedMachine(options, programsOf);
    return { machine, [Symbol.asyncDispose]: () => machine.close() };
  },
};

async function loadedMachine(
  options: MachineOptions,
  programsOf: (config: MachineConfig) => readonly ProgramOptions[],
): Promise<Machine> {
  const machine = await Machine.create(options);
  try {
    for (const program of programsOf(machine.config)) await machine.load(program);
  } catch (error) {
    await machine.close();
    throw error;
  }
  return machine;
}

/** Machines of one kind. */
interface Kind {
  readonly key: string;
  readonly config: MachineConfig;
  /** Number of machines of this kind that were leased so far. */
  takenCount: number;
  booted: { readonly machine: Machine; readonly image: ObjectImage } | undefined;
  /** Whether the booted machine is in use, or its run did not end properly. */
  isTaken: boolean;
  /** Whether no image can be taken: hosts boot at different instants or not at all, or the slot holds a NIC. */
  isRefused: boolean;
}

export interface BootedMachinesOptions {
  /** Index of the machine of a kind whose image is taken: the first, if the kind is known to run more than once. Default: the second. */
  readonly imageOf?: 1 | 2;
  /** Number of kinds kept booted, each with the memory of its machine; the least recently used one is dropped first. Default 1. */
  readonly kindsMax?: number;
}

export class BootedMachines implements MachineSource, AsyncDisposable {
  readonly #imageOf: number;
  readonly #kindsMax: number;
  /** Kinds by key, the most recently used last. */
  readonly #kinds = new Map<string, Kind>();
  /** Runs so far that began with taking or restoring an image, and machines that booted. */
  readonly counts = { fromImage: 0, booted: 0 };

  constructor({ imageOf = 2, kindsMax = 1 }: BootedMachinesOptions = {}) {
    this.#imageOf = imageOf;
    this.#kindsMax = kindsMax;
  }

  async take(
    options: MachineOptions,
    programsOf: (config: MachineConfig) => readonly ProgramOptions[],
  ): Promise<MachineLease> {
    if (!canBeImaged(options)) return this.#fresh(options, programsOf);
    const kind = await this.#kindOf(options, programsOf);
    kind.takenCount++;
    if (kind.isTaken || kind.isRefused || kind.takenCount < this.#imageOf)
      return this.#fresh(options, programsOf);
    if (kind.booted === undefined) {
      kind.booted = await this.#boot(options, programsOf);
      if (kind.booted === undefined) {
        kind.isRefused = true;
        return this.#fresh(options, programsOf);
      }
      // The machine stands where the image was taken, and continues from there.
    } else await kind.booted.machine.beginAgain(kind.booted.image, programsOf(kind.config));
    const { machine } = kind.booted;
    this.counts.fromImage++;
    kind.isTaken = true;
    return { machine, [Symbol.asyncDispose]: async () => this.#giveBack(kind) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const kinds = [...this.#kinds.values()];
    this.#kinds.clear();
    for (const kind of kinds) await retire(kind);
  }

  async #kindOf(
    options: MachineOptions,
    programsOf: (config: MachineConfig) => readonly ProgramOptions[],
  ): Promise<Kind> {
    const machineKey = canonicalJson(options);
    const known = [...this.#kinds.values()].find(({ key }) => key.startsWith(`${machineKey}\n`));
    const config = known?.config ?? configuredOf(options).config;
    const slots = programsOf(config).map(({ node, name, core, process }) => ({ node, name, core, process }));
    const key = `${machineKey}\n${canonicalJson(slots)}`;
    const kind = this.#kinds.get(key) ?? {
      key,
      config,
      takenCount: 0,
      booted: undefined,
      isTaken: false,
      isRefused: config.machine.adapter !== 'hca',
    };
    this.#kinds.delete(key);
    for (const oldest of [...this.#kinds.values()].slice(0, this.#kinds.size + 1 - this.#kindsMax)) {
      this.#kinds.delete(oldest.key);
      await retire(oldest);
    }
    this.#kinds.set(key, kind);
    return kind;
  }

  async #fresh(
    options: MachineOptions,
    programsOf: (config: MachineConfig) => readonly ProgramOptions[],
  ): Promise<MachineLease> {
    const machine = await loadedMachine(options, programsOf);
    this.counts.booted++;
    return {
      machine,
      [Symbol.asyncDispose]: async () => {
        if (await hasEnded(machine)) await machine.retire();
        else await machine.close();
      },
    };
  }

  /** @returns undefined if no image can be taken */
  async #boot(
    options: MachineOptions,
    programsOf: (config: MachineConfig) => readonly ProgramOptions[],
  ): Promise<Kind['booted']> {
    const machine = await loadedMachine(options, programsOf);
    this.counts.booted++;
    const image = await imageOfBooted(machine);
    if (image !== undefined) return { machine, image };
    await machine.close();
    return;
  }

  /** A failed run may have left code that still waits: its machine is not used again. */
  async #giveBack(kind: Kind): Promise<void> {
    const { machine } = kind.booted!;
    kind.isTaken = false;
    if (await hasEnded(machine)) {
      if (this.#kinds.get(kind.key) !== kind) await machine.retire();
      return;
    }
    kind.booted = undefined;
    await machine.close();
  }
}

/** @returns undefined if none can be taken, for example because the boot fails, as it does in every run */
async function imageOfBooted(machine: Machine): Promise<ObjectImage | undefined> {
  try {
    await machine.runToBoot();
  } catch (error) {
    if (error instanceof RunError) return;
    throw error;
  }
  return machine.image();
}

/** Returns the memory of a kind's machine to the pool; if the machine still runs, at the end of its lease. */
async function retire({ booted, isTaken }: Kind): Promise<void> {
  if (booted !== undefined && !isTaken) await booted.machine.retire();
}

/** All programs have ended: none of their code is suspended. */
const hasEnded = async (machine: Machine): Promise<boolean> =>
  (await machine.programs()).every(({ endedPs }) => endedPs !== undefined);

/** Machine options that allow images. With any other option, for example a listener, a machine runs without an image. */
const imaged: ReadonlySet<string> = new Set<keyof MachineOptions>([
  'profile',
  'set',
  'seed',
  'nodes',
  'faults',
  'partition',
  'shuffleSeed',
  'shortcuts',
  'watch',
  'programPatienceMs',
]);

const canBeImaged = (options: MachineOptions): boolean =>
  seesPrivateFields() &&
  (options.partition ?? 'single') === 'single' &&
  Object.entries(options).every(([name, value]) => value === undefined || imaged.has(name));
