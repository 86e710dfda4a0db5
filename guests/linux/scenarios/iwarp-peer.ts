/**
 * Linux's Soft-iWARP (siw) over the mlx4_en of a guest, and a simulated host whose card is an RNIC, at the two ends of an Ethernet cable: stock
 * programs that connect by rdma_cm, either side of each, over IPv4 and IPv6, with the settings of MPA that siw has. To the guest its card is an
 * ordinary one, all of whose TCP goes to Linux.
 */
import type { FaultPlan } from '../../../machine/faults/index.ts';
import { meetingPort } from '../image/init-scripts.ts';
import { peerAddresses } from '../peer-network.ts';
import { lastFigures } from './ethernet-ends.ts';
import { endStep, play, SideFailure, workload } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import { attachSiw, crcWords, type MpaMode, setMpaMode, siwInterface } from './siw-interface.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** Addresses of both ends; those of IPv6 are derived from their MACs. */
const families = {
  IPv4: { ...peerAddresses, option: '-4' },
  IPv6: { guest: 'fe80::202:c9ff:fe00:1', peer: 'fe80::202:c9ff:fe00:11', option: '-6' },
} as const;
type Family = keyof typeof families;
type Role = 'client' | 'server';
const roles = ['client', 'server'] as const;
/** The interface that a link-local address belongs to. */
const zone = { IPv4: '', IPv6: `%${siwInterface}` } as const;

/**
 * The guest's server may never read the first FPDU of its client (soft-iwarp.ts): both are then stuck, and are started again.
 */
const attempts = 4;
const stuckSeconds = 45;

/** Runs a task of the simulated host and a command of the guest, at most so long. @returns what the guest printed */
async function playUnlessStuck(
  stage: Stage,
  task: Parameters<typeof play>[1],
  command: string,
  role: Role,
  seconds = stuckSeconds,
): Promise<string> {
  for (let attempt = 1; ; attempt++)
    try {
      return await play(stage, task, command, role === 'client', seconds);
    } catch (error) {
      const mayRepeat = error instanceof SideFailure && error.isStuck && role === 'server';
      if (!mayRepeat || attempt === attempts) throw error;
      stage.figures['restarts'] = (stage.figures['restarts'] ?? 0) + 1;
    }
}

const pingCount = 3;
/** rping's least and greatest; and the payload of one FPDU at an MTU of 1500 bytes, tagged, and one byte more (RFC 5044, 3). */
const pingSizes = [23, 1428, 1429, 65_535] as const;

/** Both sides check every byte. */
async function ping(stage: Stage, family: Family, role: Role, sizeBytes: number): Promise<void> {
  const { guest, peer } = families[family];
  const task = { program: 'rping', guest: role, address: guest, count: pingCount, sizeBytes } as const;
  const options = `-C ${pingCount} -S ${sizeBytes} -V -v`;
  // Its server exits with 1 when its client has ended.
  const output = await (role === 'client'
    ? playUnlessStuck(stage, task, `rping -c -a ${peer}${zone[family]} ${options}`, role)
    : playUnlessStuck(
        stage,
        task,
        `sh -c 'rping -s -a ${guest}${zone[family]} ${options}; [ $? -le 1 ]'`,
        role,
      ));
  const seen = output.match(role === 'client' ? /^ping data/gm : /^server ping data/gm);
  if (seen?.length !== pingCount) throw new ScenarioFailure(output);
}

