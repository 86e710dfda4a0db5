/**
 * The host channel adapter: one logical process from the PCIe link to the cable. This file only wires it.
 *
 *   PCIe link ── PcieFunction ──BAR0──> ControlSide (commands, event queues, port)
 *                     │        ──BAR2──> DataPath (doorbells … completions) ── wire port ── cable
 *                     └── DMA read and write engines <── both
 *
 * Stages are added from the output side back: DMA engines, function, control side, data path.
 */
import { type Cycles, defaultsOf } from '../../base/index.ts';
import {
  type ChannelReader,
  type ChannelWriter,
  type ClockDomain,
  connectBlocks,
  type LogicalProcess,
  type Wires,
} from '../../sim/index.ts';
import {
  dataLanesOf,
  dataRateMbpsOf,
  type EthernetConfig,
  EthernetPort,
  ethernetFrameBytesMax,
  ethernetParameters,
  ethernetPlug,
  type LanesConfig,
  lanesDefaults,
  loopbackPlug,
  type PacketArrival,
  type PacketReceiver,
  type PortArbitration,
  SlToVlTable,
  VlArbitrationTable,
  type WireConfig,
  WirePort,
  type WirePortPorts,
  withTag,
} from '../../wire/index.ts';
import { BusInterface, type DmaReadEngine, type DmaWriteEngine, type SlotSetup } from '../dma/index.ts';
import {
  type AccessObserver,
  type BarTarget,
  PayloadReferences,
  type PcieFunction,
  type PcieLinkPort,
  type SharedDevice,
} from '../pcie/index.ts';
import type { CapabilityConfig } from './capabilities.ts';
import type { ControlConfig } from './commands/index.ts';
import { connectX3Of, hasRoomForBlueFlame } from './connectx3/index.ts';
import { macOf, type NodePort } from './control-blocks.ts';
import { ControlSide, type ControlSidePorts } from './control-side.ts';
import {
  AttributedInterrupts,
  AttributedReads,
  AttributedWrites,
  CostAttribution,
  MissingPort,
  type OperationSource,
} from './costs/index.ts';
import { DataPath } from './data-path.ts';
import { type Carried, type DataPathTables, makeTables, packetSlotBytes } from './data-path-parts.ts';
import type { Personality } from './host-interface/index.ts';
import type { CongestionConfig } from './ibta/congestion/index.ts';
import { type IbtaBlocks, type IbtaParts, ibtaTransport, packetNumberMask } from './ibta/index.ts';
import { LaneEgress, type LanePort } from './ibta/packets/index.ts';
import type { Receiver } from './ibta/receiver/index.ts';
import { type IwarpConfig, iwarpParameters } from './iwarp/iwarp-parameters.ts';
import { type IwarpParts, iwarpTransport, type RdmaBlocks } from './iwarp/iwarp-transport.ts';
import { type TcpBlocks, tcpSide, tcpSramBytes } from './iwarp/tcp/index.ts';
import {
  type ContextCache,
  type ContextUser,
  makeContextCache,
  PORT_COUNT,
  type SramAllocator,
} from './memory/index.ts';
import type { HcaConfig } from './parameters.ts';
import type { HcaPort, LinkStateSource } from './port/index.ts';
import type { OperationTap } from './statistics/index.ts';
import type { TransportParts } from './transport/index.ts';

const MESSAGE_FIFO_DEPTH = 32;
const BAR_REGISTERS = 0;
const SRAM_ALIGNMENT = 64;

/** The channels of a cable's two directions. */
export interface HcaCable {
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** Rate and length of the cable; if left out: {@link HcaSetup.wire}. */
  readonly config?: WireConfig;
  /** When packets sent from here arrive: `head` at a switch; if left out: `tail`. */
  readonly sentArrival?: PacketArrival;
  /** The same of frames of Ethernet: `head` at a switch that cuts through; if left out: `tail`. */
  readonly frameArrival?: PacketArrival;
}

