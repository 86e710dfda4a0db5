/**
 * Steps with Linux's Soft-iWARP (siw) over the mlx4_en of a guest, and a simulated host whose card is an RNIC, at the two ends of an Ethernet cable.
 * To the guest its card is an ordinary one, all of whose TCP goes to Linux.
 */
import type { CounterpartTask } from '../../../experiments/workloads/index.ts';
import { meetingPort } from '../image/init-scripts.ts';
import { peerAddresses } from '../peer-network.ts';
import { outcomeOf, play, rpingServer, SideFailure, workload } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import { attachSiw, crcWords, type MpaMode, setMpaMode, siwInterface } from './siw-interface.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** Addresses of both ends; those of IPv6 are derived from their MACs. */
const families = {
  IPv4: { ...peerAddresses, option: '-4' },
  IPv6: { guest: 'fe80::202:c9ff:fe00:1', peer: 'fe80::202:c9ff:fe00:11', option: '-6' },
} as const;
type Family = keyof typeof families;
export type Role = 'client' | 'server';
const roles = ['client', 'server'] as const;
/** The interface that a link-local address belongs to. */
const zone = { IPv4: '', IPv6: `%${siwInterface}` } as const;

/**
 * The guest's server may never read the first FPDU of its client (soft-iwarp.ts): both are then stuck, and are started again. The port
 * of a server that was killed may remain taken, so each try has its own.
 */
const attempts = 4;
const stuckSeconds = 45;
const firstOtherPort = 20_000;

type TaskWithPort = Extract<CounterpartTask, { readonly program: 'rping' | 'ucmatose' | 'perftest' }>;

/**
 * Runs a task of the simulated host and a command of the guest, within a time limit.
 * @param commandOf the command; `port` is an option of it, or empty
 * @returns what the guest printed
 */
export async function playUnlessStuck(
  stage: Stage,
  task: TaskWithPort,
  commandOf: (port: string) => string,
  seconds = stuckSeconds,
): Promise<string> {
  const isClient = task.guest === 'client';
  let [asked, command] = [task, commandOf('')];
  for (let attempt = 1; ; attempt++)
    try {
      return await play(stage, asked, command, isClient, seconds);
    } catch (error) {
      if (!(error instanceof SideFailure && error.isStuck) || isClient || attempt === attempts) throw error;
      stage.figures['restarts'] = (stage.figures['restarts'] ?? 0) + 1;
      const port = firstOtherPort + attempt;
      [asked, command] = [{ ...task, port }, commandOf(` -p ${port}`)];
    }
}

const pingCount = 3;
/** rping's least and greatest; and the payload of one FPDU at an MTU of 1500 bytes, tagged, and one byte more (RFC 5044, 3). */
export const pingSizes = [23, 1428, 1429, 65_535] as const;

/** Both sides check every byte. */
async function ping(stage: Stage, family: Family, role: Role, sizeBytes: number): Promise<void> {
  const { guest, peer } = families[family];
  const task = { program: 'rping', guest: role, address: guest, count: pingCount, sizeBytes } as const;
  const options = `-C ${pingCount} -S ${sizeBytes} -V -v`;
  const commandOf = (port: string): string =>
    role === 'client'
      ? `rping -c -a ${peer}${zone[family]} ${options}${port}`
      : rpingServer(`-a ${guest}${zone[family]} ${options}${port}`);
  const output = await playUnlessStuck(stage, task, commandOf);
  const seen = output.match(role === 'client' ? /^ping data/gm : /^server ping data/gm);
  if (seen?.length !== pingCount) throw new ScenarioFailure(output);
}

/** In either direction; the client is found by ARP or Neighbor Discovery. */
export const pingStep = (family: Family, hasCrc: boolean, sizes: readonly number[]): Step => ({
  title: `rping over ${family}, MPA of siw ${crcWords(hasCrc)}: ${sizes.join(', ')} bytes there and back, both directions`,
  async run(stage) {
    await setMpaMode(stage, { hasCrc });
    for (const role of roles) {
      await stage.check(`/bin/ip ${families[family].option} neigh flush dev ${siwInterface}`);
      for (const sizeBytes of sizes) await ping(stage, family, role, sizeBytes);
    }
    return `${roles.length * sizes.length * pingCount} pings`;
  },
});

export const modeStep = (title: string, mode: MpaMode, of: readonly Role[] = roles): Step => ({
  title: `${title}: rping, ${of.length === 1 ? `the guest is the ${of[0]}` : 'both directions'}`,
  async run(stage) {
    await setMpaMode(stage, mode);
    for (const role of of) await ping(stage, 'IPv4', role, 4096);
    return undefined;
  },
});

/** Time limit for 16 MiB in both directions, over a cable that loses frames, on a busy computer. */
const backSeconds = 140;
/** The fewest iterations that perftest takes (option -n); this side makes one, of which the guest's server only waits for the end. */
const iterationsMin = 5;

