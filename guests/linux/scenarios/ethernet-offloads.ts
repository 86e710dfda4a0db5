/**
 * Segmentation and received checksums of adapters with Ethernet ports, under the stock mlx4_en: the driver's use of the
 * capabilities, their savings, and the agreement of the driver's counters with the cable's.
 */
import { bringUp, counterOf, pauseStep, pausingPorts, pingBothWays, pingCount } from './ethernet.ts';
import {
  addresses,
  addVlans,
  guests,
  inBoth,
  interfaceName as name,
  taggedAddresses,
  untilCarrier,
} from './ethernet-ends.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const addresses6 = ['fd02::1', 'fd02::2'] as const;
const streamMegabytes = 3;

const checksumCounters = ['rx_csum_good', 'rx_csum_complete', 'rx_csum_none'] as const;
const counters = ['tso_packets', 'tx_packets', 'rx_packets', ...checksumCounters] as const;
type Counters = Record<(typeof counters)[number], number>;

/** Counts of a guest's driver: it sums its rings' checksum counts every 250 ms, and frame counts on request. */
async function countersOf(stage: Stage, guest: 0 | 1): Promise<Counters> {
  const listing = await stage.check(`sleep 1; ethtool -S ${name}`, { guest });
  return Object.fromEntries(counters.map((counter) => [counter, counterOf(listing, counter)])) as Counters;
}

/** Counts of a guest's device since it was created. mlx4_en requests a completion for each work request. */
async function deviceCounts(stage: Stage, guest: 0 | 1) {
  const { hca, interrupts, pcie } = (await stage.session.machine.report()).nodes[guest]!;
  const { transmitted, completed } = hca.ethernet!;
  return {
    frames: transmitted['frames'] ?? 0,
    requests: (pcie.toHost.classes['cqe']?.tlps ?? 0) - completed,
    doorbells: (hca.doorbells['send'] ?? 0) + (hca.doorbells['blueFlame'] ?? 0),
    interrupts: interrupts.reduce((sum, { delivered }) => sum + delivered, 0),
  };
}

type Figures<Name extends string> = Record<Name, number>;

function difference<Name extends string>(before: Figures<Name>, after: Figures<Name>): Figures<Name> {
  const names = Object.keys(before) as Name[];
  return Object.fromEntries(names.map((each) => [each, after[each] - before[each]])) as Figures<Name>;
}

/** A stream of TCP from guest 0 to guest 1: counts of its sender's device, and of both drivers. */
async function stream(stage: Stage, to: string) {
  await stage.check('iperf3 -s -1 -D -I /run/iperf3.pid; sleep 0.5', { guest: 1 });
  const before = await Promise.all([deviceCounts(stage, 0), countersOf(stage, 0), countersOf(stage, 1)]);
  await stage.check(`iperf3 -c ${to} -n ${streamMegabytes}M`);
  const after = await Promise.all([deviceCounts(stage, 0), countersOf(stage, 0), countersOf(stage, 1)]);
  return {
    device: difference(before[0], after[0]),
    sender: difference(before[1], after[1]),
    receiver: difference(before[2], after[2]),
  };
}

/** Features of `ethtool -k` that are on. */
async function listFeatures(stage: Stage): Promise<string> {
  const wanted = [
    ...['rx-checksumming', 'tx-checksumming', 'tcp-segmentation-offload'],
    ...['tx-tcp-segmentation', 'tx-tcp6-segmentation'],
  ];
  for (const listing of await inBoth(stage, () => `ethtool -k ${name}`))
    for (const feature of wanted)
      if (!new RegExp(`^\\s*${feature}: on`, 'm').test(listing)) throw new ScenarioFailure(listing);
  const messages = await stage.check('dmesg');
  if (messages.includes('LSO not supported')) throw new ScenarioFailure(messages);
  return wanted.join(', ');
}

/** The same bytes without any segmentation offload, with software's, and with the device's. */
async function compareStreams(stage: Stage): Promise<string> {
  await stage.check(`ethtool -K ${name} tso off gso off`);
  const without = await stream(stage, addresses[1]);
  if (without.sender.tso_packets !== 0) throw new ScenarioFailure('segmentation is not off');
  await stage.check(`ethtool -K ${name} tso on gso on`);
  const cut = await stream(stage, addresses[1]);
  const [many, few] = [without.device, cut.device].map(({ requests, frames }) => requests / frames);
  if (cut.sender.tso_packets === 0 || few! >= many! / 2)
    throw new ScenarioFailure(JSON.stringify({ without, cut }));
  return `${inWords(without.device)}; with ${cut.sender.tso_packets} segmentations ${inWords(cut.device)}`;
}

/** Linux rings once for several ready requests, so there are always fewer doorbells than requests. */
const inWords = ({ frames, requests, doorbells, interrupts }: Awaited<ReturnType<typeof deviceCounts>>) =>
  `${frames} frames by ${requests} work requests, ${doorbells} doorbells, ${interrupts} interrupts`;

/** IPv6 sends at its own times: this many frames may arrive between summing and reading. */
const lateFrames = 3;

/** Every frame received by a driver is counted once by its checksum. */
function checkTotals(received: Counters): void {
  const total = checksumCounters.reduce((sum, counter) => sum + received[counter], 0);
  if (Math.abs(total - received.rx_packets) > lateFrames) throw new ScenarioFailure(JSON.stringify(received));
}

