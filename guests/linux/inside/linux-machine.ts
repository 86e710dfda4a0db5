/**
 * One or two stock Linux on PCs of this process, with our HCAs in them, from a snapshot to the report. Nothing here reads a
 * wall clock but the watchdog: the same options and commands give the same output, the same instants and the same report.
 *
 *     snapshot of a booted Linux (made once) ─► each PC ─► load(): drivers ─► start, run … ─► report()
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import type { AnalysisOptions } from '../../../machine/analysis/index.ts';
import type { Evidence } from '../../../machine/evidence/index.ts';
import type { FaultPlan } from '../../../machine/faults/index.ts';
import type { MachineConfig, ParameterValues } from '../../../machine/profile/index.ts';
import { type DroppedRecords, mergedTimeline, type Timeline } from '../../../machine/timeline/index.ts';
import { replaceFile } from '../../../runtime/files.ts';
import { type BootFiles, coreVersion, type PcConfig, PcMachine } from '../../pc/index.ts';
import {
  buildDevicesReport,
  type DevicesOrder,
  type DevicesReport,
  devicesOrderOf,
} from '../../serve/index.ts';
import { figuresOf, type GuestFigures } from '../budget.ts';
import { GuestError } from '../guest-error.ts';
import { moduleNameOf, noOwnFiles, type OwnFiles, ownFilesArchive } from '../image/own-files.ts';
import { comparedWithDevice, type VectorComparison } from '../interrupts.ts';
import { ethernetLoadCommand, listModules } from '../load-commands.ts';
import { withArchive } from '../own-image.ts';
import type { CacheOptions } from '../packages/cache.ts';
import { type GuestProfile, guestProfileOf } from './guest-profile.ts';
import { kernelSymbolsOf, modulesCommand } from './guest-symbols.ts';
import { type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
import { LinuxHost, type LinuxLimits, type LinuxResult, type RunningCommand } from './linux-host.ts';
import { pcConfigOf } from './pc-choice.ts';
import { programOf } from './program-name.ts';
import { serverCommand } from './server-command.ts';
import { type BootedPc, readSnapshot, snapshotPath, writeSnapshot } from './snapshot-cache.ts';

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
  /** PCs, each with an HCA: 1 (default), whose port has a loopback plug; or 2 with a cable between their HCAs. */
  readonly hosts?: 1 | 2;
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
  readonly analysis?: AnalysisOptions;
  readonly shortcuts?: boolean;
  /** Seed of what may happen by chance: interrupts later, other quanta, other costs; left out: nothing does. */
  readonly jitter?: number | undefined;
  /** Further parameters of the kernel, such as `pci=nomsi` for an adapter that interrupts by its pin. */
  readonly kernelParameters?: readonly string[];
  /** Called in words with what takes long. */
  readonly onNotice?: (text: string) => void;
  /** Left out: no profile is taken, which costs nothing. */
  readonly cpuProfile?: GuestProfileOptions;
  /** Whether to boot although there is a snapshot. */
  readonly isFresh?: boolean;
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
/** Steps between two readings of the wall clock, and between two turns of the event loop. */
const stepsPerPoll = 4096;
const bootSeconds = 120;
const psPerSecond = 1e12;
const psPerMs = 1e9;
const loadSeconds = 60;
/** A guest that is late by so much beyond a command's limit is dead. */
const graceSeconds = 10;
/** A server that does not listen after so long is one that listens by other means than TCP. */
const listenSeconds = 2;
/** Interrupts may be under way while they are read: they agree if one of so many attempts finds them equal. */
const interruptAttempts = 5;

export class LinuxMachine {
  readonly hosts: readonly LinuxHost[];
  readonly machine: PcMachine;
  readonly files: InsideFiles;
  readonly config: MachineConfig;
  readonly pcConfig: PcConfig;
  readonly options: LinuxMachineOptions;
  readonly #order: DevicesOrder;
  #stopReason: string | undefined;

