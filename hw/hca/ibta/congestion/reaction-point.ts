/**
 * The reaction point: the rates of the card's QPs. A QP without feedback so far, and without a static rate of its path, sends at
 * line rate and costs nothing.
 *
 *     receiver ─CNP─▶ ┌───────────────┐
 *     ACKs ─────────▶ │ RateControl   │ ─▶ QueuePair.pacedCycle ─▶ requester, response engine: next packet not before
 *     packets made ─▶ └───────────────┘
 *     path's static rate ─▶ the lower of both
 *
 * Each packet delays the next one of its QP by its own time at the rate of that instant. A packet that had to wait for others
 * lets the next one follow earlier, by at most that time. Requests and READ responses of a QP take one path to one peer, so they
 * share its rate; acknowledgements and CNPs are not delayed.
 *
 * On InfiniBand a response with BECN is the same signal as a CNP (annex A10).
 *
 * Counters have the names of mlx5's (drivers/infiniband/hw/mlx5/counters.c): rp_cnp_handled, rp_cnp_ignored.
 */
import type { Cycles, Picoseconds } from '../../../../base/index.ts';
import type { BlockState, Clock, ClockDomain } from '../../../../sim/index.ts';
import { packetBytesOf } from '../../../../wire/index.ts';
import { staticRateMbps } from '../../../management/index.ts';
import { type QpSlot, type QueuePair, UD_OPCODE_BASE } from '../../objects/index.ts';
import { Cct } from './cct.ts';
import { Dcqcn } from './dcqcn.ts';
import type { CongestionConfig } from './parameters.ts';
import { CNP, type Feedback, type RateControl, ROUND_TRIP } from './rate-control.ts';
import { Timely } from './timely.ts';

/** An algorithm: the signal that it uses, and the control of a QP. */
interface Algorithm {
  readonly feedback: Feedback;
  make(config: CongestionConfig, lineRateMbps: number, atPs: Picoseconds): RateControl;
}

const algorithms: Readonly<Record<Exclude<CongestionConfig['algorithm'], 'none'>, Algorithm>> = {
  dcqcn: { feedback: CNP, make: ({ dcqcn }, rate, atPs) => new Dcqcn(dcqcn, rate, atPs) },
  timely: { feedback: ROUND_TRIP, make: ({ timely }, rate) => new Timely(timely, rate) },
  cct: { feedback: CNP, make: ({ cct }, rate) => new Cct(cct, rate) },
};

/** Parts of the device that {@link ReactionPoint} uses. */
export interface ReactionPointSetup {
  readonly domain: ClockDomain;
  readonly congestion: CongestionConfig;
  /** Whether QPs and datagrams keep the static rates of their paths. */
  readonly keepsStaticRates: boolean;
  /** The lines of the ports. */
  readonly lines: readonly Line[];
}

/** The rate of a port's cable. */
export interface Line {
  readonly rateMbps: number;
  /** Bytes of the cable next to each packet: framing, or preamble and gap. */
  readonly overheadBytes: number;
}

/** A QP with a rate. */
interface Limited {
  /** Undefined without feedback so far. */
  control: RateControl | undefined;
  /** Edge, with its fraction, from which the next packet may be made. */
  nextCycle: number;
}

/** Distances are rounded to 2^-16 cycle: sums of such numbers are exact, so pacing is identical in every epoch. */
const partsOfCycle = 2 ** 16;
const wholeParts = (cycles: number): number => Math.floor(cycles * partsOfCycle) / partsOfCycle;

export class ReactionPoint {
  /** CNPs that were for a QP whose rate they may reduce, and others. */
  handledCount = 0;
  ignoredCount = 0;
  readonly #algorithm: Algorithm | undefined;
  readonly #config: CongestionConfig;
  readonly #domain: ClockDomain;
  readonly #clock: Clock;
  readonly #lines: readonly Line[];
  readonly #keepsStaticRates: boolean;
  /** By slot. */
  readonly #limited = new Map<QpSlot, Limited>();

  constructor({ domain, congestion, keepsStaticRates, lines }: ReactionPointSetup) {
    const { algorithm } = congestion;
    this.#algorithm = algorithm === 'none' ? undefined : algorithms[algorithm];
    this.#config = congestion;
    this.#domain = domain;
    this.#clock = domain.clock;
    this.#lines = lines;
    this.#keepsStaticRates = keepsStaticRates;
  }

