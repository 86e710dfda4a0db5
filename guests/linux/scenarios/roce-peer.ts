/**
 * Stock mlx4_en and mlx4_ib in a guest, and programs of ours on a simulated host at the other end of an Ethernet cable, by
 * RoCE: `ibv_rc_pingpong` and `rping`, either side of each, from IPv4 and link-local addresses. Each end resolves the other's
 * MAC itself. Both check received data.
 */
import { peerAddresses } from '../peer-network.ts';
import { type GidFamily, gidIndex, gidTypes, proDeviceId, type RoceVersion } from './ethernet-ends.ts';
import { endStep, ping, pingPongSizes, pingPongs, workload } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** The adapter's interface, after the one by which programs exchange addresses. */
const name = 'eth1';
const device = 'mlx4_0';
const peerMac = '00:02:c9:00:00:11';
/** Addresses of both ends, the link-local ones derived from their MACs, and the name of the family for `ip`. */
const families = {
  IPv4: { addresses: peerAddresses, option: '-4', protocol: 'ARP' },
  IPv6: {
    addresses: { guest: 'fe80::202:c9ff:fe00:1', peer: `fe80::202:c9ff:fe00:11%${name}` },
    option: '-6',
    protocol: 'Neighbor Discovery',
  },
} as const;

/** An action after which the simulated host must have counted one more of these. */
async function countedBy(
  stage: Stage,
  counter: 'answers' | 'resolved',
  act: () => Promise<string>,
): Promise<string> {
  const count = async (): Promise<number> =>
    (await stage.session.machine.report()).peer!.node.neighbours?.[counter] ?? 0;
  const before = await count();
  const said = await act();
  if ((await count()) === before) throw new ScenarioFailure(`no ${counter}, but ${said}`);
  return said;
}

function rpingSteps(family: GidFamily): readonly Step[] {
  const { addresses, option, protocol } = families[family];
  return [
    {
      title: `rping over ${family}: the guest is the server, and the simulated host finds it by ${protocol}`,
      run: (stage) => countedBy(stage, 'resolved', () => ping(stage, 'server', addresses)),
    },
    {
      title: `rping over ${family}: the guest is the client, and finds the simulated host by ${protocol}`,
      async run(stage) {
        await stage.check(`/bin/ip ${option} neigh flush dev ${name}`);
        const said = await countedBy(stage, 'answers', () => ping(stage, 'client', addresses));
        const neighbours = await stage.check(`/bin/ip ${option} neigh show dev ${name}`);
        if (!neighbours.includes(`${addresses.peer.split('%')[0]} lladdr ${peerMac}`))
          throw new ScenarioFailure(neighbours);
        return said;
      },
    },
  ];
}

/** Bytes of the frames of rping's SENDs: 14 of Ethernet; a GRH, or IPv4 and UDP; BTH; 16 of payload; ICRC and FCS. */
const sendFrameBytes = { v1: 14 + 40 + 12 + 16 + 4 + 4, v2: 14 + 20 + 8 + 12 + 16 + 4 + 4 } as const;

/** SENDs on the cable so far, in both directions, and the bytes of their frames. */
const sendsOf = async (stage: Stage): Promise<readonly (readonly [packets: number, bytes: number])[]> =>
  (await stage.session.machine.report()).wire.map(({ opcodes }) => {
    const { packets = 0, bytes = 0 } = opcodes['RC_SEND_ONLY'] ?? {};
    return [packets, bytes];
  });

/** A card with both versions: the responder uses the requester's version. */
const versionSteps = (['v1', 'v2'] as const).map(
  (version): Step => ({
    title: `rping by RoCE ${version}, as the guest's connection manager is set: data go by it both ways`,
    async run(stage) {
      const mode = `/sys/kernel/config/rdma_cm/${device}`;
      await stage.check(
        `modprobe configfs; mount -t configfs none /sys/kernel/config 2>/dev/null; mkdir -p ${mode} && ` +
          `echo '${gidTypes[version]}' >${mode}/ports/1/default_roce_mode`,
      );
      const before = await sendsOf(stage);
      const said = await ping(stage, 'client', peerAddresses);
      for (const [direction, [packets, bytes]] of (await sendsOf(stage)).entries()) {
        const sent = packets - before[direction]![0];
        const each = (bytes - before[direction]![1]) / sent;
        if (each !== sendFrameBytes[version])
          throw new ScenarioFailure(`${sent} SENDs of ${each} bytes in direction ${direction}`);
      }
      return said;
    },
  }),
);

/** Ping-pongs from every GID, by its index in the simulated host's table. */
const pingPongStep = (versions: readonly RoceVersion[], guest: 'client' | 'server'): Step => ({
  title: `ibv_rc_pingpong -g: the guest is the ${guest}; 1 to 10,000 bytes from every GID, data checked`,
  async run(stage) {
    const kinds = (['IPv6', 'IPv4'] as const).flatMap((family) =>
      versions.map((version) => ({ family, version })),
    );
    let last: string | undefined;
    for (const [peer, { family, version }] of kinds.entries()) {
      const gids = { guest: await gidIndex(stage, { device }, version, family), peer };
      const sizes = peer === kinds.length - 1 ? pingPongSizes : pingPongSizes.slice(-1);
      last = await pingPongs(stage, guest, sizes, gids);
    }
    return last;
  },
});

/** Includes frames that the guest's kernel sends by itself. */
const wellFormedStep: Step = {
  title:
    'every frame that came to the simulated host was one that a station may send, and it lost none of its own',
  async run(stage) {
    const { neighbours = {} } = (await stage.session.machine.report()).peer!.node;
    const said = JSON.stringify(neighbours);
    for (const counter of ['malformed', 'unresolved', 'conflicting', 'failed'] as const)
      if (neighbours[counter] !== undefined) throw new ScenarioFailure(said);
    return said;
  },
};

const stepsOf = (versions: readonly RoceVersion[]): readonly Step[] => [
  // The very first step, when neither end knows the other.
  ...rpingSteps('IPv4'),
  ...rpingSteps('IPv6'),
  ...(versions.length > 1 ? versionSteps : []),
  pingPongStep(versions, 'client'),
  pingPongStep(versions, 'server'),
  wellFormedStep,
  endStep,
];

const common = {
  hcas: 1,
  isCabled: true,
  guests: 1,
  faults: [],
  peer: workload('guest-counterpart', 'guestCounterpart'),
  isLoaded: true,
} as const;

/** ConnectX-3 Pros, which have both versions. */
export const rocePeer: Scenario = {
  ...common,
  name: 'roce-peer',
  title: 'Stock mlx4_ib and programs of ours, at the two ends of an Ethernet cable, by RoCE v1 and v2',
  set: {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': 'v2',
    'pcie.function.deviceId': proDeviceId,
  },
  steps: stepsOf(['v1', 'v2']),
};

/** ConnectX-3s, which have version 1. */
export const roceV1Peer: Scenario = {
  ...common,
  name: 'roce-v1-peer',
  title: 'Stock mlx4_ib and programs of ours, at the two ends of an Ethernet cable, by RoCE v1',
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1' },
  steps: stepsOf(['v1']),
};
