/** iWARP in the report: DDP segments by RDMAP message, the card's TCP, and their balances. */
import type { Hca, LoopedFrames } from '../../hw/hca/index.ts';
import { RdmapOpcode } from '../../protocol/iwarp/index.ts';
import { behind, sumOf } from './failures.ts';

/** DDP segments and the bytes that they place. */
export interface SegmentLedger {
  readonly segments: number;
  readonly payloadBytes: number;
}

/** Segments of a direction, by RDMAP message; zeros are omitted. */
export type SegmentRows = Readonly<Record<string, SegmentLedger>>;

/** Segments of TCP that wait for an acknowledgement, and their bytes of the stream. */
export type Unacknowledged = { readonly segments: number; readonly streamBytes: number };

/** Streams whose ends are both at this card, and the frames of their TCP, which cross no cable. */
export interface LoopedStreams {
  readonly sent: SegmentRows;
  readonly received: SegmentRows;
  readonly unacknowledged: Unacknowledged;
  readonly discardedBytes: number;
  /** Frames without FCS; `heldFrames` are on their way or being written to memory, a reset has removed `droppedFrames`. */
  readonly frames: Readonly<LoopedFrames> & { readonly heldFrames: number };
}

export interface IwarpLedger {
  /** Segments handed to TCP, and those that came in order, by RDMAP message; zeros are omitted. */
  readonly sent: SegmentRows;
  readonly received: SegmentRows;
  /** Terminate messages by layer, type and code, as four hexadecimal digits (RFC 5040, 4.8). */
  readonly terminatesSent: Readonly<Record<string, number>>;
  readonly terminatesReceived: Readonly<Record<string, number>>;
  /** Events of all TCP connections; zeros are omitted. */
  readonly tcp: Readonly<Record<string, number>>;
  /**
   * Picoseconds that TCP connections have waited with something to send, by cause, summed over all; zeros are omitted.
   * Linux has them in tcp_info.
   */
  readonly waitedPs: Readonly<Record<string, number>>;
  /** Segments that TCP holds because the peer has not acknowledged them, and their bytes of the stream. */
  readonly unacknowledged: Unacknowledged;
  /** Bytes of the stream that arrived after their QP had left it, for which no segment is counted as received. */
  readonly discardedBytes: number;
  /** Frames of connections that the TCP engine took from the port. */
  readonly frames: number;
  /**
   * Segments that the TCP engine dropped, by reason: a wrong checksum or length, a port that is down, no connection, a
   * listener without room. Zeros are omitted.
   */
  readonly dropped: Readonly<Record<string, number>>;
  /** Left out without such streams; the fields before it leave them out, except those of TCP, Terminates and waits. */
  readonly looped?: LoopedStreams | undefined;
}

const messageNames = new Map<number, string>(
  Object.entries(RdmapOpcode).map(([name, opcode]) => [opcode, name]),
);

/** Undefined for another transport, and for a card whose software left all TCP to the rings, as a stock guest does. */
export function iwarpLedgerOf({ iwarp }: Hca): IwarpLedger | undefined {
  if (iwarp === undefined) return undefined;
  const { segmentCounters: counters } = iwarp.parts;
  const { tcpEngine, tcpControl } = iwarp.blocks;
  if (!tcpControl.hasConnections && tcpEngine.arrivedCount === 0) return undefined;
  const { sent, received, terminatesSent, terminatesReceived } = counters;
  const { packedFpdus, damaged, portClosed, unmatched, refusedSyns } = tcpEngine.counters;
  return {
    sent: segmentsOf(sent),
    received: segmentsOf(received),
    terminatesSent: byError(terminatesSent),
    terminatesReceived: byError(terminatesReceived),
    tcp: withoutZeros({ ...tcpEngine.totals(), packedFpdus }),
    waitedPs: withoutZeros(tcpEngine.waitedPs()),
    unacknowledged: tcpEngine.unacknowledged(false),
    discardedBytes: tcpEngine.discardedBytes,
    frames: tcpEngine.arrivedCount,
    dropped: withoutZeros({ damaged, portClosed, unmatched, refusedSyns }),
    ...(iwarp.blocks.tcpLoopback.counters.sentFrames === 0 ? {} : { looped: loopedOf(iwarp) }),
  };
}

