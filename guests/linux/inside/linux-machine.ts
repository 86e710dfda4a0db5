/**
 * One or two stock Linux on PCs of this process, with our HCAs in them, from a snapshot to the report. Nothing here reads a
 * wall clock but the watchdog: the same options and commands give the same output, the same instants and the same report.
 *
 *     snapshot of a booted Linux (made once) ─► each PC ─► load(): drivers ─► start, run … ─► report()
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ConfigurationError, defaultsOf } from '../../../base/index.ts';
import type { AnalysisOptions } from '../../../machine/analysis/index.ts';
import { checkedFaults, type FaultPlan } from '../../../machine/faults/index.ts';
import { configurationOf, type MachineConfig, type ParameterValues } from '../../../machine/profile/index.ts';
import { type BootFiles, coreVersion, type PcConfig, PcMachine, pcParameters } from '../../pc/index.ts';
import { servedProfile } from '../../serve/index.ts';
import { GuestError } from '../guest-error.ts';
import type { CacheOptions } from '../packages/cache.ts';
import { type GuestProfile, guestProfileOf } from './guest-profile.ts';
import { kernelSymbolsOf, modulesCommand } from './guest-symbols.ts';
import { type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
import { LinuxHost, type LinuxLimits, type LinuxResult, type RunningCommand } from './linux-host.ts';
import { programOf } from './program-name.ts';
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
  /** Default: {@link servedProfile}. */
  readonly profile?: string;
  readonly set?: ParameterValues;
  /** Parameters of the PCs. */
  readonly pc?: Partial<PcConfig>;
  readonly seed?: number;
  readonly faults?: FaultPlan;
  readonly analysis?: AnalysisOptions;
  readonly shortcuts?: boolean;
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
const commandLine = [
  ...['console=ttyS0', 'quiet', 'hca.name=host', 'random.trust_cpu=on', 'mitigations=off'],
  ...['tsc=reliable', 'lpj=400000', 'no_timer_check'],
  ...['cryptomgr.notests', 'initcall_blacklist=load_system_certificate_list'],
].join(' ');
/** Steps between two looks at the wall clock, and between two turns of the event loop. */
const stepsPerLook = 4096;
const bootSeconds = 120;
const psPerSecond = 1e12;
const loadSeconds = 60;

export class LinuxMachine {
  readonly hosts: readonly LinuxHost[];
  readonly machine: PcMachine;
  readonly files: InsideFiles;
  readonly config: MachineConfig;
  readonly options: LinuxMachineOptions;
  readonly #pcConfig: PcConfig;

  private constructor(
    options: LinuxMachineOptions,
    files: InsideFiles,
    config: MachineConfig,
    pcConfig: PcConfig,
    machine: PcMachine,
  ) {
    this.options = options;
    this.files = files;
    this.config = config;
    this.#pcConfig = pcConfig;
    this.machine = machine;
    this.hosts = machine.pcs.map((pc, node) => new LinuxHost(`host${node}`, pc));
  }

  /**
   * Linux on every PC, whose agent waits for commands; no driver of ours is loaded. Boots once, and later continues from there.
   * @throws ConfigurationError for options; GuestError if Linux does not start
   */
  static async start(options: LinuxMachineOptions): Promise<LinuxMachine> {
    const { profile = servedProfile, set = {}, hosts = 1, onNotice = () => {} } = options;
    if (hosts !== 1 && hosts !== 2) throw new ConfigurationError('hosts', hosts, '1 or 2');
    const config = configurationOf({ profile, set });
    const pcConfig: PcConfig = { ...defaultsOf(pcParameters), ...options.pc };
    const files = await insideFiles(options, options.cache);
    const inputs = [
      coreVersion,
      basename(files.bzImage),
      files.initramfs,
      commandLine,
      pcConfig,
      config.pcie,
    ];
    const path = snapshotPath(options.cache.folder, inputs);
    let booted = options.isFresh === true ? undefined : readSnapshot(path);
    if (booted === undefined) {
      onNotice('booting Linux once; later runs continue from here');
      booted = await boot({ ...options, hosts: 1 }, files, config, pcConfig);
      writeSnapshot(options.cache.folder, path, booted);
    }
    const machine = await LinuxMachine.#make(options, files, config, pcConfig);
    await machine.machine.restore(booted.pc);
    for (const [node, host] of machine.hosts.entries()) {
      host.continueReady(booted.consoleText);
      await machine.check(node, identify(host.name, options.seed ?? 0), 'naming the host');
    }
    return machine;
  }

