/**
 * Receives datagrams (UD, and the special QPs 0 and 1): a packet is a message. A packet that fails a check is dropped
 * and counted: the sender gets no answer.
 *
 *   Q_Key ─> P_Key ─> receive WQE ─> 40 bytes for the GRH, payload to memory ─> completion with the sender's addresses
 *
 * The stage resumes at the same step if something was not on chip, like the responder. Sources: interface sheet 6.4,
 * 6.6, 7.2; IBTA vol 1, 9.8.3 (UD), 10.9.1.1 (P_Key matching), 13.5.1 (QP0 and QP1).
 */

import { CqeSyndrome, EventType, grhBytes, ReceiveOpcode } from '../../../../abi/index.ts';
import { type Cycles, mask24, viewOf } from '../../../../base/index.ts';
import type { BlockAccount, BlockState } from '../../../../sim/index.ts';
import {
  FLAG_GRH,
  FLAG_SOLICITED,
  grhPlace,
  Opcode,
  PACKET_PAYLOAD_OFFSET,
  roceRoute,
  roceRoutePlace,
  SERVICE_LEVEL_SHIFT,
  WORD_DATAGRAM_PKEY,
  WORD_DATAGRAM_QKEY,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_DESTINATION_QPN,
  WORD_IMMEDIATE,
  WORD_LIDS,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from '../../../../wire/index.ts';
import { isSamePartition } from '../../../management/index.ts';
import {
  ABSENT,
  DONE,
  FULL,
  NONE_POSTED,
  REFUSED,
  type ReceiveAnswer,
  UNREADABLE,
  WAIT,
} from '../../answers.ts';
import type { CompletionWriter, PostedCompletion } from '../../completion/index.ts';
import type { PageFaults } from '../../memory/index.ts';
import type { QpSlot, QpTable } from '../../objects/index.ts';
import { STALL_COMPLETION } from '../../packets/index.ts';
import type { ReceiveScatter } from '../../receive-queue/index.ts';
import type { DiagnosticCounters, ViolationCounters } from '../../statistics/index.ts';
import type { ReceivedPackets, TransportCounters } from '../packets/index.ts';

/** Numbers of the special QPs in packets: subnet management, general services. */
export const QPN_SUBNET_MANAGEMENT = 0;
export const QPN_GENERAL_SERVICES = 1;

const route = roceRoute.fields;
/** Bit of a completion that marks its low bits as the packet's tag. */
const HAS_TAG = 1 << 16;

const STEP_CHECK = 0;
const STEP_PLACE = 1;
const STEP_FINISH = 2;

export interface DatagramReceiverPorts {
  readonly scatter: ReceiveScatter;
  readonly completions: CompletionWriter;
  readonly errors: {
    /** The QP goes to error, with an asynchronous event; event type 0: none. */
    refused(qp: QpSlot, eventType: number, cycle: Cycles): void;
  };
}

/** Parts of the device that {@link DatagramReceiver} uses. */
export interface DatagramReceiverSetup {
  readonly qps: QpTable;
  readonly pageFaults: PageFaults;
  readonly received: ReceivedPackets;
  readonly violations: ViolationCounters;
  readonly transport: TransportCounters;
  readonly diagnostics: DiagnosticCounters;
}

export class DatagramReceiver {
  readonly #qps: QpTable;
  readonly #pageFaults: PageFaults;
  readonly #violations: ViolationCounters;
  readonly #transport: TransportCounters;
  readonly #diagnostics: DiagnosticCounters;
  readonly #packets: ReceivedPackets;
  readonly #account: BlockAccount;
  #scatter!: ReceiveScatter;
  #completions!: CompletionWriter;
  #errors!: DatagramReceiverPorts['errors'];
  #step = STEP_CHECK;
  #pkeyIndex = 0;
  /** Bytes of GRH and payload being written, and the syndrome of an error among them. */
  #placed = 0;
  #syndrome = 0;

  /** @param account that of the receiver, whose stage works on datagrams */
  constructor(setup: DatagramReceiverSetup, account: BlockAccount) {
    this.#qps = setup.qps;
    this.#pageFaults = setup.pageFaults;
    this.#violations = setup.violations;
    this.#transport = setup.transport;
    this.#diagnostics = setup.diagnostics;
    this.#packets = setup.received;
    this.#account = account;
  }

  connect({ scatter, completions, errors }: DatagramReceiverPorts): void {
    this.#scatter = scatter;
    this.#completions = completions;
    this.#errors = errors;
  }

  /** Works on the datagram at `offset` for `qp`. Returns the payload bytes handled, or WAIT. */
  process(offset: number, qp: QpSlot, cycle: Cycles): number {
    if (this.#step === STEP_CHECK) {
      if (!this.#check(offset, qp)) return 0;
      const taken = this.#takeReceiveWqe(qp, cycle);
      if (taken === WAIT) return WAIT;
      if (taken === NONE_POSTED) {
        this.#transport.count('unreliableNoReceive');
        this.#diagnostics.count('rqDatagramsDropped');
      }
      if (taken === UNREADABLE) this.#errors.refused(qp, EventType.WQ_CATAS_ERROR, cycle);
      if (taken === NONE_POSTED || taken === UNREADABLE) return 0;
      const lengthBytes = grhBytes + this.#word(offset, WORD_PAYLOAD_BYTES);
      this.#scatter.takeInline(this.#qps.rows[qp]!, lengthBytes);
      this.#placed = 0;
      this.#syndrome = 0;
      this.#step = STEP_PLACE;
    }
    if (this.#step === STEP_PLACE) {
      const placed = this.#place(offset, qp, cycle);
      if (placed === WAIT) return WAIT;
      if (placed === ABSENT) return this.#drop();
      this.#step = STEP_FINISH;
    }
    if (this.#completions.isFull) {
      this.#account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    this.#complete(offset, qp, cycle);
    this.#step = STEP_CHECK;
    return this.#word(offset, WORD_PAYLOAD_BYTES);
  }

  /** Takes a receive WQE; one that a datagram left because a page was absent is used again. */
  #takeReceiveWqe(qp: QpSlot, cycle: Cycles): ReceiveAnswer {
    if (this.#qps.rows[qp]!.hasReceiveWqe === 0)
      return this.#scatter.take(qp, this.#packets.arrivedCycle, cycle);
    this.#scatter.rewind(qp);
    return DONE;
  }

  reset(): void {
    this.#step = STEP_CHECK;
  }

  inspect(): BlockState {
    return { step: this.#step };
  }

  #word(offset: number, word: number): number {
    return this.#packets.rxWords[(offset >> 2) + word]!;
  }

  /** Checks the keys. QP0 has none; QP1 accepts any partition of the port. */
  #check(offset: number, qp: QpSlot): boolean {
    const wireQpn = this.#word(offset, WORD_DESTINATION_QPN);
    this.#pkeyIndex = 0;
    if (wireQpn === QPN_SUBNET_MANAGEMENT) return true;
    const pair = this.#qps.rows[qp]!;
    if (this.#word(offset, WORD_DATAGRAM_QKEY) !== pair.queueKey) {
      this.#violations.count('datagramQkey');
      this.#packets.address.countQkeyViolation();
      return false;
    }
    const pkey = this.#word(offset, WORD_DATAGRAM_PKEY) & 0xffff;
    const { pkeys } = this.#packets.address;
    const own = pair.pkeyIndex % pkeys.length;
    const isAny = wireQpn === QPN_GENERAL_SERVICES;
    this.#pkeyIndex = isAny ? pkeys.findIndex((entry) => isSamePartition(entry, pkey)) : own;
    if (this.#pkeyIndex !== -1 && isSamePartition(pkeys[this.#pkeyIndex]!, pkey)) return true;
    this.#violations.count('datagramPkey');
    this.#packets.address.countPkeyViolation();
    return false;
  }

  /** Drops the datagram after requesting the page that it needs; datagrams may be lost. */
  #drop(): number {
    this.#pageFaults.droppedPacketCount++;
    this.#step = STEP_CHECK;
    return 0;
  }

  /** Writes the GRH, or leaves its place alone, then the payload. */
  #place(offset: number, qp: QpSlot, cycle: Cycles): typeof DONE | typeof WAIT | typeof ABSENT {
    const hasGrh = (this.#word(offset, WORD_PACKET_FLAGS) & FLAG_GRH) !== 0;
    const payloadBytes = this.#word(offset, WORD_PAYLOAD_BYTES);
    if (this.#placed === 0 && !hasGrh) {
      this.#placed = grhBytes;
      if (!this.#scatter.skip(qp, grhBytes)) this.#syndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
    }
    const total = grhBytes + payloadBytes;
    while (this.#placed < total && this.#syndrome === 0) {
      const isGrh = this.#placed < grhBytes;
      const source = isGrh
        ? grhPlace(offset, payloadBytes) + this.#placed
        : offset + PACKET_PAYLOAD_OFFSET + this.#placed - grhBytes;
      const left = (isGrh ? grhBytes : total) - this.#placed;
      const moved = this.#scatter.place(qp, left, this.#packets.rxBytes, source, cycle);
      if (moved === WAIT || moved === ABSENT) return moved;
      if (moved === FULL) this.#syndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
      else if (moved === REFUSED) this.#syndrome = CqeSyndrome.LOCAL_PROT_ERR;
      else this.#placed += moved;
    }
    return DONE;
  }

  /** Fills in the source MAC and tag of a RoCE datagram, which has no LID. */
  #nameSource(completion: PostedCompletion, offset: number): void {
    const view = viewOf(this.#packets.rxBytes);
    const place = roceRoutePlace(grhPlace(offset, this.#word(offset, WORD_PAYLOAD_BYTES)));
    const mac = place + route.sourceMac.field.offset;
    completion.isRoce = 1;
    completion.sourceMacHigh = view.getUint16(mac);
    completion.sourceMacLow = view.getUint32(mac + 2);
    completion.tag = route.hasTag.get(view, place) === 1 ? HAS_TAG | route.vlanTag.get(view, place) : 0;
  }

  #complete(offset: number, qp: QpSlot, cycle: Cycles): void {
    const withImmediate = this.#word(offset, WORD_OPCODE) === Opcode.UD_SEND_ONLY_WITH_IMMEDIATE;
    const flags = this.#word(offset, WORD_PACKET_FLAGS);
    const lids = this.#word(offset, WORD_LIDS);
    const pathBits = lids & ((1 << this.#packets.address.lmc) - 1);
    const source =
      ((flags & FLAG_GRH) !== 0 ? 1 << 31 : 0) |
      (pathBits << 24) |
      (this.#word(offset, WORD_DATAGRAM_SOURCE_QPN) & mask24);
    const serviceLevel = (this.#word(offset, WORD_DATAGRAM_PKEY) >> SERVICE_LEVEL_SHIFT) & 0xf;
    const pair = this.#qps.rows[qp]!;
    pair.hasReceiveWqe = 0;
    const completion = this.#completions.next(pair.receiveCqn, qp);
    completion.opcode = withImmediate ? ReceiveOpcode.SEND_IMM : ReceiveOpcode.SEND;
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.byteCount = this.#syndrome === 0 ? this.#placed : 0;
    completion.isInlined = pair.isInlined;
    completion.immediate = withImmediate ? this.#word(offset, WORD_IMMEDIATE) : this.#pkeyIndex;
    completion.isSolicited = (flags & FLAG_SOLICITED) !== 0 ? 1 : 0;
    completion.syndrome = this.#syndrome;
    completion.sourceLid = lids >>> 16;
    completion.source = source;
    completion.serviceLevel = serviceLevel;
    if (this.#packets.address.roce !== undefined) this.#nameSource(completion, offset);
    this.#completions.post(completion, cycle);
    if (this.#syndrome !== 0) this.#errors.refused(qp, 0, cycle);
  }
}
