/**
 * The ledger of send work requests: for each operation how many completed, and the picoseconds of each stage of their
 * lives. The stages of a request tile the time from its posting to its CQE's departure, without gap or overlap.
 *
 * Posting time is known from the instrumentation beside the doorbell ({@link OperationTap}): a work request is
 * posted when software's stores become visible. With no tap a request's life begins with the fetch of its WQE.
 */
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import type { Clock } from '../../sim/index.ts';
import type { SendRecords } from './send-records.ts';
import * as sendRecords from './send-records.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { MILESTONE_COUNT } = sendRecords;

/**
 * Stages on the device's side, in order; each is named after what the request waited for. All but the last end with
 * the milestone of the same number (send-records.ts).
 */
export const operationStages = [
  'doorbell',
  'wqeFetch',
  'scheduling',
  'payloadRead',
  'transmit',
  'remote',
  'completion',
] as const;
export type OperationStage = (typeof operationStages)[number];

/** Where posting times come from and completion times go to; both sides of the PCIe link share it. */
export interface OperationTap {
  /** Picosecond at which the WQE became visible, or -1 when it is not known. */
  postedPs(qpn: number, wqeCounter: number): number;
  /** The request's CQE was handed to the link at this picosecond. */
  cqeIssued(qpn: number, wqeCounter: number, atPs: number): void;
}

export const operationNames: Readonly<Record<number, string>> = {
  [WqeOpcode.NOP]: 'NOP',
  [WqeOpcode.SEND]: 'SEND',
  [WqeOpcode.SEND_IMM]: 'SEND_IMM',
  [WqeOpcode.RDMA_WRITE]: 'WRITE',
  [WqeOpcode.RDMA_WRITE_IMM]: 'WRITE_IMM',
  [WqeOpcode.RDMA_READ]: 'READ',
  [WqeOpcode.ATOMIC_CS]: 'CMP_SWAP',
  [WqeOpcode.ATOMIC_FA]: 'FETCH_ADD',
};

const OPCODE_COUNT = 32;
const STAGE_COUNT = operationStages.length;
const LAST_STAGE = STAGE_COUNT - 1;

export class OperationLedger {
  readonly count = new Float64Array(OPCODE_COUNT);
  readonly failedCount = new Float64Array(OPCODE_COUNT);
  /** Work requests without a CQE: their life ends with the acknowledgement. */
  readonly silentCount = new Float64Array(OPCODE_COUNT);
  readonly payloadBytes = new Float64Array(OPCODE_COUNT);
  /** By operation and stage. */
  readonly stagePs = new Float64Array(OPCODE_COUNT * STAGE_COUNT);
  /** From posting to the end of life on the device, measured apart from the stages. */
  readonly lifePs = new Float64Array(OPCODE_COUNT);
  /** Requests whose stages were out of order: a fault of the model. */
  disorderCount = 0;
  readonly #records: SendRecords;
  readonly #clock: Clock;
  readonly #tap: OperationTap | undefined;
  readonly #numberOf: Int32Array;

  constructor(records: SendRecords, clock: Clock, numberOf: Int32Array, tap: OperationTap | undefined) {
    this.#records = records;
    this.#clock = clock;
    this.#numberOf = numberOf;
    this.#tap = tap;
  }

  /** The life of `record` ends at `cycle`: its CQE has left, or (silent) it was acknowledged. */
  completed(record: number, cycle: number, isSilent: boolean): void {
    const records = this.#records;
    const request = records.rows[record]!;
    const opcode = request.opcode;
    const qpn = this.#numberOf[request.qp]!;
    const wqeCounter = request.wqeCounter;
    const endPs = this.#clock.edgePs(cycle);
    if (request.syndrome !== 0) {
      this.failedCount[opcode] = this.failedCount[opcode]! + 1;
      this.#tap?.cqeIssued(qpn, wqeCounter, endPs);
      return;
    }
    const tapped = this.#tap === undefined ? -1 : this.#tap.postedPs(qpn, wqeCounter);
    const postedPs = this.#addStages(record, opcode * STAGE_COUNT, tapped, endPs);
    this.lifePs[opcode] = this.lifePs[opcode]! + endPs - postedPs;
    if (endPs < postedPs) this.disorderCount++;
    this.count[opcode] = this.count[opcode]! + 1;
    this.payloadBytes[opcode] = this.payloadBytes[opcode]! + request.messageBytes;
    if (isSilent) this.silentCount[opcode] = this.silentCount[opcode]! + 1;
    else this.#tap?.cqeIssued(qpn, wqeCounter, endPs);
  }

  /** A work request was flushed before it was taken up: it completes, and had no stages. */
  flushedUnstarted(opcode: number): void {
    this.failedCount[opcode] = this.failedCount[opcode]! + 1;
  }

  /**
   * Adds the stages from posting, or from the fetch when that is not known (-1), to the end: each ends where the next
   * begins. A WQE found on chip before it was posted (prefetched with its forerunner) has waited for nothing until
   * posted. Returns the instant at which the first stage begins.
   */
  #addStages(record: number, base: number, tappedPs: number, endPs: number): number {
    const { milestones } = this.#records;
    const { stagePs } = this;
    const first = record * MILESTONE_COUNT;
    let cycle = milestones[first]!;
    let reachedPs = this.#clock.edgePs(cycle);
    const postedPs = tappedPs < 0 ? reachedPs : tappedPs;
    let atPs = postedPs;
    for (let stage = 0; stage < LAST_STAGE; stage++) {
      const reachedCycle = milestones[first + stage]!;
      if (reachedCycle > cycle) {
        cycle = reachedCycle;
        reachedPs = this.#clock.edgePs(cycle);
      }
      if (reachedPs <= atPs) continue;
      stagePs[base + stage] = stagePs[base + stage]! + reachedPs - atPs;
      atPs = reachedPs;
    }
    if (endPs > atPs) stagePs[base + LAST_STAGE] = stagePs[base + LAST_STAGE]! + endPs - atPs;
    return postedPs;
  }
}
