/**
 * The reaction point: the rates of the card's QPs. A QP without feedback so far sends at line rate and costs nothing.
 *
 *     receiver ─CNP─▶ ┌───────────────┐
 *     ACKs ─────────▶ │ RateControl   │ ─▶ QueuePair.pacedCycle ─▶ requester, response engine: next packet not before
 *     packets made ─▶ └───────────────┘
 *
 * Each packet delays the next one of its QP by its own time at the rate of that instant. A packet that had to wait for others
 * lets the next one follow earlier, by at most that time. Requests and READ responses of a QP take one path to one peer, so they
 * share its rate; acknowledgements and CNPs are not delayed.
 *
 * Counters have the names of mlx5's (drivers/infiniband/hw/mlx5/counters.c): rp_cnp_handled, rp_cnp_ignored.
 */
import type { Cycles, Picoseconds } from '../../../../base/index.ts';
import type { BlockState, Clock, ClockDomain } from '../../../../sim/index.ts';
import { packetBytesOf } from '../../../../wire/index.ts';
import { type QpSlot, type QueuePair, UD_OPCODE_BASE } from '../../objects/index.ts';
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
};

/** Parts of the device that {@link ReactionPoint} uses. */
export interface ReactionPointSetup {
  readonly domain: ClockDomain;
  readonly congestion: CongestionConfig;
  /** Rate of the port; and bytes of the cable next to each packet: preamble and gap. */
  readonly lineRateMbps: number;
  readonly overheadBytes: number;
}

/** A QP with a rate. */
interface Limited {
  readonly control: RateControl;
  /** Edge, with its fraction, from which the next packet may be made. */
  nextCycle: number;
}

export class ReactionPoint {
  /** CNPs that were for a QP whose rate they may reduce, and others. */
  handledCount = 0;
  ignoredCount = 0;
  readonly #algorithm: Algorithm | undefined;
  readonly #config: CongestionConfig;
  readonly #domain: ClockDomain;
  readonly #clock: Clock;
  readonly #lineRateMbps: number;
  readonly #overheadBytes: number;
  /** By slot. */
  readonly #limited = new Map<QpSlot, Limited>();

  constructor({ domain, congestion, lineRateMbps, overheadBytes }: ReactionPointSetup) {
    const { algorithm } = congestion;
    this.#algorithm = algorithm === 'none' ? undefined : algorithms[algorithm];
    this.#config = congestion;
    this.#domain = domain;
    this.#clock = domain.clock;
    this.#lineRateMbps = lineRateMbps;
    this.#overheadBytes = overheadBytes;
  }

  /** False without congestion control. */
  get isOn(): boolean {
    return this.#algorithm !== undefined;
  }

  /** A CNP has arrived for the QP. */
  notified(pair: QueuePair, cycle: Cycles): void {
    if (this.#algorithm?.feedback !== CNP || pair.opcodeBase === UD_OPCODE_BASE) {
      this.ignoredCount++;
      return;
    }
    this.handledCount++;
    this.#feedback(pair.slot, cycle, 0);
  }

  /** The peer has acknowledged a message, whose last packet had left at `sentCycle`. */
  acknowledged(pair: QueuePair, sentCycle: Cycles, cycle: Cycles): void {
    if (this.#algorithm?.feedback !== ROUND_TRIP) return;
    this.#feedback(pair.slot, cycle, this.#clock.edgePs(cycle) - this.#clock.edgePs(sentCycle));
  }

  #feedback(slot: QpSlot, cycle: Cycles, roundTripPs: Picoseconds): void {
    const atPs = this.#clock.edgePs(cycle);
    let limited = this.#limited.get(slot);
    if (limited === undefined) {
      const control = this.#algorithm!.make(this.#config, this.#lineRateMbps, atPs);
      limited = { control, nextCycle: cycle };
      this.#limited.set(slot, limited);
    }
    limited.control.onFeedback(atPs, roundTripPs);
  }

  /** A packet of the QP has been made: the next one waits for as long as this one takes at the QP's rate. */
  made(pair: QueuePair, opcode: number, payloadBytes: number): void {
    const limited = this.#limited.get(pair.slot);
    if (limited === undefined) return;
    const { control } = limited;
    const { cycle } = this.#domain;
    const atPs = this.#clock.edgePs(cycle);
    const bytes = packetBytesOf(opcode, payloadBytes, true) + this.#overheadBytes;
    control.onSent(bytes, atPs);
    const rateMbps = control.rateMbps(atPs);
    if (rateMbps >= this.#lineRateMbps) return;
    const distanceCycles = (bytes * 8 * this.#clock.frequencyMHz) / rateMbps;
    limited.nextCycle = Math.max(limited.nextCycle, cycle - distanceCycles) + distanceCycles;
    pair.pacedCycle = Math.ceil(limited.nextCycle);
  }

  /** The rate of a QP. */
  rateMbps(slot: QpSlot, cycle: Cycles): number {
    return this.#limited.get(slot)?.control.rateMbps(this.#clock.edgePs(cycle)) ?? this.#lineRateMbps;
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
      limited.control.rebase(ps);
    }
  }
}
