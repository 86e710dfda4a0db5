/**
 * Sequence numbers that the IBTA transport keeps for a queue pair: PSN, SSN and MSN, of 24 bits each (IBTA vol 1, 9.7.1, 9.7.2,
 * 9.7.7.1).
 */
import { psnAdd } from '../../../../wire/index.ts';

const NO_CREDIT_LIMIT = -1;
const NONE = -1;

export class IbtaState {
  // Requester
  /** PSN of the next new request packet. */
  nextPsn = 0;
  /** PSNs of the next request, which waits until it may use as many. */
  psnsWanted = 0;
  /** PSN after the newest that has left the port: of requests, and of READ responses and atomic results. */
  unsentPsn = 0;
  unansweredPsn = 0;
  /** Newest PSN whose answer is awaited: its packet has been sent, or discarded while the link was down. */
  awaitedPsn = 0;
  lastAckedPsn = 0;
  /** PSN of a response that was lost or dropped for lack of a page, and requested again; -1 for none. */
  missingPsn = NONE;
  /** Send sequence number of the next message; limit from the responder's credits, -1 for none. */
  ssn = 0;
  ssnLimit = 0;
  // Responder
  expectedPsn = 0;
  /** PSN of the newest READ or atomic, which a response answers instead of an ACK; -1 before the first, and again 2^23 PSNs later, when no duplicate is so old. */
  answeredPsn = NONE;
  msn = 0;
  /** 1 from a NAK for a sequence error until the expected packet arrives. */
  hasNakSent = 0;
  /** The bit of BECN if the next response has to carry it, otherwise 0. */
  owedBecn = 0;

  /** Resets the state for a context just created. */
  begin(): void {
    this.nextPsn = 0;
    this.unsentPsn = 0;
    this.awaitedPsn = 0;
    this.unansweredPsn = 0;
    this.missingPsn = NONE;
    this.ssn = 0;
    this.ssnLimit = NO_CREDIT_LIMIT;
    this.expectedPsn = 0;
    this.answeredPsn = NONE;
    this.msn = 0;
    this.hasNakSent = 0;
    this.owedBecn = 0;
  }

  /** Expects the peer's first request under `psn`: the transition from INIT to RTR. */
  startReceiving(psn: number): void {
    this.expectedPsn = psn;
    this.unansweredPsn = psn;
  }

  /** Sends the first request under `psn`: the transition from RTR to RTS. */
  startSending(psn: number): void {
    this.nextPsn = psn;
    this.unsentPsn = psn;
    this.awaitedPsn = psnAdd(psn, -1);
    this.lastAckedPsn = psnAdd(psn, -1);
  }
}
