/** Multicast groups by ibv_attach_mcast, and addresses from completions, on InfiniBand and RoCE. */
import { describe, expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programsOf, runPrograms } from './machines.ts';
import type { GroupArgs } from './programs/groups.ts';

vi.setConfig({ testTimeout: 120_000 });

const roce = (version: 'v1' | 'v2') => ({
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': version,
});
const networks = { InfiniBand: {}, 'RoCE v1': roce('v1'), 'RoCE v2': roce('v2') } as const;
type Network = keyof typeof networks;

const ipv6Group = [0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const lid = 0xc001;

async function run(network: Network, name: string, args: GroupArgs | boolean) {
  const { results, report } = await runPrograms(
    programsOf('groups', name, typeof args === 'boolean' ? args : { ...args }),
    { set: networks[network] },
  );
  expectBalanced(report);
  return results;
}

describe('a multicast group', () => {
  it('sheet 5.6: is received once by each member of each host, but by the sender only if it does not block its own', async () => {
    const [near, far] = await run('InfiniBand', 'members', { gid: ipv6Group, lid });
    const ends = { busy: 'EBUSY', free: 'ok' };
    // Two members, one QP that is not a member, and the sender of host 0; on host 1 the fourth member has not sent.
    expect(near).toEqual({ status: 'SUCCESS', first: [1, 1, 0, 0], second: [0, 1, 0, 0], ...ends });
    expect(far).toEqual({ status: 'none', first: [1, 1, 0, 1], second: [0, 1, 0, 1], ...ends });
  });

  it('annex A16.4.3: on RoCE is received by the members on the second host', async () => {
    const [, far] = await run('RoCE v1', 'members', { gid: ipv6Group, lid });
    expect(far).toMatchObject({ first: [1, 1, 0, 1], second: [0, 1, 0, 1] });
  });
});

describe('attaching', () => {
  it('verbs.c, ib_attach_mcast: rejects another QP, GID or LID, and detaching without an attachment', async () => {
    const [on] = await run('InfiniBand', 'refusals', { gid: ipv6Group, lid });
    expect(on).toEqual({
      otherType: 'EINVAL',
      unicastGid: 'EINVAL',
      shortGid: 'EINVAL',
      unicastLid: 'EINVAL',
      permissiveLid: 'EINVAL',
      notAttached: 'EINVAL',
      attached: 'ok',
      otherLid: 'EINVAL',
      detached: 'ok',
      again: 'EINVAL',
    });
  });

  it('verbs.c, is_valid_mcast_lid: accepts any LID on an Ethernet port', async () => {
    const [on] = await run('RoCE v1', 'refusals', { gid: ipv6Group, lid });
    expect(on).toMatchObject({ unicastLid: 'ok', permissiveLid: 'ok' });
  });

  it('mcg.c: keeps every group of a chain reachable when others are left, and frees their entries', async () => {
    const groups = 60;
    const [, far] = await runPrograms(programsOf('groups', 'many', { gid: ipv6Group, lid, groups }), {
      set: { 'driver.logMcgs': 7 },
    }).then(({ results }) => results);
    const found = Array.from({ length: groups }, (_, at) => at % 3 !== 0);
    expect(far).toEqual({ found, left: 0 });
  });
});

describe('an address from a completion', () => {
  it('ibv_init_ah_from_wc: without a GRH is LID, service level and path bits', async () => {
    const [near, far] = await run('InfiniBand', 'answers', false);
    expect(near).toEqual({ srcQp: true, flags: 0 });
    expect(far).toMatchObject({
      local: { dlid: 1, sl: 0, srcPathBits: 0, isGlobal: 0, portNum: 1 },
      route: null,
    });
  });

  it('ibv_init_ah_from_wc: with a GRH has the sender’s GID, the own GID’s index and the rest of the route', async () => {
    const [near, far] = await run('InfiniBand', 'answers', true);
    expect(near).toEqual({ srcQp: true, flags: 1 });
    expect(far).toMatchObject({
      local: { dlid: 1, isGlobal: 1, portNum: 1 },
      route: { sgidIndex: 0, hopLimit: 9, flowLabel: 0x12345, trafficClass: 0x2a },
      stranger: 'EINVAL',
    });
  });

  it.each(['RoCE v1', 'RoCE v2'] as const)(
    'on %s is the GID in the header, by the type of its version',
    async (network) => {
      const [near, far] = await run(network, 'answers', false);
      expect(near).toEqual({ srcQp: true, flags: 1 });
      // ::ffff:10.0.0.1
      const dgid = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
      expect(far).toMatchObject({ local: { isGlobal: 1 }, route: { dgid } });
    },
  );
});
