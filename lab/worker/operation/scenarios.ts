/** What can be watched: for each scenario, what its programs do otherwise than the rest, and the fault that is injected. */
import type { FaultEntry } from '../../../browser.ts';
import type { ScenarioName } from '../../protocol.ts';

export type ScenarioVerb = 'write' | 'writeImmediate' | 'read' | 'send' | 'fetchAdd' | 'compareSwap';

export interface Scenario {
  readonly verb: ScenarioVerb;
  /** Data in the WQE. */
  readonly isInline?: boolean;
  /** Requests of one list: two go by doorbell, where a lone short one goes through BlueFlame. */
  readonly listed?: number;
  /** Both programs sleep until an interrupt says that there is a completion. */
  readonly usesEvents?: boolean;
  /** The receive comes so long after the start of the operation. */
  readonly receiveDelayPs?: number;
  readonly hasWrongKey?: boolean;
  /** The far memory is registered, and its pages are not there until somebody asks. */
  readonly isOnDemand?: boolean;
  readonly losesPacket?: boolean;
  /** Most bytes of it; left out: as many as asked for. */
  readonly sizeMaxBytes?: number;
}

const atomicBytes = 8;
/** A WQE of 256 bytes, half of a BlueFlame register: 28 bytes behind two segments and an inline header, then 60 in each block of 64. */
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

/** Operations of its kind that go before a warm one. */
export const warmUps = 3;

/** Bytes that go before a packet that is lost: one packet each, so that its number is known. */
export const warmUpBytes = ({ losesPacket }: Scenario, sizeBytes: number): number =>
  losesPacket === true ? Math.min(sizeBytes, 8) : sizeBytes;

export const sizeOf = ({ sizeMaxBytes }: Scenario, sizeBytes: number): number =>
  Math.min(sizeBytes, sizeMaxBytes ?? sizeBytes);

/** The first packet of the operation that is watched. */
export const faultsOf = ({ losesPacket }: Scenario, warmUpCount: number): readonly FaultEntry[] =>
  losesPacket === true ? [{ packet: 'lost', only: 'requests', nth: warmUpCount + 1, node: 0 }] : [];
