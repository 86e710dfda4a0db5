import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../../runtime/node.ts';
import { ConfigurationError } from '../../base/index.ts';
import { Machine } from '../machine.ts';
import { machineHashOf } from '../machine-hash.ts';
import { configHashOf, configurationOf } from '../profile/index.ts';
import { checkedTopology, parsedTopology, topologyText } from './check-topology.ts';
import { pairsOf } from './topology.ts';

const host = { kind: 'host' } as const;
const four = [host, host, host, host];
const link = (left: number, right: number) => ({ ends: [{ node: left }, { node: right }] as const });
const crossed = { nodes: four, links: [link(0, 2), link(1, 3)] };

function messageOf(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  return 'no error';
}

describe('a topology of a user', () => {
  it('has the lower end of each link first, and links in the order of that end', () => {
    const given = { nodes: four, links: [link(3, 1), link(2, 0)] };
    expect(checkedTopology(given)).toEqual(checkedTopology(crossed));
    expect(checkedTopology(crossed).links[0]).toEqual({
      ends: [
        { node: 0, port: 1 },
        { node: 2, port: 1 },
      ],
    });
  });

  it.each([
    ['nothing', undefined, /^topology is .*expected an object with nodes and links/],
    ['another field', { ...crossed, switches: 1 }, /^field of topology is "switches", .*links/],
    ['one node', { nodes: [host], links: [] }, /^topology, field nodes, is 1, .*2 to 8/],
    ['nine nodes', { nodes: Array(9).fill(host), links: [] }, /is 9, .*2 to 8/],
    [
      'an unknown kind',
      { ...crossed, nodes: [host, { kind: 'switch' }] },
      /nodes\[1\], field kind, is "switch"/,
    ],
    ['links that are no list', { nodes: four, links: {} }, /^topology, field links, is \{\}/],
    ['one end', { nodes: four, links: [{ ends: [{ node: 0 }] }] }, /links\[0\], field ends, /],
    [
      'a node that does not exist',
      { nodes: four, links: [link(0, 4)] },
      /ends\[1\], field node, is 4, .*0 to 3/,
    ],
    [
      'a node in words',
      { nodes: four, links: [{ ends: [{ node: 'a' }, { node: 1 }] }] },
      /field node, is "a"/,
    ],
    [
      'a cable to itself',
      { nodes: four, links: [link(1, 1)] },
      /ends\[1\], field node, is 1, .*another node/,
    ],
    [
      'port 2',
      { nodes: four, links: [{ ends: [{ node: 0, port: 2 }, { node: 1 }] }] },
      /ends\[0\], field port, is 2, .*1: adapters/,
    ],
    [
      'two links in a port',
      { nodes: four, links: [link(0, 1), link(2, 1)] },
      /is "node 1, port 1", .*links\[0\]/,
    ],
    ['a host without a link', { nodes: four, links: [link(0, 2)] }, /nodes\[1\] is "without a link"/],
  ])('is rejected with %s', (_what, entry, message) => {
    expect(messageOf(() => checkedTopology(entry))).toMatch(message);
  });

  it('is rejected with another number of hosts than machine.nodeCount', async () => {
    const made = Machine.create({ topology: crossed, set: { 'machine.nodeCount': 2 } });
    await expect(made).rejects.toThrow('machine.nodeCount is 2, expected 4, the hosts of the topology');
  });
});

describe('a topology as an option', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'topology-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is links, or a file of nodes and links', () => {
    const file = join(folder, 'crossed.json');
    writeFileSync(file, JSON.stringify(crossed));
    expect(parsedTopology('0-2,1-3')).toEqual(checkedTopology(crossed));
    expect(parsedTopology(file)).toEqual(checkedTopology(crossed));
    expect(topologyText(parsedTopology(file))).toBe('0-2,1-3');
  });

  it.each([
    ['0:2', 'topology is "0:2", expected a JSON file, or links such as 0-2,1-3'],
    ['0-2', 'topology, nodes[1] is "without a link", expected one link for each host'],
    ['0-99', 'topology, links[0], ends[1], field node, is 99, expected an integer from 0 to 7'],
    ['/nowhere/at.json', 'topology file is "/nowhere/at.json", expected a readable file (ENOENT)'],
  ])('is rejected as %s', (text, message) => {
    expect(messageOf(() => parsedTopology(text))).toBe(message);
  });

  it('is rejected if the file is not JSON', () => {
    const file = join(folder, 'torn.json');
    writeFileSync(file, '{ "nodes": [');
    expect(messageOf(() => parsedTopology(file))).toBe(
      `topology file is "${file}", expected a file of valid JSON`,
    );
  });
});

describe('the hash of a machine', () => {
  it('is that of its parameters for the default topology', () => {
    const hash = configHashOf(configurationOf({ set: { 'machine.nodeCount': 4 } }));
    expect(machineHashOf({ topology: parsedTopology('3-2,1-0') })).toBe(hash);
    expect(machineHashOf({ topology: pairsOf(4) })).toBe(hash);
  });

  it('differs for other links', () => {
    const [default4, crossed4, nested] = [
      machineHashOf({ nodes: 4 }),
      machineHashOf({ topology: parsedTopology('0-2,1-3') }),
      machineHashOf({ topology: parsedTopology('0-3,1-2') }),
    ];
    expect(new Set([default4, crossed4, nested]).size).toBe(3);
  });
});