  private constructor(
    options: LinuxMachineOptions,
    files: InsideFiles,
    order: DevicesOrder,
    pcConfig: PcConfig,
    machine: PcMachine,
  ) {
    this.options = options;
    this.files = files;
    this.config = order.config;
    this.pcConfig = pcConfig;
    this.#order = order;
    this.machine = machine;
    this.hosts = machine.pcs.map((pc, node) => new LinuxHost(`host${node}`, pc));
    const { onConsole } = options;
    if (onConsole !== undefined)
      for (const host of this.hosts) host.onConsole = (text) => onConsole(host.name, text);
  }

  /**
   * Linux on every PC, whose agent waits for commands; no driver of ours is loaded. Boots once, and later continues from there.
   * @throws ConfigurationError for options; GuestError if Linux does not start
   */
  static async start(options: LinuxMachineOptions): Promise<LinuxMachine> {
    const { hosts = 1, onNotice = () => {}, ownFiles = noOwnFiles, cache } = options;
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
    const path = snapshotPath(cache.folder, [...inputs, ...ownDigest], own.length > 0);
    let booted = options.isFresh === true ? undefined : readSnapshot(path);
    if (booted === undefined) {
      onNotice('booting Linux once; later runs continue from here');
      booted = await boot(options, files, own, order, pcConfig);
      writeSnapshot(path, booted);
    }
    const { config, cabling, faults, shortcuts, analysis } = order;
    const { seed } = config.machine;
    const pcs = await PcMachine.make({
      ...{ config, pc: pcConfig, pcCount: hosts, cabling, faults, shortcuts, analysis, seed },
      jitter: options.jitter,
      profile: options.cpuProfile && { ...options.cpuProfile, programOf },
    });
    const machine = new LinuxMachine(options, files, order, pcConfig, pcs);
    await pcs.restore(booted.pc, seed);
    for (const [node, host] of machine.hosts.entries()) {
      host.continueReady(booted.consoleText);
      await machine.check(node, identify(host.name, seed), 'naming the host');
    }
    return machine;
  }

  /** The host of that number. @throws ConfigurationError for another number */
  host(node: number): LinuxHost {
    const host = this.hosts[node];
    if (host === undefined) throw new ConfigurationError('host', node, `0 to ${this.hosts.length - 1}`);
    return host;
  }

