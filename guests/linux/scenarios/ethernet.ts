/**
 * Adapters whose ports are of Ethernet, under the stock mlx4_en: two guests on a cable reach each other, and the device's
 * counters, as read by the driver, equal the cable's traffic.
 */
import { psPerUs } from '../../../base/index.ts';
import {
  addresses,
  addVlans,
  guests,
  inBoth,
  jumboMtu,
  interfaceName as name,
  taggedAddresses,
  untilCarrier,
} from './ethernet-ends.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** Warnings of mlx4_en for any adapter, and for one without segmentation. */
const usual = /LSO not supported|Using \d+ [RT]X rings|Initializing port/;

/** The cable comes up when both its ends are open. */
export async function bringUp(stage: Stage): Promise<string> {
  const marks = await Promise.all(guests.map((guest) => stage.markMessages(guest)));
  await inBoth(stage, () => `modprobe mlx4_en; until [ -d /sys/class/net/${name} ]; do sleep 0.1; done`);
  await inBoth(stage, (guest) => `ip addr add ${addresses[guest]}/24 dev ${name} && ip link set ${name} up`);
  await untilCarrier(stage);
  for (const guest of guests) {
    const warnings = (await stage.warningsSince(marks[guest]!, guest)).filter((line) => !usual.test(line));
    if (warnings.length > 0) throw new ScenarioFailure(`the kernel warned:\n${warnings.join('\n')}`);
  }
  const said = await stage.check(`ethtool -i ${name}; ethtool ${name}; cat /sys/class/net/${name}/address`);
  const [driver, speed] = [/driver: (\S+)/, /Speed: (\S+)/].map((pattern) => pattern.exec(said)?.[1]);
  return `${driver}, ${speed}, ${/([0-9a-f]{2}:){5}[0-9a-f]{2}/.exec(said)?.[0]}`;
}

/** Pings of each size from each guest. */
export const pingCount = 4;

/** Pings of these sizes go from each guest to the other's address, and all return. */
export async function pingBothWays(
  stage: Stage,
  to: readonly string[],
  sizes: readonly number[],
): Promise<string> {
  let last = '';
  for (const bytes of sizes) {
    const outputs = await inBoth(
      stage,
      (guest) => `ping -c ${pingCount} -i 0.1 -s ${bytes} ${to[1 - guest]!}`,
    );
    for (const output of outputs) if (!/ 0% packet loss/.test(output)) throw new ScenarioFailure(output);
    last = outputs[0]!.trim().split('\n').at(-1)!;
  }
  return last;
}

/** One counter of `ethtool -S`. */
export function counterOf(listing: string, counter: string): number {
  const value = new RegExp(`^\\s*${counter}: (\\d+)$`, 'm').exec(listing)?.[1];
  if (value === undefined) throw new ScenarioFailure(`no ${counter} in:\n${listing}`);
  return Number(value);
}

const phyCounters = ['tx_packets_phy', 'tx_bytes_phy', 'rx_packets_phy', 'rx_bytes_phy'] as const;

/** Difference between a guest's driver counters and the cable's traffic, by counter, since the driver's counters started. */
export async function surplusOf(stage: Stage, guest: 0 | 1): Promise<string> {
  // The driver's task fetches the counters every 250 ms.
  const listing = await stage.check(`sleep 1; ethtool -S ${name}`, { guest });
  const { transmitted, received } = (await stage.session.machine.report()).nodes[guest]!.hca.ethernet!;
  const carried = [
    transmitted['frames'],
    transmitted['bytes'],
    received['deliveredFrames'],
    received['deliveredBytes'],
  ];
  return phyCounters
    .map((counter, at) => `${counter} ${counterOf(listing, counter) - (carried[at] ?? 0)}`)
    .join(', ');
}

/** IPv6 sends at its own times, also between the two readings: so several attempts are allowed. */
async function compareCounters(stage: Stage): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const before = await Promise.all(guests.map((guest) => surplusOf(stage, guest)));
    await pingBothWays(stage, addresses, [500]);
    const after = await Promise.all(guests.map((guest) => surplusOf(stage, guest)));
    if (before.join() === after.join()) break;
    if (attempt === 5) throw new ScenarioFailure(`${before.join('; ')} became ${after.join('; ')}`);
  }
  const { nodes } = await stage.session.machine.report();
  const frames = nodes.map(({ hca }) => hca.ethernet!.transmitted['frames'] ?? 0);
  return `${frames.join(' and ')} frames in all`;
}

/** Counters of pauses as ethtool -S names them, and the report's name of each; times in microseconds there, in picoseconds here. */
const pauseCounters = {
  rx_pause: 'receivedPauses',
  rx_pause_duration: 'pausedPs',
  rx_pause_transition: 'receivedTransitions',
  tx_pause: 'sentFrames',
  tx_pause_duration: 'stoppingPs',
  tx_pause_transition: 'sentTransitions',
} as const;

