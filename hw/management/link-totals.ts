/**
 * Totals of one port's traffic in the units of performance management: IBTA volume 1, 16.1.3.5 and 16.1.4.11, define each counter.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { LinkSetting } from './link-speed.ts';

/** Traffic of a link since the model was built: packets of all lanes, without flow control and link training. */
export interface LinkTraffic {
  /** Speed and width of the cable. */
  readonly config: LinkSetting;
  readonly transmitted: {
    readonly packetCount: number;
    /** LRH to VCRC. */
    readonly packetBytes: number;
    readonly discardedCount: number;
    /** Picoseconds for which packets waited for credits. */
    readonly creditWaitPs: Picoseconds;
  };
  readonly received: {
    readonly delivered: PacketTotals;
    /** Packets with a wrong CRC, which are dropped. */
    readonly corrupted: PacketTotals;
    readonly overruns: number;
    /** Packets of lane 15 that found its buffer full. */
    readonly managementDrops: number;
  };
}

interface PacketTotals {
  readonly packetTotal: number;
  /** LRH to VCRC. */
  readonly byteTotal: number;
}

/** Totals of one port's link, in the units of performance management. They only grow. */
export interface LinkTotals {
  readonly transmitPackets: number;
  readonly receivePackets: number;
  /** Four bytes each, from the LRH to the ICRC. */
  readonly transmitDwords: number;
  readonly receiveDwords: number;
  readonly receiveErrors: number;
  readonly transmitDiscards: number;
  readonly managementDrops: number;
  /** Packets that a switch received and could not forward. */
  readonly relayErrors: number;
  /** Packets received, and to be sent, that a switch's port dropped for their P_Key. */
  readonly receiveConstraintErrors: number;
  readonly transmitConstraintErrors: number;
  /** Ticks for which packets waited for credits. */
  readonly transmitWaitTicks: number;
  /** Number of times that the link went down while the port was open. */
  readonly linkDowned: number;
}

/** Counts that the link itself does not have. */
interface OtherCounts {
  /** Frequency of the ticks of PortXmitWait. */
  readonly tickMHz: number;
  readonly linkDowned: number;
  readonly relayErrors: number;
  readonly receiveConstraintErrors: number;
  readonly transmitConstraintErrors: number;
  /** Packets discarded for another reason than a link that is down. */
  readonly otherDiscards: number;
}

/** @param traffic left out for a port without a cable */
export function linkTotalsOf(traffic: LinkTraffic | undefined, other: OtherCounts): LinkTotals {
  const { tickMHz, linkDowned, relayErrors, otherDiscards } = other;
  const { receiveConstraintErrors, transmitConstraintErrors } = other;
  const { transmitted, received } = traffic ?? silentLink;
  const { delivered, corrupted, overruns, managementDrops } = received;
  const receivePackets = delivered.packetTotal + corrupted.packetTotal;
  return {
    transmitPackets: transmitted.packetCount,
    receivePackets,
    transmitDwords: dwordsOf(transmitted.packetBytes, transmitted.packetCount),
    receiveDwords: dwordsOf(delivered.byteTotal + corrupted.byteTotal, receivePackets),
    receiveErrors: corrupted.packetTotal + overruns,
    transmitDiscards: transmitted.discardedCount + otherDiscards,
    managementDrops,
    transmitWaitTicks: Math.floor((transmitted.creditWaitPs * tickMHz) / 1e6),
    linkDowned,
    relayErrors,
    receiveConstraintErrors,
    transmitConstraintErrors,
  };
}

/** A port without a cable. */
const silentLink: Omit<LinkTraffic, 'config'> = {
  transmitted: { packetCount: 0, packetBytes: 0, discardedCount: 0, creditWaitPs: 0 },
  received: {
    delivered: { packetTotal: 0, byteTotal: 0 },
    corrupted: { packetTotal: 0, byteTotal: 0 },
    overruns: 0,
    managementDrops: 0,
  },
};

const vcrcBytes = 2;
/** A packet without its VCRC is a multiple of four bytes: 7.7.5, PktLen. */
const dwordsOf = (packetBytes: number, packets: number): number => (packetBytes - packets * vcrcBytes) / 4;
