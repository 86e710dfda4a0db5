/**
 * CQEs on their way: builds each in a staging slot of the HCA's memory and has it written to host memory from there. There are
 * more slots than places in the write engine's fifo, so the last user of a slot is done when it comes round again.
 */

import {
  CqeOpcode,
  cqe,
  cqeBytes,
  cqeOwnerOffset,
  errorCqe,
  ethernetCqe,
  roceUdCqe,
  timestampCqe,
  vendorSyndromeOf,
} from '../../../abi/index.ts';
import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { ClockDomain, Wakeable } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DmaWrites } from '../memory/index.ts';
import { type CompletionQueue, type CqSlot, type QpTable, XRC_SERVICE } from '../objects/index.ts';
import type { DiagnosticCounters } from '../statistics/index.ts';
import type { PostedCompletion } from './posted-completion.ts';

const FIFO_DEPTH = 16;
const SLOTS = 32;
const NO_RECORD = -1;
/** In place of a send record: the CQE that ends a CQ's old buffer. */
export const RESIZE_RECORD = -2;
/** Bytes of the HCA's memory that the staging slots take. */
const CQE_STAGING_BYTES = SLOTS * cqeBytes;

const ownerShift = cqe.fields.owner.shift;
const isSendBit = 1 << cqe.fields.isSend.shift;
const inlineShift = cqe.fields.inlineScatter.shift;

/** The completion writer, which is notified of what happens to CQEs, and woken when there is room for one again. */
export interface CqeWriter extends Wakeable {
  /** A CQE was handed to the link: its CQ, and its send record, -1, or {@link RESIZE_RECORD}. */
  cqeIssued(cq: CqSlot, record: number, cycle: Cycles): void;
}

/** Parts of the device that {@link CqeStaging} uses. */
export interface CqeStagingSetup {
  readonly domain: ClockDomain;
  readonly dmaWrite: DmaWrites;
  readonly qps: QpTable;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  readonly diagnostics: DiagnosticCounters;
  allocateSram(lengthBytes: number): number;
}

export class CqeStaging {
  readonly #domain: ClockDomain;
  readonly #dmaWrite: DmaWrites;
  readonly #qps: QpTable;
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #diagnostics: DiagnosticCounters;
  readonly #sramOffset: number;
  readonly #requester: number;
  #next = 0;
  readonly #recordOfSlot = new Int32Array(SLOTS).fill(NO_RECORD);
  readonly #cqOfSlot = new Int32Array(SLOTS).fill(-1);

  constructor(setup: CqeStagingSetup, writer: CqeWriter) {
    this.#domain = setup.domain;
    this.#dmaWrite = setup.dmaWrite;
    this.#qps = setup.qps;
    this.#sram = setup.sram;
    this.#sramView = setup.sramView;
    this.#diagnostics = setup.diagnostics;
    this.#sramOffset = setup.allocateSram(CQE_STAGING_BYTES);
    this.#requester = setup.dmaWrite.addRequester(
      { name: 'cqe', trafficClass: TrafficClass.cqe, fifoDepth: FIFO_DEPTH },
      {
        done: (slot, cycle) => writer.cqeIssued(this.#cqOfSlot[slot]!, this.#recordOfSlot[slot]!, cycle),
        space: () => writer.wake(setup.domain.cycle + 1),
      },
    );
  }

  /** True when a CQE can be issued now. */
  get hasRoom(): boolean {
    return this.#dmaWrite.canRequest(this.#requester);
  }

  /** Issues the CQE of `completion` as the next entry of the CQ, at a physical address. The caller has asked {@link hasRoom}. */
  issue(completion: PostedCompletion, cq: CqSlot, queue: CompletionQueue, address: BusAddress): void {
    const slot = this.#take(cq, completion.record);
    const offset = this.#sramOffset + slot * cqeBytes;
    const isError = completion.syndrome !== 0;
    const ownerBit = (queue.producer >>> queue.logEntries) & 1;
    const opcode = isError ? CqeOpcode.ERROR : completion.opcode;
    const inlineBit = isError ? 0 : completion.isInlined << inlineShift;
    const ownership = (ownerBit << ownerShift) | (completion.isSend ? isSendBit : 0) | inlineBit | opcode;
    this.#sramView.setUint8(offset + cqeOwnerOffset, ownership);
    if (isError) {
      this.#diagnostics.completionFailed(completion.isSend, completion.syndrome);
      this.#fillError(completion, offset);
    } else {
      this.#fill(completion, offset);
      if (queue.hasTimestamps === 1) this.#stamp(offset);
    }
    this.#write(slot, address);
  }

