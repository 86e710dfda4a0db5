/** Options of a fabric whose first hosts are guests, and its plan. */
import { describe, expect, it } from 'vitest';
import { parsedTopology } from '../../machine/topology/index.ts';
import { devicesOrderOf } from './serve-options.ts';
import { planServed, servedNeighboursOf } from './served-plan.ts';

const topology = parsedTopology('star:3');

describe('a fabric of guests', () => {
  it.each([
    ['with a cable between the guests', { topology, hcas: 2, cable: true }, /cable is true/],
    ['with a socket at the end of a cable', { topology, wire: '/tmp/wire' }, /wire is "\/tmp\/wire"/],
    ['of Ethernet', { topology, set: { 'hca.capability.linkLayer': 'ethernet' } }, /linkLayer is "ethernet"/],
    ['with a NIC', { topology, set: { 'machine.adapter': 'nic' } }, /machine.adapter is "nic"/],
  ] as const)('is refused %s', (_, options, message) => {
    expect(() => devicesOrderOf(options)).toThrow(message);
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
