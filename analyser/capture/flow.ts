/** Flows of a capture: the packets from a port to one QP of another port, and the connection that two flows form. */
import { psnAdd, psnDistance } from '../../wire/index.ts';
import { AwaitedResponses, type RequestBudget } from './awaited-responses.ts';
import { OPEN_PSNS_MAX, type OpenRange } from './open-psns.ts';
import type { CapturedPacket } from './packet-listener.ts';
import { type LineBudget, TalkLines } from './talk.ts';
import type { UnansweredWay } from './unanswered-flows.ts';
import { UnseenPsns } from './unseen-psns.ts';

/** Limits that the flows of a capture share. */
export interface FlowBudget {
  readonly lines: LineBudget;
  readonly requests: RequestBudget;
}

/** The packets from a port to one QP of another. */
export class Flow {
  /** Number from 0, in the order in which the flows began. */
  readonly number: number;
  readonly from: string;
  readonly to: string;
  network: number;
  readonly qp: number;
  readonly service: string;
  /** The next expected PSN of requests, and the oldest unanswered one. */
  nextPsn: number | undefined;
  openPsn: number | undefined;
  /** PSNs after {@link nextPsn} that a READ may have used; their number depends on the path MTU. */
  loosePsns = 0;
  /** Payload of a packet that is not the last of its message. */
  mtuBytes: number | undefined;
  readonly unseen = new UnseenPsns();
  readonly awaited: AwaitedResponses;
  answeredBy: Flow | undefined;
  /** Flows with the same ports and service that have no answering flow yet; undefined once one was found. */
  unansweredIn: UnansweredWay | undefined;
  talk: Talk;

  constructor(
    number: number,
    { from, to, network, packet }: CapturedPacket,
    service: string,
    budget: FlowBudget,
  ) {
    this.number = number;
    this.from = from;
    this.to = to;
    this.network = network;
    this.qp = packet.bth.destinationQp;
    this.service = service;
    this.awaited = new AwaitedResponses(budget.requests);
    this.talk = new Talk(this, budget.lines);
  }

  /** True if no valid packet has passed, for example because all were damaged. */
  get isEmpty(): boolean {
    return this.nextPsn === undefined && this.answeredBy === undefined && this.talk.second === undefined;
  }

  /** PSNs of requests that an answer may belong to. */
  get openRange(): OpenRange | undefined {
    if (this.openPsn === undefined || this.nextPsn === undefined) return undefined;
    const count = psnDistance(this.nextPsn, this.openPsn) + this.loosePsns;
    return { first: this.openPsn, count: Math.min(count, OPEN_PSNS_MAX + 1) };
  }

  /** Notes a request: the next PSN is `next`, or up to `loose` PSNs later. */
  advance(next: number, loose: number): void {
    this.nextPsn = next;
    this.loosePsns = loose;
    // At the limit of outstanding requests the oldest must have been answered, even if the capture does not show it.
    if (this.openPsn !== undefined && psnDistance(next, this.openPsn) < 0)
      this.openPsn = psnAdd(next, -OPEN_PSNS_MAX);
  }
}

/** A connection that is assembled from one or two flows. */
export class Talk {
  readonly first: Flow;
  second: Flow | undefined;
  readonly lines: TalkLines;

  constructor(first: Flow, budget: LineBudget) {
    this.first = first;
    this.lines = new TalkLines(budget);
  }
}