async function compareCounters(stage: Stage): Promise<string> {
  const { device, sender, receiver } = await stream(stage, addresses[1]);
  checkTotals(receiver);
  // Few frames are not TCP: ARP, and IPv6 neighbour discovery.
  const others = receiver.rx_csum_none + receiver.rx_csum_complete;
  if (Math.abs(device.frames - sender.tx_packets) > 5 || others > 10 || receiver.rx_csum_good < others)
    throw new ScenarioFailure(JSON.stringify({ device, sender, receiver }));
  return `${sender.tx_packets} tx_packets of ${device.frames} frames, ${sender.tso_packets} tso_packets, ${receiver.rx_csum_good} rx_csum_good`;
}

/**
 * Pings of `sizes`: each frame is counted once, and none as TCP or UDP. Since 5.0 mlx4_en uses no received sum: it reads the
 * length of a frame before it has set it, and so considers all frames padded (en_rx.c: check_csum, short_frame).
 */
async function pingCounted(stage: Stage, to: readonly string[], sizes: readonly number[]): Promise<string> {
  const before = await Promise.all(guests.map((guest) => countersOf(stage, guest)));
  await pingBothWays(stage, to, sizes);
  const after = await Promise.all(guests.map((guest) => countersOf(stage, guest)));
  const received = guests.map((guest) => difference(before[guest]!, after[guest]!));
  for (const each of received) {
    checkTotals(each);
    // The pings of each size, and the answers to those of the other guest.
    const least = 2 * pingCount * sizes.length - lateFrames;
    if (each.rx_csum_complete + each.rx_csum_none < least || each.rx_csum_good > 0)
      throw new ScenarioFailure(JSON.stringify(received));
  }
  return received
    .map((each) => `${each.rx_csum_complete} rx_csum_complete, ${each.rx_csum_none} rx_csum_none`)
    .join('; ');
}

const steps: readonly Step[] = [
  { title: 'mlx4_en makes an interface of the adapter, and the link comes up, in both guests', run: bringUp },
  {
    title: 'ethtool -k has checksums of both directions, and segmentation of IPv4 and IPv6',
    run: listFeatures,
  },
  { title: 'TCP has its frames by fewer work requests with segmentation than without', run: compareStreams },
  {
    title: 'ethtool -S has counted the frames of the cable, and what their checksums are',
    run: compareCounters,
  },
  {
    title: 'pings come, in one piece and in several, and none of them is taken for TCP or UDP',
    run: (stage) => pingCounted(stage, addresses, [56, 1472, 4000]),
  },
  {
    title: 'so they do over a VLAN, whether tags are taken out or not, and TCP is segmented',
    async run(stage) {
      await addVlans(stage);
      await pingCounted(stage, taggedAddresses, [56, 1472]);
      await inBoth(stage, () => `ethtool -K ${name} rxvlan off`);
      await untilCarrier(stage);
      const kept = await pingCounted(stage, taggedAddresses, [56, 1472]);
      const { sender, receiver } = await stream(stage, taggedAddresses[1]);
      if (sender.tso_packets === 0) throw new ScenarioFailure(JSON.stringify(sender));
      checkTotals(receiver);
      return `with tags kept ${kept}; ${sender.tso_packets} tso_packets`;
    },
  },
  {
    title: 'TCP over IPv6 is segmented, and its checksums are right',
    async run(stage) {
      await inBoth(stage, (guest) => `ip -6 addr add ${addresses6[guest]}/64 dev ${name}`);
      const isUsable = `ip -6 addr show dev ${name} | grep fd02 | grep -qv tentative`;
      await inBoth(stage, () => `until ${isUsable}; do sleep 0.2; done`);
      const { sender, receiver } = await stream(stage, addresses6[1]);
      if (sender.tso_packets === 0 || receiver.rx_csum_good < receiver.rx_packets / 2)
        throw new ScenarioFailure(JSON.stringify({ sender, receiver }));
      return `${sender.tso_packets} tso_packets, ${receiver.rx_csum_good} rx_csum_good`;
    },
  },
  pauseStep,
  {
    title: 'no kernel has found a checksum of the device wrong, nor a segment that TCP could not use',
    async run(stage) {
      for (const guest of guests) {
        const messages = await stage.check('dmesg', { guest });
        if (/hw csum failure|CQE error|CQE completed in error/.test(messages))
          throw new ScenarioFailure(messages);
        const listing = await stage.check('cat /proc/net/snmp', { guest });
        const [names, values] = listing.split('\n').filter((line) => line.startsWith('Tcp:'));
        const place = names!.split(' ').indexOf('InCsumErrors');
        if (values!.split(' ')[place] !== '0') throw new ScenarioFailure(listing);
      }
      // An open interface requests its statistics four times a second: it is closed, and so quiet, while interrupts are
      // compared.
      await inBoth(stage, () => `ip link set ${name} down; sleep 1`);
      return 'InCsumErrors 0';
    },
  },
];

export const ethernetOffloads: Scenario = {
  name: 'ethernet-offloads',
  title: 'two guests with mlx4_en on an Ethernet cable, segmentation and received checksums on',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  set: {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.logMaxLsoBytes': 16,
    'hca.capability.receiveChecksums': 'complete',
    'ethernet.gigabitsPerSecond': 40,
    ...pausingPorts,
  },
  isLoaded: false,
  steps,
};
