/**
 * The driver of one device: probed, opened by processes, restarted when the device dies, removed. The machine builds it, and a
 * verbs library opens it.
 *
 *   probe ──► up ── the device dies ──► failed: events to programs, reset, everything given back ──► probe
 *                                                                     └─ it is not there: away, until it is again
 *
 * Contexts that were open when the device died are cut off from it: they get IBV_EVENT_DEVICE_FATAL, their waiting
 * threads wake, closing and destroying succeeds, everything else is EIO. A device that comes back serves new contexts.
 * Source: interface sheet 2.6, 3.3; Linux mlx4 catas.c and ib_uverbs' disassociation.
 */
import { defaultsOf } from '../base/index.ts';
import { hasIwarp } from './capabilities.ts';
import { CmService, type ConnectorCounts } from './cm/index.ts';
import type { Device } from './device.ts';
import { ethernetPortOf } from './ethernet-port.ts';
import { HealthTimer, type Patient } from './health-timer.ts';
import { KernelError } from './kernel-error.ts';
import type { KernelContext, KernelDevice, ResourceCounts } from './kernel-verbs.ts';
import { NodeAgents } from './management/index.ts';
import type { NetworkCounts } from './network/index.ts';
import type { OnDemandStatistics } from './on-demand/index.ts';
import { type DriverConfig, driverParameters } from './parameters.ts';
import { isPresent, restoreConfiguration, type SavedConfiguration } from './pci.ts';
import type { Cpu, DriverPlatform, ProcessMemory, Signal } from './platform.ts';
import { probeDevice } from './probe.ts';
import { ProcessContext } from './process-context.ts';
import type { KernelEventChannel } from './rdma-cm.ts';
import { resetDevice } from './reset.ts';
import { Teardown } from './teardown.ts';
import { TransportVerb } from './uapi.ts';

/** State of the device beyond probe and removal. */
export interface RecoveryStatistics {
  /** Times the device died, and times it was brought up again. */
  readonly deaths: number;
  readonly restarts: number;
  /** Event queues and commands that were served although their interrupt never came. */
  readonly recoveredInterrupts: number;
  /** Reason of the last death. */
  readonly lastReason: string | undefined;
}

export class Driver implements KernelDevice, Patient {
  readonly name: string;
  private readonly platform: DriverPlatform;
  private readonly config: DriverConfig;
  private readonly health: HealthTimer;
  private readonly contexts = new Set<ProcessContext>();
  /** Doorbell pages that cut-off contexts still map: no other context may ring them. */
  private readonly staleUars = new Set<number>();
  private readonly restarted: Signal;
  private readonly connections: CmService;
  private teardown = new Teardown();
  private probed: Device | undefined;
  /** Kept after removal, so that leaks are visible. */
  private counted: Device | undefined;
  private configuration: SavedConfiguration | undefined;
  private isRestarting = false;
  private recoveredAnswers = 0;
  private deaths = 0;
  private restarts = 0;
  private lastReason: string | undefined;
  isAway = false;

  constructor(
    platform: DriverPlatform,
    config: DriverConfig = defaultsOf(driverParameters),
    name = 'mlx4_0',
  ) {
    this.platform = platform;
    this.config = config;
    this.name = name;
    this.restarted = platform.newSignal();
    this.connections = new CmService(platform);
    this.health = new HealthTimer(platform, config, this);
  }

  /** The probed device; for reports and tests. */
  get device(): Device {
    if (this.probed === undefined) throw new KernelError('ENODEV', `${this.name} is not probed`);
    return this.probed;
  }

  get isProbed(): boolean {
    return this.probed !== undefined;
  }

  get current(): Device | undefined {
    return this.probed;
  }

  get nodeGuid(): bigint {
    return this.device.nodeGuid;
  }

  get transport(): TransportVerb {
    return hasIwarp(this.device.limits) ? TransportVerb.IBV_TRANSPORT_IWARP : TransportVerb.IBV_TRANSPORT_IB;
  }

