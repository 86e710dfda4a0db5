/**
 * Topologies of two outputs. Hosts and ports keep their numbers; switches are numbered after the hosts of their own
 * topology, so they are matched by their order: `#0` is the first switch of each.
 */
import {
  checkedTopology,
  hostsOf,
  type LinkCable,
  type NodePort,
  pairsOf,
  parsedTopology,
  switchesOf,
  type Topology,
  topologyText,
} from '../../machine/topology/index.ts';
import { isObject, type JsonObject, type Output } from './output.ts';

/**
 * A difference of topologies: a count, a cable that one of them lacks, or a property of a node or cable that both have.
 */
export interface TopologyChange {
  readonly name: string;
  readonly before?: string | number;
  readonly after?: string | number;
}

/** The topology of an output's report, or of its request; by default pairs. Undefined for an output that states no machine. */
function topologyOf(output: Output): Topology | undefined {
  const reported = output['topology'] ?? memberOf(output, 'report')?.['topology'];
  if (reported !== undefined) return checkedTopology(reported);
  const machine = memberOf(memberOf(output, 'invocation'), 'machine');
  if (machine === undefined) return undefined;
  const text = machine['topology'];
  if (text === undefined) return pairsOf(Number(memberOf(machine, 'set')?.['machine.nodeCount'] ?? 2));
  // The name of a file does not tell its topology.
  return typeof text === 'string' && /^(\{|[\d.,-]+$)/.test(text) ? parsedTopology(text) : undefined;
}

function memberOf(value: JsonObject | undefined, name: string): JsonObject | undefined {
  const member = value?.[name];
  return isObject(member) ? member : undefined;
}

/**
 * The topologies of two outputs if they differ; undefined if they are the same, or an output does not state its own.
 * @throws ConfigurationError for a topology that no machine can have
 */
export function unlikeTopologies(before: Output, after: Output): readonly [Topology, Topology] | undefined {
  const [one, other] = [topologyOf(before), topologyOf(after)];
  if (one === undefined || other === undefined || topologyText(one) === topologyText(other)) return undefined;
  return [one, other];
}

/** Counts first, then nodes and cables in the order of the topologies. */
export function topologyChanges([before, after]: readonly [Topology, Topology]): TopologyChange[] {
  const counts: Readonly<Record<string, (topology: Topology) => number>> = {
    hosts: (topology) => hostsOf(topology).length,
    switches: (topology) => switchesOf(topology).length,
    cables: ({ links }) => links.length,
  };
  const counted = Object.entries(counts).flatMap(([name, count]) => {
    const [one, other] = [count(before), count(after)];
    return one === other ? [] : [{ name, before: one, after: other }];
  });
  const [left, right] = [cablesOf(before), cablesOf(after)];
  const cables = [...new Set([...left.keys(), ...right.keys()])].flatMap((name) => {
    const [one, other] = [left.get(name), right.get(name)];
    return one === other ? [] : [changeOf(`cable ${name}`, one, other)];
  });
  return [...counted, ...nodeChanges(before, after), ...cables];
}

/** Nodes that both topologies have and whose own properties differ: hosts by number, then switches by their order. */
function nodeChanges(before: Topology, after: Topology): TopologyChange[] {
  const [left, right] = [nodesOf(before), nodesOf(after)];
  return [...left].flatMap(([name, one]) => {
    const other = right.get(name);
    return other === undefined || one === other ? [] : [changeOf(name, one, other)];
  });
}

/** Each node by its kind and number, with its own properties as text. */
function nodesOf({ nodes }: Topology): ReadonlyMap<string, string> {
  const hostCount = nodes.filter(({ kind }) => kind === 'host').length;
  return new Map(
    nodes.map(({ kind, partitions, forwarding }, node) => [
      kind === 'host' ? `host ${node}` : `switch ${switchName(node, hostCount)}`,
      listed({ partitions: partitions?.join(','), forwarding }),
    ]),
  );
}

const changeOf = (name: string, before?: string, after?: string): TopologyChange => ({
  name,
  ...(before === undefined ? {} : { before }),
  ...(after === undefined ? {} : { after }),
});

/** Each cable by its ends, with its own properties as text. */
function cablesOf(topology: Topology): ReadonlyMap<string, string> {
  const { length: hostCount } = hostsOf(topology);
  const endText = ({ node, port }: NodePort): string =>
    node < hostCount ? `${node}${port === 1 ? '' : `.${port}`}` : `${switchName(node, hostCount)}.${port}`;
  return new Map(
    topology.links.map((link) => [link.ends.map(endText).toSorted().join('-'), propertiesOf(link)]),
  );
}

const cableFields = ['metres', 'speed', 'lanes', 'gigabitsPerSecond', 'hoqLife', 'vlStallCount'] as const;

const propertiesOf = (cable: LinkCable): string =>
  listed(Object.fromEntries(cableFields.map((name) => [name, cable[name]])));

const listed = (properties: Readonly<Record<string, string | number | undefined>>): string => {
  const texts = Object.entries(properties).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  return texts.length === 0 ? 'as configured' : texts.join(' ');
};

const switchName = (node: number, hostCount: number): string => `#${node - hostCount}`;

/** Fields that hold the number of a node, in rows of cables, outputs and switches. */
const nodeFields = ['from', 'to', 'switch', 'node'] as const;

/** An output whose rows have the switches by their order. */
export function withSwitchesByOrder(output: Output, topology: Topology): Output {
  const { length: hostCount } = hostsOf(topology);
  const named = (row: unknown): unknown => {
    if (!isObject(row)) return row;
    const nodes = nodeFields.flatMap((field) => {
      const node = row[field];
      return typeof node === 'number' && node >= hostCount ? [[field, switchName(node, hostCount)]] : [];
    });
    return { ...row, ...(Object.fromEntries(nodes) as JsonObject) };
  };
  const withLists = (value: JsonObject): JsonObject => {
    const lists = ['wire', 'switches', 'outputs'].flatMap((name) => {
      const list = value[name];
      return Array.isArray(list) ? [[name, list.map(named)]] : [];
    });
    return { ...value, ...(Object.fromEntries(lists) as JsonObject) };
  };
  const { report } = output;
  return {
    ...output,
    ...withLists(output),
    ...(isObject(report) ? { report: withLists(report) } : {}),
  };
}
