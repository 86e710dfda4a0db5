/**
 * Parses and checks a topology written by a user: from a file, an option of the library, or a command's JSON.
 *
 *     { "nodes": [{ "kind": "host" }, { "kind": "host" }], "links": [{ "ends": [{ "node": 0 }, { "node": 1 }] }] }
 */
import { ConfigurationError, codeOf, runtime, shortJson } from '../../base/index.ts';
import { checkedValue, hintFor, type ParameterValue } from '../profile/index.ts';
import {
  hostCountMax,
  hostCountMin,
  isReadyMade,
  nodeCountMax,
  readyMadeTopology,
  switchCountMax,
} from './ready-made.ts';
import {
  firstPort,
  hostPartitionsMax,
  hostPortMax,
  hostsWith,
  type Link,
  type LinkCable,
  type NodeKind,
  type NodePort,
  nodeKinds,
  ordered,
  partitionMax,
  switchForwardings,
  switchPortMax,
  type Topology,
  type TopologyNode,
} from './topology.ts';

/** A topology as a user writes it; a port that is left out is port 1. */
export interface TopologyEntry {
  /** The hosts, numbered from 0, 2 to 128 of them; then the switches, at most 128. */
  readonly nodes: readonly TopologyNode[];
  readonly links: readonly LinkEntry[];
}

export interface LinkEntry extends LinkCable {
  readonly ends: readonly [NodePortEntry, NodePortEntry];
}

export interface NodePortEntry {
  readonly node: number;
  readonly port?: number;
}

/**
 * Checks a topology from an untrusted source.
 * @throws ConfigurationError naming field, value and range
 */
export function checkedTopology(entry: unknown): Topology {
  const { nodes, links } = fieldsOf(entry, 'topology', ['nodes', 'links']);
  const checkedNodes = nodesIn(nodes);
  if (!Array.isArray(links)) throw new ConfigurationError('topology, field links,', links, 'a list of links');
  const topology: Topology = {
    nodes: checkedNodes,
    links: Array.from(links as unknown[], (link, at) =>
      checkedLink(link, `topology, links[${at}]`, checkedNodes),
    ),
  };
  checkPorts(topology);
  return ordered(topology);
}

/** The nodes of a topology: hosts, then switches. */
function nodesIn(nodes: unknown): TopologyNode[] {
  if (!Array.isArray(nodes) || nodes.length < hostCountMin || nodes.length > nodeCountMax)
    throw new ConfigurationError(
      'topology, field nodes,',
      Array.isArray(nodes) ? nodes.length : nodes,
      `a list of ${hostCountMin} to ${hostCountMax} hosts, and at most ${switchCountMax} switches`,
    );
  const all = Array.from(nodes as unknown[], checkedNode);
  const hostCount = all.filter(({ kind }) => kind === 'host').length;
  const stray = all.findIndex(({ kind }, node) => kind === 'host' && node >= hostCount);
  if (stray >= 0)
    throw new ConfigurationError(
      `topology, nodes[${stray}], field kind,`,
      'host',
      'switch: all hosts are before the switches',
    );
  if (hostCount < hostCountMin || hostCount > hostCountMax)
    throw new ConfigurationError('hosts of the topology', hostCount, `${hostCountMin} to ${hostCountMax}`);
  if (all.length - hostCount > switchCountMax)
    throw new ConfigurationError(
      'switches of the topology',
      all.length - hostCount,
      `at most ${switchCountMax}`,
    );
  return all;
}

/**
 * Parses an option: JSON; a JSON file, whose name has a slash or ends in `.json`; a ready-made fabric, such as `star:8`; or links as pairs of
 * hosts, such as `0-2,1-3`. A host's
 * second port is written after a dot: `0-1,0.2-2` joins host 0 by port 1 to host 1, and by port 2 to host 2.
 * @throws ConfigurationError
 */
export function parsedTopology(text: string): Topology {
  if (text.startsWith('{')) return checkedTopology(parsedJson(text, 'topology', 'valid JSON'));
  if (text.includes('/') || text.endsWith('.json')) return readTopology(text);
  if (isReadyMade(text)) return ordered(readyMadeTopology(text));
  const links = text.split(',').map((link) => parsedLink(text, link.trim()));
  const hostCount = Math.min(
    hostCountMax,
    1 + Math.max(...links.flatMap(({ ends }) => ends.map(({ node }) => node))),
  );
  return checkedTopology({ nodes: hostsWith(hostCount, []).nodes, links });
}

