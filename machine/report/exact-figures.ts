/**
 * Figures of time that a number of JSON does not hold exactly: from 2^53 ps on, which are two and a half hours. A report has
 * the nearest number in its place, which is good to one part in 10^15, and all digits next to it:
 *
 *     "elapsedPs": 2592000000123456800,
 *     "exactPs": { "elapsedPs": "2592000000123456789" }
 */
import type { ExactPs } from '../../sim/index.ts';

/** Decimal digits by the place of the figure in the report, dotted. */
export type ExactDigits = Readonly<Record<string, string>>;

export class ExactFigures {
  readonly #digits: Record<string, string> = {};

  /** The number to stand at this place of the report. */
  numberOf(place: string, ps: ExactPs): number {
    if (typeof ps === 'bigint') this.#digits[place] = ps.toString();
    return Number(ps);
  }

  /** The digits as a field of the report; nothing while all its numbers are exact. */
  get field(): { readonly exactPs?: ExactDigits } {
    return Object.keys(this.#digits).length === 0 ? {} : { exactPs: this.#digits };
  }
}
