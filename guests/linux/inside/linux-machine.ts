/**
 * Stock Linuxes on PCs of this process, with our HCAs in them, from a snapshot to the report. Nothing here reads a
 * wall clock but the watchdog: the same options and commands give the same output, the same instants and the same report.
 *
 *     snapshot of a booted Linux (made once) ─► each PC ─► load(): drivers ─► start, run … ─► report()
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ConfigurationError, codeOf } from '../../../base/index.ts';
import type { AnalysisOptions } from '../../../machine/analysis/index.ts';
import type { FaultPlan } from '../../../machine/faults/index.ts';
import { loadProgram } from '../../../machine/index.ts';
import type { ParameterValues } from '../../../machine/profile/index.ts';
import { parsedTopology, type TopologyEntry } from '../../../machine/topology/index.ts';
import { replaceFile } from '../../../runtime/files.ts';
import { type BootFiles, coreCode, coreVersion, type PcConfig, PcMachine } from '../../pc/index.ts';
import {
  type DevicesOrder,
  devicesOrderOf,
  type PeerOptions,
  type PeerProgram,
  servedHcasMax,
} from '../../serve/index.ts';
import {
  BootedLinux,
  type BootedOrder,
  type BootedPc,
  type BootedPcs,
  i386Linux,
  type KernelCosts,
  kernelCostsOf,
  LinuxHost,
  type LinuxVersions,
  pcConfigOf,
} from '../booted/index.ts';
import { figuresOf, type GuestFigures } from '../budget.ts';
import { GuestError } from '../guest-error.ts';
import { moduleNameOf, noOwnFiles, type OwnFiles, ownFilesArchive } from '../image/own-files.ts';
import { listModules } from '../load-commands.ts';
import { withArchive } from '../own-image.ts';
import { type CacheOptions, packagesOfKit } from '../packages/cache.ts';
import { type GuestProfile, guestProfileOf } from './guest-profile.ts';
import { kernelSymbolsOf, modulesCommand } from './guest-symbols.ts';
import { areInsideKitsThere, type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
import { bootedOfSnapshot, checkForSnapshot, type LinuxSnapshot, takeSnapshot } from './linux-snapshot.ts';
import { programOf } from './program-name.ts';
import { readSnapshot, snapshotPath, writeSnapshot } from './snapshot-cache.ts';

/** A profile of the guests' processors: see guest-profile.ts. */
interface GuestProfileOptions {
  /**
   * Limit of every quantum: samples are finer, and devices catch up as often, which may change the order of events. Left out:
   * quanta, and so all that happens, are as without a profile.
   */
  readonly quantumInstructions?: number;
}

export interface LinuxMachineOptions extends InsideChoice {
  readonly cache: CacheOptions;
  /**
   * PCs, each with an HCA, 1 (default) to {@link linuxHostsMax}. Without `topology`, the HCA of one has a loopback plug, those of two
   * are joined by a cable, and those of more by a switch.
   */
  readonly hosts?: number;
  /** Hosts and switches, the first hosts of which are the PCs; the others are simulated. Left out: as `hosts` says. */
  readonly topology?: TopologyEntry | undefined;
  /** Default: `servedProfile`. */
  readonly profile?: string;
  readonly set?: ParameterValues;
  /** Parameters of the PCs. */
  readonly pc?: Partial<PcConfig>;
  /**
   * Seed of the guests' random numbers and of everything that the devices draw at random. Default: the profile's `machine.seed`.
   * A snapshot is the same for every seed: guests receive theirs when they continue from it.
   */
  readonly seed?: number;
  /**
   * The user's own files and modules, in an archive after the initial file system, so that they are there from the boot on. The
   * snapshot is therefore one of these contents, and new contents boot once: some twenty seconds of one processor, and the files
   * cost the guest no simulated time, whatever their size. Typed in over the agent's line a module of a megabyte would take about
   * as long in every run, and its typing would be a part of what the run measures.
   */
  readonly ownFiles?: OwnFiles | undefined;
  /** Receives what a guest writes to its console, from its boot on: single characters. */
  readonly onConsole?: ((host: string, text: string) => void) | undefined;
  readonly faults?: FaultPlan;
  /** A simulated host with a user's program at the other end of the one PC's cable; left out: none. */
  readonly peer?: Omit<PeerOptions, 'guestPorts'> | undefined;
  readonly analysis?: AnalysisOptions;
  readonly shortcuts?: boolean;
  /** Seed of what may happen by chance: interrupts later, other quanta, other costs; left out: nothing does. */
  readonly jitter?: number | undefined;
  /** Further parameters of the kernel, such as `pci=nomsi` for an adapter that interrupts by its pin. */
  readonly kernelParameters?: readonly string[];
  /** Called in words with what takes long, and with records that were not written after a failure. */
  readonly onNotice?: (text: string) => void;
  /** Left out: no profile is taken, which costs nothing. */
  readonly cpuProfile?: GuestProfileOptions;
  /** Whether to boot although there is a snapshot in the cache. */
  readonly isFresh?: boolean;
  /** Every PC continues from this state of {@link LinuxMachine.snapshot} instead of a fresh boot's. */
  readonly snapshot?: LinuxSnapshot | undefined;
}

