/**
 * Arrivals of a program at lines with a breakpoint; the first arrival after a given place counts.
 *
 * The code of a program runs ahead of its machine up to the next wait, and one host ahead of the other: the first
 * arrival is known once the machine has passed its instant.
 */
import type { ProgramContext } from '../../browser.ts';
import type { Arrival, StandingPlace } from '../protocol.ts';

export class Arrivals {
  readonly #breakpoints: ReadonlySet<number>;
  readonly #stood: StandingPlace;
  readonly #programs: (ProgramContext | undefined)[] = [undefined, undefined];
  /** Lines that each host has reached. */
  readonly #counts = [0, 0];
  #first: Arrival | undefined;
  #standsAt: Arrival | undefined;

  /** @param stood a place that the program has already passed; if omitted, every arrival counts */
  constructor(breakpoints: readonly number[], stood: StandingPlace = { atPs: -1, reached: undefined }) {
    this.#breakpoints = new Set(breakpoints);
    this.#stood = stood;
  }

  /** The arrival at which the program had stopped, once the program has reached it again. */
  get standsAt(): Arrival | undefined {
    return this.#standsAt;
  }

  /** The first arrival after that one, once the machine has passed its instant. */
  firstUntil(nowPs: number): Arrival | undefined {
    return this.#first !== undefined && this.#first.atPs <= nowPs ? this.#first : undefined;
  }

  /** The program of a host begins. */
  began(program: ProgramContext): void {
    this.#programs[program.node] = program;
  }

  /** A host has reached a line, which it runs next. */
  reached(node: number, line: number): void {
    const thread = this.#programs[node]?.host.cores.find(({ running }) => running !== undefined)?.running;
    if (thread === undefined) return;
    const arrival = { node, ordinal: this.#counts[node]!++, line, atPs: thread.localPs };
    const { reached } = this.#stood;
    if (reached?.node === node && reached.ordinal === arrival.ordinal) this.#standsAt = arrival;
    if (!this.#breakpoints.has(line) || !this.#isAfterStood(arrival)) return;
    if (this.#first === undefined || isBefore(arrival, this.#first)) this.#first = arrival;
  }

  /** Without a line, the program was stopped at an instant: arrivals at that instant are still to come. */
  #isAfterStood(arrival: Arrival): boolean {
    const { atPs, reached } = this.#stood;
    return reached === undefined ? arrival.atPs >= atPs : isBefore({ atPs, ...reached }, arrival);
  }
}

type Place = Pick<Arrival, 'atPs' | 'node' | 'ordinal'>;

/** Ordered by instant, then by host, then by program order. */
const isBefore = (one: Place, other: Place): boolean =>
  one.atPs - other.atPs < 0 ||
  (one.atPs === other.atPs &&
    (one.node < other.node || (one.node === other.node && one.ordinal < other.ordinal)));
