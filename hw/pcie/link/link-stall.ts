/** Reason and duration of the wait of each flow's oldest TLP in its transmit fifo. */
import type { Picoseconds } from '../../../base/index.ts';
import { NOT_STALLED, stallReasons } from '../../../sim/index.ts';
import { FLOW_COUNT } from '../tlp/index.ts';

const stalls = stallReasons('serializer', 'headerCredits', 'dataCredits', 'ordering');
export const STALL_REASONS: readonly string[] = Object.keys(stalls);
export const {
  serializer: STALL_SERIALIZER,
  headerCredits: STALL_HEADER_CREDITS,
  dataCredits: STALL_DATA_CREDITS,
  ordering: STALL_ORDERING,
} = stalls;
const STALL_COUNT = STALL_REASONS.length;

export class StallAccount {
  /** Picoseconds for which the oldest TLP of flow f waited for reason r, at f × 4 + r. */
  readonly stallPs = new Float64Array(FLOW_COUNT * STALL_COUNT);
  readonly #reason = new Int8Array(FLOW_COUNT).fill(NOT_STALLED);
  readonly #sincePs = new Float64Array(FLOW_COUNT);

  /** Notes that from `nowPs` on the oldest TLP of the flow waits for `reason`, or does not wait. */
  note(flow: number, reason: number, nowPs: Picoseconds): void {
    const old = this.#reason[flow]!;
    if (old !== NOT_STALLED) {
      const account = flow * STALL_COUNT + old;
      this.stallPs[account] = this.stallPs[account]! + nowPs - this.#sincePs[flow]!;
    }
    this.#reason[flow] = reason;
    this.#sincePs[flow] = nowPs;
  }

  /** Why the oldest TLP of the flow waits now; undefined if none does. */
  reasonOf(flow: number): string | undefined {
    return STALL_REASONS[this.#reason[flow]!];
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (let flow = 0; flow < FLOW_COUNT; flow++) this.#sincePs[flow] = this.#sincePs[flow]! - ps;
  }

  /** Brings all times up to `nowPs`. */
  close(nowPs: Picoseconds): void {
    for (let flow = 0; flow < FLOW_COUNT; flow++) this.note(flow, this.#reason[flow]!, nowPs);
  }
}
