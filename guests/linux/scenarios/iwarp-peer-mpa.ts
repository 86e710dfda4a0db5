/**
 * Linux's Soft-iWARP and an iWARP card whose host wants another MPA than usual: revision 1, one kind of ready-to-receive message, markers. Where both
 * can do it, the data is checked; where siw cannot, both ends refuse. Sources: RFC 5044, 7.1; RFC 6581, 4 and 9; Linux 6.1, siw_cm.c.
 */
import type { ParameterValues } from '../../../machine/profile/index.ts';
import { peerAddresses } from '../peer-network.ts';
import { endStep, play } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import { setMpaMode } from './siw-interface.ts';
import {
  attachStep,
  backStep,
  endedAtOnce,
  ends,
  modeStep,
  refusedStep,
  ucmatoseStep,
  wholeStep,
} from './siw-peer-steps.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const scenario = (name: string, title: string, set: ParameterValues, steps: readonly Step[]): Scenario => ({
  ...ends,
  name: `iwarp-peer-${name}`,
  title: `Linux's Soft-iWARP and an iWARP card ${title}`,
  faults: [],
  set: { ...ends.set, ...set },
  steps: [attachStep, ...steps, endStep],
});

/** RFC 5044, 7.1.2: a responder that lacks the revision closes TCP; the initiator may ask again by an older one. */
const olderStep: Step = {
  title:
    'a request of siw by revision 2 is refused, and the next one by revision 1 is served: rping checks its data',
  async run(stage) {
    await setMpaMode(stage, { revision: 2 });
    const { guest: address, peer } = peerAddresses;
    const task = { program: 'rping', guest: 'client', address, count: 3, sizeBytes: 4096 } as const;
    const command = `sh -c 'ucmatose -s ${peer} -p 7174 -C 1 && exit 9
echo 1 >/sys/module/siw/parameters/mpa_version && rping -c -a ${peer} -C 3 -S 4096 -V -v'`;
    const output = await play(stage, task, command, true);
    if (!output.includes('REJECTED')) throw new ScenarioFailure(output);
    return undefined;
  },
};

const revision1 = scenario(
  'revision-1',
  'by revision 1 of MPA, without CRCs unless siw wants them',
  { 'driver.mpaRevision': 1, 'driver.mpaCrc': false },
  [
    modeStep('by revision 1 of both, without CRCs', { revision: 1 }, ['client']),
    modeStep('with CRCs that siw alone demands', { revision: 1, hasCrc: true }, ['client']),
    // A server of the guest that READs, as rping's, has no ORD by revision 1: also with siw at both ends (rdma-core 44).
    backStep([1, 1429, 100_001], {}, "the card's request is of revision 1, without CRCs:"),
    backStep([100_001], { hasCrc: true }, 'siw as responder adds no CRCs to a request without them:'),
    olderStep,
    wholeStep,
  ],
);

const readyByRead = scenario(
  'ready-read',
  'whose ready-to-receive message is a READ',
  { 'driver.mpaReadyMessage': 'read' },
  [
    modeStep('the initiator begins with a READ of no bytes', { hasCrc: true, isPeerToPeer: true }),
    ucmatoseStep,
    wholeStep,
  ],
);

/** Terminates by layer, type and code, as the card's ledger counts them. */
async function checkTerminates(stage: Stage, sent: object, received: object): Promise<string> {
  const { terminatesSent, terminatesReceived } = (await stage.session.machine.report()).peer!.node.hca!
    .iwarp!;
  const said = JSON.stringify({ terminatesSent, terminatesReceived });
  if (said !== JSON.stringify({ terminatesSent: sent, terminatesReceived: received }))
    throw new ScenarioFailure(said);
  return said;
}

const readyBySend = scenario(
  'ready-send',
  'whose ready-to-receive message is a SEND, which siw lacks',
  // siw computes no CRC of a Terminate that it sends before its QP is connected, whatever was agreed (Linux 6.1, siw_proc_mpareply).
  { 'driver.mpaReadyMessage': 'send', 'driver.mpaCrc': false },
  [
    refusedStep(
      'without a common ready-to-receive message each initiator ends the connection by a Terminate',
      { isPeerToPeer: true },
      // The Terminate may be there before the QP is.
      { events: [endedAtOnce, 'RDMA_CM_EVENT_CONNECT_ERROR -104'] },
      { events: ['RDMA_CM_EVENT_CONNECT_ERROR -104'] },
    ),
    {
      title:
        'both Terminates say MPA, no common ready-to-receive message (RFC 6581, 8); siw swaps layer and type',
      run: (stage) => checkTerminates(stage, { '2007': 1 }, { '0207': 1 }),
    },
  ],
);

const withMarkers = scenario(
  'markers',
  'that wants markers, which siw lacks',
  { 'driver.mpaMarkers': true },
  [
    refusedStep(
      'each side refuses the other: siw rejects a request with markers, and gives up for a reply with markers',
      { hasCrc: true },
      { events: [endedAtOnce], words: 'REJECTED' },
      { events: ['RDMA_CM_EVENT_REJECTED -111'] },
    ),
    {
      title: 'no Terminate was sent',
      run: (stage) => checkTerminates(stage, {}, {}),
    },
  ],
);

export const iwarpPeerMpa: readonly Scenario[] = [revision1, readyByRead, readyBySend, withMarkers];
