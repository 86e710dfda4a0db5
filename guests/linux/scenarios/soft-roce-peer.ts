/**
 * An independent implementation at the other end of the cable: an HCA with RoCE version 2 in guest 0, and in guest 1 an
 * ordinary network card under Linux's own Soft-RoCE (rdma_rxe), which checks every packet itself. Each end is the other's
 * server in turn.
 */
import {
  addresses,
  type Guest as End,
  type GidFamily as Family,
  gidIndex,
  jumboMtu,
  lastFigures,
  proDeviceId,
} from './ethernet-ends.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** The two ends, by guest. */
const devices = ['mlx4_0', 'rxe0'] as const;

/** A test with two sides: `{device}` and `{gid}` represent the names at an end. The client's last line with figures. */
async function across(stage: Stage, command: string, family: Family, server: End): Promise<string> {
  const client: End = server === 1 ? 0 : 1;
  const sideOf = async (end: End): Promise<string> =>
    command
      .replace('{device}', `-d ${devices[end]}`)
      .replace('{gid}', String(await gidIndex(stage, { guest: end, device: devices[end] }, 'v2', family)));
  await stage.check(`test-server '${await sideOf(server)}'`, { guest: server });
  const output = await stage.check(`${await sideOf(client)} guest${server}`, { guest: client });
  await stage.check('test-server-end', { guest: server });
  return lastFigures(output);
}

/** The client, and the end that serves it. */
const directions = [
  ['the HCA asks', 1],
  ['Soft-RoCE asks', 0],
] as const;

/** Commands one after another, in both directions; the output of the last one. */
export const bothWays = (title: string, family: Family, commands: readonly string[]): Step[] =>
  directions.map(([who, server]) => ({
    title: `${title}, ${family}: ${who}`,
    async run(stage) {
      let last = '';
      for (const command of commands) last = await across(stage, command, family, server);
      return last;
    },
  }));

const pingPong = '{device} -g {gid}';
/** Half a second before a retransmission: a busy computer is late, and loses nothing. */
export const perftest = '{device} -x {gid} -F -u 17';

/** rping to an address, and the connection manager's other programs. */
async function connect(stage: Stage, server: End): Promise<string> {
  const client: End = server === 1 ? 0 : 1;
  const to = addresses[server];
  await stage.check('(rping -s -C 20 -V >/run/rping.log 2>&1 &); sleep 1', { guest: server });
  const output = await stage.check(`rping -c -a ${to} -C 20 -V -v`, { guest: client });
  const pings = output.split('\n').filter((line) => line.startsWith('ping data'));
  if (pings.length !== 20) throw new ScenarioFailure(output);
  await stage.check('(ucmatose >/run/ucmatose.log 2>&1; echo $? >/run/ucmatose.status) & sleep 1', {
    guest: server,
  });
  await stage.check(`ucmatose -s ${to}`, { guest: client });
  await stage.check(
    'until [ -s /run/ucmatose.status ]; do sleep 0.1; done; cat /run/ucmatose.log; [ $(cat /run/ucmatose.status) = 0 ]',
    { guest: server },
  );
  return `${pings.length} pings`;
}

/** The manager of the HCA's device uses version 2, the only one of Soft-RoCE. */
export const setVersion = `mount -t configfs none /sys/kernel/config 2>/dev/null; mkdir -p /sys/kernel/config/rdma_cm/mlx4_0 &&
echo 'RoCE v2' >/sys/kernel/config/rdma_cm/mlx4_0/ports/1/default_roce_mode`;

/** The very first step: links and devices are up. */
export const bothUp: Step = {
  title: 'both ends of the cable are up, and pings go both ways',
  async run(stage) {
    await stage.check(
      `ip link set $(basename /sys/bus/pci/drivers/mlx4_core/0*/net/*) mtu ${jumboMtu}; until grep -q ACTIVE /sys/class/infiniband/mlx4_0/ports/1/state; do sleep 0.1; done`,
    );
    await stage.check(`ping -c 3 ${addresses[1]}`);
    return await stage.check(`ping -c 3 -q ${addresses[0]} | tail -1`, { guest: 1 });
  },
};

/** Path MTUs and lengths of messages; test/guest/soft-roce-verbs.long.spec.ts tests them with every verb. */
const lengths: readonly Step[] = [
  ...bothWays('path MTUs from 256 to 4096 bytes, data checked', 'IPv4', [
    ...[256, 512, 1024, 2048, 4096].map((mtu) => `ibv_rc_pingpong -c -n 10 -s 20000 -m ${mtu} ${pingPong}`),
  ]),
  ...bothWays('messages of 64 KiB to 4 MiB', 'IPv4', [
    ...[16, 22].map((log) => `ib_write_bw -n 5 -s ${2 ** log} ${perftest}`),
    // With events: a polling program would occupy a processor that the other guest and the emulator need.
    `ib_read_bw -n 5 -s ${2 ** 20} -e ${perftest}`,
    `ib_send_bw -n 5 -s ${2 ** 20} -e ${perftest}`,
  ]),
];

const steps: readonly Step[] = [
  bothUp,
  ...bothWays('ping-pongs, data checked', 'IPv6', [`ibv_rc_pingpong -c -n 100 ${pingPong}`]),
  ...bothWays('ping-pongs, data checked', 'IPv4', [
    `ibv_rc_pingpong -c -n 100 ${pingPong}`,
    `ibv_uc_pingpong -c -n 100 ${pingPong}`,
    `ibv_ud_pingpong -c -n 100 -s 1000 ${pingPong}`,
  ]),
  ...bothWays('writes, reads, sends, atomics', 'IPv4', [
    // 64 KiB each; Soft-RoCE builds and checksums every packet in an emulated processor.
    `ib_write_bw -n 20 ${perftest}`,
    `ib_read_bw -n 20 ${perftest}`,
    `ib_send_bw -n 20 ${perftest}`,
    `ib_send_lat -n 50 -c UD -s 512 ${perftest}`,
    `ib_atomic_bw -n 100 -A CMP_AND_SWAP ${perftest}`,
    `ib_atomic_bw -n 100 -A FETCH_AND_ADD ${perftest}`,
  ]),
  ...lengths,
  ...directions.map(([who, server]) => ({
    title: `rdma_cm: rping and ucmatose, ${who}`,
    run: async (stage: Stage) => {
      await stage.check(setVersion);
      return await connect(stage, server);
    },
  })),
];

/** An adapter with RoCE at one end, Soft-RoCE at the other. */
export const softRoceEnds = {
  hcas: 1,
  isCabled: false,
  guests: 2,
  stranger: 'rxe',
  isLoaded: true,
  set: {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': 'v2',
    'pcie.function.deviceId': proDeviceId,
    'ethernet.mtuBytes': jumboMtu,
  },
} as const satisfies Partial<Scenario>;

export const softRocePeer: Scenario = {
  ...softRoceEnds,
  name: 'soft-roce-peer',
  title: "the adapter's cable leads to another guest's network card, under Linux's Soft-RoCE",
  faults: [],
  steps,
  briefSteps: steps.filter((step) => !lengths.includes(step)),
};
