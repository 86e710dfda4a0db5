/**
 * Judges credits by an independent ledger (2.6.1): those that TLPs consume and UpdateFCs return, for the flows of one
 * direction. No TLP leaves without its credits; no credits return that were not consumed; in the end all have returned
 * except those that the receiver may still gather.
 */
import type { LinkPacket } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import {
  type Accuse,
  type Direction,
  dataDwordsOf,
  flowNames,
  flowOf,
  type LinkRule,
  linkBytesOf,
  psPerByteOf,
  roundingPsAt,
  textOf,
} from './link-facts.ts';

/** One of the two kinds of credit of a flow. */
class Credits {
  readonly name: string;
  readonly advertised: number;
  readonly #fieldSize: number;
  taken = 0;
  /** Limits in the order of their arrival. */
  readonly #limits: { readonly atPs: number; readonly limit: number }[];

  constructor(name: string, advertised: number, fieldSize: number) {
    this.name = name;
    this.advertised = advertised;
    this.#fieldSize = fieldSize;
    this.#limits = [{ atPs: Number.NEGATIVE_INFINITY, limit: advertised }];
  }

  get isInfinite(): boolean {
    return this.advertised === 0;
  }

  /** The latest limit, counted on without end. */
  get limit(): number {
    return this.#limits.at(-1)!.limit;
  }

  update(field: number, atPs: number): void {
    const { limit } = this;
    const size = this.#fieldSize;
    const more = (((field - limit) % size) + size) % size;
    this.#limits.push({ atPs, limit: limit + more });
  }

  /** Returns the limit that had arrived before an instant; successive calls must pass increasing instants. */
  limitBefore(ps: number): number {
    const limits = this.#limits;
    while (limits.length > 1 && limits[1]!.atPs < ps) limits.shift();
    return limits[0]!.limit;
  }
}

interface Flow {
  readonly headers: Credits;
  readonly data: Credits;
}

/** Credits of TLPs that travel in `direction`. */
export class CreditRule implements LinkRule {
  readonly #accuse: Accuse;
  readonly #direction: Direction;
  readonly #flows: readonly Flow[];
  readonly #latencyPs: number;
  readonly #psPerByte: number;
  readonly #percent: number;
  readonly #isAtRestInTheEnd: boolean;

  constructor(config: MachineConfig, direction: Direction, isAtRestInTheEnd: boolean, accuse: Accuse) {
    const { link, rootPort, endpointPort } = config.pcie;
    const end = direction === 'toHost' ? rootPort : endpointPort;
    this.#accuse = accuse;
    this.#direction = direction;
    this.#latencyPs = link.latencyPs;
    this.#psPerByte = psPerByteOf(config);
    this.#percent = link.updateFcPercent;
    this.#isAtRestInTheEnd = isAtRestInTheEnd;
    const advertised = [
      [end.postedHeaders, end.postedData],
      [end.nonPostedHeaders, end.nonPostedData],
      [end.completionHeaders, end.completionData],
    ];
    this.#flows = advertised.map(([headers, data], flow) => ({
      headers: new Credits(`${flowNames[flow]} header credits`, headers!, 256),
      data: new Credits(`${flowNames[flow]} data credits`, data!, 4096),
    }));
  }

  see(packet: LinkPacket, direction: Direction): void {
    if (packet.kind === 'UpdateFC') {
      if (direction !== this.#direction) this.#update(packet);
    } else if (direction === this.#direction) this.#take(packet);
  }

  #take(packet: LinkPacket): void {
    const { headers, data } = this.#flows[flowOf(packet)]!;
    // A limit that arrives while the TLP is on the lanes is too late for it.
    const lanesPs = this.#latencyPs + linkBytesOf(packet) * this.#psPerByte;
    // Both instants, of the TLP and of the limit, are rounded beyond 2^53 ps, and so is their difference.
    const slackPs = packet.atPs < 2 ** 53 ? 1 : 4 * roundingPsAt(packet.atPs);
    const leftPs = packet.atPs - lanesPs + slackPs;
    for (const [credits, count] of [
      [headers, 1],
      [data, Math.ceil(dataDwordsOf(packet) / 4)],
    ] as const) {
      credits.taken += count;
      if (credits.isInfinite) continue;
      const limit = credits.limitBefore(leftPs);
      if (credits.taken > limit)
        this.#accuse(`${credits.name}: ${credits.taken} taken of ${limit} by the ${textOf(packet)}`);
    }
  }

  #update({ aux, data, atPs }: LinkPacket): void {
    const flow = this.#flows[aux]!;
    for (const [credits, field] of [
      [flow.headers, (data >>> 14) & 0xff],
      [flow.data, data & 0xfff],
    ] as const) {
      if (credits.isInfinite) continue;
      credits.update(field, atPs);
      const given = credits.limit - credits.advertised;
      if (given > credits.taken)
        this.#accuse(`${credits.name}: ${given} given back of ${credits.taken} taken, at ${atPs} ps`);
    }
  }

  end(): void {
    if (!this.#isAtRestInTheEnd) return;
    for (const { headers, data } of this.#flows)
      for (const credits of [headers, data]) {
        const kept = credits.taken - (credits.limit - credits.advertised);
        const gathered = Math.max(1, Math.floor((credits.advertised * this.#percent) / 100));
        if (!credits.isInfinite && kept >= gathered)
          this.#accuse(`${credits.name}: ${kept} of ${this.#direction} never came back`);
      }
  }
}
