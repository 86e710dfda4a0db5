/**
 * READs and atomics of a flow, and which of their responses a capture has shown: responses come in the order of the requests, one for
 * each PSN (IBTA vol 1, 9.7.3.1, 9.7.5.1), so an answer to a later PSN shows that others are missing.
 */
import { psnAdd, psnDistance } from '../../wire/index.ts';
import { UnseenPsns } from './unseen-psns.ts';

/** Requests of a flow that are kept: more than a card has outstanding. And of a flow of too many. */
const REQUESTS_MAX = 512;
const REQUESTS_LEAST = 4;
/** Requests that are kept of all flows, but for the least of each. */
const REQUESTS_OF_ALL_MAX = 262_144;

/** Counts the requests that the flows of a capture keep. */
export class RequestBudget {
  kept = 0;

  /** Requests that a flow may keep now. */
  get most(): number {
    return this.kept > REQUESTS_OF_ALL_MAX ? REQUESTS_LEAST : REQUESTS_MAX;
  }
}

/** A READ, or an atomic, whose `bytes` are 0. */
export interface ReadRange {
  readonly address: bigint;
  readonly rKey: number;
  readonly bytes: number;
}

interface Awaited extends ReadRange {
  readonly psn: number;
  /** Number of its frame. */
  readonly number: number;
  readonly isRead: boolean;
  /** Packets of its response, once the path's MTU is known. */
  count: number | undefined;
  /** PSN of the response that comes next. */
  nextPsn: number;
  isComplete: boolean;
  /** Absent until one of its responses was passed over. */
  unseen: UnseenPsns | undefined;
}

/** Verdict on a response packet. */
export interface ResponseVerdict {
  /** Its request was seen. */
  readonly isAsked: boolean;
  /** Lines on responses that it shows to be missing. */
  readonly gaps: readonly string[];
  /** Undefined of the response that was awaited. */
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
   * Notes that a request is sent again, whole or from a packet of its response on: its responses are awaited from `psn` on.
   * @returns the request that it is part of
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

  /** Learns the MTU of the path. @returns the PSN after the last request of which it told the number of responses */
  learnMtu(mtuBytes: number): number | undefined {
    let after: number | undefined;
    for (const one of this.#requests) {
      if (one.count !== undefined) continue;
      one.count = packetsOf(one.bytes, mtuBytes)!;
      after = psnAdd(one.psn, one.count);
    }
    return after;
  }

  /** A response has a whole message: it is the only one. @returns the PSN after its request, if that was not known */
  learnOnly(psn: number): number | undefined {
    const one = this.#requests.findLast((request) => request.psn === psn && request.count === undefined);
    if (one === undefined) return undefined;
    one.count = 1;
    return psnAdd(psn, 1);
  }

  /** Learns from the PSN of the request after it how many responses the last request has. */
  learnNext(psn: number): void {
    const last = this.#requests.at(-1);
    if (last !== undefined && last.count === undefined) last.count = Math.max(1, psnDistance(psn, last.psn));
  }

  /** Takes a response packet. */
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

  /** Takes an acknowledgement, which says that everything up to its PSN has been answered. @returns lines on what is missing */
  acknowledged(psn: number): string[] {
    return this.#gapsBefore(psnAdd(psn, 1));
  }

  /** Takes a NAK: all requests before its PSN have been answered. */
  refused(psn: number): string[] {
    return this.#gapsBefore(psn);
  }

  /** Returns the unseen responses to requests that end before `psn`, and awaits them no longer. */
  #gapsBefore(psn: number): string[] {
    const gaps: string[] = [];
    for (const one of this.#requests) {
      if (one.isComplete || psnDistance(psnAdd(one.psn, (one.count ?? 1) - 1), psn) >= 0) continue;
      // While their number is not known, a PSN close behind may be one of its own.
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

/** Whether a message's packet of this index begins at this byte, on the path of this MTU, or of any. */
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

/** Passes over responses that were not seen. */
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
