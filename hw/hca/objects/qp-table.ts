/**
 * Queue pair contexts. The configured fields are loaded from the context bytes once per command; fields that change
 * with every packet exist only in the {@link QueuePair} of the slot; {@link QpTable.sync} writes them into the bytes.
 */

import { QpState } from '../../../abi/index.ts';
import type { QueuePairFormat } from '../host-interface/index.ts';
import type { ConnectionStates } from '../transport/index.ts';
import { ContextTable, enlarged, type SlotUser } from './context-table.ts';
import type { Qpn, QpSlot } from './numbers.ts';
import { QueuePair } from './queue-pair.ts';

/** Limit of scatter entries of one receive WQE. */
export const SEGMENTS_MAX = 32;
const FIRST_SCATTER_LISTS = 16;
const NONE = -1;

type QpUser =
  | 'flusher'
  | 'keys'
  | 'pageFaults'
  | 'receives'
  | 'requester'
  | 'responses'
  | 'requestTransport'
  | 'transport'
  | 'wqeFetch';

export class QpTable extends ContextTable<'QP', QpUser> {
  /** QPs by slot, for the slots that were ever allocated. */
  readonly rows: QueuePair[] = [];
  /** Scatter lists of the receive WQEs taken, {@link SEGMENTS_MAX} places for each QP that ever took one: see {@link scatterListOf}. */
  segmentAddress = new Float64Array(0);
  segmentAddressTop = new Uint16Array(0);
  segmentKey = new Float64Array(0);
  segmentBytes = new Float64Array(0);
  #scatterListCount = 0;
  #transport!: ConnectionStates;
  readonly #format: QueuePairFormat;

  /** @param format of the contexts of the card */
  constructor(capacity: number, format: QueuePairFormat) {
    super(format.contextBytes, capacity, format.storedBytes);
    this.#format = format;
  }

  override connect(
    users: Readonly<Record<QpUser, SlotUser>> & { readonly transport: ConnectionStates },
  ): void {
    this.#transport = users.transport;
    super.connect(users);
  }

  /** Initialises the row of a context that a command has just created. */
  create(slot: QpSlot): void {
    this.rows[slot]!.begin();
    this.#transport.begin(slot);
    this.load(slot, QpState.RST);
  }

  /** Loads the fields that a command configured. The transport's numbers start with the transitions that set them. */
  load(slot: QpSlot, previousState: number): void {
    const pair = this.rows[slot]!;
    this.#format.load(this.view, this.offsetOf(slot), pair, previousState, this.#transport);
  }

  /** The SRQ of an XRC target's message was destroyed, with the receive that was taken from it, and so may be its CQ. */
  leaveQueue(slot: QpSlot): void {
    const pair = this.rows[slot]!;
    pair.srqn = NONE;
    pair.hasReceiveWqe = 0;
    pair.receiveCqn = this.#format.receiveCqnAt(this.view, this.offsetOf(slot));
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: QpSlot): void {
    this.#format.sync(this.view, this.offsetOf(slot), this.rows[slot]!, this.#transport);
  }

  /** Flow counter that the context names. */
  counterOf(slot: QpSlot): number {
    return this.#format.flowCounterAt(this.view, this.offsetOf(slot));
  }

  /** Place of the primary path in {@link bytes}. */
  pathOf(slot: QpSlot): number {
    return this.offsetOf(slot) + this.#format.pathOffset;
  }

  /**
   * Allocates a slot as {@link ContextTable.allocate} does; a slot that is allocated for the first time gets its
   * object.
   */
  override allocate(qpn: Qpn): QpSlot {
    const slot = super.allocate(qpn);
    if (slot === this.rows.length) this.rows.push(new QueuePair(slot));
    return slot;
  }

  /**
   * Returns the index at which a QP's scatter list begins in the arrays of segments. Created on first use, because most
   * QPs of many receive nothing.
   */
  scatterListOf(pair: QueuePair): number {
    if (pair.firstSegment === NONE) {
      pair.firstSegment = this.#scatterListCount++ * SEGMENTS_MAX;
      if (pair.firstSegment === this.segmentKey.length) this.#enlargeScatterLists();
    }
    return pair.firstSegment;
  }

  #enlargeScatterLists(): void {
    const places = Math.max(FIRST_SCATTER_LISTS * SEGMENTS_MAX, 2 * this.segmentKey.length);
    this.segmentAddress = enlarged(this.segmentAddress, places);
    this.segmentAddressTop = enlarged(this.segmentAddressTop, places);
    this.segmentKey = enlarged(this.segmentKey, places);
    this.segmentBytes = enlarged(this.segmentBytes, places);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    for (const pair of this.rows) pair.rebase(ps, cycles);
  }
}

export const QP_RIGHT_READ = 1;
export const QP_RIGHT_WRITE = 2;
export const QP_RIGHT_ATOMIC = 4;

/** No packet has an opcode of this base: the service is not transported. */
export const NO_OPCODE_BASE = 0xff;
export const UC_OPCODE_BASE = 0x20;
export const UD_OPCODE_BASE = 0x60;
/** Service bits in the opcodes of XRC packets; inside the HCA they are those of a reliable connection. */
export const XRC_SERVICE = 0xa0;
/** Opcode base of the rings of an Ethernet port, whose frames have no opcode: no packet has this one. */
export const ETHERNET_OPCODE_BASE = 0xe0;