  /** Counts how often the device died and was restarted. */
  recoveryCounts(): RecoveryStatistics {
    const { deaths, restarts, lastReason } = this;
    const answers = this.recoveredAnswers + (this.probed?.commands.recoveredAnswers ?? 0);
    return { deaths, restarts, recoveredInterrupts: answers + this.health.recoveredCount, lastReason };
  }

  /** Costs of on-demand paging for the driver since its last probe. */
  onDemandCounts(): OnDemandStatistics | undefined {
    return this.counted?.pager.counts;
  }

  /** Counters of neighbour resolution at port 1 since the last probe; undefined if the port is not Ethernet. */
  neighbourCounts(): NetworkCounts | undefined {
    return ethernetPortOf(this.counted?.ports[0])?.networkCounts;
  }

  /** Brings the device up; returns when its ports are active or the limit for that has passed. */
  async probe(cpu: Cpu): Promise<void> {
    const device = await probeDevice(cpu, this.name, this.platform, this.config, this.teardown);
    this.probed = device;
    this.counted = device;
    this.configuration = device.configuration;
    device.lifecycle.onDeath(() => this.died(device));
    device.commands.onPosted(() => this.health.used());
    for (const page of this.staleUars) device.numbers.uars.take(page);
    this.health.start();
    await this.connections.deviceAdded(cpu, device, this.teardown);
    if (this.platform.answersManagement !== true) return;
    const agents = await NodeAgents.open(cpu, device);
    this.teardown.push('QP0 and QP1', (thread) => agents.close(thread));
  }

  /** Closes every open context and releases everything. Rejects with the first step that failed. */
  async remove(cpu: Cpu): Promise<void> {
    while (this.isRestarting) await this.restarted.wait(cpu);
    this.health.stop();
    this.isAway = false;
    // A device that dies while it is being removed is not brought up again.
    this.probed = undefined;
    for (const context of [...this.contexts]) await context.close(cpu);
    const failures = await this.teardown.run(cpu);
    if (failures.length > 0) throw failures[0]!.error;
  }

  /** A process opens the device: it gets its own doorbell page. */
  async openDevice(cpu: Cpu, process: ProcessMemory): Promise<KernelContext> {
    const { platform } = this;
    platform.systemCallEntered?.(cpu, 'ibv_open_device', 'control');
    cpu.charge('driver', platform.costs.createObject);
    if (this.isRestarting) throw new KernelError('ENODEV', `${this.name} is being restarted`);
    // The device is needed: the health timer checks again for one that is away.
    if (!this.isProbed) this.health.used();
    const { device } = this;
    // A process killed here would leave a context that is never closed.
    platform.kernelEntered?.(cpu);
    try {
      const context = new ProcessContext(device, process, (closed) => this.closed(closed));
      this.contexts.add(context);
      this.health.used();
      await cpu.settle();
      return context;
    } finally {
      platform.kernelLeft?.(cpu);
    }
  }

  /** A process opens an event channel of rdma_cm; the first one brings QP1 up. */
  async openEventChannel(cpu: Cpu): Promise<KernelEventChannel> {
    const { platform } = this;
    platform.systemCallEntered?.(cpu, 'rdma_create_event_channel', 'control');
    cpu.charge('driver', platform.costs.createObject);
    if (this.isRestarting) throw new KernelError('ENODEV', `${this.name} is being restarted`);
    platform.kernelEntered?.(cpu);
    try {
      const channel = await this.connections.open(cpu, this.device, this.teardown);
      await cpu.settle();
      return channel;
    } finally {
      platform.kernelLeft?.(cpu);
    }
  }

  /** Management datagrams and connections since QP1 was brought up; undefined while it is not. */
  connectionCounts(): ConnectorCounts | undefined {
    return this.connections.counts();
  }

  /** The device has returned to its slot: brings it up as after power-on. */
  async comeBack(cpu: Cpu): Promise<void> {
    if (this.isRestarting || this.probed !== undefined) return;
    this.isRestarting = true;
    await this.probeAgain(cpu);
    this.isRestarting = false;
    this.restarted.raise();
  }

