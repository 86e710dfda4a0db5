/**
 * Requests of both programs to each other, and the bytes that they move. Each area has three parts, with a slot for each request:
 *
 *     sources of own requests and of the peer's READs | bytes that the peer writes and sends | results of own READs and atomics
 */
import { isSame, patternOf } from './bytes.ts';
import { ADD, READ, SEND } from './opcodes.ts';
import type { Posting, Side } from './side.ts';

export interface Request {
  readonly opcode: number;
  readonly lengthBytes: number;
  /** Number of the QP; 0 when left out. */
  readonly qp?: number;
}

/** Requests of the same length: of each opcode one on each QP. */
export const requestsOf = (opcodes: readonly number[], qpCount: number, lengthBytes: number): Request[] =>
  opcodes.flatMap((opcode) => Array.from({ length: qpCount }, (_, qp) => ({ opcode, qp, lengthBytes })));

const brings = (opcode: number): boolean => opcode === READ || opcode === ADD;

export class Traffic {
  readonly own: readonly Request[];
  readonly theirs: readonly Request[];
  readonly areaBytes: number;
  readonly #node: number;
  readonly #slotBytes: number;
  readonly #slots: number;

  /** @param byNode requests by host */
  constructor(node: number, byNode: readonly (readonly Request[])[]) {
    this.#node = node;
    this.own = byNode[node]!;
    this.theirs = byNode[1 - node]!;
    this.#slotBytes = Math.max(1, ...byNode.flat().map(({ lengthBytes }) => lengthBytes));
    this.#slots = Math.max(this.own.length, this.theirs.length);
    this.areaBytes = 3 * this.#slots * this.#slotBytes;
  }

  /** Requests that must end here, with the receives of the peer's SENDs. */
  get dueCount(): number {
    return this.own.length + this.theirs.filter(({ opcode }) => opcode === SEND).length;
  }

  place(part: 0 | 1 | 2, id: number): number {
    return (part * this.#slots + id) * this.#slotBytes;
  }

  /** Whether a completion is that of a receive, whose numbers follow those of requests. */
  isReceive(id: number): boolean {
    return id >= this.#slots;
  }

  /** Posts a receive for each SEND of the peer. */
  receiveAll(side: Side): void {
    for (const [id, { opcode, lengthBytes, qp = 0 }] of this.theirs.entries())
      if (opcode === SEND) side.receive(this.#slots + id, { offset: this.place(1, id), lengthBytes, qp });
  }

  /** Writes the bytes of requests of both sides whose source is here. */
  fill(side: Side): void {
    for (const [node, requests] of [this.own, this.theirs].entries())
      for (const [id, { opcode, lengthBytes }] of requests.entries())
        if (brings(opcode) === (node === 1))
          side.fill(patternOf(this.#numberOf(node, id), lengthBytes), this.place(0, id));
  }

  post(side: Side, id: number, posting: Partial<Posting> = {}): number {
    const { opcode, lengthBytes, qp = 0 } = this.own[id]!;
    const [here, there] = brings(opcode) ? ([2, 0] as const) : ([0, 1] as const);
    const span = { offset: this.place(here, id), remoteOffset: this.place(there, id), lengthBytes };
    return side.post(id, opcode, { ...span, qp, ...posting });
  }

  postAll(side: Side): void {
    for (const id of this.own.keys()) this.post(side, id);
  }

  /** Numbers of the peer's messages whose bytes are missing here. */
  missing(side: Side): number[] {
    return this.#notIn(side, 1, this.theirs, 1, ({ opcode }) => !brings(opcode));
  }

  /** Numbers of own READs that returned other bytes. */
  misread(side: Side): number[] {
    return this.#notIn(side, 2, this.own, 0, ({ opcode }) => opcode === READ);
  }

  #notIn(
    side: Side,
    part: 1 | 2,
    requests: readonly Request[],
    whose: number,
    isMeant: (request: Request) => boolean,
  ): number[] {
    return requests.flatMap((request, id) => {
      const due = patternOf(this.#numberOf(whose, id), request.lengthBytes);
      return !isMeant(request) || isSame(side.bytes(this.place(part, id), due.length), due) ? [] : [id];
    });
  }

  /** Number of a pattern. @param whose 0 for an own request, 1 for one of the peer */
  #numberOf(whose: number, id: number): number {
    return 2 * id + (whose === 0 ? this.#node : 1 - this.#node);
  }
}
