/** The conversations of a capture as JSON, with the counts of unread packets. */
import type { CaptureReading, Conversation, Utterance } from '../../analyser/capture/index.ts';
import { captureNotes } from '../../explain/text/capture-notes.ts';
import type { ExactPs } from '../../sim/index.ts';

/** A line of a conversation: a packet, or the content of a TCP segment. */
interface WireLine {
  /** Number in the file, from 1. */
  readonly frame: number;
  /** Time since the first packet of all conversations. */
  readonly timePs: ExactPs;
  /** Whether the packet comes from the side whose requests opened the connection. */
  readonly isFromFirst: boolean;
  /** Whether the packet is an error or the recovery from one. */
  readonly isTrouble: boolean;
  readonly words: string;
}

/** A connection, or one direction of packets without a known opposite direction. */
interface WireConversation {
  /** RC, UC, UD, XRC, CNP or iWARP. */
  readonly service: string;
  /** Address and QP (or port) of each side. The QP is left out if no packet addresses it. */
  readonly first: string;
  readonly second: string;
  /** Time since the first packet of all conversations. */
  readonly beganPs: ExactPs;
  /** Packets by kind: requests, answers, NAKs, RNR NAKs, gaps, late, sent again, damaged; for iWARP messages by name. */
  readonly counts: Readonly<Record<string, number>>;
  readonly lines: readonly WireLine[];
  /** Lines beyond the limit of `--lines`. */
  readonly unkept: number;
}

/** Number of frames of a kind, and number of the first one. */
interface WireFrames {
  readonly kind: string;
  readonly count: number;
  readonly firstFrame: number;
}

/** A capture as `hca wire` reads it. */
export interface WireResult {
  /** Name of the file; - for standard input. */
  readonly file: string;
  /** False if bytes or frames of the file were not read. */
  readonly isWhole: boolean;
  /** Time of the first packet since the origin of the file's time stamps; left out without a packet. */
  readonly beganPs?: ExactPs;
  readonly conversations: readonly WireConversation[];
  readonly frames: {
    readonly count: number;
    /** Sightings of packets already seen at another place. */
    readonly repeated: number;
    /** Frames cut by a snap length. */
    readonly cut: number;
    /** The first frames that violate the rules of their headers, and their total number. */
    readonly malformed: readonly { readonly frame: number; readonly reason: string }[];
    readonly malformedCount: number;
    readonly ofOtherProtocols: readonly WireFrames[];
    /** Frames in a form that no reader supports. */
    readonly unread: readonly WireFrames[];
  };
  /** Sentences about unread or hidden packets, as on the screen. */
  readonly notes: readonly string[];
}

/** @param isTroubleOnly leaves out lines of packets without errors */
export function wireResultOf(file: string, reading: CaptureReading, isTroubleOnly: boolean): WireResult {
  const { stream, feed, isWhole } = reading;
  const conversations = reading.conversations();
  const began = conversations.map(({ beganPs }) => beganPs);
  const originPs = began.length === 0 ? undefined : began.reduce((least, at) => (at < least ? at : least));
  return {
    file,
    isWhole,
    ...(originPs === undefined ? {} : { beganPs: exact(originPs) }),
    conversations: conversations.map((each) => conversationOf(each, originPs ?? 0n, isTroubleOnly)),
    frames: {
      count: stream.frameCount,
      repeated: feed.repeatedCount,
      cut: feed.cutCount,
      malformed: feed.malformed.map(({ number, reason }) => ({ frame: number, reason })),
      malformedCount: feed.malformedCount,
      ofOtherProtocols: feed.other.map(framesOf),
      unread: feed.unread.map(framesOf),
    },
    notes: captureNotes(reading),
  };
}

function conversationOf(
  { service, first, second, beganPs, counts, utterances, unkept }: Conversation,
  originPs: bigint,
  isTroubleOnly: boolean,
): WireConversation {
  const lines = utterances.filter(({ isTrouble }) => isTrouble || !isTroubleOnly);
  return {
    ...{ service, first, second, counts, unkept },
    beganPs: exact(beganPs - originPs),
    lines: lines.map((line) => lineOf(line, originPs)),
  };
}

const lineOf = (
  { number, timePs, isFromFirst, isTrouble, words }: Utterance,
  originPs: bigint,
): WireLine => ({ frame: number, timePs: exact(timePs - originPs), isFromFirst, isTrouble, words });

const framesOf = ({ reason, count, firstNumber }: CaptureReading['feed']['other'][number]): WireFrames => ({
  kind: reason,
  count,
  firstFrame: firstNumber,
});

/** A number if it represents the time exactly. */
const exact = (ps: bigint): ExactPs =>
  ps <= BigInt(Number.MAX_SAFE_INTEGER) && ps >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(ps) : ps;
