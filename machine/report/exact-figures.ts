/**
 * Times that a JSON number does not represent exactly: from 2^53 ps (two and a half hours) on. A report has the nearest
 * number in their place, accurate to one part in 10^15, and all digits separately:
 *
 *     "elapsedPs": 2592000000123456800,
 *     "exactPs": { "elapsedPs": "2592000000123456789" }
 */
import type { ExactPs } from '../../sim/index.ts';

/** Decimal digits, by the dotted path of the figure in the report. */
export type ExactDigits = Readonly<Record<string, string>>;

export class ExactFigures {
  readonly #digits: Record<string, string> = {};

  /** The number for this place of the report. */
  numberOf(place: string, ps: ExactPs): number {
    if (typeof ps === 'bigint') this.#digits[place] = ps.toString();
    return Number(ps);
  }

  /** The digits as a field of the report; empty if all its numbers are exact. */
  get field(): { readonly exactPs?: ExactDigits } {
    return Object.keys(this.#digits).length === 0 ? {} : { exactPs: this.#digits };
  }
}
