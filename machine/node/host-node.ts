/**
 * The logical process of one host: memory, cores and interrupt controller, the root complex at its end of the PCIe
 * link, firmware that enumerates the slot, and the kernel's driver.
 *
 *     boot: enumerate the function ─► probe the driver ─► programs may open the device
 *
 * It is built from the plan alone, so that the same code builds a host in any thread.
 */

import type { Analyser } from '../../analyser/index.ts';
import { defaultsOf, type Wide } from '../../base/index.ts';
import { Driver, driverParameters, type Neighbour } from '../../driver/index.ts';
import {
  type BusMap,
  type CoreThread,
  configAccessOf,
  driverPlatformOf,
  Host,
  type InterruptController,
  pageAnonymous,
  pageStable,
  type Signal,
} from '../../host/index.ts';
import { TrafficClass, trafficClassCount } from '../../hw/dma/index.ts';
import { macOf, portGuidOf } from '../../hw/hca/index.ts';
import { Iommu } from '../../hw/iommu/index.ts';
import {
  type EnumeratedFunction,
  enumerateFunction,
  PcieLinkPort,
  RootComplex,
  type SharedDevice,
} from '../../hw/pcie/index.ts';
import {
  type BlockState,
  ChannelWriter,
  type ExactPs,
  exactPs,
  LogicalProcess,
  Random,
} from '../../sim/index.ts';
import { attachAnalyser } from '../analysis/index.ts';
import { MarkedOperations } from '../costs/index.ts';
import { HostJournal } from '../evidence/index.ts';
import {
  FaultLog,
  faultsOf,
  type GatedSink,
  InterruptGate,
  injectRootComplexFaults,
} from '../faults/index.ts';
import { adapterName, channelKey, hostName, type MachinePlan } from '../plan.ts';
import type { MachineConfig } from '../profile/index.ts';
import type { HostLink, LogLine } from '../program.ts';
import { hostStream, type Stream } from '../timeline/index.ts';
import { farPortsOf, hostsOf, peersOf, portsOf, type Topology } from '../topology/index.ts';
import { AccessWatch, type FrameOwnership } from './access-watch.ts';
import { DmaController } from './dma-controller.ts';
import { ExchangePort } from './exchange.ts';
import { heldByHost } from './held.ts';
import { NicSoftware } from './nic-software.ts';
import { OperationLog } from './operation-log.ts';
import { OperationTimes } from './operation-times.ts';
import { linkReader } from './packet-log.ts';
import { RaceWatch } from './race-watch.ts';
import { TransferMeter } from './transfer-meter.ts';

/** The function did not appear in the slot: no driver can be probed. */
class DeviceMissingError extends Error {
  override readonly name = 'DeviceMissingError';
}

const mib = 2 ** 20;
const { register } = TrafficClass;

