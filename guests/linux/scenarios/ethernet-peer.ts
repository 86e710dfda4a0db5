/**
 * The stock mlx4_en of a guest, and the kernel path of a simulated host with a conventional NIC, at the two ends of an Ethernet
 * cable that loses, damages, duplicates and reorders some frames: ARP and Neighbor Discovery, pings, TCP in both directions,
 * over IPv4 and IPv6, without and with the tag of a VLAN, long frames, and counters.
 */
import { peerAddresses } from '../peer-network.ts';
import { counterOf, surplusOf } from './ethernet.ts';
import { jumboMtu, interfaceName as name } from './ethernet-ends.ts';
import { endStep, play, workload } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const guestAddress = 0x0a00_0001;
/** Addresses that nic-software.ts assigns to the simulated host, node 1; the guest has those of node 0. */
const ipv6 = {
  guest: '2001:db8::1',
  peer: '2001:db8::2',
  peerLinkLocal: `fe80::12:34ff:fe00:2%${name}`,
} as const;
const vlanId = 7;
const vlan = {
  guest: '10.16.7.1',
  peer: '10.16.7.2',
  guest6: '2001:db8:0:7::1',
  peer6: '2001:db8:0:7::2',
} as const;
const link = `${name}.${vlanId}`;
const othersVlanId = 8;
const ports = { echo: 7, discard: 9, zeros: 19, iperf3: 5201, call: 5001 } as const;
const nobodysPort = 11;
const fileMib = 2;
const callBytes = 100_000;

/** Counters of the simulated host's kernel. */
async function kernelOf(stage: Stage): Promise<Readonly<Record<string, number>>> {
  return (await stage.session.machine.report()).peer!.node.nic!.kernel;
}

/** Increase of a counter by an action. */
async function countedBy(stage: Stage, act: () => Promise<unknown>, counter: string): Promise<number> {
  const before = (await kernelOf(stage))[counter] ?? 0;
  await act();
  return ((await kernelOf(stage))[counter] ?? 0) - before;
}

/** The host sends first, so it sends the neighbour request. */
async function callGuest(stage: Stage, address: number | string, requests: string): Promise<string> {
  await stage.check(`nc -l -p ${ports.call} -e cat >/run/call.log 2>&1 & sleep 1`);
  const task = { service: 'call', address, port: ports.call, bytes: callBytes } as const;
  const asked = await countedBy(stage, () => play(stage, task, 'true', false), requests);
  if (asked === 0) throw new ScenarioFailure('the simulated host has not asked for the guest');
  return `${callBytes} bytes there and back, ${asked} of ${requests}`;
}

async function resolve(stage: Stage): Promise<string> {
  await stage.check(`/bin/ip neigh flush dev ${name}`);
  const answers = await countedBy(stage, () => stage.check(`ping -c 1 ${peerAddresses.peer}`), 'arpReplies');
  const said = await stage.check(`/bin/ip neigh show ${peerAddresses.peer}`);
  if (answers === 0 || !/lladdr 02:12:34:00:00:02/.test(said))
    throw new ScenarioFailure(`${answers}: ${said}`);
  return said.trim();
}

/** Pings of a size, all of which return, or none. */
async function ping(stage: Stage, bytes: number, isAnswered = true, to = 'peer'): Promise<string> {
  const { output } = await stage.run(`ping -c 3 -i 0.1 -W 2 -s ${bytes} ${to}`);
  if (!output.includes(isAnswered ? ' 0% packet loss' : ' 100% packet loss'))
    throw new ScenarioFailure(output);
  return output.trim().split('\n').at(-1)!;
}

async function pingAll(stage: Stage): Promise<string> {
  let last = '';
  for (const bytes of [0, 1, 56, 1472]) last = await ping(stage, bytes);
  // Linux fragments packets longer than its MTU.
  const parts = await countedBy(stage, () => ping(stage, 2000, false), 'fragments');
  if (parts !== 6) throw new ScenarioFailure(`${parts} parts of packets`);
  return last;
}

/** A busy computer is slow: the rate is reported, not asserted. */
async function stream(stage: Stage, options: string, to = 'peer', size = '2M'): Promise<string> {
  const task = { service: 'iperf3', port: ports.iperf3 } as const;
  const output = await play(stage, task, `iperf3 -c ${to} -n ${size} ${options}`, true);
  const line = output
    .split('\n')
    .filter((text) => text.includes('receiver'))
    .at(-1);
  if (line === undefined) throw new ScenarioFailure(output);
  return line.trim();
}