export const backStep = (
  sizes: readonly number[],
  mode: MpaMode = { hasCrc: true },
  words = 'with CRCs',
): Step => ({
  title: `${words} WRITEs to a guest's ib_read_bw are READ back as they were: ${sizes.join(', ')} bytes`,
  async run(stage) {
    await setMpaMode(stage, mode);
    const { guest: address } = peerAddresses;
    const common = { program: 'perftest', guest: 'server', test: 'ib_read_bw', address } as const;
    for (const sizeBytes of sizes) {
      const command = `ib_read_bw -R -F -d siw0 -s ${sizeBytes} -n ${iterationsMin}`;
      const task = { ...common, sizeBytes, iterations: 1 };
      await playUnlessStuck(stage, task, (port) => `${command}${port}`, backSeconds);
    }
    return undefined;
  },
});

/** Bytes of ucmatose's messages: in one FPDU, and in several. */
const ucmatoseSizes = [100, 5000] as const;
const ucmatoseCount = 10;

/** The server sends first, for which the responder waits for the initiator's ready-to-receive message. */
export const ucmatoseStep: Step = {
  title: `ucmatose in peer-to-peer mode: the server sends first, messages of ${ucmatoseSizes.join(' and ')} bytes there and back are right, both directions`,
  async run(stage) {
    await setMpaMode(stage, { hasCrc: true, isPeerToPeer: true });
    for (const role of roles)
      for (const sizeBytes of ucmatoseSizes) {
        const { guest, peer } = families[role === 'client' ? 'IPv4' : 'IPv6'];
        const common = { guest: role, address: guest, count: ucmatoseCount, sizeBytes } as const;
        const end = role === 'client' ? `-s ${peer}` : `-b ${guest}${zone.IPv6}`;
        const command = `ucmatose ${end} -C ${ucmatoseCount} -S ${sizeBytes}`;
        await playUnlessStuck(stage, { program: 'ucmatose', ...common }, (port) => `${command}${port}`);
      }
    return `${roles.length * ucmatoseSizes.length * 2 * ucmatoseCount} messages`;
  },
};

/** Events of a connection that the other end gives up as soon as it exists. */
export const endedAtOnce = 'RDMA_CM_EVENT_ESTABLISHED 0, RDMA_CM_EVENT_DISCONNECTED 0';

/** A connection that comes to nothing, or ends at once. */
export interface Refusal {
  /** Events of the simulated host's ID, as a refusal's task has them. */
  readonly events: readonly string[];
  /** Words of ucmatose, if the guest's side sees the end. */
  readonly words?: string;
}

/** The guest's client is refused. */
async function refuseGuest(stage: Stage, { events, words = '' }: Refusal): Promise<void> {
  const task = { program: 'refusal', guest: 'client', address: peerAddresses.guest, events } as const;
  const client = `ucmatose -s ${peerAddresses.peer} -p ${meetingPort} -C 1`;
  const output = await play(stage, task, `sh -c '${client}; [ $? -ne 0 ]'`, true);
  if (!output.includes(words)) throw new ScenarioFailure(output);
}

/**
 * The simulated host's client is refused; the guest's server hears of no connection, and is killed. If it has accepted one that never was
 * established, it remains in the kernel (Linux 6.1, iwcm.c: iw_destroy_cm_id waits for the event).
 */
async function refusePeer(stage: Stage, { events }: Refusal): Promise<void> {
  await stage.check(`test-server 'ucmatose -b ${peerAddresses.guest} -p ${meetingPort} -C 1'`);
  const task: CounterpartTask = { program: 'refusal', guest: 'server', address: peerAddresses.guest, events };
  stage.peer.put('task', { ...task });
  const outcome = await outcomeOf(stage);
  await stage.run('test-server-end 1', { timeoutSeconds: 5 });
  if ('error' in outcome) throw new ScenarioFailure(outcome.error);
}

/** Connections by which both sides refuse each other. */
export const refusedStep = (title: string, mode: MpaMode, ofGuest: Refusal, ofPeer: Refusal): Step => ({
  title,
  async run(stage) {
    await setMpaMode(stage, mode);
    await refuseGuest(stage, ofGuest);
    await refusePeer(stage, ofPeer);
    return undefined;
  },
});

/** The card's ledger of all connections. */
export const wholeStep: Step = {
  title:
    'the card has seen no damaged segment and no Terminate, and every frame was one that a station may send',
  async run(stage) {
    const { neighbours = {}, hca } = (await stage.session.machine.report()).peer!.node;
    const { tcp, dropped, terminatesSent, terminatesReceived } = hca!.iwarp!;
    const said = JSON.stringify({ neighbours, tcp, dropped, terminatesSent, terminatesReceived });
    for (const counter of ['malformed', 'unresolved', 'conflicting', 'failed'] as const)
      if (neighbours[counter] !== undefined) throw new ScenarioFailure(said);
    const terminates = [terminatesSent, terminatesReceived].flatMap(Object.keys);
    if (dropped['damaged'] !== undefined || terminates.length > 0) throw new ScenarioFailure(said);
    return said;
  },
};

export const attachStep: Step = {
  title: "Soft-iWARP is on the adapter's interface, and the transport of its device is iWARP",
  run: (stage) => attachSiw(stage),
};

export const ends = {
  hcas: 1,
  isCabled: true,
  guests: 1,
  peer: workload('guest-counterpart', 'guestCounterpart'),
  hasSoftIwarp: true,
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
  isLoaded: true,
} as const satisfies Partial<Scenario>;