export class HostNode implements BusMap {
  readonly node: number;
  /** Hosts at the other ends of this host's cables, ascending. */
  readonly peers: readonly number[];
  /** Its cables, by port. */
  readonly links: readonly HostLink[];
  readonly lp: LogicalProcess;
  readonly config: MachineConfig;
  readonly host: Host;
  readonly port: PcieLinkPort;
  readonly rootComplex: RootComplex;
  /** The watch of buffer ownership, if requested. */
  readonly races: RaceWatch | undefined;
  /** The watch of the device's accesses, if requested. */
  readonly accesses: AccessWatch | undefined;
  /** The IOMMU between root complex and memory, if enabled. */
  readonly iommu: Iommu | undefined;
  readonly interruptGate: InterruptGate;
  readonly exchange: ExchangePort;
  readonly operations: OperationLog;
  /** Operations that programs mark, if the plan requests their costs. */
  readonly marked: MarkedOperations | undefined;
  readonly faultLog: FaultLog;
  /** Copies made by the libraries of programs, and their bytes. */
  readonly userCopies = { count: 0, bytes: 0 };
  /** Observes the traffic between host and HCA, if the plan requests it. */
  readonly analyser: Analyser | undefined;
  /** Timeline records, if the plan requests them. */
  readonly stream: Stream | undefined;
  /** Calls of programs to the verbs library, if the plan requests this evidence. */
  readonly journal: HostJournal | undefined;
  /** Device that firmware found in the slot; undefined before enumeration. */
  enumerated: EnumeratedFunction | undefined;
  /** The driver; undefined before the slot was enumerated. */
  driver: Driver | undefined;
  /** Simulated time at which the driver had probed the device. */
  bootedPs: ExactPs | undefined;
  /** Log lines of the kernel. */
  readonly kernelLog: LogLine[] = [];
  /** The DMA controller that moves words between memory and the NIC; undefined with an HCA. */
  readonly systemDma: DmaController | undefined;
  readonly meter: TransferMeter;
  /** The NIC's driver; undefined with an HCA, and before the slot is enumerated. */
  nic: NicSoftware | undefined;
  readonly #booted: Signal;
  /** ARP finds the peer at the other end of a NIC's cable. */
  readonly #resolvesNeighbours: boolean;
  readonly #answersManagement: boolean;
  // Fields, because an image of the machine contains what fields refer to.
  readonly #shuffle: Random | undefined;
  readonly #framePlaces: Random;
  readonly #kernelRandom: Random;
  readonly #timers = new Map<number, () => void>();
  /** Timers among them that only check the HCA's health. */
  readonly #healthTimers = new Set<number>();
  readonly #timerHandler: number;
  readonly #kernel = {
    startTimer: (delayPs: number, due: () => void, purpose?: 'health' | 'protocol') =>
      this.#startTimer(delayPs, due, purpose === 'health'),
    randomBits: () => this.#kernelRandom.uint32(),
    log: (text: string) =>
      void this.kernelLog.push({ node: this.node, atPs: this.lp.instantPs, program: 'kernel', text }),
  };
  #timerCount = 0;
  /** BAR2 on the bus, and the end of its UARs: empty before the slot was enumerated. */
  #bar2From: Wide = 0;
  #bar2To: Wide = 0;
  #uarTo: Wide = 0;
  #uarClass: number = register;
  #behindUarsClass: number = register;

  /** @param device data that a device in the same thread shares with the root complex */
  constructor(plan: MachinePlan, node: number, device?: SharedDevice) {
    const { config, shuffleSeed } = plan;
    this.node = node;
    this.peers = Object.freeze(peersOf(plan.topology, node));
    this.links = Object.freeze(linksOf(plan.topology, node));
    this.config = config;
    const name = hostName(node);
    this.#shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name);
    this.lp = new LogicalProcess(name, this.#shuffle?.unit, plan.shortcuts);
    this.lp.patienceMs = plan.programPatienceMs;
    this.#timerHandler = this.lp.queue.addHandler((number) => this.#timerDue(number));
    this.port = this.#makePort(plan);
    this.#framePlaces = new Random(config.machine.seed, `${name}.frames`);
    this.#kernelRandom = new Random(config.machine.seed, `${name}.kernel`);
    const parts: { rootComplex?: RootComplex; gate?: InterruptGate; iommu?: Iommu } = {};
    let accesses: AccessWatch | undefined;
    this.host = new Host({
      logicalProcess: this.lp,
      config: config.host,
      busMap: this,
      framePlaces: this.#framePlaces,
      connect: (memory, interrupts) => {
        parts.gate = new InterruptGate(this.lp, gatedSinkOf(interrupts));
        const { iommu } = config.pcie;
        if (plan.watch === 'accesses') accesses = new AccessWatch(memory, () => this.lp.instantPs);
        const reached = accesses ?? memory;
        if (iommu.isEnabled) parts.iommu = new Iommu({ lp: this.lp, memory: reached, config: iommu });
        parts.rootComplex = new RootComplex({
          lp: this.lp,
          config: config.pcie.rootComplex,
          end: config.pcie.rootPort,
          port: this.port,
          memory: parts.iommu ?? reached,
          interrupts: parts.gate,
          // The system DMA controller has a port of its own, like a core.
          coreCount: config.host.core.count + (config.machine.adapter === 'nic' ? 1 : 0),
          trafficClasses: { register: TrafficClass.register, config: TrafficClass.config },
          device,
        });
        return (core) => parts.rootComplex!.corePort(core);
      },
    });
    this.rootComplex = parts.rootComplex!;
    if (config.machine.adapter === 'nic')
      this.systemDma = new DmaController(this.host, this.rootComplex, config);
    this.meter = new TransferMeter(this);
    if (plan.watch === 'races') this.races = new RaceWatch((ps) => exactPs(this.lp.epochUs, ps));
    this.accesses = accesses;
    if (this.accesses !== undefined) this.accesses.ownership = this.#frameOwnership();
    this.iommu = parts.iommu;
    if (parts.iommu !== undefined) {
      this.host.useIommu(parts.iommu, config.pcie.iommu);
      this.lp.addTimeKeeper(parts.iommu);
    }
    this.interruptGate = parts.gate!;
    this.analyser = attachAnalyser(plan.analysis, name, this.lp, this.rootComplex, this.host.memory);
    this.exchange = this.#makeExchange(plan);
    this.exchange.onArrival = (label) => this.meter.arrived(label);
    const times = new OperationTimes(plan.operationTimes[node]!);
    this.operations = new OperationLog(times);
    this.marked = plan.attributesCosts ? new MarkedOperations() : undefined;
    this.lp.addTimeKeeper(this.operations);
    this.#booted = this.host.newSignal();
    this.#resolvesNeighbours = plan.nicFarEnd !== undefined;
    this.#answersManagement = plan.guestHosts !== undefined;
    this.faultLog = new FaultLog(plan.faults);
    this.interruptGate.inject(faultsOf(plan.faults, node, 'interrupt'), this.faultLog);
    injectRootComplexFaults(plan.faults, node, this.rootComplex, this.faultLog);
    const { host, port, rootComplex, operations } = this;
    const watched = { host, port, rootComplex, operations, times };
    this.stream = hostStream(plan.analysis?.timeline, this.lp, watched, config);
    const { evidence } = plan.analysis ?? {};
    if (evidence !== undefined)
      this.journal = new HostJournal(
        node,
        () => Number(this.lp.instantPs),
        evidence.placeOf ?? (() => undefined),
      );
    if (this.races !== undefined) this.journal?.watchRaces(this.races);
    this.#boot();
  }

  #frameOwnership(): FrameOwnership {
    const { frames, mm } = this.host;
    return {
      frames,
      isMovable: (frame) => mm.pages.has(frame, pageAnonymous) && !mm.pages.has(frame, pageStable),
      hasOnDemandRegions: () => (this.driver?.onDemandCounts()?.pagesEntered ?? 0) > 0,
    };
  }

  /** The state of the blocks, by name, and counts of held resources. */
  inspect(): BlockState {
    return {
      host: heldByHost(this),
      processor: this.host.inspect(),
      ...(this.iommu === undefined ? {} : { iommu: this.iommu.inspect() }),
      ...(this.systemDma === undefined ? {} : this.systemDma.inspect()),
    };
  }

  /** Waits, on this thread, until the driver has probed the device. */
  async untilBooted(cpu: CoreThread): Promise<void> {
    while (this.bootedPs === undefined) await this.#booted.wait(cpu);
    this.passBooted();
  }

  /** A thread that waited for the driver continues, and wakes the next one. */
  passBooted(): void {
    this.#booted.raise();
  }

  /** Makes the driver remove its device and free all resources, in a kernel thread. */
  removeDriver(): void {
    const driver = this.driver ?? this.nic;
    if (driver === undefined) return;
    this.lp.addMember();
    this.host.spawn('remove', async (cpu) => {
      await driver.remove(cpu);
      await cpu.settle();
      this.lp.markEnded();
    });
  }

  /** Kernel timers that only check the HCA's health; timers of connections do more. */
  get healthTimerCount(): number {
    return this.#healthTimers.size;
  }

  /** A kernel timer: a single event, so that it costs nothing until it is due. */
  #startTimer(delayPs: number, due: () => void, isHealth: boolean): void {
    const number = this.#timerCount++;
    this.#timers.set(number, due);
    if (isHealth) this.#healthTimers.add(number);
    this.lp.queue.schedule(this.lp.nowPs + delayPs, this.#timerHandler, number);
  }

  #timerDue(number: number): void {
    const due = this.#timers.get(number)!;
    this.#timers.delete(number);
    this.#healthTimers.delete(number);
    due();
  }

  #makePort({ channels, config, analysis }: MachinePlan): PcieLinkPort {
    const [host, adapter] = [hostName(this.node), adapterName(config, this.node)];
    return new PcieLinkPort({
      lp: this.lp,
      link: config.pcie.link,
      end: config.pcie.rootPort,
      peer: config.pcie.endpointPort,
      writer: new ChannelWriter(channels[channelKey(host, adapter)]!),
      reader: linkReader(channels[channelKey(adapter, host)]!, analysis, () => this.lp),
      trafficClassCount,
    });
  }

  #makeExchange({ channels, config, topology, guestHosts = 0 }: MachinePlan): ExchangePort {
    const own = this.lp.name;
    const others = hostsOf(topology).filter((node) => node !== this.node && node >= guestHosts);
    const inbound = others.map((other) => channels[channelKey(hostName(other), own)]!);
    const outbound = others.map((other) => [other, channels[channelKey(own, hostName(other))]!] as const);
    return new ExchangePort(this.lp, this.host, config, this.peers, inbound, new Map(outbound));
  }

  /** Accounting class of a core's store, by its place in the device's BARs. */
  trafficClassAt(busAddress: number): number {
    if (busAddress < this.#bar2From || busAddress >= this.#bar2To) return register;
    return busAddress < this.#uarTo ? this.#uarClass : this.#behindUarsClass;
  }

  /** Notes the destinations of stores to BAR2: the UARs, the BlueFlame registers after them, or a NIC's packet buffers. */
  #learnBar2({ bars }: EnumeratedFunction): void {
    const bar2 = bars[2];
    if (bar2 === undefined) return;
    this.#bar2From = bar2.address;
    this.#bar2To = bar2.address + bar2.sizeBytes;
    const isNic = this.config.machine.adapter === 'nic';
    this.#uarTo = bar2.address + 2 ** this.config.hca.capability.logUarAreaMib * mib;
    this.#uarClass = isNic ? TrafficClass.packetBuffer : TrafficClass.doorbell;
    this.#behindUarsClass = isNic ? TrafficClass.packetBuffer : TrafficClass.blueFlame;
  }

  /** Firmware and kernel, as a kernel thread on core 0; the run counts it like a program. */
  #boot(): void {
    this.lp.addMember();
    this.host.spawn('boot', async (cpu) => {
      const functionId = this.config.pcie.rootComplex.deviceBus << 8;
      const access = configAccessOf(cpu);
      const found = await enumerateFunction(access, functionId, this.config.pcie.enumeration, 'memory');
      if (found === undefined) throw new DeviceMissingError(`no function answers at bus ${functionId >> 8}`);
      this.enumerated = found;
      this.#learnBar2(found);
      if (this.config.machine.adapter === 'nic') await this.#bootNic(cpu, found);
      else await this.#bootHca(cpu, found);
      await cpu.settle();
      this.bootedPs = this.lp.instantPs;
      this.#booted.raise();
      this.lp.markEnded();
    });
  }

  async #bootHca(cpu: CoreThread, found: EnumeratedFunction): Promise<void> {
    const functionId = this.config.pcie.rootComplex.deviceBus << 8;
    const platform = driverPlatformOf(this.host, functionId, found.bars, Math.max(0, found.interruptPin - 1));
    this.driver = new Driver(
      {
        ...platform,
        ...this.#kernel,
        neighbours: neighboursOf(this.config),
        operations: this.operations,
        answersManagement: this.#answersManagement,
      },
      { ...defaultsOf(driverParameters), ...this.config.driver },
    );
    await this.driver.probe(cpu);
  }

  async #bootNic(cpu: CoreThread, found: EnumeratedFunction): Promise<void> {
    const { host, config, node, systemDma } = this;
    this.nic = new NicSoftware(
      host,
      config,
      node,
      found,
      systemDma!,
      this.#kernel,
      this.#resolvesNeighbours ? [] : this.peers,
    );
    await this.nic.probe(cpu);
  }
}

/**
 * The ports of the subnet by their addresses: host n is 10.0.0.n+1. Every host has the same table, as if copied to all,
 * with the MACs that ARP would have found.
 */
function neighboursOf({ machine }: MachineConfig): Neighbour[] {
  return Array.from({ length: machine.nodeCount }, (_, node) => ({
    address: `10.0.0.${node + 1}`,
    portGuid: portGuidOf(node, 1),
    mac: macOf(node, 1),
  }));
}

function linksOf(topology: Topology, node: number): HostLink[] {
  return portsOf(topology, node).flatMap((port) =>
    farPortsOf(topology, port).map((far) => ({ portNum: port.port, peer: far.node, peerPortNum: far.port })),
  );
}

/** The interrupt controller's interface for the gate before it. */
function gatedSinkOf(controller: InterruptController): GatedSink {
  const vectors = Array.from({ length: controller.vectorCount }, (_, vector) => vector);
  return {
    message: (address, data) => controller.message(address, data),
    intx: (pin, isAsserted) => controller.intx(pin, isAsserted),
    vectorOf: (_address, data) => vectors.findIndex((vector) => controller.messageFor(vector).data === data),
    messageFor: (vector) => controller.messageFor(vector),
  };
}
