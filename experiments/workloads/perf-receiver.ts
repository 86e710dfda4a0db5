/** The receiving side of a bandwidth test. */
import { IBV_WC_WITH_IMM, type IbvWc, WcOpcode } from '../../userlib/index.ts';
import type { PerfLink } from './perf-link.ts';

export const isReceive = ({ opcode }: IbvWc): boolean => (opcode & WcOpcode.IBV_WC_RECV) !== 0;

/** Receives messages and reposts their receives. */
export class Receiver {
  count = 0;
  /** The sender has announced the end. */
  isEnded = false;
  readonly #link: PerfLink;

  constructor(link: PerfLink) {
    this.#link = link;
  }

  take(count: number, taken: readonly IbvWc[]): void {
    for (let at = 0; at < count; at++) {
      const wc = taken[at]!;
      if (!isReceive(wc)) continue;
      this.#link.repost(wc.qpNum);
      if ((wc.wcFlags & IBV_WC_WITH_IMM) !== 0) this.isEnded = true;
      else this.count++;
    }
  }
}
