/** Recovery by the transport while a test measured: retransmitted packets, NAKs, RNR NAKs, timeouts. */

import { countText } from '../../explain/text/format.ts';
import type { ReportFigures } from '../../machine/index.ts';

/** Counts of both hosts; each NAK counts once, at its requester. */
export interface Recovery {
  /** Packets whose PSN had been sent before: requests, READ responses, atomic results. */
  readonly retransmittedPackets: number;
  readonly sequenceNaks: number;
  readonly rnrNaks: number;
  /** NAKs that refuse a request. */
  readonly errorNaks: number;
  readonly timeouts: number;
  /** READ responses and atomic results that were missing, and requested again. */
  readonly missingResponses: number;
}

/** Undefined if nothing was recovered. */
export function recoveryOf({ nodes, wire }: ReportFigures): Recovery | undefined {
  const countOf = (name: string): number =>
    nodes.reduce((sum, { hca }) => sum + (hca.transport[name] ?? 0), 0);
  const again = wire.flatMap(({ retransmitted }) => Object.values(retransmitted));
  const looped = nodes.flatMap(({ hca }) => Object.values(hca.loopback.retransmitted));
  const recovery = {
    retransmittedPackets: [...again, ...looped].reduce((sum, { packets }) => sum + packets, 0),
    sequenceNaks: countOf('sequenceNakReceived'),
    rnrNaks: countOf('rnrNakReceived'),
    errorNaks: countOf('errorNakReceived'),
    timeouts: countOf('ackTimeout'),
    missingResponses: countOf('missingResponse'),
  };
  return Object.values(recovery).some((count) => count > 0) ? recovery : undefined;
}

const words: readonly (readonly [name: keyof Recovery, one: string, many: string])[] = [
  ['retransmittedPackets', 'packet sent again', 'packets sent again'],
  ['sequenceNaks', 'NAK for a sequence error', 'NAKs for a sequence error'],
  ['rnrNaks', 'RNR NAK', 'RNR NAKs'],
  ['errorNaks', 'NAK that refuses', 'NAKs that refuse'],
  ['timeouts', 'time-out', 'time-outs'],
  ['missingResponses', 'missing response', 'missing responses'],
];

/** One line with the nonzero counts. */
export function recoveryLine(name: string, recovery: Recovery): string {
  const parts = words.flatMap(([field, one, many]) => {
    const count = recovery[field];
    return count === 0 ? [] : [`${countText(count)} ${count === 1 ? one : many}`];
  });
  return `${name}: ${parts.join(', ')}.`;
}
