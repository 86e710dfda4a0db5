/**
 * READs and atomics of a flow, and which of their responses a capture has shown: responses come in the order of the requests, one for
 * each PSN (IBTA vol 1, 9.7.3.1, 9.7.5.1), so an answer to a later PSN shows that others are missing.
 */
import { psnAdd, psnDistance } from '../../wire/index.ts';
import { UnseenPsns } from './unseen-psns.ts';

/**
 * Greatest number of requests kept per flow: more than a card has outstanding. The second value applies when a capture
 * has too many flows.
 */
const REQUESTS_MAX = 512;
const REQUESTS_LEAST = 4;
/** Greatest number of requests kept over all flows, not counting the minimum of each flow. */
const REQUESTS_OF_ALL_MAX = 262_144;

/** Counts the requests that all flows of a capture keep. */
export class RequestBudget {
  kept = 0;

  /** Number of requests that a flow may keep now. */
  get most(): number {
    return this.kept > REQUESTS_OF_ALL_MAX ? REQUESTS_LEAST : REQUESTS_MAX;
  }
}

/** A READ or an atomic; `bytes` of an atomic is 0. */
export interface ReadRange {
  readonly address: bigint;
  readonly rKey: number;
  readonly bytes: number;
}

interface Awaited extends ReadRange {
  readonly psn: number;
  /** Number of the request's frame. */
  readonly number: number;
  readonly isRead: boolean;
  /** Packets of its response, once the path's MTU is known. */
  count: number | undefined;
  /** PSN of the next expected response. */
  nextPsn: number;
  isComplete: boolean;
  /** Absent until one of its responses was skipped. */
  unseen: UnseenPsns | undefined;
}

/** Verdict on a response packet. */
export interface ResponseVerdict {
  /** Whether the capture contains the request. */
  readonly isAsked: boolean;
  /** Lines on the responses that this packet shows to be missing. */
  readonly gaps: readonly string[];
  /** Undefined if the response was the expected one. */
  readonly place: 'repeated' | 'late' | undefined;
}

export class AwaitedResponses {
  #requests: Awaited[] = [];
  readonly #budget: RequestBudget;

  constructor(budget: RequestBudget) {
    this.#budget = budget;
  }