export interface HcaSetup extends SlotSetup {
  readonly lp: LogicalProcess;
  readonly config: HcaConfig;
  readonly control: ControlConfig;
  readonly capabilities: CapabilityConfig;
  readonly wire: WireConfig;
  /** Tables that the embedded subnet manager writes for several data lanes (`wire.dataVls`); left out: the defaults. */
  readonly lanes?: LanesConfig | undefined;
  /** Configuration of the cable if ports are of Ethernet (`capabilities.linkLayer`); defaults if omitted. */
  readonly ethernet?: EthernetConfig | undefined;
  /** Configuration of the card's TCP if connections are of iWARP (`capabilities.transport`); defaults if omitted. */
  readonly iwarp?: IwarpConfig | undefined;
  /** Congestion control; omitted: none. */
  readonly congestion?: CongestionConfig | undefined;
  /** Seed of random effects on frames; omitted: 1. */
  readonly seed?: number | undefined;
  /** The cables, by port from 1; without one, port 1 carries a loopback plug, and port 2 stays off. */
  readonly cables: readonly (HcaCable | undefined)[];
  /** Which node this is, from 0. */
  readonly nodeIndex: number;
  /** For each port, the ports at the ends of its cable, including itself, as the embedded subnet manager sees them. */
  readonly subnets: readonly (readonly NodePort[])[];
  readonly tap: OperationTap | undefined;
  /** Which marked operation a work request belongs to, where TLPs are attributed to operations (costs/); left out: they are not. */
  readonly operationSource?: OperationSource | undefined;
  /** Ways in which a host in the same thread uses the HCA's memory; omitted: none. No result depends on it. */
  readonly shared?: { readonly earlyPlacement: boolean; readonly zeroCopy: boolean } | undefined;
}

/** Parts of the device, except the data path, which has a table of its own. */
interface HcaParts {
  readonly bus: BusInterface;
  readonly control: ControlSide;
  readonly eqcCache: ContextCache<ContextUser<'eqc'>>;
  readonly wirePort: WirePort;
}

interface Surroundings {
  readonly hca: BarTarget & ControlSidePorts['device'];
  readonly dataPath: AnyDataPath;
  /** The ends of the data path at a port of InfiniBand. */
  readonly packetEnds: Pick<WirePortPorts, 'receiver' | 'sender'>;
  /** Blocks of the card's TCP; undefined without iWARP. */
  readonly tcp: Pick<TcpBlocks, 'tcpControl' | 'tcpEvents'> | undefined;
}

type AnyDataPath = DataPath<TransportParts, object>;
/** The data path with the blocks of the IBTA transport, and with those of iWARP. */
type IbtaDataPath = DataPath<IbtaParts, IbtaBlocks>;
type IwarpDataPath = DataPath<IwarpParts, RdmaBlocks & TcpBlocks>;

/** Wires of the blocks: from each port to the block that is called through it. */
export function hcaWires(b: HcaParts & Surroundings): Wires<HcaParts> {
  const { objects, pageFaults, completions, asyncEvents } = b.dataPath.blocks;
  const { tcp } = b;
  return {
    bus: { target: b.hca },
    control: {
      dataPath: objects,
      tcp: tcp?.tcpControl,
      device: b.hca,
      contexts: b.eqcCache,
      posters: [pageFaults, completions.notifier, asyncEvents, ...(tcp === undefined ? [] : [tcp.tcpEvents])],
    },
    eqcCache: { eventWriter: b.control.events },
    wirePort: { ...b.packetEnds, link: b.control.ports[0]! },
  };
}

/** The port of the cable where ports are of Ethernet. */
interface EthernetParts {
  readonly ethernetPort: EthernetPort;
}

/** Lists the wires of a device with Ethernet ports. */
function ethernetHcaWires(
  b: EthernetParts & { readonly dataPath: AnyDataPath; readonly firstPort: Pick<HcaPort, 'linkChanged'> },
): Wires<EthernetParts> {
  return { ethernetPort: { ...b.dataPath.frameEnds, link: b.firstPort } };
}

/** The receiver at a port of InfiniBand that is never enabled. */
const noReceiver: WirePortPorts['receiver'] = { packetArrived: () => undefined };

