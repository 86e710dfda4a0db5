/** Times of a port's MAC by the machine's parameters, in whole picoseconds (IEEE 802.3-2018, clauses 3 and 4). */
import type { MachineConfig } from '../../../machine/profile/index.ts';

const frameBytesMin = 60;
const fcsBytes = 4;
const tagBytes = 4;
const headerBytes = 14;
const picosecondsOfMegahertz = 1e6;
const longestPayloadBytes = 4096;
/** Picoseconds of a byte, and of the 512 bits of a quantum, at 1 Gb/s. */
const bytePsOfGigabit = 8000;
const quantumPsOfGigabit = 512_000;

export class LinkTimes {
  /** Time from the last bit's departure at one MAC to its arrival at the other. */
  readonly latencyPs: bigint;
  /** Time between the end of a frame and the preamble of the next. */
  readonly gapPs: bigint;
  /** Time within which the last frame begins that a port had accepted before it was paused. */
  readonly takenPs: bigint;
  /** Time of the longest frame, with preamble and gap. */
  readonly longestPs: bigint;
  readonly #ethernet: MachineConfig['ethernet'];

  constructor({ ethernet, hca }: Pick<MachineConfig, 'ethernet' | 'hca'>) {
    this.#ethernet = ethernet;
    const { portLatencyNs, cableMetres, cablePsPerMetre, transmitAheadBytes, mtuBytes } = ethernet;
    this.latencyPs = BigInt(2 * portLatencyNs * 1000 + cableMetres * cablePsPerMetre);
    this.gapPs = this.#bytesPs(ethernet.interFrameGapBytes);
    this.longestPs = this.onLinkPs(headerBytes + tagBytes + mtuBytes) + this.gapPs;
    const payloadBytes = Math.min(longestPayloadBytes, mtuBytes);
    const cycles = Math.ceil(payloadBytes / hca.transmitBytesPerCycle) + 2;
    const formingPs = BigInt(Math.ceil((cycles * picosecondsOfMegahertz) / hca.coreClockMHz));
    const aheadPs = this.#bytesPs(transmitAheadBytes) + 1n;
    this.takenPs = formingPs > aheadPs ? formingPs : aheadPs;
  }

  /** Time of a frame without its FCS, from the first bit of its preamble on. */
  onLinkPs(frameBytes: number): bigint {
    return this.#bytesPs(this.#ethernet.preambleBytes + Math.max(frameBytes, frameBytesMin) + fcsBytes);
  }

  quantaPs(quanta: number): bigint {
    return BigInt(Math.floor((quanta * quantumPsOfGigabit) / this.#ethernet.gigabitsPerSecond));
  }

  #bytesPs(bytes: number): bigint {
    return BigInt(Math.floor((bytes * bytePsOfGigabit) / this.#ethernet.gigabitsPerSecond));
  }
}
