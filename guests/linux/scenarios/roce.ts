/**
 * RoCE under the stock mlx4_ib, next to mlx4_en on the same ports: two guests on a cable. Programs use GIDs, each of which is
 * in the table of a guest once for each version of RoCE that the adapter has.
 */
import { frameSteps } from './ethernet.ts';
import {
  addresses,
  addVlans,
  type GidFamily,
  type Guest,
  gidIndex,
  gidTypes,
  guests,
  inBoth,
  jumboMtu,
  lastFigures,
  interfaceName as name,
  proDeviceId,
  taggedAddresses,
  untilCarrier,
  type RoceVersion as Version,
} from './ethernet-ends.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const device = 'mlx4_0';
const ports = `/sys/class/infiniband/${device}/ports/1`;

/** Warnings of mlx4_en and mlx4_ib for any adapter, and for one without segmentation and counters. */
const usual = /LSO not supported|Using \d+ [RT]X rings|Initializing port|mlx4_ib_add: /;

/**
 * Interfaces first, then verbs. Without IPv6 a GID table has no address twice. Otherwise libmlx4 mistakes the GID indices of
 * datagrams for the device's, while Linux gives a repeated address one index there.
 */
async function bringUp(stage: Stage): Promise<string> {
  const marks = await Promise.all(guests.map((guest) => stage.markMessages(guest)));
  await inBoth(stage, () => `modprobe mlx4_en; until [ -d /sys/class/net/${name} ]; do sleep 0.1; done`);
  await inBoth(stage, () => `echo 1 >/proc/sys/net/ipv6/conf/${name}/disable_ipv6`);
  await inBoth(stage, (guest) => `ip addr add ${addresses[guest]}/24 dev ${name} && ip link set ${name} up`);
  await untilCarrier(stage);
  await inBoth(stage, () => 'modprobe -a mlx4_ib ib_uverbs ib_umad rdma_ucm');
  await inBoth(stage, () => `until grep -q ACTIVE ${ports}/state; do sleep 0.1; done`);
  for (const guest of guests) {
    const warnings = (await stage.warningsSince(marks[guest]!, guest)).filter((line) => !usual.test(line));
    if (warnings.length > 0) throw new ScenarioFailure(`the kernel warned:\n${warnings.join('\n')}`);
  }
  const said = await stage.check('ibv_devinfo');
  const [layer, state, mtu, part] = [
    /link_layer:\s+(\S+)/,
    /state:\s+(\S+)/,
    /active_mtu:\s+(\d+)/,
    /part_id:\s+(\d+)/,
  ].map((pattern) => pattern.exec(said)?.[1]);
  if (layer !== 'Ethernet' || state !== 'PORT_ACTIVE') throw new ScenarioFailure(said);
  return `${layer}, ${state}, MTU ${mtu}, part ${part}`;
}

/** A test with two sides over GIDs of this kind; its last line with figures. `{gid}` represents the index. */
async function across(stage: Stage, command: string, version: Version, family: GidFamily): Promise<string> {
  const [client, server] = [
    await gidIndex(stage, { guest: 0, device }, version, family),
    await gidIndex(stage, { guest: 1, device }, version, family),
  ];
  const output = await stage.pairAcross({
    server: command.replace('{gid}', String(server)),
    client: `${command.replace('{gid}', String(client))} ${addresses[1]}`,
  });
  return lastFigures(output);
}

const pingPongs = [
  'ibv_rc_pingpong -c -n 100 -g {gid}',
  'ibv_uc_pingpong -c -n 100 -g {gid}',
  'ibv_ud_pingpong -c -n 100 -s 1000 -g {gid}',
] as const;
const perftests = [
  'ib_write_bw -n 100 -x {gid}',
  'ib_read_bw -n 100 -x {gid}',
  'ib_send_bw -n 100 -x {gid}',
  'ib_send_lat -n 50 -c UD -s 512 -x {gid}',
  'ib_atomic_bw -n 100 -x {gid}',
] as const;

async function allOf(
  stage: Stage,
  commands: readonly string[],
  version: Version,
  family: GidFamily,
): Promise<string> {
  let last = '';
  for (const command of commands) last = await across(stage, command, version, family);
  return last;
}

/** Neighbours of link-local addresses are resolved by IPv6. */
async function useIpv6(stage: Stage): Promise<void> {
  await inBoth(stage, () => `echo 0 >/proc/sys/net/ipv6/conf/${name}/disable_ipv6`);
  await inBoth(
    stage,
    () => `until ip -6 addr show dev ${name} scope link | grep fe80 | grep -qv tentative; do sleep 0.2; done`,
  );
}

function trafficSteps(version: Version): Step[] {
  return [
    {
      title: `RoCE ${version} from IPv4 addresses: the ping-pong programs of rdma-core, data checked`,
      run: (stage) => allOf(stage, pingPongs, version, 'IPv4'),
    },
    {
      title: `RoCE ${version} from IPv4 addresses: perftest writes, reads, sends, and counts up`,
      run: (stage) => allOf(stage, perftests, version, 'IPv4'),
    },
    {
      title: `RoCE ${version} from link-local addresses of IPv6: ping-pongs of connections and of datagrams`,
      async run(stage) {
        await useIpv6(stage);
        return await allOf(stage, [pingPongs[0], pingPongs[2]], version, 'IPv6');
      },
    },
    {
      title: `RoCE ${version}: rdma_cm connects, and rping, ucmatose and udaddy speak`,
      run: (stage) => connect(stage, version, addresses[1]),
    },
  ];
}

