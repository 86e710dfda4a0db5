/** Completions: polled from every CQ, written down with the bytes that they brought. */
import { IBV_WC_SUCCESS, IbvWc, pollCq } from '../../userlib/index.ts';
import type { CompletionSeen } from '../observations.ts';
import { lengthOf, type SgePlan } from '../story.ts';
import type { Receives } from './receives.ts';
import { base64, type Mutable, type Session } from './session.ts';

const polledAtOnce = 16;

export class Completions {
  readonly #session: Session;
  readonly #receives: Receives;
  readonly #qpByNumber = new Map<number, number>();
  readonly #wcs = Array.from({ length: polledAtOnce }, () => new IbvWc());

  constructor(session: Session, receives: Receives) {
    this.#session = session;
    this.#receives = receives;
  }

  /** The QP of the plan that has this number from now on. */
  isNumbered(index: number, qpNum: number): void {
    this.#qpByNumber.set(qpNum, index);
  }

  /**
   * Polls every CQ once and posts the receives that find room. @returns completions polled
   */
  async pump(): Promise<number> {
    const session = this.#session;
    let taken = 0;
    for (const [index, cq] of session.cqs.entries()) {
      if (cq === undefined) continue;
      const fromPs = session.nowPs;
      const count = await pollCq(cq, polledAtOnce, this.#wcs);
      const toPs = session.nowPs;
      for (let at = 0; at < count; at++) this.#take(index, this.#wcs[at]!, fromPs, toPs);
      taken += count;
    }
    this.#receives.postDeferred();
    return taken;
  }

  #take(cq: number, wc: IbvWc, fromPs: number, toPs: number): void {
    const { seen: all, plan, sendsById, statuses, qps } = this.#session;
    const qp = this.#qpByNumber.get(wc.qpNum) ?? -1;
    const send = sendsById.get(wc.wrId);
    const receive = this.#receives.ended(wc.wrId);
    const seen: Mutable<CompletionSeen> = {
      id: wc.wrId,
      qp,
      cq,
      status: wc.status,
      opcode: wc.opcode,
      byteLen: wc.byteLen,
      imm: wc.immData,
      flags: wc.wcFlags,
      fromPs,
      toPs,
    };
    const isOk = wc.status === IBV_WC_SUCCESS;
    if (isOk && receive !== undefined) seen.bytes = base64(this.#gather(receive.sges));
    else if (isOk && send?.sges.some(({ area }) => plan.areas[area]!.kind === 'sink'))
      seen.bytes = base64(this.#gather(send.sges));
    all.completions.push(seen);
    if (send !== undefined) statuses.set(wc.wrId, wc.status);
    const open = qps[qp];
    const place = open?.outstanding.findIndex(({ id }) => id === wc.wrId) ?? -1;
    if (place >= 0) open!.outstanding.splice(0, place + 1);
  }

  #gather(sges: readonly SgePlan[]): Uint8Array {
    const { program, areas } = this.#session;
    const bytes = new Uint8Array(lengthOf(sges));
    let at = 0;
    for (const { area, offset, length } of sges) {
      bytes.set(program.memory.read(areas[area]!.address + offset, length), at);
      at += length;
    }
    return bytes;
  }
}
