/**
 * Requests that came before their turn, kept on chip with selective repeat until the gap before them is filled.
 *
 *     receiver ─ request after a gap ─▶ arrived ─▶ slot ···▶ worked: the expected PSN has reached it ─▶ fifo ─▶ receiver
 *                                          └─▶ NAK: the PSN that lacks, and the one that is held
 *
 * - Requests are executed in their order, so that all rules of the responder hold as with go-back-N. IRN places payload in host
 *   memory at once; its bytes are the same, and the memory is the host's instead of the card's.
 * - The buffer is bounded, for all QPs together. A request that finds no room is dropped, as if lost, without a NAK.
 * - A held request takes the receiver twice, for the time of its payload: into the buffer, and out of it.
 * - After an RNR NAK requests are held in silence: the sender knows the PSN that lacks.
 *
 * Source: IRN, 3.1.
 */
import type { Cycles } from '../../../../base/index.ts';
import { type BlockState, Fifo } from '../../../../sim/index.ts';
import {
  bytesBeforeGrh,
  Opcode,
  PACKET_PAYLOAD_OFFSET,
  PSN_MASK,
  psnDistance,
  WORD_OPCODE,
} from '../../../../wire/index.ts';
import type { QpSlot, QueuePair } from '../../objects/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { IbtaStates } from '../state/index.ts';
import { SLOT_BYTES } from './loopback.ts';

/** GRH and route after the payload, and the most for their alignment. */
const ROUTE_BYTES = 64;
const PSN_COUNT = PSN_MASK + 1;

const FREE = 0;
const HELD = 1;
/** In the fifo to the receiver. */
const RELEASED = 2;
/** In that fifo, of a QP whose generation has ended. */
const VOID = 3;

/** A request as the buffer takes it from where it lies. */
export interface HeldRequest {
  readonly rxBytes: Uint8Array;
  readonly rxWords: Int32Array;
  readonly offset: number;
  readonly portIndex: number;
  readonly isLoopback: boolean;
  readonly opcode: number;
  readonly psn: number;
  readonly payloadBytes: number;
  readonly dmaLength: number;
}

export interface ReorderBufferPorts {
  readonly receiver: { wake(cycle: Cycles): void };
  readonly responses: {
    /** Refuses `psn`, which lacks, and names `heldPsn`, which is held. */
    refuseGap(qp: QpSlot, psn: number, heldPsn: number, cycle: Cycles): void;
  };
}

/** Parts of the device that {@link ReorderBuffer} uses. */
export interface ReorderBufferSetup {
  readonly states: IbtaStates;
  readonly config: Pick<HcaConfig, 'lossRecovery' | 'reorderBufferPackets'>;
}

export class ReorderBuffer {
  /** False with go-back-N. */
  readonly isOn: boolean;
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float64Array;
  readonly capacity: number;
  /** Requests that the receiver may take, by their offset. */
  readonly released: Fifo;
  /** Requests held so far, the most at once, and those that found no room. */
  heldTotal = 0;
  heldMax = 0;
  overflowCount = 0;
  readonly #states: IbtaStates;
  #ports!: ReorderBufferPorts;
  readonly #free: number[] = [];
  /** By slot of the buffer. */
  readonly #state: Uint8Array;
  readonly #qp: Int32Array;
  readonly #psn: Int32Array;
  readonly #portIndex: Uint8Array;
  readonly #isLoopback: Uint8Array;
  /** PSNs that the request takes up: those of its responses, for a READ. */
  readonly #psnCount: Int32Array;
  /** Slots of held requests by QP and PSN. */
  readonly #slots = new Map<number, number>();

  constructor({ states, config }: ReorderBufferSetup) {
    this.isOn = config.lossRecovery === 'selective-repeat';
    this.capacity = this.isOn ? config.reorderBufferPackets : 0;
    this.#states = states;
    this.bytes = new Uint8Array(this.capacity * SLOT_BYTES);
    this.words = new Int32Array(this.bytes.buffer);
    this.floats = new Float64Array(this.bytes.buffer);
    this.#state = new Uint8Array(this.capacity);
    this.#qp = new Int32Array(this.capacity);
    this.#psn = new Int32Array(this.capacity);
    this.#portIndex = new Uint8Array(this.capacity);
    this.#isLoopback = new Uint8Array(this.capacity);
    this.#psnCount = new Int32Array(this.capacity);
    this.released = new Fifo({
      name: 'requests whose gap is filled',
      capacity: Math.max(1, this.capacity),
      whenFull: 'never: it has a place for each slot of the buffer',
    });
    this.reset();
  }

  connect(ports: ReorderBufferPorts): void {
    this.#ports = ports;
  }

  /** Requests in the buffer. */
  get heldCount(): number {
    return this.capacity - this.#free.length;
  }

