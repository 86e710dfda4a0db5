/** Round-trip time and retransmission time of a connection. Source: RFC 6298; the caller selects samples by Karn's rule. */

/** Microseconds in, picoseconds out: bounds of the retransmission time. */
export interface RetransmitLimits {
  readonly initialPs: number;
  readonly minPs: number;
  readonly maxPs: number;
}

export class RoundTrip {
  /** Smoothed round-trip time and its variation in picoseconds; 0 before the first sample. */
  smoothedPs = 0;
  variationPs = 0;
  /** Doublings since the last measurement: an acknowledgement of data sent again is none (RFC 6298, 5.7; Karn). */
  backoff = 0;
  readonly #limits: RetransmitLimits;
  #basePs: number;

  constructor(limits: RetransmitLimits) {
    this.#limits = limits;
    this.#basePs = limits.initialPs;
  }

  /** How long to wait for an acknowledgement. */
  get timeoutPs(): number {
    return Math.min(this.#basePs * 2 ** Math.min(this.backoff, 20), this.#limits.maxPs);
  }

  /** Records a measurement; ends the backoff. */
  sample(roundTripPs: number): void {
    this.backoff = 0;
    if (this.smoothedPs === 0) {
      this.smoothedPs = roundTripPs;
      this.variationPs = Math.floor(roundTripPs / 2);
    } else {
      const errorPs = Math.abs(this.smoothedPs - roundTripPs);
      this.variationPs = Math.floor((3 * this.variationPs + errorPs) / 4);
      this.smoothedPs = Math.floor((7 * this.smoothedPs + roundTripPs) / 8);
    }
    const wantedPs = this.smoothedPs + 4 * this.variationPs;
    this.#basePs = Math.min(Math.max(wantedPs, this.#limits.minPs), this.#limits.maxPs);
  }
}