/** @param text the option, @param link one of its parts */
function parsedLink(text: string, link: string): LinkEntry {
  const parts = /^(\d+)(?:\.(\d+))?-(\d+)(?:\.(\d+))?$/.exec(link);
  if (parts === null)
    throw new ConfigurationError('topology', text, 'a JSON file, or links such as 0-2,1-3 or 0-1,0.2-2');
  const [left, leftPort, right, rightPort] = parts
    .slice(1)
    .map((part?: string) => Number(part ?? firstPort)) as [number, number, number, number];
  if (left === right)
    throw new ConfigurationError(
      `topology, link ${link},`,
      `a cable from host ${left} to itself`,
      'two hosts, such as 0-1',
    );
  return {
    ends: [
      { node: left, port: leftPort },
      { node: right, port: rightPort },
    ],
  };
}

/** Formats a topology as an option: links of hosts, or JSON if it has switches or cables of their own. */
export function topologyText(topology: Topology): string {
  const { nodes, links } = topology;
  const isPlain =
    nodes.every(({ kind, partitions }) => kind === 'host' && partitions === undefined) &&
    links.every((link) => Object.keys(link).length === 1);
  return isPlain ? links.map(({ ends }) => ends.map(portText).join('-')).join(',') : JSON.stringify(topology);
}

/** A port as the option names it: the number of its host, and of the port unless it is the first. */
export const portText = ({ node, port }: NodePort): string =>
  port === firstPort ? `${node}` : `${node}.${port}`;

/** Reads a file. @throws ConfigurationError naming the file, or the invalid field in it */
function readTopology(path: string): Topology {
  let text: string;
  try {
    text = runtime().readText(path);
  } catch (error) {
    throw new ConfigurationError('topology file', path, `a readable file (${codeOf(error)})`);
  }
  return checkedTopology(parsedJson(text, 'topology file', 'a file of valid JSON', path));
}

/** @param shown value of an error, if not the text */
function parsedJson(text: string, field: string, range: string, shown = text): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigurationError(field, shown, range);
  }
}

function checkedNode(entry: unknown, at: number): TopologyNode {
  const place = `topology, nodes[${at}]`;
  const { kind, partitions, forwarding } = fieldsOf(entry, place, ['kind', 'partitions', 'forwarding']);
  const known = nodeKinds.find((candidate) => candidate === kind);
  if (known === undefined)
    throw new ConfigurationError(`${place}, field kind,`, kind, nodeKinds.join(' or '));
  const mode = checkedForwarding(forwarding, known, `${place}, field forwarding,`);
  if (partitions === undefined) return { kind: known, ...mode };
  if (known !== 'host')
    throw new ConfigurationError(`${place}, field partitions,`, partitions, 'left out for a switch');
  return { kind: known, partitions: checkedPartitions(partitions, `${place}, field partitions,`) };
}

/** The field of a switch, if it has one. */
function checkedForwarding(given: unknown, kind: NodeKind, place: string): Pick<TopologyNode, 'forwarding'> {
  if (given === undefined) return {};
  if (kind !== 'switch') throw new ConfigurationError(place, given, 'left out for a host');
  const forwarding = switchForwardings.find((candidate) => candidate === given);
  if (forwarding === undefined) throw new ConfigurationError(place, given, switchForwardings.join(' or '));
  return { forwarding };
}

function checkedPartitions(given: unknown, place: string): readonly number[] {
  const isPartition = (value: unknown): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= partitionMax;
  const all = Array.isArray(given) ? Array.from<unknown>(given) : [];
  const partitions = all.filter(isPartition);
  const isRight = partitions.length === all.length && new Set(all).size === all.length;
  if (isRight && all.length > 0 && all.length <= hostPartitionsMax) return partitions;
  throw new ConfigurationError(
    place,
    shortJson(given),
    `1 to ${hostPartitionsMax} different integers from 1 to ${partitionMax}`,
  );
}

function checkedLink(entry: unknown, place: string, nodes: readonly TopologyNode[]): Link {
  const { ends, ...cable } = fieldsOf(entry, place, ['ends', ...cableNames]);
  if (!Array.isArray(ends) || ends.length !== 2)
    throw new ConfigurationError(`${place}, field ends,`, ends, 'a list of two ports');
  const [left, right] = (ends as unknown[]).map((end, at) =>
    checkedPort(end, `${place}, ends[${at}]`, nodes),
  ) as [NodePort, NodePort];
  if (left.node === right.node)
    throw new ConfigurationError(`${place}, ends[1], field node,`, right.node, 'another node than ends[0]');
  return { ends: [left, right], ...checkedCable(cable, place) };
}