  /** Keeps a request of a QP that came before its turn, unless it is kept already. */
  hold(pair: QueuePair, request: HeldRequest, cycle: Cycles): void {
    const { slot } = pair;
    const { psn } = request;
    const { expectedPsn, hasNakSent } = this.#states.rows[slot]!;
    const isKept = this.#slots.has(keyOf(slot, psn));
    if (!isKept && !this.#store(pair, request)) {
      this.overflowCount++;
      return;
    }
    if (hasNakSent === 0 && this.#hasGap(slot, expectedPsn, psn))
      this.#ports.responses.refuseGap(slot, expectedPsn, psn, cycle);
  }

  /** A QP has worked on a packet: the request whose turn it is now goes to the receiver. */
  worked({ slot }: QueuePair, cycle: Cycles): void {
    if (this.#slots.size === 0) return;
    const place = this.#slots.get(keyOf(slot, this.#states.rows[slot]!.expectedPsn));
    if (place === undefined || this.#state[place] !== HELD) return;
    this.#state[place] = RELEASED;
    this.released.push(place * SLOT_BYTES, cycle + 1);
    this.#ports.receiver.wake(cycle + 1);
  }

  /** Whether the released request at this offset is still of the QP's generation, and its turn. */
  isCurrent(offset: number): boolean {
    const place = offset / SLOT_BYTES;
    if (this.#state[place] !== RELEASED) return false;
    return this.#psn[place] === this.#states.rows[this.#qp[place]!]!.expectedPsn;
  }

  portIndexOf(offset: number): number {
    return this.#portIndex[offset / SLOT_BYTES]!;
  }

  isLoopbackAt(offset: number): boolean {
    return this.#isLoopback[offset / SLOT_BYTES] === 1;
  }

  /** The receiver has worked on a released request: its PSN is held no more, while its payload may still be under way. */
  taken(offset: number): void {
    const place = offset / SLOT_BYTES;
    if (this.#state[place] === RELEASED) this.#slots.delete(keyOf(this.#qp[place]!, this.#psn[place]!));
    this.#state[place] = VOID;
  }

  /** Releases a slot. */
  consume(offset: number): void {
    const place = offset / SLOT_BYTES;
    this.#state[place] = FREE;
    this.#free.push(place);
  }

  /** A generation of the QP begins or ends: nothing of it is held. */
  forget(slot: QpSlot): void {
    if (this.#slots.size === 0) return;
    for (const [key, place] of this.#slots) {
      if (this.#qp[place] !== slot) continue;
      this.#slots.delete(key);
      if (this.#state[place] === RELEASED) this.#state[place] = VOID;
      else this.consume(place * SLOT_BYTES);
    }
  }

  /** Drops all that is held. The receiver and the payload writer have consumed what they had. */
  reset(): void {
    this.#slots.clear();
    this.#state.fill(FREE);
    this.#free.length = 0;
    for (let place = this.capacity - 1; place >= 0; place--) this.#free.push(place);
  }

  inspect(): BlockState {
    return { requests: this.heldCount };
  }

  /** False: the buffer is full. */
  #store(pair: QueuePair, request: HeldRequest): boolean {
    const place = this.#free.pop();
    if (place === undefined) return false;
    const { rxBytes, rxWords, offset, opcode, psn, payloadBytes, dmaLength } = request;
    const onWire = rxWords[(offset >> 2) + WORD_OPCODE]!;
    const lengthBytes = PACKET_PAYLOAD_OFFSET + bytesBeforeGrh(onWire, payloadBytes) + ROUTE_BYTES;
    const record = rxBytes.subarray(offset, offset + Math.min(lengthBytes, SLOT_BYTES));
    this.bytes.set(record, place * SLOT_BYTES);
    const isRead = opcode === Opcode.RC_RDMA_READ_REQUEST;
    this.#state[place] = HELD;
    this.#qp[place] = pair.slot;
    this.#psn[place] = psn;
    this.#portIndex[place] = request.portIndex;
    this.#isLoopback[place] = request.isLoopback ? 1 : 0;
    this.#psnCount[place] = isRead ? Math.max(1, Math.ceil((dmaLength >>> 0) / pair.mtuBytes)) : 1;
    this.#slots.set(keyOf(pair.slot, psn), place);
    this.heldTotal++;
    this.heldMax = Math.max(this.heldMax, this.#slots.size);
    return true;
  }

  /** Whether a request lacks before `psn`. */
  #hasGap(slot: QpSlot, expectedPsn: number, psn: number): boolean {
    let next = expectedPsn;
    while (psnDistance(next, psn) < 0) {
      const place = this.#slots.get(keyOf(slot, next));
      if (place === undefined) return true;
      next = (next + this.#psnCount[place]!) & PSN_MASK;
    }
    return false;
  }
}

const keyOf = (slot: QpSlot, psn: number): number => slot * PSN_COUNT + psn;
