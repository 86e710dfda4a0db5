/**
 * A story of a fabric, as plain data: hosts and switches, flows between hosts, and faults of cables and switches. A seed is the same story
 * in one commit.
 */
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import {
  type LinkCable,
  parsedTopology,
  type SwitchForwarding,
  type Topology,
} from '../../machine/topology/index.ts';
import type { Again } from '../story.ts';

/** RC WRITE, READ or SEND; a UD datagram to one host; a UD datagram to a group that all hosts have joined. */
export const flowKinds = ['write', 'read', 'send', 'datagram', 'group'] as const;
export type FlowKind = (typeof flowKinds)[number];

/** Messages from one host to another. */
export interface FabricFlow {
  readonly kind: FlowKind;
  readonly from: number;
  /** For a group: the sender itself, because it receives its own datagrams, too. */
  readonly to: number;
  readonly sizeBytes: number;
  readonly messages: number;
  /** Messages in flight. */
  readonly window: number;
  /** Service level on InfiniBand; left out: 0. */
  readonly level?: number;
  /** Code of the static rate of its paths; left out: that of the line. */
  readonly rate?: number;
}

/** P_Key of all QPs of a host, and partitions that the switches' ports at its cables accept. */
export interface Membership {
  readonly pkey: number;
  readonly partitions: readonly number[];
}

export interface CableOfStory extends LinkCable {
  readonly link: number;
}

export interface SwitchOfStory {
  readonly node: number;
  readonly forwarding: SwitchForwarding;
}

export interface FabricStory {
  readonly seed: number;
  /** Name of a ready-made fabric. */
  readonly fabric: string;
  /** Cables that differ from the others, by their place in the topology. */
  readonly cables: readonly CableOfStory[];
  /** Switches that forward otherwise than the configuration says; left out: none. */
  readonly switches?: readonly SwitchOfStory[];
  /** By host; left out: all are full members of the default partition, and switches check nothing. */
  readonly memberships?: readonly Membership[];
  /** Changed parameters, by path. */
  readonly set: ParameterValues;
  readonly faults: readonly FaultEntry[];
  readonly flows: readonly FabricFlow[];
  /** Manner of a second play, to be compared byte by byte. */
  readonly again: Again;
}

/** The hosts, switches and cables of a story. */
export function topologyOf({
  fabric,
  cables,
  switches = [],
  memberships = [],
}: Pick<FabricStory, 'fabric' | 'cables' | 'switches' | 'memberships'>): Topology {
  const { nodes, links } = parsedTopology(fabric);
  const own = new Map(cables.map(({ link, ...cable }) => [link, cable]));
  const modes = new Map(switches.map(({ node, forwarding }) => [node, { forwarding }]));
  const partitionsOf = (host: number): object => {
    const partitions = memberships[host]?.partitions;
    return partitions === undefined ? {} : { partitions };
  };
  return {
    nodes: nodes.map((node, at) => ({ ...node, ...modes.get(at), ...partitionsOf(at) })),
    links: links.map((link, at) => ({ ...link, ...own.get(at) })),
  };
}

/** A story as a person reads it. @returns lines */
export function renderFabricStory({
  seed,
  fabric,
  cables,
  switches = [],
  set,
  faults,
  flows,
  again,
  memberships = [],
}: FabricStory): string[] {
  const pairs = (entry: object): string =>
    Object.entries(entry)
      .map(([name, value]) => `${name}=${value}`)
      .join(',');
  return [
    `fabric story ${seed}: ${fabric}, ${Object.entries(set)
      .map(([path, value]) => `${path}=${value}`)
      .join(' ')}`,
    ...cables.map((cable) => `cable ${pairs(cable)}`),
    ...switches.map((each) => `switch ${pairs(each)}`),
    ...memberships.map((membership, host) => `host ${host} ${pairs(membership)}`),
    ...faults.map((fault) => `fault ${pairs(fault)}`),
    ...flows.map((flow, index) => `flow ${index} ${pairs(flow)}`),
    `again ${pairs(again)}`,
  ];
}

/** When all flows begin: hosts have booted and connected by then. */
export const startPs = 20_000_000_000;

/** Outcome of one flow at one of its ends. */
export interface FlowEnd {
  readonly flow: number;
  readonly qpn: number;
  /** Status of each message in the order of completion, at the host that posts. */
  readonly statuses: readonly string[];
  /** Numbers of the messages that came, in the order of their completions; of WRITEs and READs those whose bytes are right. */
  readonly came: readonly number[];
  /** Numbers of messages that came with other bytes than were sent. */
  readonly wrong: readonly number[];
}

/** Outcome of a host's program. */
export interface HostOutcome {
  readonly lid: number;
  readonly ends: readonly FlowEnd[];
}

/** Byte of a message's place: another one for each flow, message and place. */
export const contentOf = (flow: number, message: number, sizeBytes: number): Uint8Array =>
  Uint8Array.from(
    { length: sizeBytes },
    (_, at) => (at * 29 + (at >> 8) * 7 + flow * 151 + message * 83 + 3) & 0xff,
  );
