/**
 * FECN of one output of an InfiniBand switch (IBTA volume 1, annex A10): the parameters are those of SwitchCongestionSetting.
 *
 *     several inputs have packets for a lane of the output, and next to the one that leaves there wait
 *       more than (16 - Threshold) / 16 of a lane's buffer, Threshold from 1 to 15
 *         and credits for more, so that the output itself is the bottleneck: root of congestion ──▶ marked
 *         and no credits: victim of congestion farther on ──▶ marked only at a port of Victim_Mask
 *     not marked: lane 15, packets smaller than Packet_Size, Marking_Rate packets after each marked one
 *
 * Estimates, since the annex leaves them to the switch: the level of a threshold; that packets of one input alone congest no output; that
 * packets after another of their input which leaves elsewhere wait for that one; and that credits for one more packet like the
 * one that leaves make a root. Starvation of credits (Credit_Mask, CS_Threshold, CS_ReturnDelay) is not modelled.
 */
import { FLAG_CONGESTION } from '../../wire/index.ts';
import type { SwitchCongestionConfig } from './parameters.ts';

const THRESHOLD_LEVELS = 16;
/** Packet_Size counts 64 bytes. */
const PACKET_SIZE_BYTES = 64;

/** A packet that is about to leave. */
export interface LeavingPacket {
  readonly lane: number;
  readonly bytes: number;
  /** Bytes that wait for its output and lane with it, and the inputs that have them, its own included. */
  readonly waitingBytes: number;
  readonly inputs: number;
  /** Whether the far end has granted room for another one after it. */
  readonly hasCreditsForMore: boolean;
}

export class FecnMarker {
  /** Packets marked so far. */
  markedCount = 0;
  readonly #config: SwitchCongestionConfig;
  readonly #marksVictims: boolean;
  readonly #levelBytes: number;
  /** Packets since the last marked one that could have been marked, by lane. */
  readonly #sparedCount: Int32Array;

  /**
   * @param laneBufferBytes buffer of a lane at an input
   * @param marksVictims the port's bit of Victim_Mask
   */
  constructor(
    config: SwitchCongestionConfig,
    laneCount: number,
    laneBufferBytes: number,
    marksVictims: boolean,
  ) {
    this.#config = config;
    this.#marksVictims = marksVictims;
    this.#levelBytes = (laneBufferBytes * (THRESHOLD_LEVELS - config.threshold)) / THRESHOLD_LEVELS;
    this.#sparedCount = new Int32Array(laneCount).fill(config.markingRate);
  }

  /** FLAG_CONGESTION if the packet is to be marked as it leaves, or 0. It may be asked again about a packet that cannot leave yet. */
  flagFor(packet: LeavingPacket): number {
    return this.#isDue(packet) && this.#sparedCount[packet.lane]! >= this.#config.markingRate
      ? FLAG_CONGESTION
      : 0;
  }

  /** The packet leaves, with that flag. */
  left(packet: LeavingPacket, flag: number): void {
    const { lane } = packet;
    if (flag !== 0) {
      this.markedCount++;
      this.#sparedCount[lane] = 0;
    } else if (this.#isDue(packet)) {
      this.#sparedCount[lane]!++;
    }
  }

  /** Whether the lane is congested here, and the packet not too small. */
  #isDue({ bytes, waitingBytes, inputs, hasCreditsForMore }: LeavingPacket): boolean {
    return (
      inputs > 1 &&
      waitingBytes > this.#levelBytes &&
      bytes >= this.#config.packetSize * PACKET_SIZE_BYTES &&
      (hasCreditsForMore || this.#marksVictims)
    );
  }
}