  /** Issues the CQE that says that the rest is in the CQ's new buffer. */
  issueResize(cq: CqSlot, queue: CompletionQueue, oldLogEntries: number, address: BusAddress): void {
    const slot = this.#take(cq, RESIZE_RECORD);
    const offset = this.#sramOffset + slot * cqeBytes;
    cqe.fields.opcode.set(this.#sramView, offset, CqeOpcode.RESIZE);
    cqe.fields.owner.set(this.#sramView, offset, (queue.producer >>> oldLogEntries) & 1);
    this.#write(slot, address);
  }

  /** The next slot, zeroed. */
  #take(cq: CqSlot, record: number): number {
    const slot = this.#next;
    this.#next = (slot + 1) % SLOTS;
    const offset = this.#sramOffset + slot * cqeBytes;
    for (let byte = 0; byte < cqeBytes; byte += 8) this.#sramView.setFloat64(offset + byte, 0);
    this.#recordOfSlot[slot] = record;
    this.#cqOfSlot[slot] = cq;
    return slot;
  }

  #fill(completion: PostedCompletion, offset: number): void {
    const sramView = this.#sramView;
    const f = cqe.fields;
    f.qpn.set(sramView, offset, completion.qpn);
    f.immediate.set(sramView, offset, completion.immediate);
    f.sourceLid.set(sramView, offset, completion.sourceLid);
    f.byteCount.set(sramView, offset, completion.byteCount);
    f.wqeCounter.set(sramView, offset, completion.wqeCounter);
    if ((completion.source | completion.tag | completion.ipStatus) === 0) return;
    if (completion.isRoce === 1) return this.#fillRoce(completion, offset);
    if (completion.ipStatus !== 0) this.#fillChecksum(completion, offset);
    if (completion.tag !== 0) return this.#fillTag(completion, offset);
    sramView.setInt32(offset + f.sourceQpn.wordOffset, completion.source);
    f.serviceLevel.set(sramView, offset, completion.serviceLevel);
  }

  /** Writes the low 48 bits of the core clock over the fields that a CQE with a timestamp does not have. */
  #stamp(offset: number): void {
    timestampCqe.fields.timestamp.set(this.#sramView, offset, this.#domain.epochCycles + this.#domain.cycle);
  }

  #fillTag({ tag }: PostedCompletion, offset: number): void {
    const { cVlanPresent, vlanPriority } = ethernetCqe.fields;
    cVlanPresent.set(this.#sramView, offset, 1);
    this.#sramView.setUint16(offset + vlanPriority.wordOffset, tag & 0xffff);
  }

  #fillChecksum(completion: PostedCompletion, offset: number): void {
    const { ipStatus, checksum } = ethernetCqe.fields;
    ipStatus.set(this.#sramView, offset, completion.ipStatus);
    checksum.set(this.#sramView, offset, completion.checksum);
  }

  #fillRoce(completion: PostedCompletion, offset: number): void {
    const sramView = this.#sramView;
    const { sourceQpn, sourceMac } = roceUdCqe.fields;
    sramView.setInt32(offset + sourceQpn.wordOffset, completion.source);
    const mac = offset + sourceMac.field.offset;
    sramView.setUint16(mac, completion.sourceMacHigh);
    sramView.setUint32(mac + 2, completion.sourceMacLow);
    if (completion.tag !== 0) this.#fillTag(completion, offset);
  }

  #fillError(completion: PostedCompletion, offset: number): void {
    const sramView = this.#sramView;
    const f = errorCqe.fields;
    f.qpn.set(sramView, offset, completion.qpn);
    f.wqeCounter.set(sramView, offset, completion.wqeCounter);
    f.syndrome.set(sramView, offset, completion.syndrome);
    const { serviceBits, lastRefusal } = this.#qps.rows[completion.qp]!;
    const vendor = vendorSyndromeOf(completion.syndrome, completion.isSend, lastRefusal);
    f.vendorSyndrome.set(sramView, offset, vendor);
    if (serviceBits === XRC_SERVICE) f.srqn.set(sramView, offset, completion.source);
  }

  #write(slot: number, address: BusAddress): void {
    this.#dmaWrite.request(
      this.#requester,
      address,
      cqeBytes,
      this.#sram,
      this.#sramOffset + slot * cqeBytes,
      slot,
    );
  }
}
