/**
 * The root complex: the host's end of the link. It keeps its own clock in the host's logical process.
 *
 *     link ──► posted     ── RootComplexWrites ── write latency ──► memory, interrupts
 *          ──► non-posted ── RootComplexReads ─── read latency ───┐ sampled from memory
 *          ──► completion ── RootComplexCpu ──► done              │
 *     link ◄── egress: one TLP an edge, completions and cores in turn ◄── RootComplexCpu ◄── cores
 *     link ◄── WordMonitor: a dword that the device monitors has changed
 *
 * Promises: writes of a device take effect in the order sent; a read sees every earlier write; an interrupt message is
 * delivered after all earlier writes. A TLP of a device that cannot be carried out is answered or dropped as the standard
 * defines, and counted in {@link RootComplex.log}.
 */
import type { BusAddress } from '../../../base/index.ts';
import { type BlockState, type ClockDomain, connectBlocks, type LogicalProcess } from '../../../sim/index.ts';
import type { LinkEndConfig, PcieLinkPort } from '../link/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  MEMORY_WRITE,
  MESSAGE,
  SIDEBAND_BASE,
  SIDEBAND_RESET,
} from '../tlp/index.ts';
import { CorePort } from './core-port.ts';
import { DeviceFaultLog } from './device-fault-log.ts';
import { makeBlocks, type RootComplexBlocks, rootComplexWires } from './root-complex-blocks.ts';
import type { StoreSender } from './root-complex-core-queue.ts';
import type { ConfigurationAccess, RootComplexCpu } from './root-complex-cpu.ts';
import type { AccessDone, HostMemory, InterruptSink, SharedDevice } from './root-complex-interfaces.ts';
import { checkRootComplexConfig, type RootComplexConfig } from './root-complex-parameters.ts';
import type { RootComplexReads } from './root-complex-reads.ts';
import type { RootComplexWrites } from './root-complex-writes.ts';

/** Traffic classes of core requests that specify none. */
export interface CoreTrafficClasses {
  readonly register: number;
  readonly config: number;
}

export interface RootComplexOptions {
  readonly lp: LogicalProcess;
  readonly config: RootComplexConfig;
  /** This end's credits, as given to the port. */
  readonly end: LinkEndConfig;
  readonly port: PcieLinkPort;
  readonly memory: HostMemory;
  readonly interrupts: InterruptSink;
  readonly coreCount: number;
  readonly trafficClasses: CoreTrafficClasses;
  /** The device, if it shares this thread and offers shared resources; left out: none. */
  readonly device?: SharedDevice | undefined;
}

/** Bus, device and function number: bus [15:8], device [7:3], function [2:0]. */
const DEVICE_SHIFT = 3;
const BUS_SHIFT = 8;
const DWORD_BYTES = 4;

export class RootComplex {
  readonly domain: ClockDomain;
  readonly port: PcieLinkPort;
  readonly writes: RootComplexWrites;
  readonly reads: RootComplexReads;
  readonly cpu: RootComplexCpu;
  readonly log = new DeviceFaultLog();
  /** The device, if it shares resources with this end. */
  readonly device: SharedDevice | undefined;

  readonly blocks: RootComplexBlocks;
  readonly #config: RootComplexConfig;
  readonly #trafficClasses: CoreTrafficClasses;

  constructor(options: RootComplexOptions) {
    const { lp, config, end, port, memory, interrupts, coreCount, device } = options;
    checkRootComplexConfig(config, port.link, end);
    this.#config = config;
    this.device = device;
    this.#trafficClasses = options.trafficClasses;
    this.port = port;
    const domain = lp.addClockDomain(config.clockMHz);
    this.domain = domain;
    const blocks = makeBlocks({ lp, domain, port, log: this.log, config, memory, coreCount, device });
    connectBlocks({ ...blocks, port }, rootComplexWires({ ...blocks, port, interrupts, rootComplex: this }));
    this.blocks = blocks;
    this.writes = blocks.writes;
    this.reads = blocks.reads;
    this.cpu = blocks.cpu;
    domain.addEdgeKeeper(this);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.writes.rebase(cycles);
    this.reads.rebase(cycles);
    this.cpu.rebase(ps, cycles);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      writes: this.writes.inspect(),
      reads: this.reads.inspect(),
      cpu: this.cpu.inspect(),
      ...this.blocks.egress.inspect(),
      ...this.blocks.monitor.inspect(),
    };
  }

  /** The root complex as one core uses it. */
  corePort(core: number): CorePort {
    return new CorePort(this, core);
  }

  /** Asserts or releases the fundamental reset of the slot. The link goes down, and with it the wires of INTx (2.2.8.1). */
  setReset(isAsserted: boolean): void {
    if (isAsserted) {
      this.writes.lowerWires();
      this.blocks.monitor.reset();
    }
    this.port.sendSideband(SIDEBAND_RESET, isAsserted ? 1 : 0);
  }

  /** Whether `core` may send another store; it can always send a load if it waits for no other. */
  canStore(core: number): boolean {
    return this.cpu.canStore(core);
  }

  /** Connects the store buffer of `core`, or the device that uses a core's port. */
  connectCore(core: number, stores: StoreSender): void {
    this.cpu.connectCore(core, stores);
  }

  /** A posted write of 1 to `cpuStoreBytesMax` bytes; they are copied at once. The caller has checked {@link canStore}. */
  cpuStore(
    core: number,
    address: BusAddress,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    trafficClass: number,
  ): void {
    this.cpu.store(core, address, source, sourceOffset, lengthBytes, trafficClass);
  }

  /** Reads 1 to 4 bytes of device space, within one dword; one at a time for each core. */
  cpuLoad(core: number, address: BusAddress, lengthBytes: number, done: AccessDone): void {
    this.cpu.load(core, address, lengthBytes, this.#trafficClasses.register, done);
  }

  /** Reads a configuration dword of function `target` (bus, device, function). */
  configRead(core: number, target: number, register: number, done: AccessDone): void {
    const access = { kind: CONFIG_READ, target, register, lengthBytes: DWORD_BYTES, value: 0 };
    this.#configure(core, access, done);
  }

  /** Writes a configuration dword, or only the given bytes of it. */
  configWrite(
    core: number,
    target: number,
    register: number,
    value: number,
    done: AccessDone,
    lengthBytes: number = DWORD_BYTES,
  ): void {
    this.#configure(core, { kind: CONFIG_WRITE, target, register, lengthBytes, value }, done);
  }

  /** Functions of device 0 are below the root port; the device answers whether such a function exists. */
  #configure(core: number, access: ConfigurationAccess, done: AccessDone): void {
    const isPresent = access.target >> DEVICE_SHIFT === this.#config.deviceBus << (BUS_SHIFT - DEVICE_SHIFT);
    const { config } = this.#trafficClasses;
    if (isPresent) this.cpu.configure(core, access, config, done);
    else this.cpu.answerAbsent(done);
  }

  /** A record has arrived: called by the link port. */
  receiveTlp(offset: number, kind: number): void {
    if (kind === MEMORY_WRITE || kind === MESSAGE) {
      this.writes.receive(offset);
    } else if (kind >= SIDEBAND_BASE) {
      this.blocks.monitor.receive(offset, kind);
    } else if (kind === COMPLETION_DATA || kind === COMPLETION) {
      this.cpu.complete(offset);
    } else {
      this.reads.receive(offset);
    }
  }
}
