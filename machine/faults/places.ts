/**
 * Where the faults of a plan happen: at a host, or at a switch of a fabric. Checks node, port and forwarding entry against the topology,
 * and replaces `to`, the node at the other end of a cable, by the port that leads there: both ways to name a cable are one fault.
 */
import { ConfigurationError } from '../../base/index.ts';
import {
  fabricRoutesOf,
  farEndOf,
  hostsOf,
  isSwitch,
  portsOf,
  switchesOf,
  type Topology,
} from '../topology/index.ts';
import type { Fault, FaultKind, FaultOf } from './kinds.ts';

/** Faults that a switch can have. */
const kindsOfSwitches: readonly FaultKind[] = ['port', 'cable', 'packet', 'forwarding'];
type FaultOfPort = Extract<Fault, { readonly portNumber: unknown }>;

/** Nodes that a fault may name: the hosts, and the switches of the topology. */
export const faultedNodesOf = (nodeCount: number, topology: Topology | undefined): number =>
  topology === undefined || switchesOf(topology).length === 0 ? nodeCount : topology.nodes.length;

/**
 * Checks where a fault happens.
 * @param place names the fault in an error
 * @param topology left out: adapters have a cable at port 1 only
 * @throws ConfigurationError for a kind of fault that the node cannot have, and for a port without a cable
 */
export function placed(fault: Fault, place: string, topology: Topology | undefined): Fault {
  const wrong = (field: string, value: unknown, range: string): ConfigurationError =>
    new ConfigurationError(`${place} (${fault.kind}), field ${field},`, value, range);
  const isAtSwitch = topology !== undefined && isSwitch(topology, fault.node);
  if (isAtSwitch && !kindsOfSwitches.includes(fault.kind))
    throw wrong(
      'node',
      fault.node,
      `a host: ${fault.node} is a switch, which has ${kindsOfSwitches.join(', ')}`,
    );
  if (fault.kind === 'forwarding') {
    if (!isAtSwitch)
      throw wrong('node', fault.node, 'a switch of the topology: a host has no forwarding table');
    checkEntry(fault, topology, wrong);
    return fault;
  }
  if (!('portNumber' in fault)) return fault;
  if (isAtSwitch) checkSwitchFault(fault, wrong);
  const ported = fault.to === undefined ? fault : towards(fault, topology, wrong);
  checkCabled(ported, topology, isAtSwitch, wrong);
  return ported;
}

type Wrong = (field: string, value: unknown, range: string) => ConfigurationError;

/** @throws ConfigurationError for a port without a cable, where the fault could not happen */
function checkCabled(
  { node, portNumber: port = 1 }: FaultOfPort,
  topology: Topology | undefined,
  isAtSwitch: boolean,
  wrong: Wrong,
): void {
  // A host always has its first port.
  if (!isAtSwitch && port === 1) return;
  if (topology !== undefined && farEndOf(topology, { node, port }) !== undefined) return;
  const cabled = topology === undefined ? [] : portsOf(topology, node).map((own) => own.port);
  throw wrong(
    'portNumber',
    port,
    isAtSwitch
      ? `a port of switch ${node} with a cable: ${cabled.join(', ')}`
      : `1: host ${node} has no cable at port ${port}`,
  );
}

/** A switch executes no commands, and no software accesses it. */
function checkSwitchFault(fault: FaultOfPort, wrong: Wrong): void {
  if (fault.kind !== 'packet' && fault.after !== undefined)
    throw wrong('after', fault.after, `left out: switch ${fault.node} executes no commands; at names a time`);
}

/** The same fault by the number of the port that leads to the node `to`. */
function towards<Of extends FaultOfPort>(fault: Of, topology: Topology | undefined, wrong: Wrong): Of {
  const { node, to, portNumber } = fault;
  if (portNumber !== undefined) throw wrong('to', to, 'left out when portNumber is given');
  const ports =
    topology === undefined
      ? []
      : portsOf(topology, node).filter((port) => farEndOf(topology, port)!.node === to);
  if (ports.length === 1) return { ...fault, portNumber: ports[0]!.port, to: undefined };
  if (ports.length > 1)
    throw wrong(
      'to',
      to,
      `portNumber: cables at ports ${ports.map(({ port }) => port).join(', ')} lead there`,
    );
  const known =
    topology === undefined ? [] : portsOf(topology, node).map((port) => farEndOf(topology, port)!.node);
  throw wrong(
    'to',
    to,
    `a node at the other end of a cable of node ${node}: ${known.join(', ') || 'none is declared'}`,
  );
}

/** @throws ConfigurationError for an entry that the switch does not have, and for a port without a cable */
function checkEntry(
  { node, host, hostPort = 1, output }: FaultOf<'forwarding'>,
  topology: Topology,
  wrong: Wrong,
): void {
  const hosts = hostsOf(topology);
  const own = portsOf(topology, node);
  if (!hosts.includes(host)) throw wrong('host', host, `a host from 0 to ${hosts.length - 1}`);
  const target = { node: host, port: hostPort };
  if (fabricRoutesOf(topology, 'min-hop').portTowards(node, target) === undefined)
    throw wrong('hostPort', hostPort, `a port of host ${host} that switch ${node} is joined to`);
  if (output !== undefined && !own.some(({ port }) => port === output))
    throw wrong(
      'output',
      output,
      `a port of switch ${node} with a cable: ${own.map(({ port }) => port).join(', ')}`,
    );
}
