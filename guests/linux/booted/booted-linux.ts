/**
 * Stock Linuxes that have booted, on PCs with our HCAs: drivers, commands, time. Nothing here reads a file or belongs to
 * a runtime, so a page runs it as Node.js does. Only the watchdog reads a wall clock: the same options and commands give the same
 * output, the same instants and the same report.
 *
 *     snapshot of a booted Linux ─► each PC ─► load(): drivers ─► start, run … ─► devices()
 */
import { ConfigurationError, outsideOfMicrotasks } from '../../../base/index.ts';
import type { Evidence } from '../../../machine/evidence/index.ts';
import type { JsonValue } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import { type DroppedRecords, mergedTimeline, type Timeline } from '../../../machine/timeline/index.ts';
import { type PcConfig, PcMachine, type PcProfileOptions } from '../../pc/index.ts';
import {
  buildDevicesReport,
  type DevicesOrder,
  type DevicesReport,
  type PeerProgram,
} from '../../serve/index.ts';
import { GuestError } from '../guest-error.ts';
import { comparedWithDevice, type VectorComparison } from '../interrupts.ts';
import { ethernetLoadCommand } from '../load-commands.ts';
import { peerIpCommand, peerNameCommand, peerNet, peerNetworkCommand } from '../peer-network.ts';
import type { BootedPc } from './booted-pc.ts';
import { BootedPeer, type PeerValue, pcPeerOf } from './booted-peer.ts';
import { LinuxHost, type LinuxLimits, type LinuxResult, type RunningCommand } from './linux-host.ts';
import { serverCommand } from './server-command.ts';

/** Versions of the programs that ran. */
export interface LinuxVersions {
  readonly kernel: string;
  readonly rdmaCore: string;
  readonly perftest: string;
  readonly v86: string;
}

/** Everything that decides a run, complete and checked. */
export interface BootedOrder {
  /** v86's machine code. */
  readonly coreCode: Uint8Array;
  readonly devices: DevicesOrder;
  readonly pc: PcConfig;
  readonly hosts: number;
  readonly versions: LinuxVersions;
  /** Modules of the user's own, which {@link BootedLinux.load} loads after the adapter's. */
  readonly modules: readonly string[];
  /** Left out: nothing happens by chance. */
  readonly jitter?: number | undefined;
  /** Left out: no profile is taken. */
  readonly profile?: PcProfileOptions | undefined;
  /** The program of a simulated host at the other end of the one PC's cable; left out: no such host. */
  readonly peer?: PeerProgram | undefined;
}

/** PCs without software, and the values that the simulated host's program has put into its exchange. */
export interface BootedPcs {
  readonly machine: PcMachine;
  readonly values: PeerValue[];
}

/** Steps between two readings of the wall clock, and between two turns of the event loop. */
const stepsPerPoll = 4096;
const psPerSecond = 1e12;
const psPerMs = 1e9;
const loadSeconds = 60;
/** A guest that is late by so much beyond a command's limit is dead. */
const graceSeconds = 10;
/** After this time without a TCP listener, a server is taken to listen by other means. */
const listenSeconds = 2;
/** Attempts to find the counts of interrupts equal: an interrupt may be under way while they are read. */
const interruptAttempts = 5;

export class BootedLinux {
  readonly hosts: readonly LinuxHost[];
  readonly machine: PcMachine;
  readonly config: MachineConfig;
  readonly pcConfig: PcConfig;
  readonly versions: LinuxVersions;
  /** Called after each quantum; a promise that it returns is waited for before the next. */
  onStep: (() => Promise<void> | undefined) | undefined;
  /** The program of the simulated host; undefined without one. */
  readonly peer: BootedPeer | undefined;
  readonly #order: BootedOrder;
  /** Values for the simulated host's program, which enter its exchange before the next step. */
  readonly #valuesToPut: PeerValue[] = [];
  #stopReason: string | undefined;

  protected constructor(order: BootedOrder, { machine, values }: BootedPcs) {
    this.#order = order;
    this.peer = order.peer && new BootedPeer(this, values);
    this.config = order.devices.config;
    this.pcConfig = order.pc;
    this.versions = order.versions;
    this.machine = machine;
    this.hosts = machine.pcs.map((pc, node) => new LinuxHost(`host${node}`, pc));
  }