/**
 * A kernel whose timers need no calibration, and which trusts the processor's random numbers: they are the seed's. It omits the
 * tests of its ciphers and the keys that sign modules, whose arithmetic is nine tenths of a boot's instructions.
 */
const ownParameters = [
  ...['console=ttyS0', 'quiet', 'hca.name=host', 'random.trust_cpu=on', 'mitigations=off'],
  // A panic resets the PC at once, which ends the guest.
  ...['tsc=reliable', 'lpj=400000', 'no_timer_check', 'panic=-1'],
  ...['cryptomgr.notests', 'initcall_blacklist=load_system_certificate_list'],
];
/** Steps between two turns of the event loop. */
const stepsPerTurn = 4096;
const bootSeconds = 120;
/** PCs of a machine at most. */
export const linuxHostsMax = servedHcasMax;
const psPerSecond = 1e12;

export class LinuxMachine extends BootedLinux {
  readonly files: InsideFiles;
  readonly options: LinuxMachineOptions;
  readonly #inputs: string;

  private constructor(
    options: LinuxMachineOptions,
    { files, path }: SnapshotPlace,
    order: BootedOrder,
    pcs: BootedPcs,
  ) {
    super(order, pcs);
    this.options = options;
    this.files = files;
    this.#inputs = basename(path);
    const { onConsole } = options;
    if (onConsole !== undefined)
      for (const host of this.hosts) host.onConsole = (text) => onConsole(host.name, text);
  }

  /**
   * Linux on every PC, whose agent waits for commands; no driver of ours is loaded. Boots once, and later continues from there.
   * @throws ConfigurationError for options; GuestError if Linux does not start
   */
  static async start(options: LinuxMachineOptions): Promise<LinuxMachine> {
    const { hosts = 1, ownFiles = noOwnFiles } = options;
    const place = await placeOf(options);
    const { order, pcConfig, files } = place;
    const booted = await bootedFor(options, place);
    const bootedOrder: BootedOrder = {
      ...{ coreCode: coreCode(), devices: order, pc: pcConfig, hosts, versions: versionsOf(files) },
      modules: ownFiles.modules.map(moduleNameOf),
      jitter: options.jitter,
      profile: options.cpuProfile && { ...options.cpuProfile, programOf, kernel: i386Linux },
      peer: await programOfPeer(order),
    };
    const pcs = await BootedLinux.pcsOf(bootedOrder);
    const machine = new LinuxMachine(options, place, bootedOrder, pcs);
    await machine.continueFrom(booted);
    return machine;
  }

