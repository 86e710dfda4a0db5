/**
 * The data rate of a link, and the serializer that occupies it packet by packet without rounding.
 *
 * Source: InfiniBand Architecture Specification, volume 2, chapters 5 and 6: SDR, DDR and QDR carry 8 bits in 10,
 * FDR10, FDR and EDR 64 in 66. HDR and NDR lanes signal PAM4 and carry 256b/257b blocks within RS(544,514) words:
 * 256/257 × 514/544 is 16 in 17 (IBTA roadmap: 4X HDR is 200 Gb/s, 4X NDR is 400 Gb/s).
 */

import { asInteger, type Picoseconds } from '../base/index.ts';
import { fecLatencyPs } from './forward-error-correction.ts';
import type { WireConfig } from './parameters.ts';

/** Lane signalling in kilobits per second, and the code's share of data bits. */
const speedTable = {
  SDR: { kilobits: 2_500_000, data: 8, coded: 10 },
  DDR: { kilobits: 5_000_000, data: 8, coded: 10 },
  QDR: { kilobits: 10_000_000, data: 8, coded: 10 },
  FDR10: { kilobits: 10_312_500, data: 64, coded: 66 },
  FDR: { kilobits: 14_062_500, data: 64, coded: 66 },
  EDR: { kilobits: 25_781_250, data: 64, coded: 66 },
  HDR: { kilobits: 53_125_000, data: 16, coded: 17 },
  NDR: { kilobits: 106_250_000, data: 16, coded: 17 },
} as const;

/** Kilobits per second on all lanes of a link together, with those of its codes. */
const signallingKbps = ({ speed, lanes }: Pick<WireConfig, 'speed' | 'lanes'>): number =>
  speedTable[speed].kilobits * Number(lanes);

const PS_MEGABITS_PER_BYTE = 8_000_000;
const PS_KILOBITS_PER_BYTE = 8 * 1_000_000_000;

/** Time of one byte on a link as an exact ratio of picoseconds. */
export interface ByteTime {
  readonly numeratorPs: Picoseconds;
  readonly denominator: number;
}

/** Time of one data byte: 250 ps at 4X QDR, 440/3 ps at 4X FDR. */
export function byteTimeOf(config: Pick<WireConfig, 'speed' | 'lanes'>): ByteTime {
  const { kilobits, data, coded } = speedTable[config.speed];
  const numerator = PS_KILOBITS_PER_BYTE * coded;
  const denominator = kilobits * data * Number(config.lanes);
  const divisor = greatestCommonDivisor(numerator, denominator);
  return { numeratorPs: asInteger(numerator / divisor), denominator: asInteger(denominator / divisor) };
}

/** Rate of data bytes: 32,000 Mb/s at 4X QDR. */
export function dataRateMbpsOf(config: Pick<WireConfig, 'speed' | 'lanes'>): number {
  const { numeratorPs, denominator } = byteTimeOf(config);
  return (PS_MEGABITS_PER_BYTE * denominator) / numeratorPs;
}

/** Time from a packet's last symbol leaving the sending port's logic until the packet is complete at the receiver: a channel's latency. */
export function wireLatencyPs(config: WireConfig): number {
  const { portLatencyNs, switchLatencyNs, cableMetres, cablePsPerMetre } = config;
  const portsPs = (2 * portLatencyNs + switchLatencyNs) * 1000;
  return portsPs + cableMetres * cablePsPerMetre + fecLatencyPs(config.fec, signallingKbps(config));
}

/**
 * When a packet's record arrives: with its last byte, as a channel adapter takes packets, or with its first, as a switch does that
 * forwards a packet before it is complete.
 */
export type PacketArrival = 'head' | 'tail';

/** Time from the record of a packet until its last byte, for its bytes from LRH to VCRC. */
export function tailDelayOf(
  config: WireConfig,
  arrival: PacketArrival,
): (packetBytes: number) => Picoseconds {
  const { numeratorPs, denominator } = byteTimeOf(config);
  const { framingBytes } = config;
  return arrival === 'tail'
    ? () => 0
    : (packetBytes) => Math.floor(((packetBytes + framingBytes) * numeratorPs) / denominator);
}

/** Occupies a link. The returned instants are the floor of the exact ones, and never drift. */
export class Serializer {
  /** Instant at which the link is free, with the fraction of a picosecond kept separately. */
  freePs = 0;
  /** Picoseconds the link has been occupied, floor. */
  busyPs = 0;
  readonly #numeratorPs: Picoseconds;
  readonly #denominator: number;
  #remainder = 0;

  constructor(byteTime: ByteTime) {
    this.#numeratorPs = byteTime.numeratorPs;
    this.#denominator = byteTime.denominator;
  }

  /** Sends `bytes` as soon as the link is free; returns the instant at which the last one has left. */
  occupy(nowPs: Picoseconds, bytes: number): number {
    if (nowPs > this.freePs) {
      this.freePs = nowPs;
      this.#remainder = 0;
    }
    const total = this.#remainder + bytes * this.#numeratorPs;
    // All of these are 31-bit integers for packets.
    const wholePs = (total / this.#denominator) | 0;
    this.#remainder = total - wholePs * this.#denominator;
    this.busyPs += wholePs;
    this.freePs += wholePs;
    return this.freePs;
  }

  /** Holds the link, unused, for `durationPs` after all reservations. */
  hold(nowPs: Picoseconds, durationPs: Picoseconds): void {
    if (nowPs > this.freePs) {
      this.freePs = nowPs;
      this.#remainder = 0;
    }
    this.freePs += durationPs;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.freePs -= ps;
  }

  /** Duration of `bytes`, rounded down. */
  durationPs(bytes: number): number {
    return Math.floor((bytes * this.#numeratorPs) / this.#denominator);
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
