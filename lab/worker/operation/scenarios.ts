/** The scenarios that can be watched: for each, how its programs differ from the default, and the injected fault. */
import { ConfigurationError, type FaultEntry } from '../../../browser.ts';
import { machineOfRow } from '../../../experiments/workloads/index.ts';
import type { LabNetwork, ScenarioName } from '../../protocol.ts';

export type ScenarioVerb = 'write' | 'writeImmediate' | 'read' | 'send' | 'fetchAdd' | 'compareSwap';

export interface Scenario {
  readonly verb: ScenarioVerb;
  /** Puts the data into the WQE. */
  readonly isInline?: boolean;
  /** Requests in one list: two are announced by a doorbell, while a single short one is written through BlueFlame. */
  readonly listed?: number;
  /** Both programs sleep until an interrupt announces a completion. */
  readonly usesEvents?: boolean;
  /** Delay of the receive after the start of the operation. */
  readonly receiveDelayPs?: number;
  readonly hasWrongKey?: boolean;
  /** The remote memory is registered, but its pages are not present until the first access. */
  readonly isOnDemand?: boolean;
  readonly losesPacket?: boolean;
  /** Greatest size; default: any requested size. */
  readonly sizeMaxBytes?: number;
}

const atomicBytes = 8;
/** A WQE of 256 bytes, half of a BlueFlame register: 28 bytes after two segments and an inline header, then 60 in each block of 64. */
const blueFlameBytesMax = 208;

export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  write: { verb: 'write' },
  'write-immediate': { verb: 'writeImmediate' },
  read: { verb: 'read' },
  send: { verb: 'send' },
  'fetch-add': { verb: 'fetchAdd', sizeMaxBytes: atomicBytes },
  'compare-swap': { verb: 'compareSwap', sizeMaxBytes: atomicBytes },
  inline: { verb: 'write', isInline: true, listed: 2, sizeMaxBytes: 400 },
  blueflame: { verb: 'write', isInline: true, sizeMaxBytes: blueFlameBytesMax },
  events: { verb: 'send', usesEvents: true },
  rnr: { verb: 'send', receiveDelayPs: 6_000_000 },
  lost: { verb: 'write', losesPacket: true },
  'wrong-key': { verb: 'write', hasWrongKey: true },
  'page-fault': { verb: 'write', isOnDemand: true },
};

/** Operations of its kind before a warm one. */
export const warmUps = 3;

/** Size of the operations before a lost packet: one packet each, so that the number of the lost packet is known. */
export const warmUpBytes = ({ losesPacket }: Scenario, sizeBytes: number): number =>
  losesPacket === true ? Math.min(sizeBytes, 8) : sizeBytes;

export const sizeOf = ({ sizeMaxBytes }: Scenario, sizeBytes: number): number =>
  Math.min(sizeBytes, sizeMaxBytes ?? sizeBytes);

/** The first packet of the watched operation. */
export const faultsOf = ({ losesPacket }: Scenario, warmUpCount: number): readonly FaultEntry[] =>
  losesPacket === true ? [{ packet: 'lost', only: 'requests', nth: warmUpCount + 1, node: 0 }] : [];

/**
 * Parameters of a machine on this network.
 * @throws ConfigurationError for a scenario that shows nothing on it
 */
export function networkSet(network: LabNetwork, { losesPacket }: Scenario): Readonly<Record<string, string>> {
  if (network === 'iwarp' && losesPacket === true)
    throw new ConfigurationError(
      'operation',
      'lost',
      'another one over iWARP: a WRITE completes before its frame is lost, and TCP sends it again after 200 ms',
    );
  return setOf(network);
}

/** Parameters of a machine on this network. */
export const setOf = (network: LabNetwork): Readonly<Record<string, string>> =>
  network === 'infiniband' ? {} : machineOfRow({ path: 'write', network });
