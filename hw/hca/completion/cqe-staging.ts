/**
 * Builds each CQE in a staging slot of the HCA's memory and has it written to host memory from there. There are more
 * slots than places in the write engine's fifo, so a slot is free again before its next use.
 */

import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { ClockDomain, Wakeable } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { CompletionFormat } from '../host-interface/index.ts';
import type { DmaWrites } from '../memory/index.ts';
import type { CompletionQueue, CqSlot, QpTable } from '../objects/index.ts';
import type { DiagnosticCounters } from '../statistics/index.ts';
import type { PostedCompletion } from './posted-completion.ts';

const FIFO_DEPTH = 16;
const SLOTS = 32;
const NO_RECORD = -1;
/** Stands for a send record in the CQE that ends a CQ's old buffer. */
export const RESIZE_RECORD = -2;
/** The completion writer, which is notified of the fate of CQEs, and woken when there is room for one again. */
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
  readonly format: CompletionFormat;
  readonly diagnostics: DiagnosticCounters;
  allocateSram(lengthBytes: number): number;
}

export class CqeStaging {
  readonly #domain: ClockDomain;
  readonly #dmaWrite: DmaWrites;
  readonly #qps: QpTable;
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #format: CompletionFormat;
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
    this.#format = setup.format;
    this.#diagnostics = setup.diagnostics;
    this.#sramOffset = setup.allocateSram(SLOTS * setup.format.entryBytes);
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

  /**
   * Issues the CQE of `completion` as the next entry of the CQ, at a physical address. The caller has checked {@link
   * hasRoom}.
   */
  issue(completion: PostedCompletion, cq: CqSlot, queue: CompletionQueue, address: BusAddress): void {
    const slot = this.#take(cq, completion.record);
    const offset = this.#sramOffset + slot * this.#format.entryBytes;
    if (completion.syndrome !== 0) this.#diagnostics.completionFailed(completion.isSend, completion.syndrome);
    const pass = (queue.producer >>> queue.logEntries) & 1;
    const clockCycles = queue.hasTimestamps === 1 ? this.#domain.epochCycles + this.#domain.cycle : -1;
    const pair = this.#qps.rows[completion.qp]!;
    this.#format.encode(this.#sramView, offset, completion, pass, pair, clockCycles);
    this.#write(slot, address);
  }

  /** Issues the CQE that announces that the rest is in the CQ's new buffer. */
  issueResize(cq: CqSlot, queue: CompletionQueue, oldLogEntries: number, address: BusAddress): void {
    const slot = this.#take(cq, RESIZE_RECORD);
    const offset = this.#sramOffset + slot * this.#format.entryBytes;
    this.#format.encodeResize(this.#sramView, offset, (queue.producer >>> oldLogEntries) & 1);
    this.#write(slot, address);
  }

  /** The next slot, zeroed. */
  #take(cq: CqSlot, record: number): number {
    const slot = this.#next;
    this.#next = (slot + 1) % SLOTS;
    const offset = this.#sramOffset + slot * this.#format.entryBytes;
    for (let byte = 0; byte < this.#format.entryBytes; byte += 8) this.#sramView.setFloat64(offset + byte, 0);
    this.#recordOfSlot[slot] = record;
    this.#cqOfSlot[slot] = cq;
    return slot;
  }

  #write(slot: number, address: BusAddress): void {
    this.#dmaWrite.request(
      this.#requester,
      address,
      this.#format.entryBytes,
      this.#sram,
      this.#sramOffset + slot * this.#format.entryBytes,
      slot,
    );
  }
}
