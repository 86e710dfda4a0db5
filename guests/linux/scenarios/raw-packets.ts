/**
 * Raw-packet QPs of the stock mlx4_ib: programs build whole frames and receive those that a rule steers to them. Rules are
 * device-managed steering, which Linux enables by a module parameter; then mlx4_en receives its frames by rules, too.
 */
import {
  addresses,
  guests,
  inBoth,
  lastFigures,
  interfaceName as name,
  proDeviceId,
  untilCarrier,
} from './ethernet-ends.ts';
import type { Scenario } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const device = 'mlx4_0';

/** A value below the default makes Linux choose device-managed steering. */
const managed = 'log_num_mgm_entry_size=-1';

/** MLX4_STEERING_MODE_DEVICE_MANAGED, by its name in mlx4_en. */
const deviceManaged = 2;

async function bringUp(stage: Stage): Promise<string> {
  const marks = await Promise.all(guests.map((guest) => stage.markMessages(guest)));
  await inBoth(stage, () => `modprobe mlx4_core ${managed} && modprobe mlx4_en`);
  await inBoth(stage, () => `until [ -d /sys/class/net/${name} ]; do sleep 0.1; done`);
  await inBoth(stage, (guest) => `ip addr add ${addresses[guest]}/24 dev ${name} && ip link set ${name} up`);
  await untilCarrier(stage);
  await inBoth(stage, () => 'modprobe -a mlx4_ib ib_uverbs');
  for (const guest of guests) {
    const said = await stage.messagesSince(marks[guest]!, guest);
    if (!said.includes(`Steering Mode ${deviceManaged}`)) throw new ScenarioFailure(said);
  }
  return 'device-managed steering';
}

const ping = async (stage: Stage): Promise<string> => {
  const said = await stage.check(`ping -c 3 -i 0.2 ${addresses[1]}`);
  if (!/ 0% packet loss/.test(said)) throw new ScenarioFailure(said);
  return said.trim().split('\n').at(-1)!;
};

/** Attempts of a program: the receiving side does not report when its rule is ready, and earlier frames are lost silently. */
const attempts = 4;
/** Its QP is ready a little earlier. */
const untilReady = `for i in $(seq 100); do rdma resource show qp | grep RAW_PACKET | grep -qE 'RTR|RTS' && break; sleep 0.1; done`;
/** A side that waits for a lost frame ends after this time; a side whose peer has sent everything ends sooner. */
const patienceSeconds = 40;
const lastPatienceSeconds = 8;

/** A program of perftest that sends from guest 0 to guest 1, each named by its MAC. */
async function raw(stage: Stage, command: string): Promise<string> {
  const macs = await inBoth(stage, () => `cat /sys/class/net/${name}/address`);
  const [own, other] = [macs[0]!.trim(), macs[1]!.trim()];
  const log = '/tmp/raw-packets';
  const bounded = `timeout ${patienceSeconds} ${command} -d ${device}`;
  const said: string[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const server = `${bounded} --server -B ${other} -E ${own}`;
    await stage.check(
      `(${server} >${log} 2>&1; echo "ended $?" >>${log}) & ${untilReady}; sleep ${attempt}`,
      { guest: 1 },
    );
    const output = await stage.check(`${bounded} --client -B ${own} -E ${other} 2>&1; echo "ended $?"`);
    const taken = await stage.check(
      `for i in $(seq ${5 * lastPatienceSeconds}); do grep -q ended ${log} && break; sleep 0.2; done
grep -q ended ${log} || killall ${command.split(' ')[0]}; until grep -q ended ${log}; do sleep 0.1; done; cat ${log}`,
      { guest: 1 },
    );
    if (output.includes('ended 0') && taken.includes('ended 0'))
      return `${lastFigures(output)}; taken: ${lastFigures(taken)}`;
    said.push(output, taken);
  }
  throw new ScenarioFailure(said.join('\n'));
}

export const rawPackets: Scenario = {
  name: 'raw-packets',
  title: 'two guests that send and take raw packets, steered by rules',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  isLoaded: false,
  set: {
    'hca.capability.linkLayer': 'ethernet',
    'ethernet.gigabitsPerSecond': 40,
    'hca.capability.roce': 'v2',
    'pcie.function.deviceId': proDeviceId,
  },
  steps: [
    { title: 'mlx4_core asks for device-managed steering, and interfaces come up', run: bringUp },
    { title: 'ping finds the other end: its frames are steered by rules', run: ping },
    {
      title: 'raw_ethernet_bw sends frames of 1000 bytes',
      run: (stage) => raw(stage, 'raw_ethernet_bw -n 100 -s 1000'),
    },
    {
      title: 'raw_ethernet_lat sends frames to and fro',
      run: (stage) => raw(stage, 'raw_ethernet_lat -n 100 -s 64'),
    },
    {
      title: 'no frame was dropped for want of room in the port, however fast they came',
      async run(stage) {
        const counted = await inBoth(stage, () => `ethtool -S ${name} | grep rx_fifo_errors`);
        if (counted.some((line) => !/: 0$/.test(line.trim()))) throw new ScenarioFailure(counted.join('; '));
        return counted.map((line) => line.trim()).join('; ');
      },
    },
    {
      title: 'rules are gone with their programs: ping finds the other end again, also with promiscuity',
      async run(stage) {
        await inBoth(stage, () => `ip link set ${name} promisc on`);
        const last = await ping(stage);
        await inBoth(stage, () => `ip link set ${name} down; sleep 1`);
        return last;
      },
    },
  ],
};