async function echoFile(stage: Stage): Promise<string> {
  await stage.check(`head -c ${fileMib * 2 ** 20} /dev/urandom >/run/file`);
  const task = { service: 'echo', port: ports.echo } as const;
  await play(
    stage,
    task,
    `sh -c 'nc peer ${ports.echo} </run/file >/run/back; cmp /run/file /run/back'`,
    true,
  );
  const { wire } = await stage.session.machine.report();
  const lost = wire.map(({ lost: count = 0, corrupted }) => `${count} lost, ${corrupted} damaged`);
  return `${fileMib} MiB both ways; ${lost.join(', and ')}`;
}

/** A reader reads nothing for this long: the writer has filled the window and the buffers, and then probes repeatedly. */
const pauseMs = 1500;

async function closeWindows(stage: Stage): Promise<string> {
  const bytes = fileMib * 2 ** 20;
  const discard = { service: 'discard', port: ports.discard, bytes, pauseMs } as const;
  await play(stage, discard, `sh -c 'head -c ${bytes} /dev/zero | nc peer ${ports.discard}'`, true);
  const zeros = { service: 'zeros', port: ports.zeros, bytes } as const;
  const command = `sh -c 'nc peer ${ports.zeros} </dev/null | (sleep ${pauseMs / 1000}; wc -c)'`;
  const output = await play(stage, zeros, command, true);
  if (output.trim() !== String(bytes)) throw new ScenarioFailure(output);
  return `${bytes} bytes each`;
}

/** No listener exists there: the kernel resets. */
async function refuse(stage: Stage): Promise<string> {
  const output = await stage.checkFails(`iperf3 -c peer -p ${nobodysPort} -n 1M`);
  if (!output.includes('Connection refused')) throw new ScenarioFailure(output);
  return output.trim();
}

/** Addresses for IPv6 and for a VLAN; priority 3 for the guest's frames there. */
async function addAddresses(stage: Stage): Promise<string> {
  const ip = '/bin/ip';
  await stage.check(
    `modprobe 8021q; ${ip} addr add ${ipv6.guest}/64 dev ${name} nodad && ` +
      `${ip} link add link ${name} name ${link} type vlan id ${vlanId} egress-qos-map 0:3 && ` +
      `${ip} addr add ${vlan.guest}/24 dev ${link} && ${ip} addr add ${vlan.guest6}/64 dev ${link} nodad && ` +
      `${ip} link set ${link} up`,
  );
  return await callGuest(stage, ipv6.guest, 'neighborSolicitations');
}

async function pingIpv6(stage: Stage): Promise<string> {
  await stage.check(`/bin/ip -6 neigh flush dev ${name}`);
  const answers = await countedBy(
    stage,
    async () => {
      await ping(stage, 0, true, ipv6.peer);
      await ping(stage, 1452, true, ipv6.peer);
      await ping(stage, 56, true, ipv6.peerLinkLocal);
    },
    'neighborAdvertisements',
  );
  const said = await stage.check(`/bin/ip -6 neigh show ${ipv6.peer}`);
  if (answers === 0 || !/lladdr 02:12:34:00:00:02/.test(said))
    throw new ScenarioFailure(`${answers}: ${said}`);
  return said.trim();
}

/** Frames of its own VLAN arrive, and none of another one. */
async function useVlan(stage: Stage): Promise<string> {
  await ping(stage, 1472, true, vlan.peer);
  await ping(stage, 1452, true, vlan.peer6);
  const foreign = async (): Promise<number> =>
    (await stage.session.machine.report()).peer!.node.nic!.device['filteredVlans'] ?? 0;
  const before = await foreign();
  const others = `${name}.${othersVlanId}`;
  await stage.check(
    `ip link add link ${name} name ${others} type vlan id ${othersVlanId} && ip addr add 10.16.8.1/24 dev ${others} && ip link set ${others} up`,
  );
  await stage.run('ping -c 1 -W 1 10.16.8.2');
  await stage.check(`ip link del ${others}`);
  const filtered = (await foreign()) - before;
  if (filtered === 0) throw new ScenarioFailure('frames of another VLAN were not filtered');
  return `${filtered} frames of another VLAN filtered`;
}

