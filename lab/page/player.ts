/** The displayed instant, which plays, steps and jumps; its owner draws it. */
export class Player {
  readonly #moved: () => void;
  #atPs = 0;
  #fromPs = 0;
  #toPs = 0;
  #frame = 0;

  constructor(moved: () => void) {
    this.#moved = moved;
  }

  get atPs(): number {
    return this.#atPs;
  }

  get isPlaying(): boolean {
    return this.#frame !== 0;
  }

  /** Sets the displayed time range; the instant stays within it. */
  spans(fromPs: number, toPs: number): void {
    this.#fromPs = fromPs;
    this.#toPs = toPs;
    this.#atPs = Math.min(toPs, Math.max(fromPs, this.#atPs));
  }

  goTo(atPs: number): void {
    this.pause();
    this.#atPs = Math.min(this.#toPs, Math.max(this.#fromPs, Math.round(atPs)));
    this.#moved();
  }

  /** Moves to the next of these ascending instants, or to the previous one. */
  step(instants: readonly number[], direction: 1 | -1): void {
    const next =
      direction === 1
        ? instants.find((each) => each > this.#atPs)
        : instants.findLast((each) => each < this.#atPs);
    this.goTo(next ?? (direction === 1 ? this.#toPs : this.#fromPs));
  }

  /** Plays from here to the end, the whole range in this many seconds; from the beginning if the instant is at the end. */
  play(seconds: number): void {
    if (this.#atPs >= this.#toPs) this.#atPs = this.#fromPs;
    let lastMs = performance.now();
    const turn = (nowMs: number): void => {
      const passedMs = Math.max(0, nowMs - lastMs);
      lastMs = nowMs;
      const stepPs = ((this.#toPs - this.#fromPs) * passedMs) / (seconds * 1000);
      this.#atPs = Math.min(this.#toPs, Math.round(this.#atPs + stepPs));
      this.#frame = this.#atPs < this.#toPs ? requestAnimationFrame(turn) : 0;
      this.#moved();
    };
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(turn);
    this.#moved();
  }

  pause(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }
}
