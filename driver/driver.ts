/**
 * The driver of one device: probed, opened by processes, removed. What `system/` builds and what a verbs library finds.
 */
import { defaultsOf } from '../base/parameter.ts';
import type { Device } from './device.ts';
import { ProcessContext } from './kernel-context.ts';
import { KernelError } from './kernel-error.ts';
import type { KernelContext, KernelDevice, ResourceCounts } from './kernel-verbs.ts';
import { type DriverConfig, driverParameters } from './parameters.ts';
import type { Cpu, DriverPlatform, ProcessMemory } from './platform.ts';
import { probeDevice } from './probe.ts';
import { Teardown } from './remove.ts';

export class Driver implements KernelDevice {
  readonly name: string;
  private readonly platform: DriverPlatform;
  private readonly config: DriverConfig;
  private readonly teardown = new Teardown();
  private readonly contexts = new Set<ProcessContext>();
  private probed: Device | undefined;
  /** Still there after removal, so that what was not given back can be seen. */
  private counted: Device | undefined;

  constructor(
    platform: DriverPlatform,
    config: DriverConfig = defaultsOf(driverParameters),
    name = 'mlx4_0',
  ) {
    this.platform = platform;
    this.config = config;
    this.name = name;
  }

  /** The probed device; for reports and tests. */
  get device(): Device {
    if (this.probed === undefined) throw new KernelError('ENODEV', `${this.name} is not probed`);
    return this.probed;
  }

  get nodeGuid(): bigint {
    return this.device.nodeGuid;
  }

  /** Brings the device up; returns when its ports are active or the limit for that has passed. */
  async probe(cpu: Cpu): Promise<void> {
    this.probed = await probeDevice(cpu, this.name, this.platform, this.config, this.teardown);
    this.counted = this.probed;
  }

  /** Closes every context that is still open and gives everything back. Rejects with the first step that failed. */
  async remove(cpu: Cpu): Promise<void> {
    for (const context of [...this.contexts]) await context.close(cpu);
    const failures = await this.teardown.run(cpu);
    this.probed = undefined;
    if (failures.length > 0) throw failures[0]!.error;
  }

  /** A process opens the device: it gets a doorbell page of its own. */
  async openDevice(cpu: Cpu, process: ProcessMemory): Promise<KernelContext> {
    this.platform.systemCallEntered?.(cpu, 'ibv_open_device', 'control');
    cpu.charge('driver', this.platform.costs.createObject);
    const context = new ProcessContext(this.device, process, (closed) => this.contexts.delete(closed));
    this.contexts.add(context);
    await cpu.settle();
    return context;
  }

  /** Everything that is taken now; all zero after removal. Without contexts only event queues and reserved ICM remain. */
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
}
