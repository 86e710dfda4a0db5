/**
 * Frames of an Ethernet port as DUMP_ETH_STATS reports them: by length, by kind of destination, by priority of their
 * tag. They are counted at the wire port, before anything is dropped. The wire port itself counts frames with a wrong
 * check sequence, frames that found its buffers full, and flow control. Source: interface sheet 3.19.
 */
import {
  ethernetStatistics,
  flowControlStatistics,
  frameSizeBins,
  priorityCount,
  untaggedPlace,
} from '../../../abi/index.ts';
import { MAC_BYTES, type Picoseconds, psPerUs } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';

/** Counters of the wire port for frames that are lost or damaged there, and its framing overhead. */
export interface FrameErrors {
  readonly received: { readonly corruptedFrames: number; readonly fifoDrops: number };
  readonly transmitted: { readonly discardedFrames: number };
  readonly config: { readonly preambleBytes: number; readonly interFrameGapBytes: number };
}

/** Flow control counters of the wire port: wire/ethernet-counters.ts. */
export interface PauseTotals {
  readonly sentFrames: number;
  readonly sentTransitions: number;
  readonly stoppingPs: Picoseconds;
  readonly receivedFrames: number;
  readonly receivedPauses: number;
  readonly receivedTransitions: number;
  readonly pausedPs: Picoseconds;
}

/** The flow control of a wire port as software sets and sees it. */
export interface PauseControl {
  /** Whether the port sends PAUSE frames, and whether it heeds them. */
  set(sends: boolean, heeds: boolean): void;
  readonly setting: { readonly sends: boolean; readonly heeds: boolean };
  totals(): PauseTotals;
  /** Pauses of single priorities, as masks. */
  readonly priorities: {
    set(sends: number, heeds: number): void;
    readonly setting: { readonly sends: number; readonly heeds: number };
  };
}

const GROUP_BIT = 1;
const BROADCAST_BYTE = 0xff;
const PRIORITY_SHIFT = 13;
/** Size bins, then the frames beyond the MTU. */
const SIZE_PLACES = frameSizeBins.length + 2;
const TO_MTU = frameSizeBins.length;
const GIANT = TO_MTU + 1;

/** Frames of one direction, by index: priorities 0 to 7, then frames without a tag. */
class Direction {
  readonly bySize = Array.from({ length: SIZE_PLACES }, () => new Float64Array(untaggedPlace + 1));
  readonly broadcast = new Float64Array(untaggedPlace + 1);
  readonly multicast = new Float64Array(untaggedPlace + 1);
  readonly unicast = new Float64Array(untaggedPlace + 1);
  readonly frames = new Float64Array(untaggedPlace + 1);
  readonly octets = new Float64Array(untaggedPlace + 1);

  /** @param tag of the frame, or -1; @param frameBytes with FCS; @param mtuBytes the same of the longest */
  count(bytes: Uint8Array, at: number, tag: number, frameBytes: number, mtuBytes: number): void {
    const place = tag < 0 ? untaggedPlace : tag >>> PRIORITY_SHIFT;
    bump(this.bySize[sizePlaceOf(frameBytes, mtuBytes)]!, place, 1);
    bump(this.#kindOf(bytes, at), place, 1);
    bump(this.frames, place, 1);
    bump(this.octets, place, frameBytes);
  }

  clear(): void {
    const kinds = [this.broadcast, this.multicast, this.unicast, this.frames, this.octets];
    for (const counters of [...this.bySize, ...kinds]) counters.fill(0);
  }

  #kindOf(bytes: Uint8Array, at: number): Float64Array {
    if ((bytes[at]! & GROUP_BIT) === 0) return this.unicast;
    for (let index = 0; index < MAC_BYTES; index++)
      if (bytes[at + index] !== BROADCAST_BYTE) return this.multicast;
    return this.broadcast;
  }
}

export class FrameStatistics {
  readonly received = new Direction();
  readonly transmitted = new Direction();
  readonly #errors: FrameErrors | undefined;
  /** Values of the wire port's counters when these statistics were last cleared. */
  #corruptedBefore = 0;
  #overflowsBefore = 0;
  #discardedBefore = 0;
  #controlBefore = 0;
  readonly #flowControl: Pick<PauseControl, 'totals'>;
  #pausesBefore: PauseTotals = noPauses;

  /**
   * @param errors of the wire port, and its flow control; undefined on a port without one
   */
  constructor(errors: FrameErrors | undefined, flowControl: Pick<PauseControl, 'totals'> = unpaused) {
    this.#errors = errors;
    this.#flowControl = flowControl;
  }

  /** Clears the counters. */
  clear(): void {
    this.received.clear();
    this.transmitted.clear();
    const { received, transmitted } = this.#errors ?? silent;
    this.#corruptedBefore = received.corruptedFrames;
    this.#overflowsBefore = received.fifoDrops;
    this.#discardedBefore = transmitted.discardedFrames;
    this.#controlBefore = this.#flowControl.totals().receivedFrames;
  }

