/**
 * Page requests: the device's handling of an absent page of an on-demand region.
 *
 *   requester, responder, response engine ─ raise ─> page request event ──> driver
 *                 ^                                                            │ pages, MTT entries
 *                 └── resumed <── PAGE_FAULT_RESUME (token, refused or not) <──┘
 *
 * Bounded: each QP has at most one request outstanding for each of three sides (its own requests and their responses,
 * receives, and responses to the peer). A side that faults on another page meanwhile waits without a request of its
 * own. If the driver refuses a page, the packet meets the fault again and then fails as for any inaccessible page: so
 * every error takes the path, and has the status, of a pinned region's. Modelled after mlx5's page fault events.
 */

import { PageRequestSide } from '../../../abi/index.ts';
import type { Cycles, VirtualAddress } from '../../../base/index.ts';
import { type BlockState, type ClockDomain, Fifo } from '../../../sim/index.ts';
import { enlarged, type Qpn, type QpSlot, type QpTable } from '../objects/index.ts';

export const SIDE_REQUESTER = PageRequestSide.REQUESTER;
export const SIDE_RESPONDER = PageRequestSide.RESPONDER;
export const SIDE_RESPONSE = PageRequestSide.RESPONSE;
export const pageRequestSides = ['requester', 'responder', 'response'] as const;
const SIDES = pageRequestSides.length;

const IDLE = 0;
/** Waits for room in the event fifo. */
const ASKING = 1;
const OUTSTANDING = 2;
/** Software has refused the page. */
const UNRESOLVABLE = 3;

/** Entries are numbered in the low bits of a token, above them is how often the entry has been used. */
const TOKEN_ENTRY_BITS = 22;
const TOKEN_USES = 2 ** (32 - TOKEN_ENTRY_BITS);

/** Bytes of a region that a side of a QP needs, of which the first page is absent. */
export interface WantedPages {
  readonly side: number;
  readonly key: number;
  readonly address: VirtualAddress;
  readonly addressTop: number;
  readonly lengthBytes: number;
  readonly isWrite: boolean;
}

/** The request for them that software gets. */
export interface PageRequest extends WantedPages {
  readonly qpn: Qpn;
  /** Token by which software answers. */
  readonly token: number;
}

export interface PageRequestSink {
  canPost(): boolean;
  /** Posts a page request. Returns false if no event queue accepts page requests. */
  postPageRequest(request: PageRequest, cycle: Cycles): boolean;
}

/** A side of QPs that waits for pages: it is notified that it may continue, or fail. */
interface PageWaiter {
  pagesAnswered(qp: QpSlot, cycle: Cycles): void;
}

export interface PageFaultPorts {
  readonly eventQueues: PageRequestSink;
  readonly requester: PageWaiter;
  readonly responses: PageWaiter;
}

export class PageFaults {
  /** Counts by side. */
  readonly requestCount = new Float64Array(SIDES);
  readonly refusedCount = new Float64Array(SIDES);
  /** Cycles from request to resumption. */
  readonly waitCycles = new Float64Array(SIDES);
  /** RNR NAKs, and packets of unreliable services dropped, for want of a page. */
  rnrNakCount = 0;
  droppedPacketCount = 0;
  readonly #domain: ClockDomain;
  readonly #qps: QpTable;
  #sink!: PageRequestSink;
  readonly #stage: number;
  #state = new Uint8Array(0);
  #uses = new Int32Array(0);
  #key = new Float64Array(0);
  #address = new Float64Array(0);
  #addressTop = new Uint16Array(0);
  #bytes = new Float64Array(0);
  #isWrite = new Uint8Array(0);
  #sinceCycle = new Float64Array(0);
  /** Entries that wait for room for their event, each once: one whose QP was reset meanwhile keeps its place. */
  readonly #asking: Fifo;
  #isQueued = new Uint8Array(0);
  #ports!: PageFaultPorts;

