/** The scenarios by name. */
import { assertOneOf } from '../../../base/index.ts';
import { cable, loopback, twoGuests } from './data.ts';
import { ethernet } from './ethernet.ts';
import { ethernetOffloads } from './ethernet-offloads.ts';
import { ethernetPeer } from './ethernet-peer.ts';
import { faultsAtProbe } from './faults-at-probe.ts';
import { faultsAtWork } from './faults-at-work.ts';
import { faultsOfSilence } from './faults-of-silence.ts';
import { iwarpPeer, iwarpPeerFaults } from './iwarp-peer.ts';
import { iwarpPeerMpa } from './iwarp-peer-mpa.ts';
import { nfs, nfsRoce } from './nfs.ts';
import { peer } from './peer.ts';
import { probe } from './probe.ts';
import { rawPackets } from './raw-packets.ts';
import { roce, roceV1 } from './roce.ts';
import { rocePeer, roceV1Peer } from './roce-peer.ts';
import { roughGuests } from './rough-guests.ts';
import type { Scenario } from './scenario.ts';
import { softIwarp } from './soft-iwarp.ts';
import { softRoce, softRoceCable } from './soft-roce.ts';
import { softRoceFaults } from './soft-roce-faults.ts';
import { softRocePeer } from './soft-roce-peer.ts';
import { srpUnbind } from './srp-unbind.ts';
import { subnetManager } from './subnet-manager.ts';

export { runScenario, type ScenarioOutcome } from './run-scenario.ts';
export {
  finishScenario,
  type Scenario,
  type ScenarioOptions,
  type Step,
  startScenario,
} from './scenario.ts';
export { Stage } from './stage.ts';
export type { StagePeer, StageResult, StageSession } from './stage-session.ts';

export const scenarios: readonly Scenario[] = [
  probe,
  loopback,
  cable,
  twoGuests,
  ethernet,
  ethernetOffloads,
  roce,
  roceV1,
  rawPackets,
  peer,
  ethernetPeer,
  rocePeer,
  roceV1Peer,
  subnetManager,
  nfs,
  nfsRoce,
  faultsAtProbe,
  faultsAtWork,
  faultsOfSilence,
  roughGuests,
  softRoce,
  softRoceCable,
  softRocePeer,
  softRoceFaults,
  softIwarp,
  iwarpPeer,
  iwarpPeerFaults,
  ...iwarpPeerMpa,
  srpUnbind,
];

/** @throws ConfigurationError for an unknown scenario */
export function scenarioNamed(name: string): Scenario {
  const known = assertOneOf(
    'scenario',
    name,
    scenarios.map((scenario) => scenario.name),
  );
  return scenarios.find((scenario) => scenario.name === known)!;
}