/** Fields of a cable, and the parameters whose values they have. */
const cableFields = {
  ...{ metres: 'wire.cableMetres', speed: 'wire.speed', lanes: 'wire.lanes' },
  gigabitsPerSecond: 'ethernet.gigabitsPerSecond',
  ...{ hoqLife: 'switch.hoqLife', vlStallCount: 'switch.vlStallCount' },
} as const satisfies Record<keyof LinkCable, string>;
const cableNames = Object.keys(cableFields) as (keyof LinkCable)[];

function checkedCable(given: Readonly<Partial<Record<keyof LinkCable, unknown>>>, place: string): LinkCable {
  const cable: Partial<Record<keyof LinkCable, ParameterValue>> = {};
  for (const field of cableNames) {
    const path = cableFields[field];
    const isCount = field === 'lanes' && typeof given[field] === 'number';
    const value = isCount ? String(given[field]) : given[field];
    if (value !== undefined) cable[field] = checkedField(`${place}, field ${field},`, path, value);
  }
  return cable as LinkCable;
}

/** A value that a parameter may have. @param place names it in an error */
function checkedField(place: string, path: string, value: unknown): ParameterValue {
  try {
    return checkedValue(path, value);
  } catch (error) {
    if (error instanceof ConfigurationError) throw new ConfigurationError(place, error.value, error.range);
    throw error;
  }
}

function checkedPort(entry: unknown, place: string, nodes: readonly TopologyNode[]): NodePort {
  const { node, port = firstPort } = fieldsOf(entry, place, ['node', 'port']);
  if (typeof node !== 'number' || !Number.isInteger(node) || node < 0 || node >= nodes.length)
    throw new ConfigurationError(`${place}, field node,`, node, `an integer from 0 to ${nodes.length - 1}`);
  const portMax = nodes[node]!.kind === 'switch' ? switchPortMax : hostPortMax;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < firstPort || port > portMax)
    throw new ConfigurationError(`${place}, field port,`, port, `an integer from ${firstPort} to ${portMax}`);
  return { node, port };
}

/** @throws ConfigurationError for a port with two links, for a host without one, and for a switch without any */
function checkPorts({ nodes, links }: Topology): void {
  const linkOf = new Map<string, number>();
  for (const [at, { ends }] of links.entries())
    for (const [place, { node, port }] of ends.entries()) {
      const key = `node ${node}, port ${port}`;
      const other = linkOf.get(key);
      if (other !== undefined)
        throw new ConfigurationError(
          `topology, links[${at}], ends[${place}],`,
          key,
          `a port without a link: links[${other}] is plugged into it${secondPortHint(node, port)}`,
        );
      linkOf.set(key, at);
    }
  const idle = nodes.findIndex(
    ({ kind }, node) => kind === 'switch' && !links.some(({ ends }) => ends.some((end) => end.node === node)),
  );
  if (idle >= 0)
    throw new ConfigurationError(
      `topology, nodes[${idle}]`,
      'without a link',
      'at least one link for each switch',
    );
  const open = nodes.findIndex(
    ({ kind }, node) => kind === 'host' && !linkOf.has(`node ${node}, port ${firstPort}`),
  );
  if (open >= 0)
    throw new ConfigurationError(
      `topology, nodes[${open}]`,
      'without a link',
      linkOf.has(`node ${open}, port ${hostPortMax}`)
        ? `a link at port ${firstPort}: port ${hostPortMax} is for a second link`
        : 'one link for each host',
    );
}

/** Explains how an option names the second port of a host whose first port is taken. */
const secondPortHint = (node: number, port: number): string =>
  port === firstPort ? ` (${node}.${hostPortMax} is port ${hostPortMax} of host ${node})` : '';

/** Returns the fields of an object, and rejects unknown fields. */
function fieldsOf<Name extends string>(
  entry: unknown,
  place: string,
  known: readonly Name[],
): Readonly<Partial<Record<Name, unknown>>> {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    throw new ConfigurationError(place, entry, `an object with ${known.join(' and ')}`);
  const surplus = Object.keys(entry).find((name) => !known.some((one) => one === name));
  if (surplus !== undefined)
    throw new ConfigurationError(
      `field of ${place}`,
      surplus,
      `one of ${known.join(', ')}${hintFor(surplus, known)}`,
    );
  return Object.fromEntries(Object.entries(entry)) as Partial<Record<Name, unknown>>;
}
