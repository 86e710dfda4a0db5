/**
 * Waits of a player: each ends when nothing has progressed for longer than the attributes of the QPs explain. Meanwhile
 * the player polls all its CQs, and posts receives for which no room was left.
 */
import { psPerMs, psPerSecond, psPerUs } from '../../base/index.ts';
import { basePatiencePs, peerPatienceFactor } from '../patience.ts';
import type { Completions } from './completions.ts';
import type { Receives } from './receives.ts';
import { napPs, type Session } from './session.ts';

/** Time after which a waiting program posts the receives it has. */
const hastePs = 200 * psPerUs;

export class Waiting {
  readonly #session: Session;
  readonly #completions: Completions;
  readonly #receives: Receives;

  constructor(session: Session, completions: Completions, receives: Receives) {
    this.#session = session;
    this.#completions = completions;
    this.#receives = receives;
  }

  /**
   * Polls until a condition holds. @returns false when nothing has progressed for too long
   */
  async until(
    what: string,
    holds: () => boolean | Promise<boolean>,
    patiencePs = this.#session.isImpatient ? basePatiencePs : this.#session.patiencePs,
  ): Promise<boolean> {
    const session = this.#session;
    let nap = napPs;
    let movedPs = session.nowPs;
    for (;;) {
      if ((await this.#completions.pump()) > 0) {
        movedPs = session.nowPs;
        nap = napPs;
      }
      if (await holds()) return true;
      if (session.isConnected && session.nowPs - movedPs > hastePs) this.#receives.hasten();
      if (session.nowPs - movedPs > patiencePs) {
        session.seen.impatience.push(what);
        session.isImpatient = true;
        return false;
      }
      await session.program.cpu.sleep(nap);
      // A peer may wait for a receive that found no room, and retry it every few microseconds.
      const longestPs = Math.min(
        this.#receives.isAnyDeferred ? psPerSecond : Number.POSITIVE_INFINITY,
        Math.floor(patiencePs / 256),
      );
      nap = Math.min(2 * nap, Math.max(50 * psPerMs, longestPs));
    }
  }

  /** Waits for news of a peer, which may itself be waiting for its requests. */
  untilPeer(what: string, holds: () => Promise<boolean>): Promise<boolean> {
    return this.until(what, holds, peerPatienceFactor * this.#session.patiencePs);
  }

  /** Waits for all requests to complete, with the patience of the beginning. */
  untilSent(): Promise<boolean> {
    const { patiencePs } = this.#session;
    return this.until('sends to complete', () => this.#session.outstandingCount === 0, patiencePs);
  }

  /**
   * Waits until every program of another host has reached this point: each of its messages may have waited for a
   * receive.
   */
  async rendezvous(where: string): Promise<void> {
    const { program, index } = this.#session;
    await this.announce(where);
    for (const other of this.#others()) {
      let isHere = false;
      await this.untilPeer(`program ${other} to ${where}`, async () => {
        isHere ||= (await program.exchange.poll(`${where} ${other}>${index}`)) !== undefined;
        return isHere;
      });
    }
  }

  async announce(where: string): Promise<void> {
    const { program, index } = this.#session;
    for (const other of this.#others()) await program.exchange.put(`${where} ${index}>${other}`, true);
  }

  #others(): number[] {
    const { story, plan } = this.#session;
    return story.programs.flatMap((other, index) => (other.node === plan.node ? [] : [index]));
  }

  /** Polls the completions still in flight when the sends of all programs have ended. */
  async linger(): Promise<void> {
    for (let quiet = 0; quiet < 4; ) {
      quiet = (await this.#completions.pump()) > 0 ? 0 : quiet + 1;
      await this.#session.program.cpu.sleep(100 * psPerUs);
    }
  }
}