  /**
   * The state of a host, for {@link LinuxMachineOptions.snapshot}. Time first passes until Linux will seed its random
   * numbers again: as much as since power-on, and a second.
   * @throws ConfigurationError for a host that does not exist; GuestError if a command runs in it, or a driver has
   * accessed its HCA
   */
  async snapshot(node = 0): Promise<LinuxSnapshot> {
    const host = this.host(node);
    checkForSnapshot(host);
    const { nowPs } = host.pc.clock;
    await this.until(() => host.pc.clock.nowPs >= settledInstant(nowPs));
    return await takeSnapshot(host, this.#inputs);
  }

  /** Counts of each HCA so far. */
  figures(): GuestFigures[] {
    return this.devices().nodes.map(figuresOf);
  }

  /** Ends the traces, and writes the packets of the cable if a file was requested. */
  override close(): void {
    super.close();
    const file = this.options.analysis?.capture?.file;
    const bytes = this.machine.emulation.capture();
    if (file !== undefined && bytes !== undefined) replaceFile(file, bytes);
  }

  /** {@link close} after a failure, which must remain the reported one: a record that cannot be written is a notice. */
  abandon(): void {
    try {
      this.close();
    } catch (error) {
      this.options.onNotice?.(`traces or packets up to the failure were not written (${codeOf(error)})`);
    }
  }

  /** Forgets what was profiled so far; without a profile it does nothing. */
  beginCpuProfile(): void {
    for (const pc of this.machine.pcs) pc.beginProfile();
  }

  /** Costs of each host's kernel since the start or {@link beginCpuProfile}; none without a profile. */
  kernelCosts(): KernelCosts[] {
    return this.hosts.flatMap(({ name, pc }) => kernelCostsOf(name, pc, this.config) ?? []);
  }

  /**
   * Account of each host's processor since the start or {@link beginCpuProfile}. Then asks each for its modules' addresses, which
   * takes simulated time; one that runs a command, or has ended, is not asked.
   * @throws ConfigurationError if the machine was started without a profile
   */
  async cpuProfile(): Promise<GuestProfile[]> {
    const counts = this.hosts.map(({ pc }) => pc.profile);
    const symbols = kernelSymbolsOf(this.files);
    const profiles: GuestProfile[] = [];
    for (const [node, host] of this.hosts.entries()) {
      const count = counts[node];
      if (count === undefined)
        throw new ConfigurationError('cpuProfile', undefined, 'options, when the machine is started');
      const isAsked = host.isReady && !host.isBusy;
      const modules = isAsked ? await this.check(node, modulesCommand, 'listing the modules') : undefined;
      profiles.push(guestProfileOf(host.name, count, symbols(modules), isAsked));
    }
    return profiles;
  }
}

async function programOfPeer({ peer }: DevicesOrder): Promise<PeerProgram | undefined> {
  if (peer === undefined) return undefined;
  const { name, args, url, exportName } = peer;
  return { name, args, run: await loadProgram(url, exportName) };
}

/** The state from which the PCs continue: given, kept in the cache, or of a boot, which is then kept. */
async function bootedFor(options: LinuxMachineOptions, place: SnapshotPlace): Promise<BootedPc> {
  const { snapshot, isFresh = false, onNotice = () => {} } = options;
  const { order, pcConfig, files, own, path } = place;
  if (snapshot !== undefined && isFresh)
    throw new ConfigurationError('isFresh', isFresh, 'left out with a snapshot');
  if (snapshot !== undefined) return bootedOfSnapshot(snapshot, basename(path));
  const kept = isFresh ? undefined : readSnapshot(path);
  if (kept !== undefined) return kept;
  onNotice('booting Linux once; later runs continue from here');
  const booted = await boot(options, files, own, order, pcConfig);
  writeSnapshot(path, booted);
  return booted;
}

/** Inputs of a run, and the path of their snapshot. */
interface SnapshotPlace {
  readonly order: DevicesOrder;
  readonly pcConfig: PcConfig;
  readonly files: InsideFiles;
  /** Archive of the user's own files. */
  readonly own: Uint8Array;
  readonly path: string;
}

/** Fetches missing parts. @throws ConfigurationError for options */
async function placeOf(options: LinuxMachineOptions): Promise<SnapshotPlace> {
  const { ownFiles = noOwnFiles, cache } = options;
  const order = checkedOrder(options);
  const pcConfig = pcConfigOf(options.pc);
  const files = await insideFiles(options, cache);
  const own = ownFilesArchive(ownFiles, files.kernelVersion, pcConfig.memoryMib);
  const inputs = [
    coreVersion,
    basename(files.bzImage),
    files.initramfs,
    commandLineOf(options),
    pcConfig,
    order.config.pcie,
  ];
  const ownDigest = own.length === 0 ? [] : [createHash('sha256').update(own).digest('hex')];
  return {
    ...{ order, pcConfig, files, own },
    path: snapshotPath(cache.folder, [...inputs, ...ownDigest], own.length > 0),
  };
}

/**
 * The snapshot for these options, and what a page needs beside it; undefined if it is yet to be made. Fetches nothing, and boots
 * nothing.
 * @internal
 */
export async function keptLinux(options: LinuxMachineOptions): Promise<KeptLinux | undefined> {
  if (!areInsideKitsThere(options, options.cache)) return undefined;
  const { path, pcConfig, files } = await placeOf(options);
  return existsSync(path) ? { path, pc: pcConfig, versions: versionsOf(files) } : undefined;
}

/** @internal */
export interface KeptLinux {
  /** Path of the snapshot, for `readSnapshot`. */
  readonly path: string;
  readonly pc: PcConfig;
  readonly versions: LinuxVersions;
}

/** @throws ConfigurationError naming the option */
function checkedOrder(options: LinuxMachineOptions): DevicesOrder {
  const { hosts = 1, profile, set, seed, faults, shortcuts, analysis, peer } = options;
  if (!Number.isInteger(hosts) || hosts < 1 || hosts > linuxHostsMax)
    throw new ConfigurationError('hosts', hosts, `an integer from 1 to ${linuxHostsMax}`);
  const topology = options.topology ?? (hosts > 2 ? parsedTopology(`star:${hosts}`) : undefined);
  return devicesOrderOf({
    ...{ hcas: hosts, cable: hosts === 2 && topology === undefined },
    ...(topology === undefined ? {} : { topology }),
    ...(profile === undefined ? {} : { profile }),
    ...(set === undefined ? {} : { set }),
    ...(seed === undefined ? {} : { seed }),
    ...(faults === undefined ? {} : { faults }),
    ...(shortcuts === undefined ? {} : { shortcuts }),
    ...(analysis === undefined ? {} : { analysis }),
    ...(peer === undefined ? {} : { peer }),
  });
}

function versionsOf({ kernelVersion, toolsRoot }: InsideFiles): LinuxVersions {
  const packages = packagesOfKit(toolsRoot);
  const versionOf = (name: string): string =>
    packages.find((each) => each.name === name)?.version ?? 'unknown';
  return {
    kernel: kernelVersion,
    rdmaCore: versionOf('libibverbs1'),
    perftest: versionOf('perftest'),
    v86: coreVersion,
  };
}

/** Boots one PC to the point at which its agent waits, the same for every seed and without faults. @throws GuestError */
async function boot(
  { onConsole, kernelParameters }: LinuxMachineOptions,
  files: InsideFiles,
  own: Uint8Array,
  { config }: DevicesOrder,
  pc: PcConfig,
): Promise<BootedPc> {
  if (files.vmlinux === undefined)
    throw new ConfigurationError(
      'kernel',
      files.bzImage,
      'one that this machine can decompress (gzip, xz, zstd)',
    );
  const machine = await PcMachine.make({
    ...{
      coreCode: coreCode(),
      config,
      pc,
      pcCount: 1,
      cabling: 'loopback',
      faults: [],
      analysis: undefined,
      seed: 0,
    },
  });
  const host = new LinuxHost('host', machine.pcs[0]!);
  if (onConsole !== undefined) host.onConsole = (text) => onConsole(host.name, text);
  machine.load([bootFilesOf(files, own, commandLineOf({ kernelParameters }))]);
  const limitPs = bootSeconds * psPerSecond;
  const until = async (isDone: () => boolean): Promise<void> => {
    for (let steps = 1; !isDone(); steps++) {
      machine.step();
      if (machine.isOver || host.pc.clock.nowPs > limitPs)
        throw new GuestError(
          `Linux does not start; its console ends:\n${host.consoleText.slice(-consoleShown)}`,
        );
      if (steps % stepsPerTurn === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
  await until(() => host.isReady);
  if (own.length > 0) {
    const listing = host.start(listModules, { timeoutSeconds: bootSeconds });
    await until(() => listing.result !== undefined || listing.failure !== undefined);
    if (listing.result?.exitStatus !== 0)
      throw new GuestError(`listing your modules: ${listing.result?.output}`);
  }
  const settledPs = settledInstant(host.pc.clock.nowPs);
  await until(() => host.pc.clock.nowPs >= settledPs);
  return { pc: await host.pc.snapshot(), consoleText: host.consoleText };
}

const consoleShown = 1000;

const commandLineOf = ({
  kernelParameters = [],
}: {
  readonly kernelParameters?: readonly string[] | undefined;
}): string => [...ownParameters, ...kernelParameters].join(' ');

/**
 * Uptime of a guest when its snapshot is taken. Linux seeds its random numbers again, from the processor's, when it needs one and
 * the last seed is older than a second and half the uptime (its drivers/char/random.c): so a guest that continues has random
 * numbers of its own seed from its first command on.
 */
const settledInstant = (readyPs: number): number => 2 * readyPs + psPerSecond;

const bootFilesOf = (
  { bzImage, vmlinux, initramfs }: InsideFiles,
  own: Uint8Array,
  commandLine: string,
): BootFiles => ({
  bzImage: readFileSync(bzImage),
  vmlinux: readFileSync(vmlinux!),
  initramfs: withArchive(readFileSync(initramfs), own),
  commandLine,
});