  /** Linux on every PC, whose agent waits for commands; no driver of ours is loaded. @throws GuestError */
  static async continued(order: BootedOrder, booted: BootedPc): Promise<BootedLinux> {
    const linux = new BootedLinux(order, await BootedLinux.pcsOf(order));
    await linux.continueFrom(booted);
    return linux;
  }

  /** PCs without software. @throws ConfigurationError */
  protected static async pcsOf(order: BootedOrder): Promise<BootedPcs> {
    const { config, cabling, fabric, faults, shortcuts, analysis } = order.devices;
    const { coreCode, pc, hosts: pcCount, jitter, profile } = order;
    const { seed } = config.machine;
    const values: PeerValue[] = [];
    const machine = await PcMachine.make({
      ...{
        coreCode,
        config,
        pc,
        pcCount,
        cabling,
        fabric,
        faults,
        shortcuts,
        analysis,
        seed,
        jitter,
        profile,
        peer: order.peer && pcPeerOf(order.peer, config, (name, value) => values.push({ name, value })),
      },
    });
    return { machine, values };
  }

  /** Continues each PC from the snapshot, as a host with a name and random numbers of its own. @throws GuestError */
  protected async continueFrom(booted: BootedPc): Promise<void> {
    const { seed } = this.config.machine;
    await this.machine.restore(booted.pc, seed);
    for (const [node, host] of this.hosts.entries()) {
      host.continueReady(booted.consoleText);
      await this.check(node, identify(host.name, seed), 'naming the host');
    }
  }

  /** The host of that number. @throws ConfigurationError for another number */
  host(node: number): LinuxHost {
    const host = this.hosts[node];
    if (host === undefined) throw new ConfigurationError('host', node, `0 to ${this.hosts.length - 1}`);
    return host;
  }

  /** Makes the hosts reach each other by name, over an Ethernet of their own; a single host needs none. @throws GuestError */
  async joinHosts(): Promise<void> {
    const nodes = [...this.hosts.keys()];
    if (nodes.length > 1)
      for (const node of nodes)
        await this.check(node, networkCommand(node, nodes.length), 'joining the hosts');
  }

  /**
   * Loads the adapter's drivers, their interfaces for user space and the user's modules; waits for the ports.
   * @param drivers command that loads them for ports of InfiniBand
   * @throws GuestError
   */
  async load(drivers = driversLine): Promise<void> {
    const { capability, control } = this.config.hca;
    const { linkLayer, roce } = capability;
    const portState = control.embeddedSubnetManager ? 'ACTIVE' : 'INIT';
    const nodes = [...this.hosts.keys()];
    await this.joinHosts();
    for (const command of this.#peerCommands()) await this.check(0, command, 'joining the host and its peer');
    // At once, because the ports at both ends of a cable come up together.
    await this.#checkAll('loading the drivers', (node) =>
      linkLayer === 'ethernet'
        ? ethernetLoadCommand(node, roce !== 'none', this.peer === undefined ? adapterNetwork : peerNet)
        : loadCommand(drivers, portState),
    );
    for (const node of nodes)
      for (const name of this.#order.modules)
        await this.check(node, `modprobe ${name}`, `loading your module ${name}`);
  }

  /** Commands by which a host reaches the simulated host beside it. */
  #peerCommands(): string[] {
    if (this.peer === undefined) return [];
    const { machine, hca } = this.config;
    // A simulated host with a NIC is reached only over the cable.
    if (machine.adapter === 'nic') return [peerNameCommand];
    const joined = peerNetworkCommand(['ne2k-pci']);
    return hca.capability.linkLayer === 'ethernet' ? [joined] : [joined, peerIpCommand];
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
    const { config, cabling, faults, fabric: topology } = this.#order.devices;
    const { fabric } = emulation;
    return buildDevicesReport({
      ...{ config, faults, cabling },
      ...(fabric === undefined || topology === undefined
        ? {}
        : { fabric: { ...fabric.ledgers(), topology } }),
      elapsedPs: emulation.time.runner.instantPs,
      slots: emulation.ledgers(),
      peer: emulation.peer && {
        ...emulation.peerLedgers()!,
        state: emulation.peer.state(),
        log: emulation.peer.log,
      },
      defects: emulation.defects,
      analyses: emulation.analyses(),
    });
  }

