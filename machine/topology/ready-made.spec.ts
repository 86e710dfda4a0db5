import { describe, expect, it } from 'vitest';
import '../../runtime/node.ts';
import { ConfigurationError } from '../../base/index.ts';
import { checkedTopology, parsedTopology, topologyText } from './check-topology.ts';
import { farEndOf, hostsBySide, hostsOf, peersOf, subnetOf, switchesOf } from './topology.ts';

const sizesOf = (text: string): readonly number[] => {
  const topology = parsedTopology(text);
  return [hostsOf(topology).length, switchesOf(topology).length, topology.links.length];
};

describe('a ready-made fabric', () => {
  // Cables: one for each host, and those between switches.
  it.each([
    ['star:8', [8, 1, 8]],
    ['ring:5', [5, 5, 10]],
    ['ring:2', [2, 2, 3]],
    ['mesh:4', [4, 4, 4 + 6]],
    ['dumbbell:6', [6, 2, 7]],
    ['leaf-spine:2x4:8', [8, 6, 8 + 8]],
    ['leaf-spine:2x4', [8, 6, 16]],
    // k = 4 of Al-Fares et al.: 16 hosts, 4 core, 8 aggregation and 8 edge switches, 3 layers of 16 cables.
    ['fat-tree:4', [16, 20, 48]],
    ['fat-tree:8', [128, 80, 384]],
  ])('%s has hosts, switches and cables %j', (text, sizes) => {
    expect(sizesOf(text)).toEqual(sizes);
  });

  it.each(['star:8', 'ring:4', 'mesh:4', 'dumbbell:6', 'leaf-spine:2x4:8', 'fat-tree:4'])(
    '%s passes the checks of a file, and joins every host to every other',
    (text) => {
      const topology = parsedTopology(text);
      expect(checkedTopology(JSON.parse(JSON.stringify(topology)))).toEqual(topology);
      const hosts = hostsOf(topology);
      for (const host of hosts)
        expect(peersOf(topology, host)).toEqual(hosts.filter((other) => other !== host));
    },
  );

  it('puts the first host at the first leaf, after the spines', () => {
    const topology = parsedTopology('leaf-spine:2x4:8');
    expect([0, 1, 2, 7].map((node) => farEndOf(topology, { node, port: 1 }))).toEqual([
      { node: 10, port: 1 },
      { node: 10, port: 2 },
      { node: 11, port: 1 },
      { node: 13, port: 2 },
    ]);
  });

  it('is the same as the text of an option, which is JSON', () => {
    for (const name of ['star:3', 'leaf-spine:2x4:8']) {
      const topology = parsedTopology(name);
      expect(parsedTopology(topologyText(topology))).toEqual(topology);
    }
    expect(() => parsedTopology('{ "nodes"')).toThrow('expected valid JSON');
  });

  it.each([
    ['star:1', 'topology star:1, hosts, is "1", expected an integer from 2 to 64'],
    ['star:65', 'expected an integer from 2 to 64'],
    ['star', 'topology star, hosts, is "", expected an integer from 2 to 64'],
    ['star:8:2', 'expected a JSON file, links such as 0-2,1-3, or one of star:HOSTS'],
    ['fat-tree:3', 'fat-tree:K with an even K'],
    ['leaf-spine:2', 'leaves, is "", expected an integer from 1 to 64'],
    ['leaf-spine:2x3:8', 'hosts, is 8, expected a multiple of 3, the leaves that share them'],
    ['torus:4', 'topology is "torus:4", expected a JSON file'],
  ])('%s is rejected', (text, message) => {
    expect(() => parsedTopology(text)).toThrow(ConfigurationError);
    expect(() => parsedTopology(text)).toThrow(message);
  });
});

describe('a topology with switches', () => {
  const host = { kind: 'host' };
  const link = (left: number, leftPort: number, right: number, rightPort: number) => ({
    ends: [
      { node: left, port: leftPort },
      { node: right, port: rightPort },
    ],
  });

  it('has subnets of all ports that switches join, apart from those of other switches', () => {
    const nodes = [host, host, host, host, { kind: 'switch' }, { kind: 'switch' }];
    const links = [link(0, 1, 4, 1), link(1, 1, 4, 2), link(2, 1, 5, 7), link(3, 1, 5, 8), link(0, 2, 5, 9)];
    const topology = checkedTopology({ nodes, links });
    const members = (node: number, port: number): string[] =>
      subnetOf(topology, { node, port }).map((member) => `${member.node}.${member.port}`);
    expect(members(0, 1)).toEqual(['0.1', '1.1']);
    expect(members(0, 2)).toEqual(['0.2', '2.1', '3.1']);
    expect(peersOf(topology, 0)).toEqual([1, 2, 3]);
    expect(peersOf(topology, 2)).toEqual([0, 3]);
  });

  it('has no host that is its own peer by its other port, and tests use first ports', () => {
    const nodes = [host, host, host, { kind: 'switch' }];
    const links = [link(0, 1, 3, 1), link(0, 2, 3, 2), link(1, 2, 3, 3), link(2, 1, 3, 4), link(1, 1, 3, 5)];
    const topology = checkedTopology({ nodes, links });
    expect(peersOf(topology, 0)).toEqual([1, 2]);
    expect(hostsBySide(topology)).toEqual([0, 1, 2]);
    const second = checkedTopology({
      nodes: [...nodes, { kind: 'switch' }],
      links: [link(0, 1, 3, 1), link(1, 2, 3, 3), link(2, 1, 3, 4), link(1, 1, 4, 1)],
    });
    expect(hostsBySide(second)).toEqual([0, 2, 1]);
  });

  it.each([
    [
      'a host after a switch',
      { nodes: [host, { kind: 'switch' }, host], links: [] },
      'nodes[2], field kind, is "host"',
    ],
    [
      'a switch without a cable',
      { nodes: [host, host, { kind: 'switch' }], links: [link(0, 1, 1, 1)] },
      'topology, nodes[2] is "without a link"',
    ],
    [
      'port 65 of a switch',
      { nodes: [host, host, { kind: 'switch' }], links: [link(0, 1, 2, 65), link(1, 1, 2, 1)] },
      'field port, is 65, expected an integer from 1 to 64',
    ],
    [
      'one host',
      { nodes: [host, { kind: 'switch' }], links: [link(0, 1, 1, 1)] },
      'hosts of the topology is 1',
    ],
  ])('is rejected with %s', (_what, entry, message) => {
    expect(() => checkedTopology(entry)).toThrow(message);
  });
});