/** Traffic of the first port. */
function carriedBy({
  linkLayer,
  roce,
  transport,
}: Pick<CapabilityConfig, 'linkLayer' | 'roce' | 'transport'>): Carried {
  if (linkLayer !== 'ethernet') return 'packets';
  return roce === 'none' && transport === 'ibta' ? 'frames' : 'both';
}

export class Hca implements BarTarget {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly linkPort: PcieLinkPort;
  readonly pcieFunction: PcieFunction;
  readonly dmaRead: DmaReadEngine;
  readonly dmaWrite: DmaWriteEngine;
  /** Port 1. On a device with Ethernet ports it stays off, with a plug in it. */
  readonly wirePort: WirePort;
  /** All InfiniBand ports, from port 1; on a device with Ethernet ports the one above. */
  readonly wirePorts: readonly WirePort[];
  /** Undefined where ports are of InfiniBand. */
  readonly ethernetPort: EthernetPort | undefined;
  readonly control: ControlSide;
  readonly dataPath: AnyDataPath;
  /** The same data path, typed by its transport (`hca.capability.transport`); the other one is undefined. */
  readonly ibta: IbtaDataPath | undefined;
  readonly iwarp: IwarpDataPath | undefined;
  readonly eqcCache: ContextCache<ContextUser<'eqc'>>;
  /** Attribution of TLPs to operations, if requested. */
  readonly costs: CostAttribution | undefined;
  /** The device's interface to the root complex of a host in the same thread. */
  readonly shared: SharedDevice;
  /** Blocks of {@link hcaWires}. */
  readonly parts: HcaParts;
  /** Port 1, which has at least a plug, and others with a cable. */
  /** Queues in front of the ports, if these have several data lanes. */
  readonly #egresses: readonly LaneEgress[];
  readonly #cabledPorts: readonly (WirePort | undefined)[];
  #accesses: AccessObserver | undefined;
  #barBytes: Uint8Array | undefined;
  #barView: DataView = new DataView(new ArrayBuffer(8));
  /** True during a reset: the function's reset triggers the core's and vice versa. */
  #isResetting = false;