const withoutZeros = (counts: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

function loopedOf({ parts, blocks }: NonNullable<Hca['iwarp']>): LoopedStreams {
  const { sent, received } = parts.segmentCounters.looped;
  const { tcpEngine, tcpLoopback } = blocks;
  return {
    sent: segmentsOf(sent),
    received: segmentsOf(received),
    unacknowledged: tcpEngine.unacknowledged(true),
    discardedBytes: tcpEngine.loopedDiscardedBytes,
    frames: { ...tcpLoopback.counters, heldFrames: tcpLoopback.heldCount },
  };
}

interface DirectionCounters {
  readonly segments: Float64Array;
  readonly payloadBytes: Float64Array;
}

const segmentsOf = ({ segments, payloadBytes }: DirectionCounters): SegmentRows =>
  Object.fromEntries(
    [...segments].flatMap((count, opcode) =>
      count === 0
        ? []
        : [
            [
              messageNames.get(opcode) ?? `0x${opcode.toString(16)}`,
              { segments: count, payloadBytes: payloadBytes[opcode]! },
            ],
          ],
    ),
  );

const byError = (counts: ReadonlyMap<number, number>): Record<string, number> =>
  Object.fromEntries(
    [...counts]
      .toSorted(([left], [right]) => left - right)
      .map(([error, count]) => [error.toString(16).padStart(4, '0'), count]),
  );

/** One end of a cable in its balance. */
interface IwarpEnd {
  readonly node: number;
  readonly iwarp?: IwarpLedger | undefined;
  readonly wire: { readonly isQuiet: boolean };
}

/**
 * Each segment that one end handed to TCP arrived in order at the other end, once, unless its stream ended before: by a
 * Terminate, a reset or a time-out. Missing segments are at most those that TCP still holds and sends again, and those
 * that arrived after their QP had left the stream.
 */
export function iwarpCableFailures(sender: IwarpEnd, receiver: IwarpEnd): string[] {
  if (sender.iwarp === undefined || receiver.iwarp === undefined) return [];
  const [near, far] = [sender.iwarp, receiver.iwarp];
  const isQuiet = isWhole(near) && isWhole(far) && sender.wire.isQuiet && receiver.wire.isQuiet;
  return segmentFailures(`cable ${sender.node} to ${receiver.node}`, near, far, isQuiet);
}

/** The same for the streams of a card to itself; and the engine has worked on all frames of its loopback. */
export function iwarpLoopbackFailures({ node, iwarp }: Omit<IwarpEnd, 'wire'>): string[] {
  if (iwarp?.looped === undefined) return [];
  const { looped } = iwarp;
  const { sentFrames, sentBytes, receivedFrames, receivedBytes, droppedFrames, heldFrames } = looped.frames;
  const isEmpty = heldFrames === 0;
  const what = `node ${node} to itself`;
  return [
    ...behind(`${what}, frames of TCP`, receivedFrames + droppedFrames, sentFrames, isEmpty),
    ...behind(`${what}, bytes of them`, receivedBytes, sentBytes, isEmpty && droppedFrames === 0),
    ...segmentFailures(what, looped, looped, isWhole(iwarp) && isEmpty && droppedFrames === 0),
  ];
}

/** No stream has ended before everything had arrived. */
const isWhole = ({ terminatesSent, tcp }: IwarpLedger): boolean =>
  sumOf(Object.values(terminatesSent)) === 0 && (tcp['resetsSent'] ?? 0) === 0 && (tcp['lost'] ?? 0) === 0;

/** Parts of a ledger that a balance compares. */
type Streams = Pick<LoopedStreams, 'sent' | 'received' | 'unacknowledged' | 'discardedBytes'>;

function segmentFailures(what: string, near: Streams, far: Streams, isQuiet: boolean): string[] {
  const isDelivered = isQuiet && near.unacknowledged.segments === 0 && far.discardedBytes === 0;
  const failures = namesOf(near.sent, far.received).flatMap((name) => {
    const [out = none, arrived = none] = [near.sent[name], far.received[name]];
    return [
      ...behind(`${what}, ${name} segments`, arrived.segments, out.segments, isDelivered),
      ...behind(`${what}, ${name} payload`, arrived.payloadBytes, out.payloadBytes, isDelivered),
    ];
  });
  return isQuiet && !isDelivered ? [...failures, ...missingFailures(what, near, far)] : failures;
}

const none: SegmentLedger = { segments: 0, payloadBytes: 0 };

const namesOf = (...ledgers: readonly SegmentRows[]): string[] => [...new Set(ledgers.flatMap(Object.keys))];

/** Bytes of the shortest FPDU: a length, the header of a tagged segment and a CRC (RFC 5044, 4; RFC 5041, 4). */
const fpduBytesMin = 2 + 14 + 4;

/** Segments that have not arrived fit into the bytes of the stream that TCP holds, and those that arrived too late. */
function missingFailures(what: string, { sent, unacknowledged }: Streams, far: Streams): string[] {
  const missing = (pick: (row: SegmentLedger) => number): number => {
    const totalOf = (ledger: SegmentRows): number => sumOf(Object.values(ledger).map(pick));
    return totalOf(sent) - totalOf(far.received);
  };
  const segments = missing(({ segments: count }) => count);
  const payloadBytes = missing((row) => row.payloadBytes);
  const explained = unacknowledged.segments + Math.floor(far.discardedBytes / fpduBytesMin);
  const explainedBytes = unacknowledged.streamBytes + far.discardedBytes;
  return [
    ...(segments > explained ? [`${what}: ${segments} segments are missing, of which ${explained}`] : []),
    ...(payloadBytes > explainedBytes
      ? [`${what}: ${payloadBytes} bytes of payload are missing, of which ${explainedBytes}`]
      : []),
  ].map((failure) => `${failure} may be held by TCP or have arrived after their QP had left the stream`);
}

/** Payload of SEND and WRITE segments that an end handed to TCP. */
export const pushedBytesOf = ({ sent, looped }: IwarpLedger): number =>
  sumOf(
    [...Object.entries(sent), ...Object.entries(looped?.sent ?? {})].map(([name, { payloadBytes }]) =>
      /^(SEND|WRITE)/.test(name) ? payloadBytes : 0,
    ),
  );