/** In either direction; the client is found by ARP or Neighbor Discovery. */
const pingStep = (family: Family, hasCrc: boolean, sizes: readonly number[]): Step => ({
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

const modeStep = (title: string, mode: MpaMode): Step => ({
  title: `${title}: rping, both directions`,
  async run(stage) {
    await setMpaMode(stage, mode);
    for (const role of roles) await ping(stage, 'IPv4', role, 4096);
    return undefined;
  },
});

interface Perftest {
  readonly test: `ib_${'write' | 'read' | 'send'}_${'bw' | 'lat'}`;
  readonly sizeBytes: number;
  readonly iterations: number;
}

const bandwidths = ['ib_write_bw', 'ib_read_bw', 'ib_send_bw'] as const;
const latencies = ['ib_write_lat', 'ib_read_lat', 'ib_send_lat'] as const;

async function perftest(
  stage: Stage,
  role: Role,
  { test, sizeBytes, iterations }: Perftest,
): Promise<string> {
  const { guest, peer } = peerAddresses;
  const task = { program: 'perftest', guest: role, test, address: guest, sizeBytes, iterations } as const;
  const command = `${test} -R -F -d siw0 -s ${sizeBytes} -n ${iterations}${role === 'client' ? ` ${peer}` : ''}`;
  return lastFigures(await playUnlessStuck(stage, task, command, role));
}

const perftestStep = (role: Role): Step => ({
  title: `ib_write, ib_read and ib_send, _bw and _lat, by rdma_cm: the guest is the ${role}`,
  async run(stage) {
    // The server of ib_write_lat sends first, which the responder may only do after a message of the initiator (RFC 5044, 7.1.2).
    await setMpaMode(stage, { hasCrc: true, isPeerToPeer: true });
    let last = '';
    for (const test of bandwidths)
      last = await perftest(stage, role, { test, sizeBytes: 65_536, iterations: 5 });
    for (const test of latencies) last = await perftest(stage, role, { test, sizeBytes: 64, iterations: 20 });
    return last;
  },
});

/** Of 16 MiB there and back, over a cable that loses frames, on a busy computer. */
const backSeconds = 140;
/** The fewest iterations that perftest takes (option -n); this side makes one, of which the guest's server only waits for the end. */
const iterationsMin = 5;

const backStep = (sizes: readonly number[]): Step => ({
  title: `WRITEs to a guest's ib_read_bw are READ back as they were: ${sizes.join(', ')} bytes`,
  async run(stage) {
    await setMpaMode(stage, { hasCrc: true });
    const { guest: address } = peerAddresses;
    const common = { program: 'perftest', guest: 'server', test: 'ib_read_bw', address } as const;
    for (const sizeBytes of sizes) {
      const command = `ib_read_bw -R -F -d siw0 -s ${sizeBytes} -n ${iterationsMin}`;
      await playUnlessStuck(stage, { ...common, sizeBytes, iterations: 1 }, command, 'server', backSeconds);
    }
    return undefined;
  },
});

/** No listener of the simulated host has this port. */
const nobodysPort = meetingPort + 1;

const refusalStep: Step = {
  title: 'a client of the guest that finds no listener is refused',
  async run(stage) {
    // rping never ends after that.
    const output = await stage.checkFails(`ucmatose -s ${peerAddresses.peer} -p ${nobodysPort}`);
    if (!output.includes('Connection refused')) throw new ScenarioFailure(output);
    return undefined;
  },
};

/** The card's ledger of all connections. */
const wholeStep: Step = {
  title:
    'the card has seen no damaged segment and no Terminate, and every frame was one that a station may send',
  async run(stage) {
    const { neighbours = {}, hca } = (await stage.session.machine.report()).peer!.node;
    const { tcp, terminatesSent, terminatesReceived } = hca!.iwarp!;
    const said = JSON.stringify({ neighbours, tcp, terminatesSent, terminatesReceived });
    for (const counter of ['malformed', 'unresolved', 'conflicting', 'failed'] as const)
      if (neighbours[counter] !== undefined) throw new ScenarioFailure(said);
    const terminates = [terminatesSent, terminatesReceived].flatMap(Object.keys);
    if (tcp['damaged'] !== undefined || terminates.length > 0) throw new ScenarioFailure(said);
    return said;
  },
};

const attachStep: Step = {
  title: "Soft-iWARP is on the adapter's interface, and the transport of its device is iWARP",
  run: (stage) => attachSiw(stage),
};

const steps: readonly Step[] = [
  attachStep,
  // The very first ones, when neither end knows the other.
  pingStep('IPv4', true, pingSizes),
  pingStep('IPv6', false, pingSizes),
  modeStep('in peer-to-peer mode of siw the client sends a message of no bytes first', {
    hasCrc: true,
    isPeerToPeer: true,
  }),
  modeStep('by revision 1 of MPA of siw', { hasCrc: true, revision: 1 }),
  perftestStep('client'),
  refusalStep,
  wholeStep,
  endStep,
];

const ends = {
  hcas: 1,
  isCabled: true,
  guests: 1,
  peer: workload('guest-counterpart', 'guestCounterpart'),
  hasSoftIwarp: true,
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
  isLoaded: true,
} as const satisfies Partial<Scenario>;

export const iwarpPeer: Scenario = {
  ...ends,
  name: 'iwarp-peer',
  title: "Linux's Soft-iWARP and programs of ours on an iWARP card, at the two ends of an Ethernet cable",
  faults: [],
  steps,
};

/** Frames of either end. */
const badCable: FaultPlan = [0, 1].flatMap((node) => [
  { packet: 'lost', chance: '0.3%', node },
  { packet: 'corrupted', chance: '0.3%', node },
  { packet: 'duplicated', chance: '0.5%', delay: '50us', node },
  { packet: 'reordered', chance: '0.5%', by: 2, delay: '1ms', node },
]);

/** TCP makes good what the cable does, so the card sees none of it above. */
export const iwarpPeerFaults: Scenario = {
  ...ends,
  name: 'iwarp-peer-faults',
  title: "Linux's Soft-iWARP and an iWARP card over a cable that loses, doubles, damages and reorders frames",
  faults: badCable,
  steps: [
    attachStep,
    pingStep('IPv4', false, pingSizes),
    pingStep('IPv6', true, pingSizes),
    perftestStep('client'),
    perftestStep('server'),
    // 1 byte; one less and one more than an FPDU; many FPDUs.
    backStep([1, 1427, 1429, 100_001, 2 ** 20, 2 ** 24]),
    {
      title: 'every kind of fault has happened, and TCP has sent again',
      async run({ session: { machine } }) {
        const { faults = [], peer } = await machine.report();
        for (const { fault, fired } of faults) if (fired === 0) throw new ScenarioFailure(`${fault}: never`);
        return JSON.stringify(peer!.node.hca!.iwarp!.tcp);
      },
    },
    wholeStep,
    endStep,
  ],
};