  /** Interrupts of the loaded drivers, as counted by the guests and by the devices. @throws GuestError */
  async compareInterrupts(): Promise<VectorComparison[]> {
    for (let attempt = 1; ; attempt++) {
      const compared: VectorComparison[] = [];
      for (const [node, { pc }] of this.hosts.entries()) {
        const text = await this.check(node, 'cat /proc/interrupts');
        compared.push(
          ...comparedWithDevice(node, addressOf(pc), text, this.devices().nodes[node]!.interrupts),
        );
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

  /** Puts a value into a mailbox of the simulated host's program, at the next step. */
  putValue(name: string, value: JsonValue): void {
    this.#valuesToPut.push({ name, value });
  }

  /** Ends the traces. */
  close(): void {
    this.machine.emulation.close();
  }

  /** Ends whatever runs, at the next reading of the wall clock; the caller of {@link until} gets a GuestError with the reason. */
  stop(reason: string): void {
    this.#stopReason = reason;
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
    const limitPs = this.nowPs + durationPs;
    let seenPs = -1;
    let seenMs = performance.now();
    while (!isDone() && this.nowPs < limitPs) {
      const { waits } = await outsideOfMicrotasks(() => this.#runSteps(isDone, limitPs));
      if (waits !== undefined) await waits;
      if (this.#stopReason !== undefined) this.#end(this.#stopReason);
      this.#failEnded();
      if (this.machine.isOver) this.#end(this.hosts.map((host) => `${host.name}: ${endOf(host)}`).join('; '));
      if (this.nowPs > seenPs) {
        seenPs = this.nowPs;
        seenMs = performance.now();
      } else if (performance.now() - seenMs > this.pcConfig.standstillSeconds * 1000) {
        this.#end(`the guest stands still at ${seenPs} ps`);
      }
    }
  }

  /** Runs at most {@link stepsPerPoll} steps. @returns a promise to wait for before the next, if there is one */
  #runSteps(isDone: () => boolean, limitPs: number): { readonly waits: Promise<void> | undefined } {
    const { machine } = this;
    for (const { name, value } of this.#valuesToPut.splice(0)) machine.emulation.putValue(name, value);
    for (let steps = 0; steps < stepsPerPoll && !isDone() && this.nowPs < limitPs; steps++) {
      machine.step();
      const [defect] = machine.emulation.defects;
      if (defect !== undefined)
        this.#end(
          `a defect of the emulator at ${defect.atPs} ps, at this access: ${defect.access}: ${defect.message}`,
        );
      const waits = this.onStep?.();
      if (waits !== undefined) return { waits };
    }
    return { waits: undefined };
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

/** Address of a PC's HCA, as /sys/bus/pci has it. */
export const addressOf = ({ function: { device } }: LinuxHost['pc']): string =>
  `0000:00:${device.toString(16).padStart(2, '0')}.0`;

/** Reason why a guest never runs again. */
function endOf({ pc: { end } }: LinuxHost): string {
  if (end === 'reset') return 'the guest restarted by itself';
  return end === 'off' ? 'the guest is off' : 'the guest is halted without interrupts';
}

/** Guests from one snapshot differ by name and random numbers. */
const identify = (name: string, seed: number): string =>
  `hostname ${name}; echo '${name} ${seed}' >/dev/urandom`;

/** Addresses of the adapters' own interfaces, by the number of the adapter in its host. */
const adapterNetwork = '10.2.$adapter';

/** Loads the modules of an adapter of InfiniBand, and all that user space uses. */
export const driversLine = 'modprobe -a mlx4_core mlx4_ib mlx4_en ib_uverbs ib_umad rdma_ucm';

/** Also waits for its ports, at the pace of simulated time: until they are active, or linked where a subnet manager is yet to come. */
const loadCommand = (drivers: string, state: 'ACTIVE' | 'INIT'): string => `${drivers} || exit 1
tries=0
for port in /sys/class/infiniband/*/ports/*/state; do
  until grep -q ${state} $port; do
    tries=$((tries + 1)); [ $tries = 300 ] && { echo "$port: $(cat $port)"; exit 1; }
    sleep 0.02
  done
done`;

/** Host n is 10.0.0.(n + 1) on the Ethernet of the hosts. */
const networkCommand = (node: number, hostCount: number): string =>
  [
    'modprobe ne2k-pci',
    `ip addr add 10.0.0.${node + 1}/24 dev eth0`,
    'ip link set eth0 up',
    `printf '${Array.from({ length: hostCount }, (_, each) => `10.0.0.${each + 1} host${each}\\n`).join('')}' >>/etc/hosts`,
  ].join(' && ');
