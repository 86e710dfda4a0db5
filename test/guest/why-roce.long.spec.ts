/**
 * RoCE between stock guests with one mistake: a wrong neighbour table, different VLANs, different versions. The programs are
 * those of rdma-core; only the devices record the contents of their packets.
 */
import { describe, expect, it } from 'vitest';
import { diagnosedGuests } from '../../explain/why/index.ts';
import { GuestSession } from '../../guests/linux/index.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

const reason = await reasonAgainst('debian');
const strange = '02:00:00:00:00:99';
const ports = '/sys/class/infiniband/mlx4_0/ports/1';

/** The kernel resolves GIDs by its neighbours once mlx4_ib is on an interface that is up. */
const interfaceUp = (guest: number): string =>
  `set -e; modprobe mlx4_en; until [ -d /sys/class/net/eth0 ]; do sleep 0.1; done
echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6; ip addr add 10.2.0.${guest + 1}/24 dev eth0; ip link set eth0 up`;
const verbsUp = `set -e; until [ "$(cat /sys/class/net/eth0/carrier)" = 1 ]; do sleep 0.1; done
modprobe -a mlx4_ib ib_uverbs; until grep -q ACTIVE ${ports}/state; do sleep 0.1; done`;

/** A ping-pong with the GID of an address. */
const pingPong = (address: string, rest = '', version = 'v2'): string =>
  `cd ${ports}; for i in $(seq 0 20); do grep -qs ffff:${address} gids/$i && grep -qs ${version} gid_attrs/types/$i && break; done
timeout 60 ibv_rc_pingpong -n 5 -g $i ${rest}`;

/** Two guests whose interfaces and verbs are up. */
async function roceGuests(): Promise<GuestSession> {
  const set = {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': 'v2',
    'pcie.function.deviceId': 0x1007,
  };
  const session = await GuestSession.start({
    ...optionsFor('debian', 1),
    ...{ hcas: 2, guests: 2, cable: true },
    serve: { set, analysis: { evidence: {} } },
  });
  for (const guest of [0, 1]) await runnerOf(session)(guest, interfaceUp(guest));
  for (const guest of [0, 1]) await runnerOf(session)(guest, verbsUp);
  return session;
}

const runnerOf =
  (session: GuestSession) =>
  async (guest: number, command: string): Promise<string> =>
    (await session.run(guest, command, { timeoutSeconds: 100 })).output;

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')(
  'why, of RoCE between stock guests',
  () => {
    it(
      'names the MAC of a wrong neighbour table entry, and the port’s own',
      async () => {
        expect(reason).toBeUndefined();
        await using session = await roceGuests();
        const run = runnerOf(session);
        // The address of the exchange over TCP stays right; that of RoCE does not.
        await run(1, 'ip addr add 10.2.0.12/24 dev eth0');
        await run(1, `(${pingPong('0a02:000c')}) >/dev/null 2>&1 & sleep 1`);
        await run(0, `/bin/ip neigh replace 10.2.0.12 lladdr ${strange} nud permanent dev eth0`);
        const output = await run(0, pingPong('0a02:0001', '10.2.0.2'));
        expect(output).toContain('transport retry counter exceeded');
        const mac = (await run(1, 'cat /sys/class/net/eth0/address')).trim();
        await session.finish();
        const causes = diagnosedGuests(await session.machine.evidence());
        const named = causes.find(({ cause }) => cause === 'wrong-mac');
        expect(named?.sentence, JSON.stringify(causes, undefined, 1)).toContain(
          `sends to MAC ${strange}, but the port`,
        );
        expect(named?.sentence).toMatch(new RegExp(`has ${mac} and dropped \\d+ frames`));
        expect(causes.filter(({ weight }) => weight === 'fault')).toEqual([named]);
      },
      bootTimeoutMs + 240_000,
    );

    it(
      'names different VLANs',
      async () => {
        expect(reason).toBeUndefined();
        await using session = await roceGuests();
        const run = runnerOf(session);
        const macs: string[] = [];
        for (const guest of [0, 1]) macs.push((await run(guest, 'cat /sys/class/net/eth0/address')).trim());
        for (const guest of [0, 1]) {
          const name = `eth0.${7 + guest}`;
          // Each side has the peer in its VLAN, so neither requests its MAC.
          await run(
            guest,
            `modprobe 8021q; ip link add link eth0 name ${name} type vlan id ${7 + guest} && ip addr add 10.3.0.${guest + 1}/24 dev ${name} &&
ip link set ${name} up && /bin/ip neigh replace 10.3.0.${2 - guest} lladdr ${macs[1 - guest]} nud permanent dev ${name}; sleep 1`,
          );
        }
        await run(1, `(${pingPong('0a03:0002')}) >/dev/null 2>&1 & sleep 1`);
        const output = await run(0, pingPong('0a03:0001', '10.2.0.2'));
        await session.finish();
        const causes = diagnosedGuests(await session.machine.evidence());
        const named = causes.find(({ cause }) => cause === 'wrong-vlan');
        expect(named?.sentence ?? '', `${output}${JSON.stringify(causes, undefined, 1)}`).toMatch(
          /sends with VLAN 7, its peer expects VLAN 8/,
        );
        expect(named?.evidence).toMatchObject({ vlan: 7 });
        expect(causes.filter(({ weight }) => weight === 'fault')).toEqual([named]);
      },
      bootTimeoutMs + 240_000,
    );

    it(
      'names different versions',
      async () => {
        expect(reason).toBeUndefined();
        await using session = await roceGuests();
        const run = runnerOf(session);
        await run(1, `(${pingPong('0a02:0002', '', 'v1')}) >/dev/null 2>&1 & sleep 1`);
        const output = await run(0, pingPong('0a02:0001', '10.2.0.2'));
        await session.finish();
        const causes = diagnosedGuests(await session.machine.evidence());
        const named = causes.find(({ cause }) => cause === 'roce-version');
        expect(named?.sentence ?? '', `${output}${JSON.stringify(causes, undefined, 1)}`).toMatch(
          /speaks RoCE v2, .* speaks RoCE v1: packets of one version do not reach/,
        );
        expect(causes.filter(({ weight }) => weight === 'fault')).toEqual([named]);
      },
      bootTimeoutMs + 240_000,
    );
  },
);