/** Both ends use the longest frames that the cable carries. */
async function useLongFrames(stage: Stage): Promise<string> {
  await stage.check(
    `ip link set ${name} mtu ${jumboMtu}; ip link set ${link} mtu ${jumboMtu}; until [ "$(cat /sys/class/net/${name}/carrier)" = 1 ]; do sleep 0.1; done`,
  );
  await ping(stage, jumboMtu - 28);
  await ping(stage, jumboMtu - 48, true, ipv6.peer);
  await ping(stage, jumboMtu - 28, true, vlan.peer);
  await ping(stage, jumboMtu - 48, true, vlan.peer6);
  const frames = async (): Promise<number> => (await kernelOf(stage))['framesReceived'] ?? 0;
  const before = await frames();
  const said = await stream(stage, '');
  const each = (2 * 2 ** 20) / ((await frames()) - before);
  if (each < 3000) throw new ScenarioFailure(`${each} bytes a frame`);
  return said;
}

/** IPv6 sends at its own times, also between the two readings: so several attempts are allowed. */
async function compareCounters(stage: Stage): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const before = await surplusOf(stage, 0);
    await ping(stage, 500);
    const after = await surplusOf(stage, 0);
    if (before === after) break;
    if (attempt === 5) throw new ScenarioFailure(`${before} became ${after}`);
  }
  const listing = await stage.check(`ethtool -S ${name}`);
  return `${counterOf(listing, 'tx_packets_phy')} and ${counterOf(listing, 'rx_packets_phy')} frames`;
}

const steps: readonly Step[] = [
  {
    title: 'the simulated host connects to the guest, for which it asks by ARP',
    run: (stage) => callGuest(stage, guestAddress, 'arpRequests'),
  },
  { title: 'the guest asks for the simulated host, which answers', run: resolve },
  { title: 'pings of all sizes come back, and those in several parts do not', run: pingAll },
  { title: 'a connection to a port where nothing listens is refused', run: refuse },
  { title: 'iperf3 sends to the simulated host', run: (stage) => stream(stage, '') },
  { title: 'it receives from it, by two streams', run: (stage) => stream(stage, '-R -P 2') },
  { title: 'a file comes back as it was', run: echoFile },
  { title: 'a window that a reader lets close opens again, on either side', run: closeWindows },
  { title: 'it connects over IPv6, and asks by Neighbor Discovery', run: addAddresses },
  { title: 'the guest finds it by Neighbor Discovery, and pings of all sizes come back', run: pingIpv6 },
  { title: 'iperf3 sends over IPv6', run: (stage) => stream(stage, '-6', ipv6.peer, '1M') },
  { title: 'it receives over IPv6', run: (stage) => stream(stage, '-6 -R', ipv6.peer, '1M') },
  { title: 'pings of a VLAN come back, and frames of another one are dropped', run: useVlan },
  { title: 'iperf3 sends over the VLAN', run: (stage) => stream(stage, '', vlan.peer, '1M') },
  { title: 'it receives over IPv6 of the VLAN', run: (stage) => stream(stage, '-6 -R', vlan.peer6, '1M') },
  { title: 'long frames are used by both, on every path', run: useLongFrames },
  {
    title: 'long frames of IPv6 with a tag, either way',
    run: async (stage) =>
      `${await stream(stage, '-6', vlan.peer6, '1M')}; ${await stream(stage, '-6 -R', vlan.peer6, '1M')}`,
  },
  { title: 'ethtool -S has counted what the cable carried', run: compareCounters },
  {
    title: 'every fault of the cable has happened',
    async run({ session: { machine } }) {
      const { faults = [] } = await machine.report();
      for (const { fault, fired } of faults) if (fired === 0) throw new ScenarioFailure(`${fault}: never`);
      return `${faults.length} faults`;
    },
  },
  endStep,
];

/** Pings, and the set-up before the streams, cause fewer frames than the first of these: the call to 70 each way, and as many ACKs. */
const struck = [400, 401, 700, 1100] as const;

export const ethernetPeer: Scenario = {
  name: 'ethernet-peer',
  title: 'Stock mlx4_en and the kernel of a simulated host with a NIC, at the two ends of an Ethernet cable',
  hcas: 1,
  isCabled: true,
  guests: 1,
  faults: [0, 1].flatMap((node) => [
    ...struck.map((nth) => ({ packet: 'lost', nth, node }) as const),
    { packet: 'corrupted', nth: 500, node },
    { packet: 'duplicated', nth: 600, node },
    { packet: 'reordered', nth: 800, node },
  ]),
  peer: workload('guest-sockets', 'guestSockets'),
  set: {
    'machine.adapter': 'nic',
    'hca.capability.linkLayer': 'ethernet',
    'ethernet.mtuBytes': jumboMtu,
    'net.driver.mtu': jumboMtu,
    'net.stack.vlanId': vlanId,
    'net.stack.vlanPriority': 5,
  },
  isLoaded: true,
  steps,
};