  /** False without congestion control. */
  get isOn(): boolean {
    return this.#algorithm !== undefined;
  }

  /** Whether packets may be delayed. */
  get isPacing(): boolean {
    return this.isOn || this.#keepsStaticRates;
  }

  /** A CNP, or a response with BECN, has arrived for the QP. */
  notified(pair: QueuePair, cycle: Cycles): void {
    if (this.#algorithm?.feedback !== CNP || pair.opcodeBase === UD_OPCODE_BASE) {
      this.ignoredCount++;
      return;
    }
    this.handledCount++;
    this.#feedback(pair, cycle, 0);
  }

  /** The peer has acknowledged a message, whose last packet had left at `sentCycle`. */
  acknowledged(pair: QueuePair, sentCycle: Cycles, cycle: Cycles): void {
    if (this.#algorithm?.feedback !== ROUND_TRIP) return;
    this.#feedback(pair, cycle, this.#clock.edgePs(cycle) - this.#clock.edgePs(sentCycle));
  }

  #feedback({ slot, portIndex, staticRateCode }: QueuePair, cycle: Cycles, roundTripPs: Picoseconds): void {
    const atPs = this.#clock.edgePs(cycle);
    const limited = this.#limitedOf(slot, cycle);
    limited.control ??= this.#algorithm!.make(
      this.#config,
      Math.min(this.#lines[portIndex]!.rateMbps, this.#staticMbps(staticRateCode)),
      atPs,
    );
    limited.control.onFeedback(atPs, roundTripPs);
  }

  #staticMbps(rateCode: number): number {
    return this.#keepsStaticRates ? staticRateMbps(rateCode) : Number.POSITIVE_INFINITY;
  }

  #limitedOf(slot: QpSlot, cycle: Cycles): Limited {
    let limited = this.#limited.get(slot);
    if (limited === undefined) {
      limited = { control: undefined, nextCycle: cycle };
      this.#limited.set(slot, limited);
    }
    return limited;
  }

  /**
   * A packet of the QP has been made: the next one waits for as long as this one takes at the QP's rate.
   * @param rateCode static rate of the packet's path; 0 for none
   * @param hasGrh whether the packet has a GRH
   */
  made(pair: QueuePair, opcode: number, payloadBytes: number, rateCode: number, hasGrh: boolean): void {
    const line = this.#lines[pair.portIndex]!;
    const staticMbps = this.#staticMbps(rateCode);
    const { cycle } = this.#domain;
    const limited =
      staticMbps < line.rateMbps ? this.#limitedOf(pair.slot, cycle) : this.#limited.get(pair.slot);
    if (limited === undefined) return;
    const atPs = this.#clock.edgePs(cycle);
    const bytes = packetBytesOf(opcode, payloadBytes, hasGrh) + line.overheadBytes;
    limited.control?.onSent(bytes, atPs);
    const rateMbps = Math.min(limited.control?.rateMbps(atPs) ?? line.rateMbps, staticMbps);
    if (rateMbps >= line.rateMbps) return;
    const distanceCycles = wholeParts((bytes * 8 * this.#clock.frequencyMHz) / rateMbps);
    limited.nextCycle = Math.max(limited.nextCycle, cycle - distanceCycles) + distanceCycles;
    pair.pacedCycle = Math.ceil(limited.nextCycle);
  }

  /** The rate of a QP. */
  rateMbps({ slot, portIndex }: QueuePair, cycle: Cycles): number {
    const limited = this.#limited.get(slot);
    return limited?.control?.rateMbps(this.#clock.edgePs(cycle)) ?? this.#lines[portIndex]!.rateMbps;
  }

  /** A generation of the QP begins or ends. */
  forget(slot: QpSlot): void {
    this.#limited.delete(slot);
  }

  reset(): void {
    this.#limited.clear();
  }

  inspect(): BlockState {
    return { limited: [...this.#limited.keys()] };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    const ps = -this.#clock.edgePs(-cycles);
    for (const limited of this.#limited.values()) {
      limited.nextCycle -= cycles;
      limited.control?.rebase(ps);
    }
  }
}