  constructor({ domain, qps }: { readonly domain: ClockDomain; readonly qps: QpTable }) {
    this.#domain = domain;
    this.#qps = qps;
    this.#asking = new Fifo({
      name: 'page requests',
      capacity: SIDES * qps.slotCount,
      whenFull: 'never: each side of a QP stands here at most once',
    });
    this.#stage = domain.addStage(this.#run, this);
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    const entries = SIDES * slotCount;
    this.#state = enlarged(this.#state, entries);
    this.#uses = enlarged(this.#uses, entries);
    this.#key = enlarged(this.#key, entries);
    this.#address = enlarged(this.#address, entries);
    this.#addressTop = enlarged(this.#addressTop, entries);
    this.#bytes = enlarged(this.#bytes, entries);
    this.#isWrite = enlarged(this.#isWrite, entries);
    this.#sinceCycle = enlarged(this.#sinceCycle, entries);
    this.#isQueued = enlarged(this.#isQueued, entries);
    this.#asking.enlarge(entries);
  }

  /** Pages requested and not answered. */
  get heldCount(): number {
    return this.#state.filter((state) => state === ASKING || state === OUTSTANDING).length;
  }

  connect(ports: PageFaultPorts): void {
    this.#ports = ports;
    this.#sink = ports.eventQueues;
  }

  /** See EventPoster. */
  eventSpace(cycle: Cycles): void {
    if (!this.#asking.isEmpty) this.#domain.wake(this.#stage, cycle);
  }

  /**
   * Requests [address, address + lengthBytes) for a side of a QP: its first page is absent.
   * @returns true: the page is requested, and the side waits for `resumed`; false: the driver has refused it, and the
   * packet fails
   */
  raise(qp: QpSlot, wanted: WantedPages, cycle: Cycles): boolean {
    const { side, key, address, addressTop, lengthBytes, isWrite } = wanted;
    const entry = qp * SIDES + side;
    const state = this.#state[entry]!;
    if (state === ASKING || state === OUTSTANDING) return true;
    this.#state[entry] = IDLE;
    const isSame =
      this.#key[entry] === key && this.#address[entry] === address && this.#addressTop[entry] === addressTop;
    if (state === UNRESOLVABLE && isSame) return false;
    this.#state[entry] = ASKING;
    this.#key[entry] = key;
    this.#address[entry] = address;
    this.#addressTop[entry] = addressTop;
    this.#bytes[entry] = lengthBytes;
    this.#isWrite[entry] = isWrite ? 1 : 0;
    this.#sinceCycle[entry] = cycle;
    this.requestCount[side] = this.requestCount[side]! + 1;
    if (this.#isQueued[entry] === 0) {
      this.#isQueued[entry] = 1;
      this.#asking.push(entry, cycle + 1);
    }
    this.#domain.wake(this.#stage, cycle + 1);
    return true;
  }

  /** PAGE_FAULT_RESUME. @returns false for a token that is not outstanding: its QP has been reset since */
  resume(token: number, isRefused: boolean, cycle: Cycles): boolean {
    const entry = token % 2 ** TOKEN_ENTRY_BITS;
    if (entry >= this.#state.length || this.#state[entry] !== OUTSTANDING) return false;
    if (this.#tokenOf(entry) !== token) return false;
    this.#end(entry, isRefused, cycle);
    return true;
  }

  /** A generation of the QP begins or ends. */
  forget(qp: QpSlot): void {
    for (let entry = qp * SIDES; entry < (qp + 1) * SIDES; entry++) this.#state[entry] = IDLE;
  }

  reset(): void {
    this.#asking.clear();
    this.#isQueued.fill(0);
    this.#state.fill(IDLE);
  }

  get fifos(): readonly Fifo[] {
    return [this.#asking];
  }

  inspect(): BlockState {
    return { asking: this.#asking.values, outstanding: this.heldCount };
  }

  #run(cycle: Cycles): void {
    while (this.#asking.headCycle <= cycle) {
      if (!this.#sink.canPost()) return;
      const entry = this.#asking.pop();
      this.#isQueued[entry] = 0;
      if (this.#state[entry] === ASKING) this.#ask(entry, cycle);
    }
    if (!this.#asking.isEmpty) this.#domain.wake(this.#stage, this.#asking.headCycle);
  }

  #ask(entry: number, cycle: Cycles): void {
    this.#uses[entry] = (this.#uses[entry]! + 1) % TOKEN_USES;
    this.#state[entry] = OUTSTANDING;
    const request: PageRequest = {
      side: entry % SIDES,
      isWrite: this.#isWrite[entry] === 1,
      qpn: this.#qps.numberOf[Math.floor(entry / SIDES)]!,
      key: this.#key[entry]!,
      address: this.#address[entry]!,
      addressTop: this.#addressTop[entry]!,
      lengthBytes: this.#bytes[entry]!,
      token: this.#tokenOf(entry),
    };
    if (!this.#sink.postPageRequest(request, cycle)) this.#end(entry, true, cycle);
  }

  #end(entry: number, isRefused: boolean, cycle: Cycles): void {
    const side = entry % SIDES;
    this.#state[entry] = isRefused ? UNRESOLVABLE : IDLE;
    this.waitCycles[side] = this.waitCycles[side]! + cycle - this.#sinceCycle[entry]!;
    if (isRefused) this.refusedCount[side] = this.refusedCount[side]! + 1;
    const qp = Math.floor(entry / SIDES);
    if (side === SIDE_RESPONSE) this.#ports.responses.pagesAnswered(qp, cycle);
    if (side === SIDE_REQUESTER) this.#ports.requester.pagesAnswered(qp, cycle);
  }

  #tokenOf(entry: number): number {
    return this.#uses[entry]! * 2 ** TOKEN_ENTRY_BITS + entry;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#asking.rebase(cycles);
    for (let entry = 0; entry < this.#sinceCycle.length; entry++)
      this.#sinceCycle[entry] = this.#sinceCycle[entry]! - cycles;
  }
}
