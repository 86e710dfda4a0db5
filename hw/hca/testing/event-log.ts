/** Records the data path's events in specs, and can refuse events for a while as if it had no room. */

import type { Cycles } from '../../../base/units.ts';
import type { CompletionEvents } from '../completion/cq-arm.ts';
import type { AsyncEventSink } from '../events/async-events.ts';
import type { EventPoster } from '../events/event-writer.ts';
import { type PageRequest, type PageRequestSink, pageRequestSides } from '../memory/page-faults.ts';

export class EventLog implements AsyncEventSink, CompletionEvents, PageRequestSink {
  /** One line per event: `qp 0x11 0x40`, `srq 0x14 0x1`, `cq 1 0x20` (syndrome), `comp 0x20 eq 5`, `eq 5 ci 3 arm`, `page responder write qp 0x40 key 0x100 at 0x2000 bytes 64`. */
  readonly lines: string[] = [];
  readonly cycles: number[] = [];
  hasRoom = true;
  #posters: readonly EventPoster[] = [];

  canPost(): boolean {
    return this.hasRoom;
  }

  connect({ posters }: { readonly posters: readonly EventPoster[] }): void {
    this.#posters = posters;
  }

  /** Makes room again; must be called at an edge. */
  makeRoom(cycle: Cycles): void {
    this.hasRoom = true;
    for (const poster of this.#posters) poster.eventSpace(cycle + 1);
  }

  postQpEvent(type: number, qpn: number, cycle: Cycles): void {
    this.#note(`qp ${hex(type)} ${hex(qpn)}`, cycle);
  }

  postSrqEvent(type: number, srqn: number, cycle: Cycles): void {
    this.#note(`srq ${hex(type)} ${hex(srqn)}`, cycle);
  }

  postCqError(cqn: number, syndrome: number, cycle: Cycles): void {
    this.#note(`cq ${syndrome} ${hex(cqn)}`, cycle);
  }

  /** CQEs that were held back for the events of completions. */
  joinedCount = 0;

  postCompletion(eqn: number, cqn: number, cycle: Cycles, joinedCount: number): void {
    this.joinedCount += joinedCount;
    this.#note(`comp ${hex(cqn)} eq ${eqn}`, cycle);
  }

  /** Tokens of the page requests, in order. */
  readonly pageTokens: number[] = [];

  postPageRequest(
    { side, isWrite, qpn, key, address, addressTop, lengthBytes, token }: PageRequest,
    cycle: Cycles,
  ): boolean {
    const what = `${pageRequestSides[side]} ${isWrite ? 'write' : 'read'} qp ${hex(qpn)}`;
    const whole = (BigInt(addressTop) << 52n) + BigInt(address);
    this.#note(`page ${what} key ${hex(key)} at ${hex(whole)} bytes ${lengthBytes}`, cycle);
    this.pageTokens.push(token);
    return true;
  }

  eqDoorbell(eqn: number, consumer: number, arm: boolean, cycle: Cycles): void {
    this.#note(`eq ${eqn} ci ${consumer}${arm ? ' arm' : ''}`, cycle);
  }

  #note(line: string, cycle: Cycles): void {
    this.lines.push(line);
    this.cycles.push(cycle);
  }
}

const hex = (value: number | bigint): string => `0x${value.toString(16)}`;