  /** Loads the adapter's drivers, their interfaces for user space and the user's modules; waits for the ports. @throws GuestError */
  async load(): Promise<void> {
    const { linkLayer, roce } = this.config.hca.capability;
    const nodes = [...this.hosts.keys()];
    if (nodes.length > 1)
      for (const node of nodes) await this.check(node, networkCommand(node), 'joining the hosts');
    // At once, because the ports at both ends of a cable come up together.
    await this.#checkAll('loading the drivers', (node) =>
      linkLayer === 'ethernet' ? ethernetLoadCommand(node, roce !== 'none', adapterNetwork) : loadCommand,
    );
    const names = (this.options.ownFiles ?? noOwnFiles).modules.map(moduleNameOf);
    for (const node of nodes)
      for (const name of names) await this.check(node, `modprobe ${name}`, `loading your module ${name}`);
  }

  /** Runs a command in every host at the same time; each must succeed. @throws GuestError */
  async #checkAll(what: string, commandOf: (node: number) => string): Promise<void> {
    const limits = { timeoutSeconds: loadSeconds };
    const running = this.hosts.map((host, node) => host.start(commandOf(node), limits));
    for (const [node, each] of running.entries())
      this.#checkResult(node, await this.finish(each), what, loadSeconds);
  }

  /** Runs a command to its end. @throws GuestError if the guest ends, restarts or stands still */
  async run(node: number, command: string, limits: LinuxLimits): Promise<LinuxResult> {
    return await this.finish(this.host(node).start(command, limits));
  }

  /**
   * Starts a command that waits for another one, and runs until it listens at the port of perftest and the ping-pong programs, or
   * for {@link listenSeconds} at most. {@link finish} waits for its end, and has its output.
   * @throws GuestError
   */
  async startServer(node: number, command: string, timeoutSeconds: number): Promise<RunningCommand> {
    const running = this.host(node).start(command, { timeoutSeconds }, serverCommand(command));
    await this.until(
      () => running.isListening || running.result !== undefined || running.failure !== undefined,
      listenSeconds * psPerSecond,
    );
    if (running.failure !== undefined) throw running.failure;
    return running;
  }

  /** Runs until a command has ended. @throws GuestError */
  async finish(running: RunningCommand): Promise<LinuxResult> {
    const { command, deadlinePs } = running;
    const isOver = (): boolean => running.result !== undefined || running.failure !== undefined;
    await this.until(isOver, Math.max(0, deadlinePs + graceSeconds * psPerSecond - this.nowPs));
    if (!isOver()) this.#end(`the guest no longer answers (${command})`);
    if (running.failure !== undefined) throw running.failure;
    return running.result!;
  }

  /** Runs a command that must succeed. @throws GuestError with its output if it fails */
  async check(node: number, command: string, what = command, timeoutSeconds = 30): Promise<string> {
    return this.#checkResult(node, await this.run(node, command, { timeoutSeconds }), what, timeoutSeconds);
  }

  #checkResult(node: number, result: LinuxResult, what: string, timeoutSeconds: number): string {
    const { output, exitStatus, hasTimedOut } = result;
    const { name } = this.host(node);
    if (hasTimedOut) throw new GuestError(`${name}: ${what}: not done within ${timeoutSeconds} s`);
    if (exitStatus !== 0) throw new GuestError(`${name}: ${what}: exit ${exitStatus}: ${output.trim()}`);
    return output;
  }

  /** The statistics of the devices, up to now. */
  devices(): DevicesReport {
    const { emulation } = this.machine;
    const { config, cabling, faults } = this.#order;
    return buildDevicesReport({
      ...{ config, faults, cabling },
      elapsedPs: emulation.time.runner.instantPs,
      slots: emulation.ledgers(),
      defects: emulation.defects,
      analyses: emulation.analyses(),
    });
  }

  /** Counts of each HCA so far. */
  figures(): GuestFigures[] {
    return this.devices().nodes.map(figuresOf);
  }

  /** Interrupts of the loaded drivers, as counted by the guests and by the devices. @throws GuestError */
  async compareInterrupts(): Promise<VectorComparison[]> {
    for (let attempt = 1; ; attempt++) {
      const compared: VectorComparison[] = [];
      for (const [node, { pc }] of this.hosts.entries()) {
        const text = await this.check(node, 'cat /proc/interrupts');
        const address = `0000:00:${pc.function.device.toString(16).padStart(2, '0')}.0`;
        compared.push(...comparedWithDevice(node, address, text, this.devices().nodes[node]!.interrupts));
      }
      if (attempt === interruptAttempts || compared.every(({ isServed }) => isServed)) return compared;
      await this.until(() => false, psPerMs);
    }
  }

  /** Timeline records of all devices so far; empty unless the analysis requests a timeline. */
  timeline(): Timeline {
    const { emulation } = this.machine;
    return mergedTimeline(emulation.observations(), emulation.plan.topology);
  }

  /** Evidence of why requests failed; empty unless the analysis requests it. */
  evidence(): Evidence {
    return this.machine.emulation.evidence();
  }

  /** Number of packets in the capture at each end, and number that arrived when it was full. */
  captureDrops(): DroppedRecords[] {
    return this.machine.emulation.captureDrops();
  }

  /** Ends the traces, and writes the packets of the cable if a file was requested. */
  close(): void {
    const { emulation } = this.machine;
    emulation.close();
    const file = this.#order.analysis?.capture?.file;
    const bytes = emulation.capture();
    if (file !== undefined && bytes !== undefined) replaceFile(file, bytes);
  }

  /** Ends whatever runs, at the next reading of the wall clock; the caller of {@link until} gets a GuestError with the reason. */
  stop(reason: string): void {
    this.#stopReason = reason;
  }

  /** Forgets what was profiled so far; without a profile it does nothing. */
  beginCpuProfile(): void {
    for (const pc of this.machine.pcs) pc.beginProfile();
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

  /** The earliest instant of a PC, in picoseconds since power-on. */
  get nowPs(): number {
    return this.machine.nowPs;
  }

  /**
   * Lets time pass until `isDone`, or for `durationPs`. Whether it is done is asked after every quantum.
   * @throws GuestError for a defect of the model, if all guests are off, if nothing progresses, or after {@link stop}
   */
  async until(isDone: () => boolean, durationPs = Number.POSITIVE_INFINITY): Promise<void> {
    const { machine } = this;
    const limitPs = this.nowPs + durationPs;
    let seenPs = -1;
    let seenMs = performance.now();
    for (let steps = 1; !isDone() && this.nowPs < limitPs; steps++) {
      machine.step();
      const [defect] = machine.emulation.defects;
      if (defect !== undefined)
        this.#end(
          `a defect of the emulator at ${defect.atPs} ps, at this access: ${defect.access}: ${defect.message}`,
        );
      if (steps % stepsPerPoll !== 0) continue;
      if (this.#stopReason !== undefined) this.#end(this.#stopReason);
      this.#failEnded();
      if (machine.isOver) this.#end(this.hosts.map((host) => `${host.name}: ${endOf(host)}`).join('; '));
      if (this.nowPs > seenPs) {
        seenPs = this.nowPs;
        seenMs = performance.now();
      } else if (performance.now() - seenMs > this.pcConfig.standstillSeconds * 1000) {
        this.#end(`the guest stands still at ${seenPs} ps`);
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  /** Commands of guests that have ended their PC fail. */
  #failEnded(): void {
    for (const host of this.hosts) if (host.isReady && host.pc.isDead) host.fail(endOf(host));
  }

  #end(reason: string): never {
    for (const host of this.hosts) host.fail(reason);
    throw new GuestError(reason);
  }
}

/** Reason why a guest never runs again. */
function endOf({ pc: { end } }: LinuxHost): string {
  if (end === 'reset') return 'the guest restarted by itself';
  return end === 'off' ? 'the guest is off' : 'the guest is halted without interrupts';
}

/** @throws ConfigurationError naming the option */
function checkedOrder(options: LinuxMachineOptions): DevicesOrder {
  const { hosts = 1, profile, set, seed, faults, shortcuts, analysis } = options;
  if (hosts !== 1 && hosts !== 2) throw new ConfigurationError('hosts', hosts, '1 or 2');
  return devicesOrderOf({
    ...{ hcas: hosts, cable: hosts === 2 },
    ...(profile === undefined ? {} : { profile }),
    ...(set === undefined ? {} : { set }),
    ...(seed === undefined ? {} : { seed }),
    ...(faults === undefined ? {} : { faults }),
    ...(shortcuts === undefined ? {} : { shortcuts }),
    ...(analysis === undefined ? {} : { analysis }),
  });
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
    ...{ config, pc, pcCount: 1, cabling: 'loopback', faults: [], analysis: undefined, seed: 0 },
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
      if (steps % stepsPerPoll === 0) await new Promise<void>((resolve) => setImmediate(resolve));
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

/** Guests from one snapshot differ by name and random numbers. */
const identify = (name: string, seed: number): string =>
  `hostname ${name}; echo '${name} ${seed}' >/dev/urandom`;

/** Addresses of the adapters' own interfaces, by the number of the adapter in its host. */
const adapterNetwork = '10.2.$adapter';

/** The modules of an adapter of InfiniBand, all that user space uses; and its ports, at the pace of simulated time. */
const loadCommand = `modprobe -a mlx4_core mlx4_ib mlx4_en ib_uverbs ib_umad rdma_ucm || exit 1
tries=0
for port in /sys/class/infiniband/*/ports/*/state; do
  until grep -q ACTIVE $port; do
    tries=$((tries + 1)); [ $tries = 300 ] && { echo "$port: $(cat $port)"; exit 1; }
    sleep 0.02
  done
done`;

const networkCommand = (node: number): string =>
  [
    'modprobe ne2k-pci',
    `ip addr add 10.0.0.${node + 1}/24 dev eth0`,
    'ip link set eth0 up',
    'printf "10.0.0.1 host0\\n10.0.0.2 host1\\n" >>/etc/hosts',
  ].join(' && ');