  /** Resources held now; all zero after removal. Without contexts only event queues and reserved ICM remain. */
  resourceCounts(): ResourceCounts {
    const contexts = [...this.contexts].map((context) => context.counts());
    const sum = (pick: (counts: (typeof contexts)[number]) => number): number =>
      contexts.reduce((total, counts) => total + pick(counts), 0);
    const device = this.counted;
    return {
      contexts: contexts.length,
      pds: device?.numbers.pds.taken ?? 0,
      regions: device?.numbers.mpts.taken ?? 0,
      cqs: device?.numbers.cqs.taken ?? 0,
      srqs: device?.numbers.srqs.taken ?? 0,
      qps: device?.numbers.qps.taken ?? 0,
      channels: sum((counts) => counts.channels),
      uars: device?.numbers.uars.taken ?? 0,
      mttEntries: device?.mtts.takenEntries ?? 0,
      icmChunks: Object.values(device?.icm ?? {}).reduce((total, table) => total + table.mappedChunks, 0),
    };
  }

  /** Contexts of the present device. Older ones were cut off when it died, and their programs have not closed them yet. */
  private get contextsOfDevice(): ProcessContext[] {
    return [...this.contexts].filter(({ isUsable }) => isUsable);
  }

  /** The device has died: the thread that found out continues, and a kernel thread does the rest. */
  private died(device: Device): void {
    if (this.probed !== device || this.isRestarting) return;
    this.isRestarting = true;
    this.probed = undefined;
    this.deaths++;
    this.lastReason = device.lifecycle.reason;
    this.log(`dead: ${this.lastReason}`);
    this.health.stop();
    for (const context of this.contextsOfDevice) context.deviceFatal();
    this.platform.spawn('restart', (cpu) => this.restart(cpu, device));
  }

  private async restart(cpu: Cpu, device: Device): Promise<void> {
    // Reset comes first: after it the device cannot reach memory that is about to be freed.
    if (await this.hasRegisters(cpu)) await ignoring(resetDevice(cpu, this.platform, this.config));
    for (const context of this.contextsOfDevice) {
      this.staleUars.add(context.info.uarPage);
      await context.disassociate(cpu);
    }
    await this.teardown.run(cpu);
    this.recoveredAnswers += device.commands.recoveredAnswers;
    await this.probeAgain(cpu);
    this.isRestarting = false;
    this.restarted.raise();
  }

  /** Probes if a device is present; otherwise the health timer checks until one is. */
  private async probeAgain(cpu: Cpu): Promise<void> {
    this.teardown = new Teardown();
    try {
      this.isAway = !(await this.hasRegisters(cpu));
      if (!this.isAway) {
        await this.probe(cpu);
        this.restarts++;
        this.log('probed again');
        return;
      }
    } catch (error) {
      if (!(error instanceof KernelError)) throw error;
      this.lastReason = `probe after restart: ${error.message}`;
      this.log(this.lastReason);
      this.isAway = !(await isPresent(cpu, this.platform));
    }
    this.log(this.isAway ? 'not in its slot' : 'left alone');
    if (this.isAway) this.health.start();
  }

  /** Whether the device answers with its registers where firmware had put them. */
  private async hasRegisters(cpu: Cpu): Promise<boolean> {
    if (!(await isPresent(cpu, this.platform))) return false;
    await restoreConfiguration(cpu, this.platform, this.configuration!);
    return true;
  }

  private log(text: string): void {
    this.platform.log?.(`${this.name}: ${text}`);
  }

  private closed(context: ProcessContext): void {
    this.contexts.delete(context);
    const page = context.info.uarPage;
    if (this.staleUars.delete(page)) this.probed?.numbers.uars.release(page);
  }
}

/** Runs a step whose failure the next step detects. */
async function ignoring(step: Promise<unknown>): Promise<void> {
  try {
    await step;
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
  }
}
