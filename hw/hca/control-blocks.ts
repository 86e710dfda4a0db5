/**
 * The blocks of the control side and their wires; control-side.ts connects them to BAR0. control-blocks.spec.ts tests
 * the blocks in the table against its contracts.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { ClockDomain, Wires } from '../../sim/index.ts';
import type { EthernetConfig } from '../../wire/index.ts';
import type { LinkTraffic } from '../management/index.ts';
import type { CapabilityConfig } from './capabilities.ts';
import { CommandDma, CommandProcessor, type ControlConfig, DrainWatch } from './commands/index.ts';
import {
  EqPages,
  type EqTable,
  type EventContexts,
  type EventPoster,
  EventWriter,
  InterruptModeration,
} from './events/index.ts';
import type {
  CommandSetPorts,
  ContextTables,
  DataPathControl,
  EventQueueFormat,
  Personality,
} from './host-interface/index.ts';
import { MulticastGroups } from './ibta/receiver/index.ts';
import type { TcpControl } from './iwarp/tcp/index.ts';
import type { DmaReads, DmaWrites, InterruptPort, SramAllocator } from './memory/index.ts';
import {
  type FrameErrors,
  HcaPort,
  HcaPorts,
  type LinkStateSource,
  ManagementAgents,
  NodeIdentity,
  type PauseControl,
  type PortLanes,
  SubnetAdministration,
  type SubnetMember,
} from './port/index.ts';
import type { ProtocolViolations } from './statistics/index.ts';

/** A port of a node: the node from 0, the port from 1. */
export interface NodePort {
  readonly node: number;
  readonly port: number;
}

/** The cable of an Ethernet port as the control side sees it. */
interface EthernetCable {
  readonly link: LinkStateSource;
  readonly errors: FrameErrors;
  readonly flowControl: PauseControl;
  /** Figures of it that are reported to software. */
  readonly config: Pick<EthernetConfig, 'mtuBytes' | 'gigabitsPerSecond'>;
}

export interface ControlSideSetup {
  readonly domain: ClockDomain;
  /** Device ID of the PCI function. */
  readonly deviceId: number;
  readonly interrupts: InterruptPort;
  readonly reads: DmaReads;
  readonly writes: DmaWrites;
  readonly sram: SramAllocator;
  readonly tables: ContextTables;
  /** The cables of the ports, by port from 1; undefined for a port without one. */
  readonly links: readonly ((LinkStateSource & LinkTraffic) | undefined)[];
  /** The cables of Ethernet ports. */
  readonly ethernet?: EthernetCable | undefined;
  /** Data lanes of the ports; left out: one. */
  readonly lanes?: PortLanes | undefined;
  readonly config: ControlConfig;
  readonly capabilities: CapabilityConfig;
  /** Number of this node, from 0: its GUIDs and LID derive from it. */
  readonly nodeIndex: number;
  /** The members of each port's subnet, by port from 1, that port among them; empty for a port without a cable. */
  readonly subnets: readonly (readonly NodePort[])[];
  /** The card's host interface. */
  readonly personality: Pick<
    Personality,
    'contextMemory' | 'translations' | 'events' | 'fillPatterns' | 'makeCommandSet'
  >;
  /** Form of the card's EQ contexts. */
  readonly eventQueues: EventQueueFormat;
}

/** The parts that several blocks share, and the device around them. */
interface ControlParts extends ControlSideSetup {
  readonly eqs: EqTable;
  readonly violations: ProtocolViolations;
}

/** Neighbours of the blocks outside of the control side, and the control side as a whole. */
interface Surroundings {
  readonly control: CommandSetPorts['control'];
  readonly dataPath: DataPathControl;
  /** TCP connections of the card; left out without iWARP. */
  readonly tcp?: TcpControl | undefined;
  /** Cache of EQ contexts; omitted: all of them are on chip. */
  readonly contexts?: EventContexts | undefined;
  /** Blocks that stall while the fifo of events is full. */
  readonly posters: readonly EventPoster[];
}

/** Company part of all GUIDs, and the distance of two nodes' GUIDs. */
const guidBase = 0x0002_c903_0000_0000n;
const guidsPerNode = 16n;

/** The blocks, in the order in which their stages are added: from the output side back. */
export function makeBlocks(parts: ControlParts) {
  const { domain, config, eqs, interrupts, reads, writes, sram, violations, tables, personality } = parts;
  const { contextMemory, translations, events: format, fillPatterns: patterns } = personality;
  const { eventFifoDepth: fifoDepth, eventCycles, fillWritesInFlight: writesInFlightMax } = config;
  const pages = new EqPages({ domain, eqs, contextMemory, translations, reads, sram, format });
  const events = new EventWriter({ domain, eqs, writes, violations, fifoDepth, eventCycles, format });
  const ports = makePorts(parts);
  const management = makeManagement(parts, ports);
  return {
    pages,
    events,
    management,
    moderation: new InterruptModeration(eqs, interrupts),
    ports,
    commandSet: personality.makeCommandSet({ ...parts, ...tables, ...management, ports: ports.all }),
    processor: new CommandProcessor({ domain, config }),
    commandDma: new CommandDma({ reads, writes, sram, writesInFlightMax, patterns }),
    drains: new DrainWatch({ domain, config, qps: tables.qps }),
  };
}