  static async #make(
    options: LinuxMachineOptions,
    files: InsideFiles,
    config: MachineConfig,
    pcConfig: PcConfig,
  ): Promise<LinuxMachine> {
    const { hosts = 1, faults = [], shortcuts, analysis, seed = 0, cpuProfile } = options;
    const machine = await PcMachine.make({
      config,
      pc: pcConfig,
      pcCount: hosts,
      cabling: hosts === 2 ? 'cable' : 'loopback',
      faults: checkedFaults(faults, hosts),
      ...(shortcuts === undefined ? {} : { shortcuts }),
      analysis,
      seed,
      profile: cpuProfile && { ...cpuProfile, programOf },
    });
    return new LinuxMachine(options, files, config, pcConfig, machine);
  }

  /** The host of that number. @throws ConfigurationError if there is none */
  host(node: number): LinuxHost {
    const host = this.hosts[node];
    if (host === undefined) throw new ConfigurationError('host', node, `0 to ${this.hosts.length - 1}`);
    return host;
  }

  /** Loads the adapter's drivers and their interfaces for user space, and waits for the ports. @throws GuestError */
  async load(): Promise<void> {
    for (const node of this.hosts.keys())
      await this.check(node, loadCommand, 'loading the drivers', loadSeconds);
    if (this.hosts.length > 1)
      for (const node of this.hosts.keys()) await this.check(node, networkCommand(node), 'joining the hosts');
    await this.until(() => false, psPerSecond / 100);
    for (const node of this.hosts.keys())
      await this.check(node, activeCommand, 'waiting for the port', loadSeconds);
  }

  /** Runs a command to its end. @throws GuestError if the guest ends, restarts or stands still */
  async run(node: number, command: string, limits: LinuxLimits): Promise<LinuxResult> {
    return await this.finish(this.host(node).start(command, limits));
  }

  /** Runs until a command has ended. @throws GuestError */
  async finish(running: RunningCommand): Promise<LinuxResult> {
    await this.until(() => running.result !== undefined || running.failure !== undefined);
    if (running.failure !== undefined) throw running.failure;
    return running.result!;
  }

  /** Runs a command that must succeed. @throws GuestError with its output if it fails */
  async check(node: number, command: string, what = command, timeoutSeconds = 30): Promise<string> {
    const { output, exitStatus, hasTimedOut } = await this.run(node, command, { timeoutSeconds });
    const { name } = this.host(node);
    if (hasTimedOut) throw new GuestError(`${name}: ${what}: not done within ${timeoutSeconds} s`);
    if (exitStatus !== 0) throw new GuestError(`${name}: ${what}: exit ${exitStatus}: ${output.trim()}`);
    return output;
  }

  /** Forgets what was profiled so far; without a profile it does nothing. */
  beginCpuProfile(): void {
    for (const pc of this.machine.pcs) pc.beginProfile();
  }

  /**
   * What each host's processor has done since the start or {@link beginCpuProfile}. Then asks each for its modules' addresses, which
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

  /** Instant of the PC that is behind, in picoseconds since power-on. */
  get nowPs(): number {
    return Math.min(...this.machine.pcs.map(({ clock }) => clock.nowPs));
  }

  /**
   * Lets time pass until `isDone`, or for `durationPs`. Whether it is done is asked after every quantum.
   * @throws GuestError for a defect of the model, if all guests are off, or if nothing progresses
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
      if (steps % stepsPerLook !== 0) continue;
      if (machine.isOver) this.#end('the guest is off, or halted without interrupts');
      if (this.nowPs > seenPs) {
        seenPs = this.nowPs;
        seenMs = performance.now();
      } else if (performance.now() - seenMs > this.#pcConfig.standstillSeconds * 1000) {
        this.#end(`the guest stands still at ${seenPs} ps`);
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  #end(reason: string): never {
    for (const host of this.hosts) host.fail(reason);
    throw new GuestError(reason);
  }
}

/** Boots one PC to the point at which its agent waits. @throws GuestError */
async function boot(
  options: LinuxMachineOptions,
  files: InsideFiles,
  config: MachineConfig,
  pc: PcConfig,
): Promise<BootedPc> {
  const { faults: _, analysis: _none, ...plain } = options;
  const machine = await PcMachine.make({
    ...{ config, pc, pcCount: 1, cabling: 'loopback', faults: [], analysis: undefined },
    seed: plain.seed ?? 0,
  });
  const [host] = machine.pcs.map((each) => new LinuxHost('host', each));
  if (files.vmlinux === undefined)
    throw new ConfigurationError(
      'kernel',
      files.bzImage,
      'one that this machine can decompress (gzip, xz, zstd)',
    );
  machine.load([bootFilesOf(files)]);
  const limitPs = bootSeconds * psPerSecond;
  for (let steps = 1; !host!.isReady; steps++) {
    machine.step();
    if (machine.isOver || host!.pc.clock.nowPs > limitPs)
      throw new GuestError(
        `Linux does not start; its console ends:\n${host!.consoleText.slice(-consoleShown)}`,
      );
    if (steps % stepsPerLook === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return { pc: await host!.pc.snapshot(), consoleText: host!.consoleText };
}

const consoleShown = 1000;

const bootFilesOf = ({ bzImage, vmlinux, initramfs }: InsideFiles): BootFiles => ({
  bzImage: readFileSync(bzImage),
  vmlinux: readFileSync(vmlinux!),
  initramfs: readFileSync(initramfs),
  commandLine,
});

/** Guests from one snapshot differ by name and random numbers. */
const identify = (name: string, seed: number): string =>
  `hostname ${name}; echo '${name} ${seed}' >/dev/urandom`;

const loadCommand = 'modprobe -a mlx4_core mlx4_ib mlx4_en ib_uverbs ib_umad rdma_ucm || exit 1';

const activeCommand = `tries=0
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