const olderStep: Step = {
  title: 'RoCE v1 beside it, from IPv4 addresses: perftest writes, and sends datagrams',
  run: (stage) => allOf(stage, [perftests[0], perftests[3]], 'v1', 'IPv4'),
};

/** Connects by the connection manager, which uses the configured version. */
async function connect(stage: Stage, version: Version, to: string): Promise<string> {
  const mode = `/sys/kernel/config/rdma_cm/${device}`;
  await inBoth(
    stage,
    () =>
      `modprobe configfs; mount -t configfs none /sys/kernel/config 2>/dev/null; mkdir -p ${mode} && ` +
      `echo '${gidTypes[version]}' >${mode}/ports/1/default_roce_mode`,
  );
  const last = await ping(stage, to);
  for (const program of ['ucmatose', 'udaddy']) {
    await stage.check(`(${program} >/run/${program}.log 2>&1; echo $? >/run/${program}.status) & sleep 1`, {
      guest: 1,
    });
    await stage.check(`${program} -s ${to}`);
    await stage.check(
      `until [ -s /run/${program}.status ]; do sleep 0.1; done; cat /run/${program}.log; [ $(cat /run/${program}.status) = 0 ]`,
      { guest: 1 },
    );
  }
  return last;
}

/** rping to an address, in a separate guest; the returned data are compared. */
async function ping(stage: Stage, to: string, server: Guest = 1): Promise<string> {
  await stage.check('(rping -s -C 20 -V >/run/rping.log 2>&1 &); sleep 1', { guest: server });
  const output = await stage.check(`rping -c -a ${to} -C 20 -V -v`);
  const pings = output.split('\n').filter((line) => line.startsWith('ping data'));
  if (pings.length !== 20) throw new ScenarioFailure(output);
  return `${pings.length} pings`;
}

/** An open interface requests its statistics four times a second: it is closed, and so quiet, while interrupts are compared. */
const closeInterfaces = (stage: Stage): Promise<string[]> =>
  inBoth(stage, () => `ip link set ${name} down; sleep 1`);

/** Steps in which traffic is shared: within one guest, and of TCP and verbs on the cable. */
const sharedSteps: readonly Step[] = [
  {
    title: 'a program reaches another of its own guest by the same address',
    run: (stage) => ping(stage, addresses[0], 0),
  },
  {
    title: 'TCP and verbs share the cable',
    async run(stage) {
      await stage.check('iperf3 -s -D -I /run/iperf3.pid && sleep 0.5', { guest: 1 });
      const client = `iperf3 -c ${addresses[1]} -t 300 --forceflush`;
      await stage.check(`${client} >/run/iperf3.log 2>&1 & echo $! >/run/iperf3-client.pid; sleep 1`);
      const last = await across(stage, 'ib_write_bw -n 200 -x {gid}', 'v1', 'IPv4');
      await stage.check('kill $(cat /run/iperf3-client.pid); grep -q sec /run/iperf3.log');
      await stage.check('kill $(cat /run/iperf3.pid)', { guest: 1 });
      await closeInterfaces(stage);
      return last;
    },
  },
];

/** Changes by drivers to an interface that verbs use. */
const changeSteps: readonly Step[] = [
  {
    title: 'rping goes over a VLAN',
    async run(stage) {
      await addVlans(stage);
      return await ping(stage, taggedAddresses[1]);
    },
  },
  {
    title: 'with jumbo frames a packet carries 4096 bytes',
    async run(stage) {
      await inBoth(stage, () => `ip link set ${name} mtu ${jumboMtu}`);
      await untilCarrier(stage);
      await inBoth(stage, () => `until grep -q ACTIVE ${ports}/state; do sleep 0.1; done`);
      const said = await stage.check('ibv_devinfo');
      if (!/active_mtu:\s+4096/.test(said)) throw new ScenarioFailure(said);
      return await across(stage, 'ib_write_bw -n 100 -m 4096 -x {gid}', 'v1', 'IPv4');
    },
  },
  {
    title: 'the drivers unload and load again, and traffic flows afterwards',
    async run(stage) {
      await inBoth(stage, () => 'rmmod rdma_ucm ib_umad mlx4_ib && rmmod mlx4_en && rmmod mlx4_core');
      await bringUp(stage);
      const last = await across(stage, 'ibv_rc_pingpong -c -n 50 -g {gid}', 'v1', 'IPv4');
      await closeInterfaces(stage);
      return last;
    },
  },
];

const bringUpStep: Step = {
  title: 'mlx4_en and mlx4_ib take up the adapter, and its port is active, in both guests',
  run: bringUp,
};

const common = {
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  isLoaded: false,
} as const;

const ethernetPort = {
  'hca.capability.linkLayer': 'ethernet',
  'ethernet.mtuBytes': jumboMtu,
  'ethernet.gigabitsPerSecond': 40,
} as const;

/** A ConnectX-3, which has version 1. It is a conventional card as well. */
export const roceV1: Scenario = {
  ...common,
  name: 'roce-v1',
  title: 'two guests with mlx4_en and mlx4_ib on an Ethernet cable, by RoCE v1',
  set: { ...ethernetPort, 'hca.capability.roce': 'v1' },
  steps: [bringUpStep, ...frameSteps, ...trafficSteps('v1'), ...sharedSteps],
};

/** A ConnectX-3 Pro, which has both. */
export const roce: Scenario = {
  ...common,
  name: 'roce',
  title: 'two guests with mlx4_ib on an Ethernet cable, by RoCE v1 and v2',
  set: { ...ethernetPort, 'hca.capability.roce': 'v2', 'pcie.function.deviceId': proDeviceId },
  steps: [bringUpStep, ...trafficSteps('v2'), olderStep, ...changeSteps],
};
