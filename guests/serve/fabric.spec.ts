/** Options of a fabric whose first hosts are guests, and its plan. */
import { describe, expect, it } from 'vitest';
import { parsedTopology } from '../../machine/topology/index.ts';
import { devicesOrderOf } from './serve-options.ts';
import { planServed, servedNeighboursOf } from './served-plan.ts';

const topology = parsedTopology('star:3');
const peer = { run: { url: 'file:///unused' } };

describe('a fabric of guests', () => {
  it.each([
    ['with a cable between the guests', { topology, hcas: 2, cable: true }, /cable is true/],
    ['with a socket at the end of a cable', { topology, wire: '/tmp/wire' }, /wire is "\/tmp\/wire"/],
    [
      'of Ethernet without RoCE',
      { topology, set: { 'hca.capability.linkLayer': 'ethernet' } },
      /roce is "none"/,
    ],
    [
      'for more guests than it has hosts',
      { topology, hcas: 4 },
      /hcas is 4, expected an integer from 1 to 3/,
    ],
    ['for a peer of two guests', { topology, hcas: 2, peer }, /hcas is 2, expected 1 beside a peer/],
    ['with a NIC', { topology, set: { 'machine.adapter': 'nic' } }, /machine.adapter is "nic"/],
  ] as const)('is refused %s', (_, options, message) => {
    expect(() => devicesOrderOf(options)).toThrow(message);
  });

  it('may have as many guests as hosts, up to eight, also with RoCE', () => {
    const eight = parsedTopology('star:9');
    const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1' };
    expect(devicesOrderOf({ topology: eight, hcas: 8, set }).cabling).toBe('fabric');
    expect(() => devicesOrderOf({ topology: eight, hcas: 9 })).toThrow(/hcas is 9, expected .* from 1 to 8/);
  });

  it('lets its host 1, if it runs a program, exchange values with the guest', () => {
    const { config } = devicesOrderOf({ topology, peer });
    const choice = { config, hcaCount: 1, cabling: 'fabric', faults: [], fabric: topology } as const;
    const { channels } = planServed({ ...choice, hasPeer: true });
    expect(Object.keys(channels).filter((key) => key.includes('host0'))).toEqual([
      'host0>host1',
      'host1>host0',
    ]);
  });

  it('gives its simulated hosts channels among themselves, and none to guests but by the switch', () => {
    const { config } = devicesOrderOf({ topology });
    const choice = { config, hcaCount: 1, cabling: 'fabric', faults: [], fabric: topology } as const;
    const plan = planServed(choice);
    const channels = Object.keys(plan.channels).toSorted();
    expect(channels.filter((key) => key.includes('host0'))).toEqual([]);
    expect(channels.filter((key) => /^(guest0|hca0)>/.test(key))).toEqual([
      'guest0>hca0',
      'hca0>guest0',
      'hca0>switch3',
    ]);
    expect(channels.filter((key) => /^host\d>host\d$/.test(key))).toEqual(['host1>host2', 'host2>host1']);
    expect(config.machine.nodeCount).toBe(3);
    expect(servedNeighboursOf(plan, 0)).toMatchObject({ host: 'guest0', cables: [{ leadsToSwitch: true }] });
  });
});
