/**
 * Linux's Soft-iWARP (siw) over the mlx4_en of a guest, and a simulated host whose card is an RNIC, at the two ends of an Ethernet cable: stock
 * programs that connect by rdma_cm, either side of each, over IPv4 and IPv6, with the settings of MPA that siw has. To the guest its card is an
 * ordinary one, all of whose TCP goes to Linux.
 */
import type { FaultPlan } from '../../../machine/faults/index.ts';
import { meetingPort } from '../image/init-scripts.ts';
import { peerAddresses } from '../peer-network.ts';
import { lastFigures } from './ethernet-ends.ts';
import { endStep } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import { setMpaMode } from './siw-interface.ts';
import {
  attachStep,
  backStep,
  endedAtOnce,
  ends,
  modeStep,
  pingSizes,
  pingStep,
  playUnlessStuck,
  type Role,
  refusedStep,
  ucmatoseStep,
  wholeStep,
} from './siw-peer-steps.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

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
  const end = role === 'client' ? ` ${peer}` : '';
  const commandOf = (port: string): string =>
    `${test} -R -F -d siw0 -s ${sizeBytes} -n ${iterations}${port}${end}`;
  return lastFigures(await playUnlessStuck(stage, task, commandOf));
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

/** UDP's port space needs a QP of UD, which iWARP does not have: EOPNOTSUPP, before anything is sent. */
const udaddyStep: Step = {
  title: 'udaddy of the guest is refused: siw has no QP of UD',
  async run(stage) {
    const output = await stage.checkFails(`udaddy -s ${peerAddresses.peer}`);
    if (!output.includes('unable to create QP: Operation not supported')) throw new ScenarioFailure(output);
    return undefined;
  },
};

const strictStep = refusedStep(
  'siw that forbids CRCs (mpa_crc_strict) refuses connections of the card, which wants them, both directions',
  { isStrict: true },
  { events: [endedAtOnce], words: 'REJECTED' },
  { events: ['RDMA_CM_EVENT_REJECTED -111'] },
);

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
  ucmatoseStep,
  udaddyStep,
  refusalStep,
  strictStep,
  wholeStep,
  endStep,
];

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
