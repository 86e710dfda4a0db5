/**
 * A subnet manager in the guests: stock opensm sweeps the subnet of a cable, and its users work: IP over InfiniBand, multicast
 * groups, path records, the connection manager, storage over RDMA, queries of the other node.
 */
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';
import { srpStep, storageStep } from './storage.ts';

const activePort = '[ "$(cat /sys/class/infiniband/mlx4_0/ports/1/state)" = "4: ACTIVE" ]';
/** Network of IP over InfiniBand; the guests' Ethernet uses 10.0.0.0. */
export const address = (guest: number): string => `10.1.0.${guest + 1}`;

/** Runs a server in guest 1, which must end successfully after its client in guest 0. */
async function serverAndClient(stage: Stage, server: string, client: string): Promise<string> {
  await stage.check(
    `rm -f /run/done; (${server} >/run/log 2>&1; echo $? >/run/done) </dev/null >/dev/null 2>&1 & sleep 2`,
    { guest: 1 },
  );
  const output = await stage.check(client);
  const end = await stage.check(
    'for t in $(seq 100); do [ -s /run/done ] && break; sleep 0.1; done; cat /run/done /run/log',
    { guest: 1 },
  );
  // rping's server exits with 1 when its client has ended, and with 134 when it aborts.
  if (!/^[01]\n/.test(end) || /libgcc|Aborted/.test(end + output))
    throw new ScenarioFailure(`${server}: ended with ${end}`);
  return output;
}

/** IP over InfiniBand between two guests. */
export const ipStep: Step = {
  title: 'IP over InfiniBand: both guests join their groups, and ping each other',
  async run(stage) {
    for (const guest of [0, 1]) {
      const up = `modprobe ib_ipoib && ip addr add ${address(guest)}/24 dev ib0 && ip link set ib0 up`;
      await stage.check(up, { guest });
    }
    for (const guest of [0, 1]) await untilRunning(stage, guest);
    const output = await stage.check(`ping -c 3 ${address(1)}`);
    return output.split('\n').find((line) => line.includes('packet loss'));
  },
};

const untilRunning = (stage: Stage, guest: number): Promise<string> =>
  stage.check(
    'for t in $(seq 150); do [ "$(cat /sys/class/net/ib0/operstate)" = up ] && exit 0; sleep 0.2; done; exit 1',
    { guest },
  );

const connectionsStep: Step = {
  title: 'the connection manager: rping and ucmatose, whose threads are cancelled at the end',
  async run(stage) {
    await serverAndClient(stage, 'rping -s -C 10 -v', `rping -c -a ${address(1)} -C 10 -v`);
    await serverAndClient(stage, 'ucmatose -C 10', `ucmatose -s ${address(1)} -C 10`);
    return undefined;
  },
};

/** Users of a subnet manager, with the embedded one, between two guests. */
export const embeddedManagerSteps: readonly Step[] = [
  {
    title: 'the embedded subnet manager says that it is the master',
    async run(stage) {
      const said = (await stage.check('sminfo')).trim();
      if (!/SMINFO_MASTER/.test(said)) throw new ScenarioFailure(said);
      return said;
    },
  },
  ipStep,
  connectionsStep,
  srpStep,
];

/** The same step for a port that talks to itself. */
export const ownManagerStep: Step = {
  title: 'IP over InfiniBand and the connection manager, by the embedded subnet manager, to itself',
  async run(stage) {
    await stage.check(`modprobe ib_ipoib && ip addr add ${address(0)}/24 dev ib0 && ip link set ib0 up`);
    await untilRunning(stage, 0);
    const output = await stage.check(
      `(rping -s -C 10 >/run/rping.log 2>&1 &); sleep 1; rping -c -a ${address(0)} -C 10 -v`,
    );
    const pings = output.match(/ping data: rdma-ping-/g)?.length ?? 0;
    if (pings !== 10) throw new ScenarioFailure(output);
    return `${pings} pings`;
  },
};

const steps: readonly Step[] = [
  {
    title: 'without one the port is linked and waits in Init',
    async run(stage) {
      const listing = await stage.check('ibstat');
      if (!/State: Initializing/.test(listing) || !/Physical state: LinkUp/.test(listing))
        throw new ScenarioFailure(listing);
      return undefined;
    },
  },
  {
    title: 'opensm gives both ports their LIDs and makes them active',
    async run(stage) {
      await stage.check('opensm -B');
      for (const guest of [0, 1])
        await stage.check(`for t in $(seq 150); do ${activePort} && exit 0; sleep 0.2; done; exit 1`, {
          guest,
        });
      return (await stage.check('sminfo')).trim();
    },
  },
  {
    title: 'data moves between the guests by the LIDs that it gave',
    run: (stage) =>
      stage
        .pairAcross({ server: 'ibv_rc_pingpong -c -n 50', client: 'ibv_rc_pingpong -c -n 50 guest1' })
        .then(() => undefined),
  },
  ipStep,
  connectionsStep,
  storageStep(address(1), 1),
  {
    title: 'the counters of the other node are read over the wire',
    async run(stage) {
      const lid = (await stage.check('cat /sys/class/infiniband/mlx4_0/ports/1/lid', { guest: 1 })).trim();
      const listing = await stage.check(`perfquery ${Number(lid)} 1`);
      const packets = /PortRcvPkts:\.+(\d+)/.exec(listing)?.[1];
      if (packets === undefined || Number(packets) === 0) throw new ScenarioFailure(listing);
      return `${packets} packets`;
    },
  },
];

export const subnetManager: Scenario = {
  name: 'subnet-manager',
  title: 'a subnet manager in a guest, and what needs one',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  set: { 'hca.control.embeddedSubnetManager': false },
  isLoaded: true,
  steps,
};
