/**
 * Connects the host's system DMA controller: it has a port of its own at the root complex, takes the bus from the
 * cores, and interrupts on a vector of the platform. Software reaches it by I/O ports; each access costs the core's own
 * time.
 */
import type { CoreThread, Host } from '../../host/index.ts';
import { TrafficClass } from '../../hw/dma/index.ts';
import type { RootComplex } from '../../hw/pcie/index.ts';
import { MemoryBus, SystemDma } from '../../hw/system-dma/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { MachineConfig } from '../profile/index.ts';

/** The last vector belongs to the IOMMU, if the platform has one. */
const vectorFromLast = 2;

export class DmaController {
  readonly dma: SystemDma;
  readonly bus = new MemoryBus();
  readonly vector: number;
  readonly #host: Host;
  readonly #accessCycles: number;

  constructor(host: Host, rootComplex: RootComplex, config: MachineConfig) {
    const { interrupts } = host;
    this.#host = host;
    this.#accessCycles = config.host.cost.configAccess;
    this.vector = interrupts.vectorCount - vectorFromLast;
    for (const core of host.cores) core.connect({ memoryBus: this.bus });
    this.dma = new SystemDma({
      lp: host.logicalProcess,
      config: config.systemDma,
      memory: host.memory,
      bus: this.bus,
      trafficClass: TrafficClass.packetBuffer,
    });
    this.dma.connect({ rootComplex: rootComplex.corePort(host.cores.length), interrupts: this });
  }

  /** The controller raises its interrupt. */
  raise(): void {
    const { interrupts } = this.#host;
    const { address, data } = interrupts.messageFor(this.vector);
    interrupts.message(address, data);
  }

  inspect(): BlockState {
    return { systemDma: this.dma.inspect(), memoryBus: this.bus.inspect() };
  }

  /**
   * Runs `handler` at each interrupt of the controller, in interrupt context.
   * @returns a function that removes the handler
   */
  attach(handler: (cpu: CoreThread) => Promise<void>): () => void {
    this.#host.interrupts.attach(this.vector, handler);
    return () => this.#host.interrupts.detach(this.vector);
  }

  /** One OUT instruction. */
  async write(cpu: CoreThread, port: number, value: number): Promise<void> {
    cpu.charge('driver', this.#accessCycles);
    await cpu.settle();
    this.dma.portWrite(port, value);
  }

  /** One IN instruction. */
  async read(cpu: CoreThread, port: number): Promise<number> {
    cpu.charge('driver', this.#accessCycles);
    await cpu.settle();
    return this.dma.portRead(port);
  }

  /** Words moved so far. */
  get wordsMoved(): number {
    return this.dma.channels.reduce((sum, { wordsMoved }) => sum + wordsMoved, 0);
  }
}
