/**
 * The system DMA controller: a third party that moves words between memory and a device, in the host's logical process.
 *
 *     CPU ─ ports ─► channel: address, count, mode ─► request
 *                                                       │ bus requested … bus taken: cores wait
 *                        memory ──word──► store ─► root complex ─► device BAR      READ:  memory to device
 *                        memory ◄──word── load  ◄─ root complex ◄─ device BAR      WRITE: device to memory
 *                                                       │ single: bus released after each word; block: after the last
 *                                                       └ terminal count ─► interrupt
 *
 * Promises: one word at a time; the bus is held from before a word's cycle to its end, including the device's wait states (a
 * store that the root complex does not accept, a load's round trip to the device). Memory is read and written at the instant at
 * which the word's cycle ends. A word outside memory, a failed load or an invalid mode stops the channel with its error bit and
 * an interrupt. Software never causes an exception. Source: Intel 8237A data sheet; the fly-by cycle of its single bus spans
 * two buses here, memory's and PCIe.
 */

import { systemDmaChannelCount } from '../../abi/nic/index.ts';
import {
  type BlockAccount,
  type BlockState,
  type ClockDomain,
  connectBlocks,
  type LogicalProcess,
} from '../../sim/index.ts';
import type { HostMemory } from '../pcie/index.ts';
import type { MemoryBus } from './memory-bus.ts';
import type { SystemDmaConfig } from './parameters.ts';
import { makeBlocks, type SystemDmaBlocks, systemDmaWires } from './system-dma-blocks.ts';
import { SystemDmaChannel } from './system-dma-channel.ts';
import type { TransferMachinePorts } from './transfer-machine.ts';

export interface SystemDmaOptions {
  readonly lp: LogicalProcess;
  readonly config: SystemDmaConfig;
  readonly memory: HostMemory;
  readonly bus: MemoryBus;
  /** Accounting class of its stores; loads use the root complex's. */
  readonly trafficClass: number;
}

export class SystemDma {
  readonly channels: readonly SystemDmaChannel[];
  readonly domain: ClockDomain;
  readonly blocks: SystemDmaBlocks;
  readonly #bus: MemoryBus;

  constructor(options: SystemDmaOptions) {
    this.#bus = options.bus;
    this.domain = options.lp.addClockDomain(options.config.clockMHz);
    this.channels = Array.from({ length: systemDmaChannelCount }, () => new SystemDmaChannel());
    this.blocks = makeBlocks({ ...options, domain: this.domain, channels: this.channels });
    this.domain.addEdgeKeeper(this);
  }

  /** Connects its port of the root complex, and the receiver of its interrupts; before time starts. */
  connect({ rootComplex, interrupts }: Pick<TransferMachinePorts, 'rootComplex' | 'interrupts'>): void {
    const blocks = { ...this.blocks, rootComplex };
    connectBlocks(blocks, systemDmaWires({ ...blocks, interrupts }));
  }

  get account(): BlockAccount {
    return this.blocks.machine.account;
  }

  get interruptCount(): number {
    return this.blocks.machine.interruptCount;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.blocks.machine.rebase(cycles);
    this.#bus.rebase(ps);
  }

  /** Reads the 32-bit port at `port` of abi/nic/system-dma.ts, at the present instant. */
  portRead(port: number): number {
    return this.blocks.registers.read(port);
  }

  /** Writes a port; it takes effect at the controller's next clock edge. */
  portWrite(port: number, value: number): void {
    this.blocks.registers.write(port, value);
  }

  /** No transfer is in progress. */
  get isIdle(): boolean {
    return this.blocks.machine.isIdle;
  }

  /** After a master clear the state equals that after power-on, as soon as a word in progress was abandoned. */
  inspect(): BlockState {
    return {
      isEnabled: this.blocks.registers.isEnabled,
      ...this.blocks.machine.inspect(),
      channels: this.channels.map((channel) => channel.inspect()),
    };
  }
}