  constructor(setup: HcaSetup) {
    const { lp, config, pcieFunction } = setup;
    const hasRoom = hasRoomForBlueFlame(setup.capabilities, pcieFunction);
    const capabilities = hasRoom
      ? setup.capabilities
      : { ...setup.capabilities, lacksBlueFlame: true as const };
    this.lp = lp;
    this.domain = lp.addClockDomain(config.coreClockMHz);
    const { domain } = this;
    const { wire, cables } = setup;
    const cable = cables[0];
    const isEthernet = capabilities.linkLayer === 'ethernet';
    const ends = (isEthernet ? undefined : cable) ?? loopbackPlug(wire);
    const ethernet = setup.ethernet ?? defaultsOf(ethernetParameters);
    const frameBytesMax = isEthernet ? ethernetFrameBytesMax(withTag(ethernet)) : undefined;
    const laneCount = isEthernet ? 1 : dataLanesOf(wire);
    // Packets of several lanes are copied out of the channel: nothing there can be referenced.
    const isReferenced = setup.shared?.zeroCopy === true && laneCount === 1;
    const references = isReferenced ? new PayloadReferences(ends.reader.bytes) : undefined;
    const personality = connectX3Of(capabilities);
    const contextFormats = personality.makeContextFormats({
      frameBytesMax: frameBytesMax ?? 0,
      hasRoce: isEthernet && capabilities.roce !== 'none',
      packetPortCount: isEthernet ? 1 : capabilities.portCount,
    });
    const tables = makeTables(capabilities, contextFormats);
    const controlSramBytes = ControlSide.sramBytes(personality.fillPatterns.length);
    const iwarp = setup.iwarp ?? defaultsOf(iwarpParameters);
    const tcpBytes = capabilities.transport === 'iwarp' ? tcpSramBytes(iwarp, ethernet.mtuBytes) : 0;
    const sram = new Sram(controlSramBytes + sramBytesFor(config, frameBytesMax) + tcpBytes);
    const bus = new BusInterface({
      ...setup,
      domain,
      sram: sram.bytes,
      messageFifoDepth: MESSAGE_FIFO_DEPTH,
      gatewayAddress: personality.gatewayAddress,
      hasEarlyPlacement: setup.shared?.earlyPlacement === true,
      references,
    });
    this.linkPort = bus.blocks.linkPort;
    this.pcieFunction = bus.blocks.pcieFunction;
    this.dmaRead = bus.blocks.dmaRead;
    this.dmaWrite = bus.blocks.dmaWrite;
    this.shared = { earlyPlaces: this.dmaRead.earlyPlaces, references };
    this.wirePort = new WirePort({ lp, config: wire, ...ends, references });
    const further = isEthernet ? [] : furtherPortsOf(setup);
    this.wirePorts = [this.wirePort, ...further];
    this.#cabledPorts = this.wirePorts.map((port, index) =>
      index === 0 || cables[index] ? port : undefined,
    );
    this.ethernetPort = isEthernet ? makeEthernetPort(setup, ethernet, cable) : undefined;
    const { ethernetPort } = this;
    const attributed = this.#attributed(setup, tables, personality);
    this.costs = attributed?.costs;
    const reads = attributed?.reads ?? this.dmaRead;
    const writes = attributed?.writes ?? this.dmaWrite;
    this.control = new ControlSide({
      domain,
      deviceId: setup.pcieFunction.deviceId,
      interrupts: attributed?.interrupts ?? this.pcieFunction,
      reads,
      writes,
      sram,
      tables,
      links: this.#cabledPorts,
      lanes: laneCount === 1 ? undefined : { count: laneCount, config: setup.lanes ?? lanesDefaults() },
      ethernet: ethernetPort && {
        link: linkOf(ethernetPort),
        errors: ethernetPort,
        flowControl: ethernetPort.flowControl,
        config: ethernet,
      },
      config: setup.control,
      capabilities,
      nodeIndex: setup.nodeIndex,
      subnets: setup.subnets,
      personality,
      eventQueues: contextFormats.eventQueues,
    });
    const { contextMemory } = personality;
    const parts = { domain, config, contextMemory, dmaRead: reads, dmaWrite: writes, sram };
    const { eqs } = this.control;
    attributed?.writes.connect({ eqs });
    const { eqcCacheEntries, eqcCacheWays } = config;
    this.eqcCache = makeContextCache(parts, 'eqc', eqs, eqcCacheEntries, eqcCacheWays);
    const addresses = this.control.ports;
    const { blocks, management } = this.control;
    const lanePorts =
      laneCount === 1 ? [] : this.wirePorts.map((port, index) => lanePortOf(setup, port, addresses[index]!));
    this.#egresses = lanePorts.map(({ egress }) => egress);
    const site = {
      lp,
      domain,
      config,
      tables,
      dmaRead: reads,
      dmaWrite: writes,
      monitors: this.linkPort,
      sram,
      carries: carriedBy(capabilities),
      addresses,
      ethernet: ethernetPort && { port: ethernetPort, side: addresses[0]!.ethernet! },
      eventQueues: this.control.events,
      personality,
      tap: setup.tap,
      costs: this.costs,
      misses: attributed?.misses,
    };
    const ibtaOf = (): IbtaDataPath =>
      new DataPath({
        ...site,
        transport: ibtaTransport({
          ports: lanePorts.length === 0 ? this.wirePorts : this.#egresses,
          lanePorts,
          addresses,
          specialQps: blocks.commandSet,
          managers: management.managers,
          groups: management.groups,
          congestion: setup.congestion,
          keepsStaticRates: capabilities.staticRates,
          lines: this.wirePorts.map(({ config }) => ({
            rateMbps: dataRateMbpsOf(config),
            overheadBytes: config.framingBytes,
          })),
        }),
      });
    const iwarpOf = (): IwarpDataPath =>
      new DataPath({
        ...site,
        transport: iwarpTransport(
          iwarp,
          capabilities.iwarpExtensions,
          tcpSide({
            iwarp,
            contextMemory,
            sram,
            address: addresses[0]!,
            connectionsMax: 2 ** capabilities.logMaxTcpConnections,
            eventQueues: this.control.events,
            misses: attributed?.misses,
          }),
        ),
      });
    const isIwarp = capabilities.transport === 'iwarp';
    this.ibta = isIwarp ? undefined : ibtaOf();
    this.iwarp = isIwarp ? iwarpOf() : undefined;
    this.dataPath = (this.ibta ?? this.iwarp)!;
    this.parts = { bus, control: this.control, eqcCache: this.eqcCache, wirePort: this.wirePort };
    this.#connect(further);
    domain.addEdgeKeeper(this);
  }

  /** @param further ports of InfiniBand after port 1 */
  #connect(further: readonly WirePort[]): void {
    const { control, dataPath, ibta, iwarp, ethernetPort } = this;
    const receiver = ibta?.blocks.receiver;
    const senderAt = (index: number) => this.#egresses[index] ?? dataPath.roles.outbound;
    const packetEnds = { receiver: receiver ?? noReceiver, sender: senderAt(0) };
    connectBlocks(
      this.parts,
      hcaWires({ ...this.parts, dataPath, packetEnds, tcp: iwarp?.blocks, hca: this }),
    );
    for (const [index, port] of further.entries())
      port.connect({
        receiver: receiver === undefined ? noReceiver : new PortIntake(receiver, index + 1),
        sender: senderAt(index + 1),
        link: control.ports[index + 1]!,
      });
    if (ethernetPort !== undefined)
      connectBlocks(
        { ethernetPort },
        ethernetHcaWires({ ethernetPort, dataPath, firstPort: control.ports[0]! }),
      );
  }

  /**
   * Switches a port's end of its cable on or off, whatever its link layer; all ports with a cable if no port is named.
   * @param portNumber from 1
   */
  setCableEnabled(isEnabled: boolean, portNumber?: number): void {
    const ports = this.ethernetPort === undefined ? this.#cabledPorts : [this.ethernetPort];
    for (const [index, port] of ports.entries())
      if (portNumber === undefined || portNumber === index + 1) port?.setEnabled(isEnabled);
  }

  /** Connects an observer of software's accesses to the BARs; without one it costs a comparison. */
  observeAccesses(observer: AccessObserver): void {
    this.#accesses = observer;
  }

  /** Wrappers of the engines, where TLPs are attributed to operations. */
  #attributed(
    { lp, config, operationSource: source }: HcaSetup,
    { qps, cqs }: DataPathTables,
    { events }: Personality,
  ) {
    if (source === undefined) return undefined;
    const { pcieFunction } = this;
    const costs = new CostAttribution({
      lp,
      source,
      qps,
      cqs,
      portCount: PORT_COUNT + config.readTranslationsAhead,
      numberMask: packetNumberMask,
    });
    const misses = new MissingPort();
    return {
      costs,
      misses,
      reads: new AttributedReads(this.dmaRead, costs, pcieFunction, misses),
      writes: new AttributedWrites(this.dmaWrite, costs, misses, events),
      interrupts: new AttributedInterrupts(pcieFunction, costs),
    };
  }

  barWrite(
    bar: number,
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: Cycles,
  ): number {
    this.#accesses?.barAccessed(cycle);
    if (bar === BAR_REGISTERS) return this.control.barWrite(offset, bytes, byteOffset, lengthBytes, cycle);
    if (bytes !== this.#barBytes) {
      this.#barBytes = bytes;
      this.#barView = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    return this.dataPath.blocks.doorbells.barWrite(offset, this.#barView, byteOffset, lengthBytes, cycle);
  }

  /** BAR2 is write-only: reads of doorbell pages return zeros. */
  barRead(bar: number, offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    this.#accesses?.barAccessed(cycle);
    if (bar === BAR_REGISTERS) this.control.barRead(offset, lengthBytes, into, cycle);
  }

  wordChanged(number: number): void {
    this.dataPath.blocks.flusher.recordChanged(number);
  }

  functionReset(cycle: Cycles): void {
    if (this.#isResetting) return;
    this.#isResetting = true;
    this.control.reset(cycle);
    this.resetDataPath(cycle);
    this.#isResetting = false;
  }

  /** A reset triggered through BAR0: the function stays configured, the rest of the device forgets everything. */
  deviceReset(cycle: Cycles): void {
    if (this.#isResetting) return;
    this.resetDataPath(cycle);
  }

  /** Ends all work: DMA is dropped, and every QP, CQ and SRQ is forgotten. */
  resetDataPath(cycle: Cycles): void {
    this.dmaRead.reset(cycle);
    this.dmaWrite.reset(cycle);
    this.dataPath.reset();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.control.rebase(cycles);
    this.dataPath.rebase(ps, cycles);
  }
}

/** Ports of InfiniBand after port 1: one without a cable has a plug in it and is never enabled. */
const furtherPortsOf = ({ lp, wire, cables, capabilities }: HcaSetup): WirePort[] =>
  Array.from(
    { length: capabilities.portCount - 1 },
    (_, index) => new WirePort({ lp, config: wire, ...(cables[index + 1] ?? loopbackPlug(wire)) }),
  );

/** A port with several data lanes. */
const lanePortOf = ({ lp, config }: HcaSetup, wire: WirePort, port: HcaPort): LanePort => ({
  egress: new LaneEgress({ lp, config, wire, arbitration: arbitrationOf(port) }),
  slToVl: new SlToVlTable(port.slToVl),
});

/** Arbitration tables of a port, as its subnet manager writes them. */
const arbitrationOf = (port: HcaPort): PortArbitration => ({
  high: new VlArbitrationTable(port.vlArbitrationHigh),
  low: new VlArbitrationTable(port.vlArbitrationLow),
  get highLimit() {
    return port.highLimit;
  },
});

/** The receiver, as a port after port 1 calls it. */
class PortIntake implements PacketReceiver {
  readonly #receiver: Receiver;
  readonly #portIndex: number;

  constructor(receiver: Receiver, portIndex: number) {
    this.#receiver = receiver;
    this.#portIndex = portIndex;
  }

  packetArrived(offset: number, payloadBytes: number): void {
    this.#receiver.packetArrived(offset, payloadBytes, this.#portIndex);
  }
}

/** Creates an Ethernet port; frames on the cable may carry a tag in addition to the longest payload. */
function makeEthernetPort(
  { lp, nodeIndex, seed = 1 }: HcaSetup,
  ethernet: EthernetConfig,
  cable: Pick<HcaCable, 'writer' | 'reader' | 'frameArrival'> | undefined,
): EthernetPort {
  const config = withTag(ethernet);
  const controlMac = macOf(nodeIndex, 1);
  const { writer, reader } = cable ?? ethernetPlug(config);
  const sentArrival = cable?.frameArrival;
  return new EthernetPort({ lp, config, writer, reader, seed, controlMac, sentArrival });
}

const linkOf = (port: EthernetPort): LinkStateSource => ({
  get isLinkUp() {
    return port.isUp;
  },
  setEnabled: (isEnabled) => port.setEnabled(isEnabled),
  get isOpen() {
    return port.isOpen;
  },
  set isOpen(isOpen) {
    port.isOpen = isOpen;
  },
});

/** Memory of the HCA, handed out once. */
class Sram implements SramAllocator {
  readonly bytes: Uint8Array;
  #next = 0;

  constructor(sizeBytes: number) {
    this.bytes = new Uint8Array(sizeBytes);
  }

  allocate(lengthBytes: number): number {
    const offset = this.#next;
    this.#next = Math.ceil((offset + lengthBytes) / SRAM_ALIGNMENT) * SRAM_ALIGNMENT;
    if (this.#next > this.bytes.length)
      throw new RangeError(`on-chip memory of ${this.bytes.length} bytes is used up`);
    return offset;
  }
}

/** Packet buffers, WQE lines and the small staging areas of all blocks. */
function sramBytesFor(config: HcaConfig, frameBytesMax: number | undefined): number {
  const slotBytes = packetSlotBytes(frameBytesMax);
  const packets = (config.transmitBufferPackets + config.responseBufferPackets) * slotBytes;
  const lines = (config.wqeLineCount + config.receiveQueueLineCount) * 1024;
  return packets + lines + 256 * 1024;
}