  /** Notes a request that was seen for the first time. */
  add(psn: number, number: number, range: ReadRange, isRead: boolean, mtuBytes: number | undefined): void {
    const count = isRead ? packetsOf(range.bytes, mtuBytes) : 1;
    const { address, rKey, bytes } = range;
    this.#requests.push({
      ...{ address, rKey, bytes, psn, number, isRead, count },
      ...{ nextPsn: psn, isComplete: false, unseen: undefined },
    });
    this.#budget.kept++;
    const forgotten = this.#requests.length - this.#budget.most;
    if (forgotten <= 0) return;
    this.#requests.splice(0, forgotten);
    this.#budget.kept -= forgotten;
  }

  /**
   * Notes that a request is retransmitted, whole or from one packet of its response on; its responses are expected from
   * `psn` on.
   * @returns the request that contains `psn`
   */
  repeat(
    psn: number,
    { address, rKey, bytes }: ReadRange,
    mtuBytes: number | undefined,
  ): { readonly number: number; readonly atByte: number } | undefined {
    const found = this.#requests.findLast(
      (one) =>
        one.rKey === rKey &&
        contains(one, psn) &&
        address + BigInt(bytes) === one.address + BigInt(one.bytes) &&
        isPacketBoundary(Number(address - one.address), psnDistance(psn, one.psn), mtuBytes),
    );
    if (found === undefined) return undefined;
    found.nextPsn = psn;
    found.isComplete = false;
    return { number: found.number, atByte: Number(address - found.address) };
  }

  /**
   * Stores the MTU of the path.
   * @returns the PSN after the last request whose number of responses follows from it
   */
  learnMtu(mtuBytes: number): number | undefined {
    let after: number | undefined;
    for (const one of this.#requests) {
      if (one.count !== undefined) continue;
      one.count = packetsOf(one.bytes, mtuBytes)!;
      after = psnAdd(one.psn, one.count);
    }
    return after;
  }

  /**
   * Notes that a response carries a whole message and is thus the only one.
   * @returns the PSN after its request, if it was unknown
   */
  learnOnly(psn: number): number | undefined {
    const one = this.#requests.findLast((request) => request.psn === psn && request.count === undefined);
    if (one === undefined) return undefined;
    one.count = 1;
    return psnAdd(psn, 1);
  }

  /** Computes the number of responses of the last request from the PSN of the next request. */
  learnNext(psn: number): void {
    const last = this.#requests.at(-1);
    if (last !== undefined && last.count === undefined) last.count = Math.max(1, psnDistance(psn, last.psn));
  }

  /** Processes a response packet. */
  response(psn: number): ResponseVerdict {
    const own = this.#requests.findLast((one) => contains(one, psn));
    const gaps = this.#gapsBefore(psn);
    if (own === undefined) return { isAsked: false, gaps, place: undefined };
    const ahead = psnDistance(psn, own.nextPsn);
    if (ahead < 0 || own.isComplete) {
      const shown = own.unseen?.show(psn);
      return { isAsked: true, gaps, place: shown === undefined ? 'repeated' : 'late' };
    }
    if (ahead > 0) gaps.push(passOver(own, ahead));
    own.unseen?.sawPacket();
    own.nextPsn = psnAdd(psn, 1);
    own.isComplete = own.count !== undefined && psnDistance(own.nextPsn, psnAdd(own.psn, own.count)) >= 0;
    return { isAsked: true, gaps, place: undefined };
  }

  /**
   * Processes an acknowledgement, which confirms that every request up to its PSN has been answered.
   * @returns lines on missing responses
   */
  acknowledged(psn: number): string[] {
    return this.#gapsBefore(psnAdd(psn, 1));
  }

  /** Processes a NAK: all requests before its PSN have been answered. */
  refused(psn: number): string[] {
    return this.#gapsBefore(psn);
  }

  /** Returns the unseen responses to requests that end before `psn`, and stops expecting them. */
  #gapsBefore(psn: number): string[] {
    const gaps: string[] = [];
    for (const one of this.#requests) {
      if (one.isComplete || psnDistance(psnAdd(one.psn, (one.count ?? 1) - 1), psn) >= 0) continue;
      // While the number of responses is unknown, a PSN shortly after may be one of them.
      if (one.count === undefined && contains(one, psn)) continue;
      one.isComplete = true;
      const end = psnAdd(one.psn, one.count ?? 1);
      const missing = psnDistance(end, one.nextPsn);
      if (missing > 0) gaps.push(passOver(one, missing));
    }
    return gaps;
  }
}

/** The least MTU of a path, 9.1.2. */
export const MTU_MIN_BYTES = 256;

const packetsOf = (bytes: number, mtuBytes: number | undefined): number | undefined =>
  mtuBytes === undefined && bytes > MTU_MIN_BYTES
    ? undefined
    : Math.max(1, Math.ceil(bytes / (mtuBytes ?? MTU_MIN_BYTES)));

/** Whether a packet of a message with this index begins at this byte on a path of this MTU, or on any path if none is given. */
function isPacketBoundary(atByte: number, index: number, mtuBytes: number | undefined): boolean {
  if (mtuBytes !== undefined || index === 0) return atByte === index * (mtuBytes ?? 0);
  return mtus.some((mtu) => atByte === index * mtu);
}

/** MTUs that a path may have, 9.1.2. */
const mtus: readonly number[] = [256, 512, 1024, 2048, 4096];

const contains = ({ psn, count, bytes }: Awaited, at: number): boolean => {
  const distance = psnDistance(at, psn);
  return distance >= 0 && distance < (count ?? Math.max(1, Math.ceil(bytes / MTU_MIN_BYTES)));
};

/** Skips responses that the capture does not have. */
function passOver(one: Awaited, count: number): string {
  const { nextPsn, isRead, number } = one;
  one.unseen ??= new UnseenPsns();
  one.unseen.passOver(nextPsn, count);
  one.nextPsn = psnAdd(nextPsn, count);
  const what = isRead ? (count === 1 ? 'READ response' : 'READ responses') : 'atomic acknowledge';
  return `gap: ${what} ${psnRange(nextPsn, count)} of frame ${number} not seen`;
}

export const psnRange = (first: number, count: number): string =>
  count === 1 ? `PSN ${first}` : `PSN ${first} to ${psnAdd(first, count - 1)}`;