  /** Clears the counters of flow control. */
  clearFlowControl(): void {
    this.#pausesBefore = this.#flowControl.totals();
  }

  /** The answer of DUMP_ETH_STATS for flow control. */
  flowControlReport(): Uint8Array {
    const [now, before] = [this.#flowControl.totals(), this.#pausesBefore];
    const since = (name: keyof PauseTotals): bigint => BigInt(now[name] - before[name]);
    const usSince = (name: keyof PauseTotals): bigint =>
      BigInt(Math.floor((now[name] - before[name]) / psPerUs));
    const pauses = {
      receivedFrames: since('receivedPauses'),
      receivedUs: usSince('pausedPs'),
      receivedTransitions: since('receivedTransitions'),
      sentFrames: since('sentFrames'),
      sentUs: usSince('stoppingPs'),
      sentTransitions: since('sentTransitions'),
    };
    return flowControlStatistics.encode({ priorities: Array.from({ length: priorityCount }, () => pauses) });
  }

  /** The answer of DUMP_ETH_STATS. */
  report(): Uint8Array {
    const { received: inbound, transmitted: outbound } = this;
    const { received, transmitted, config } = this.#errors ?? silent;
    const framingBytes = config.preambleBytes + config.interFrameGapBytes;
    const overflowDrops = received.fifoDrops - this.#overflowsBefore;
    const control = this.#flowControl.totals().receivedFrames - this.#controlBefore;
    return ethernetStatistics.encode({
      receivedBySize: inbound.bySize.map(receivedOf),
      receivedBroadcast: receivedOf(inbound.broadcast),
      receivedMulticast: receivedOf(inbound.multicast),
      receivedOtherGood: receivedOf(inbound.unicast),
      receivedOctets: octetsOf(inbound, framingBytes),
      receivedTotals: totalsOf(inbound),
      receivedControl: BigInt(control),
      transmittedBySize: outbound.bySize.map(transmittedOf),
      transmittedBroadcast: transmittedOf(outbound.broadcast),
      transmittedMulticast: transmittedOf(outbound.multicast),
      transmittedOtherGood: transmittedOf(outbound.unicast),
      transmittedOctets: [...octetsOf(outbound, framingBytes), noOctets],
      transmittedTotals: [...totalsOf(outbound), noTotals],
      crcErrors: received.corruptedFrames - this.#corruptedBefore,
      receiveDrops: overflowDrops,
      overflowDrops,
      goodFrames: sumOf(inbound.frames) % 2 ** 32,
      transmitDrops: transmitted.discardedFrames - this.#discardedBefore,
    });
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { received: sumOf(this.received.frames), transmitted: sumOf(this.transmitted.frames) };
  }
}

/** A port without a cable. */
const silent: FrameErrors = {
  received: { corruptedFrames: 0, fifoDrops: 0 },
  transmitted: { discardedFrames: 0 },
  config: { preambleBytes: 0, interFrameGapBytes: 0 },
};

/** Totals of a port that has neither paused nor been paused. */
export const noPauses = {
  sentFrames: 0,
  sentTransitions: 0,
  stoppingPs: 0,
  receivedFrames: 0,
  receivedPauses: 0,
  receivedTransitions: 0,
  pausedPs: 0,
} satisfies PauseTotals;
const unpaused = { totals: () => noPauses };

const noOctets = { withFraming: 0n, withoutFraming: 0n, good: 0n };
const noTotals = { frames: 0n, tagged: 0n };

const bump = (counters: Float64Array, place: number, amount: number): void => {
  counters[place] = counters[place]! + amount;
};

const sumOf = (counters: Float64Array): number => counters.reduce((sum, count) => sum + count, 0);

const receivedOf = (counters: Float64Array) => ({ frames: Array.from(counters, BigInt) });

/** Counters of transmitted frames end with the frames that never left the port: always 0. */
const transmittedOf = (counters: Float64Array) => ({ frames: [...receivedOf(counters).frames, 0n] });

const octetsOf = ({ octets, frames }: Direction, framingBytes: number) =>
  Array.from(octets, (count, place) => ({
    withFraming: BigInt(count + frames[place]! * framingBytes),
    withoutFraming: BigInt(count),
    good: BigInt(count),
  }));

const totalsOf = ({ frames }: Direction) =>
  Array.from(frames, (count, place) => ({
    frames: BigInt(count),
    tagged: BigInt(place < priorityCount ? count : 0),
  }));

function sizePlaceOf(frameBytes: number, mtuBytes: number): number {
  if (frameBytes > mtuBytes) return GIANT;
  const bin = frameSizeBins.findIndex((longest) => frameBytes <= longest);
  return bin === -1 ? TO_MTU : bin;
}