/** Difference between a guest's driver counters of pauses and the report, in the order of {@link pauseCounters}. */
async function pauseSurplusOf(stage: Stage, guest: 0 | 1): Promise<readonly number[]> {
  const listing = await stage.check(`sleep 1; ethtool -S ${name}`, { guest });
  const { flowControl } = (await stage.session.machine.report()).nodes[guest]!.hca.ethernet!;
  return Object.entries(pauseCounters).map(([counter, own]) => {
    const count = flowControl[own] ?? 0;
    return counterOf(listing, counter) - (own.endsWith('Ps') ? Math.floor(count / psPerUs) : count);
  });
}

/** Times are whole microseconds since the driver's counters started. */
const isSameSurplus = (before: readonly number[], after: readonly number[]): boolean =>
  Object.values(pauseCounters).every(
    (own, at) => Math.abs(before[at]! - after[at]!) <= (own.endsWith('Ps') ? 1 : 0),
  );

/** Both directions by default. */
async function comparePauses(stage: Stage): Promise<string> {
  for (const guest of guests) {
    const said = await stage.check(`ethtool -a ${name}`, { guest });
    if (!/RX:\s+on/.test(said) || !/TX:\s+on/.test(said)) throw new ScenarioFailure(said);
  }
  for (let attempt = 0; ; attempt++) {
    const before = await Promise.all(guests.map((guest) => pauseSurplusOf(stage, guest)));
    await pingBothWays(stage, addresses, [500]);
    const after = await Promise.all(guests.map((guest) => pauseSurplusOf(stage, guest)));
    if (guests.every((guest) => isSameSurplus(before[guest]!, after[guest]!))) break;
    if (attempt === 5) throw new ScenarioFailure(`${before.join('; ')} became ${after.join('; ')}`);
  }
  const ends = (await stage.session.machine.report()).nodes.map(({ hca }) => hca.ethernet!);
  const paused = ends.map(({ flowControl }) => flowControl['receivedTransitions'] ?? 0);
  if (paused.some((count) => count === 0)) throw new ScenarioFailure(`${paused.join(' and ')} pauses`);
  for (const { received } of ends)
    if ((received['fifoDrops'] ?? 0) > 0)
      throw new ScenarioFailure(`${received['fifoDrops']} frames dropped`);
  return `${paused.join(' and ')} pauses`;
}

export const pauseStep: Step = {
  title:
    'ethtool -a says that both pause, ethtool -S how often they did, and no full port has dropped a frame',
  run: comparePauses,
};

/** With room for one frame, each pauses the other; without pauses it would drop some. */
export const pausingPorts = { 'ethernet.receiveFifoFrames': 1 } as const;

/** TCP, whose checksums the device computes. A busy computer is slow: the rate is reported, not asserted. */
async function streamTcp(stage: Stage, direction: string): Promise<string> {
  await stage.check('iperf3 -s -D -I /run/iperf3.pid && sleep 0.5', { guest: 1 });
  const output = await stage.check(`iperf3 -c ${addresses[1]} -t 2 ${direction}`);
  await stage.check('kill $(cat /run/iperf3.pid)', { guest: 1 });
  const line = output.split('\n').find((text) => text.includes('receiver'));
  if (line === undefined) throw new ScenarioFailure(output);
  return line.trim();
}

/** Uses of an interface that is up: it has long frames and a VLAN afterwards. */
export const frameSteps: readonly Step[] = [
  {
    title: 'pings go both ways, of any size that a frame has room for',
    run: (stage) => pingBothWays(stage, addresses, [0, 18, 56, 1472]),
  },
  { title: 'TCP flows', run: (stage) => streamTcp(stage, '') },
  { title: 'and the other way', run: (stage) => streamTcp(stage, '-R') },
  {
    title: 'pings go over a VLAN, whose tag the device puts in and takes out',
    async run(stage) {
      await addVlans(stage);
      return await pingBothWays(stage, taggedAddresses, [56, 1472]);
    },
  },
  {
    title: `with an MTU of ${jumboMtu} bytes they go in one frame`,
    async run(stage) {
      await inBoth(stage, () => `ip link set ${name} mtu ${jumboMtu}`);
      await untilCarrier(stage);
      return await pingBothWays(stage, addresses, [jumboMtu - 28]);
    },
  },
  { title: 'ethtool -S has counted what the cable carried', run: compareCounters },
];

const steps: readonly Step[] = [
  { title: 'mlx4_en makes an interface of the adapter, and the link comes up, in both guests', run: bringUp },
  ...frameSteps,
  pauseStep,
  {
    title: 'the drivers unload and load again, and pings go both ways afterwards',
    async run(stage) {
      await inBoth(stage, () => 'rmmod mlx4_en && rmmod mlx4_core');
      await bringUp(stage);
      return await pingBothWays(stage, addresses, [56]);
    },
  },
];

export const ethernet: Scenario = {
  name: 'ethernet',
  title: 'two guests with mlx4_en on an Ethernet cable',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  set: {
    'hca.capability.linkLayer': 'ethernet',
    'ethernet.mtuBytes': jumboMtu,
    'ethernet.gigabitsPerSecond': 40,
    ...pausingPorts,
  },
  isLoaded: false,
  steps,
};
