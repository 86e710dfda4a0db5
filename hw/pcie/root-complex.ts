/**
 * The root complex: the host's end of the link. It keeps its own clock in the host's logical process.
 *
 *     link ──► posted     ── RootComplexWrites ── write latency ──► memory, interrupts
 *          ──► non-posted ── RootComplexReads ─── read latency ───┐ sampled from memory
 *          ──► completion ── RootComplexCpu ──► done              │
 *     link ◄── egress: one TLP an edge, completions and cores in turn ◄── RootComplexCpu ◄── cores
 *
 * Promises: writes of a device take effect in the order sent; a read sees every write sent before it; an
 * interrupt message is delivered after the writes sent before it. Whatever a device sends that cannot be carried
 * out is answered or dropped as the standard says and counted in {@link RootComplex.log}.
 */
import type { BusAddress, Cycles } from '../../base/units.ts';
import type { BlockState } from '../../sim/block.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import type { RunAhead } from '../../sim/run-ahead.ts';
import type { LinkEndConfig } from './link-parameters.ts';
import type { PcieLinkPort } from './link-port.ts';
import { CorePort } from './root-complex-core-port.ts';
import type { StoreSender } from './root-complex-core-queue.ts';
import { type ConfigurationAccess, RootComplexCpu } from './root-complex-cpu.ts';
import type { AccessDone, HostMemory, InterruptSink, SharedDevice } from './root-complex-interfaces.ts';
import { DeviceFaultLog } from './root-complex-log.ts';
import { checkRootComplexConfig, type RootComplexConfig } from './root-complex-parameters.ts';
import { RootComplexReads } from './root-complex-reads.ts';
import { RootComplexWrites } from './root-complex-writes.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  MEMORY_WRITE,
  MESSAGE,
  SIDEBAND_BASE,
  SIDEBAND_RESET,
} from './tlp.ts';
import { CarriedPayload, ZeroCopyPayload } from './write-payload.ts';

/** Traffic classes of what cores ask for without saying one. */
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
  /** The device, where it shares this thread and something with it; left out: nothing. */
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
  /** The device, where it shares something with this end. */
  readonly device: SharedDevice | undefined;

  readonly #lp: LogicalProcess;
  readonly #config: RootComplexConfig;
  readonly #trafficClasses: CoreTrafficClasses;
  readonly #runAhead: RunAhead;
  readonly #egressStage: number;
  #completionWasLast = false;

  constructor(options: RootComplexOptions) {
    const { lp, config, end, port, memory, interrupts, coreCount, device } = options;
    checkRootComplexConfig(config, port.link, end);
    this.#lp = lp;
    this.#config = config;
    this.device = device;
    this.#runAhead = lp.runAhead;
    this.#trafficClasses = options.trafficClasses;
    this.port = port;
    const domain = lp.addClockDomain(config.clockMHz);
    this.domain = domain;
    // Writes take effect before the same edge samples memory for a completion.
    const payload =
      device?.references === undefined
        ? new CarriedPayload(port.reader)
        : new ZeroCopyPayload(port.reader, device.references);
    const parts = { lp, domain, port, log: this.log, config };
    this.writes = new RootComplexWrites({ ...parts, memory, interrupts, payload });
    const isPlain = !lp.runAhead.isOn && device?.earlyPlaces === undefined;
    const egressStage = domain.addStage(isPlain ? this.#egress : this.#egressOn, this);
    this.#egressStage = egressStage;
    const { writes } = this;
    const places = device?.earlyPlaces;
    this.reads = new RootComplexReads({ ...parts, memory, writes, egressStage, places });
    this.cpu = new RootComplexCpu({ ...parts, writes, coreCount, egressStage });
    port.connect({ receiver: this, posted: [this], nonPosted: [this], completion: [this] });
    domain.addEdgeKeeper(this);
  }

  /** A new epoch: see EdgeKeeper. */
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
      completionWasLast: this.#completionWasLast,
    };
  }

  /** The root complex as one core uses it. */
  corePort(core: number): CorePort {
    return new CorePort(this, core);
  }

  /** Asserts or releases the fundamental reset of the slot. The link goes down, and with it the wires of INTx (2.2.8.1). */
  setReset(isAsserted: boolean): void {
    if (isAsserted) this.writes.lowerWires();
    this.port.sendSideband(SIDEBAND_RESET, isAsserted ? 1 : 0);
  }

  /** Whether `core` may give another store; a load it can always give when it waits for no other. */
  canStore(core: number): boolean {
    return this.cpu.canStore(core);
  }

  /** Connects the store buffer of `core`, or the device that uses a core's port. */
  connectCore(core: number, stores: StoreSender): void {
    this.cpu.connectCore(core, stores);
  }

  /** See LinkSender. */
  linkSpace(): void {
    this.domain.wakeAfter(this.#egressStage, this.#lp.nowPs);
  }

  /** A posted write of 1 to `cpuStoreBytesMax` bytes; they are copied at once. The caller asked {@link canStore}. */
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

  /** Writes a configuration dword, or as few of its bytes as are given; the others are not touched. */
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

  /** Functions of device 0 are behind the root port; whether such a function exists is the device's answer. */
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
      this.port.consume(offset);
    } else if (kind === COMPLETION_DATA || kind === COMPLETION) {
      this.cpu.complete(offset);
    } else {
      this.reads.receive(offset);
    }
  }

  #egress(cycle: Cycles): void {
    const next = this.#egressAt(cycle);
    if (next >= 0) this.domain.wake(this.#egressStage, next);
  }

  /** Does what is due at an edge. Returns the cycle at which the next completion is ready, -1 when someone else wakes the stage. */
  #egressAt(cycle: Cycles): number {
    this.#sendOne(cycle);
    // This wakes the senders that wait for room in the link.
    this.cpu.wakeEgress(cycle + 1);
    return this.reads.nextCycle(cycle + 1);
  }

  /** Likewise at edge `cycle` and at those after it, while nothing else is due. */
  #egressOn(cycle: Cycles): void {
    let edge = this.#egressAt(cycle);
    for (;;) {
      if (edge >= 0 && this.#completeOn(edge)) edge = this.reads.nextCycle(this.domain.cycle + 1);
      if (edge < 0 || !this.#runAhead.passTo(this.domain, this.#egressStage, edge)) break;
      edge = this.#egressAt(edge);
    }
    if (edge >= 0) this.domain.wake(this.#egressStage, edge);
    this.reads.early?.placeData();
  }

  /** Hands over completions at edge `cycle` and after. Returns whether there was one. */
  #completeOn(cycle: Cycles): boolean {
    const { early } = this.reads;
    if (early === undefined) return false;
    const last = this.#runAhead.lastPassable(this.domain, this.#egressStage);
    if (last < cycle || !early.completeOn(cycle, last)) return false;
    this.#completionWasLast = true;
    return true;
  }

  /** One TLP an edge to the link; when a completion and a core both have one ready, they take turns. */
  #sendOne(cycle: Cycles): void {
    const { reads, cpu } = this;
    const coreQueue = cpu.readyQueue(cycle);
    if (reads.isReady(cycle) && !(coreQueue !== undefined && this.#completionWasLast)) {
      reads.complete(cycle);
      this.#completionWasLast = true;
    } else if (coreQueue !== undefined) {
      cpu.send(coreQueue);
      this.#completionWasLast = false;
    }
  }
}
