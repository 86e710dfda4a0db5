/**
 * The plan of a served machine: real HCAs, root complexes and links; the hosts behind them are guests.
 *
 *     guest0 ══PCIe══ hca0 ══╗                guest0 ══PCIe══ hca0 ══cable══ hca1 ══PCIe══ guest1
 *                        ╚═══╝ loopback plug
 *
 * `guestN` is the logical process of a slot: a root complex that a real guest's accesses enter and whose memory is the
 * guest's. An HCA without a cable has a plug in its port that leads what it sends back to it, or nothing.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { Fault } from '../machine/faults/index.ts';
import {
  bytesToDevice,
  bytesToHost,
  channelKey,
  type HcaNeighbours,
  type HcaPlan,
  hcaCableBytes,
  hcaName,
} from '../machine/index.ts';
import type { MachineConfig } from '../machine/profile/index.ts';

/** What is in port 1 of each HCA. */
const cablings = ['cable', 'loopback', 'open'] as const;
export type Cabling = (typeof cablings)[number];

const hcaCountMax = 2;

export interface ServedChoice {
  readonly config: MachineConfig;
  readonly hcaCount: number;
  readonly cabling: Cabling;
  readonly faults: readonly Fault[];
  /** Left out: true. */
  readonly shortcuts?: boolean;
}

export interface ServedPlan extends HcaPlan {
  readonly hcaCount: number;
  readonly cabling: Cabling;
}

export const guestName = (node: number): string => `guest${node}`;
/** The unconnected end of a channel. */
export const openEndName = (node: number): string => `open${node}`;

/** @throws ConfigurationError for a number of HCAs that is not 1 or 2, or a cable with one end */
export function planServed(choice: ServedChoice): ServedPlan {
  const { config, hcaCount, cabling, faults, shortcuts = true } = choice;
  if (!Number.isInteger(hcaCount) || hcaCount < 1 || hcaCount > hcaCountMax)
    throw new ConfigurationError('hcas', hcaCount, `an integer from 1 to ${hcaCountMax}`);
  if (cabling === 'cable' && hcaCount !== 2)
    throw new ConfigurationError('hcas', hcaCount, '2 for a cable between them');
  const channels: Record<string, SharedArrayBuffer> = {};
  const how = { shuffleSeed: undefined, shortcuts };
  const plan: ServedPlan = { config, hcaCount, cabling, faults, channels, ...how };
  const add = (from: string, to: string, bytes: number): void => {
    channels[channelKey(from, to)] ??= new SharedArrayBuffer(bytes);
  };
  for (let node = 0; node < hcaCount; node++) {
    const { host, wirePeer } = servedNeighboursOf(plan, node);
    add(host, hcaName(node), bytesToDevice(config));
    add(hcaName(node), host, bytesToHost(config));
    add(hcaName(node), wirePeer, hcaCableBytes(config));
    add(wirePeer, hcaName(node), hcaCableBytes(config));
  }
  return plan;
}

/** The peers at the other ends of an HCA's links. */
export function servedNeighboursOf({ cabling }: Pick<ServedPlan, 'cabling'>, node: number): HcaNeighbours {
  const wirePeers = { cable: hcaName(node ^ 1), loopback: hcaName(node), open: openEndName(node) } as const;
  const subnetNodes = cabling === 'cable' ? [0, 1] : [node];
  return { host: guestName(node), wirePeer: wirePeers[cabling], subnetNodes };
}