export type ControlBlocks = Omit<ReturnType<typeof makeBlocks>, 'management'>;

/** Wires of the blocks: from each port to the block that is called through it. */
export function controlWires(b: ControlBlocks & Surroundings): Wires<ControlBlocks> {
  const { control, dataPath, tcp, contexts, posters, events, drains, processor, moderation, commandSet } = b;
  return {
    commandSet: { control, dataPath, tcp, events, drains, processor, moderation },
    processor: { source: commandSet.source, commands: commandSet.commands, dma: b.commandDma, events },
    commandDma: { processor },
    drains: { dataPath, events },
    ports: { dataPath, events },
    events: { contexts, posters, moderation, pages: b.pages },
    moderation: { events },
    pages: { events },
  };
}

function makePorts(setup: ControlSideSetup): HcaPorts {
  const { config, capabilities, domain, nodeIndex, links, ethernet, lanes } = setup;
  const ports = Array.from(
    { length: capabilities.portCount },
    (_, index) =>
      new HcaPort({
        portNumber: index + 1,
        guid: portGuidOf(nodeIndex, index + 1),
        logGids: capabilities.logGids,
        logPkeys: capabilities.logPkeys,
        maxVls: capabilities.maxVls,
        lanes,
        linkInitialiseCycles: config.linkInitialiseCycles,
        subnetManagerCycles: config.subnetManagerCycles,
        hasEmbeddedSubnetManager: config.embeddedSubnetManager,
        lid: lidOf(config, { node: nodeIndex, port: index + 1 }),
        subnetManagerLid: config.subnetManagerLid,
        domain,
        linkSetting: links[0]?.config,
        link: index === 0 ? (ethernet?.link ?? links[0]) : links[index],
        traffic: ethernet === undefined ? links[index] : undefined,
        ethernet: ethernet && {
          mac: macOf(nodeIndex, index + 1),
          ...ethernet.config,
          roce: capabilities.roce,
          receiveChecksums: capabilities.receiveChecksums,
          logMaxLsoBytes: capabilities.logMaxLsoBytes,
          flowCounterCount: capabilities.flowCounters,
          errors: index === 0 ? ethernet.errors : undefined,
          flowControl: index === 0 ? ethernet.flowControl : undefined,
        },
      }),
  );
  return new HcaPorts(ports);
}

/** Management of the device: its identity, its agents, and the embedded subnet manager of each port with the multicast groups. */
export interface Management {
  readonly node: NodeIdentity;
  readonly agents: ManagementAgents;
  readonly managers: readonly SubnetAdministration[];
  readonly groups: MulticastGroups;
}

function makeManagement(setup: ControlSideSetup, { all: ports }: HcaPorts): Management {
  const { config, nodeIndex, subnets } = setup;
  const node = new NodeIdentity(nodeGuidOf(nodeIndex), descriptionOf(nodeIndex));
  const membersOf = (subnet: readonly NodePort[]): SubnetMember[] =>
    subnet.map((member) => memberOf(config, member));
  const { embeddedSubnetManager, subnetManagerLid } = config;
  const members = subnets.flatMap(membersOf);
  if (embeddedSubnetManager && config.portLid !== 0 && members.length > 1)
    throw new ConfigurationError(
      'hca.control.portLid',
      config.portLid,
      `0: ${members.length} ports cannot have one LID`,
    );
  // Packets to that LID never leave the HCA.
  if (embeddedSubnetManager && members.some(({ lid }) => lid === subnetManagerLid))
    throw new ConfigurationError(
      'hca.control.subnetManagerLid',
      subnetManagerLid,
      `a LID that no port has: ${members.map(({ lid }) => lid).join(', ')} are taken (hca.control.portLid)`,
    );
  return {
    node,
    agents: new ManagementAgents(node, ports),
    managers: ports.map(
      (port, index) =>
        new SubnetAdministration({ port, portCount: ports.length, members: membersOf(subnets[index] ?? []) }),
    ),
    groups: new MulticastGroups(),
  };
}

/** Distance of the LIDs of a node's two ports. */
const lidsPerPort = 0x100;

/** LID that the embedded subnet manager gives a port of a node. */
export const lidOf = ({ portLid }: Pick<ControlConfig, 'portLid'>, { node, port }: NodePort): number =>
  portLid === 0 ? (port - 1) * lidsPerPort + node + 1 : portLid;

const descriptionOf = (nodeIndex: number): string => `hca-emulator node ${nodeIndex}`;

const memberOf = (config: ControlConfig, { node, port }: NodePort): SubnetMember => ({
  lid: lidOf(config, { node, port }),
  nodeGuid: nodeGuidOf(node),
  portGuid: portGuidOf(node, port),
  description: descriptionOf(node),
});

const nodeGuidOf = (nodeIndex: number): bigint => guidBase + BigInt(nodeIndex) * guidsPerNode;

/** MAC of a port, from 1: the company part of its GUID, and the lowest 24 bits. */
export const macOf = (nodeIndex: number, port: number): number =>
  Number(guidBase >> 40n) * 2 ** 24 + Number(portGuidOf(nodeIndex, port) & 0xff_ffffn);

/** GUID of a port, from 1, of the HCA of a node. */
export const portGuidOf = (nodeIndex: number, port: number): bigint => nodeGuidOf(nodeIndex) + BigInt(port);
