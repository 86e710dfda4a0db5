/**
 * The ledger of send work requests: for each operation how many completed, and the picoseconds of each stage of their
 * lives. The stages of a request tile the time from its posting to its CQE's departure, without gap or overlap.
 *
 * Posting time is known from the instrumentation beside the doorbell ({@link OperationTap}): a work request is
 * posted when software's stores become visible. With no tap a request's life begins with the fetch of its WQE.
 */
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import type { Clock } from '../../sim/index.ts';
import {
  MILESTONE_ACKNOWLEDGED,
  MILESTONE_FETCH_BEGUN,
  MILESTONE_FETCHED,
  MILESTONE_GATHERED,
  MILESTONE_TAKEN_UP,
  MILESTONE_TRANSMITTED,
  type SendRecords,
} from './send-records.ts';

/** Stages on the device's side, in order; each is named after what the request waited for. */
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
    const opcode = records.opcode[record]!;
    const qpn = this.#numberOf[records.qp[record]!]!;
    const wqeCounter = records.wqeCounter[record]!;
    const endPs = this.#clock.edgePs(cycle);
    if (records.syndrome[record] !== 0) {
      this.failedCount[opcode] = this.failedCount[opcode]! + 1;
      this.#tap?.cqeIssued(qpn, wqeCounter, endPs);
      return;
    }
    const begunPs = this.#clock.edgePs(records.milestone(record, MILESTONE_FETCH_BEGUN));
    const tapped = this.#tap === undefined ? -1 : this.#tap.postedPs(qpn, wqeCounter);
    const postedPs = tapped < 0 ? begunPs : tapped;
    let atPs = postedPs;
    const base = opcode * STAGE_COUNT;
    atPs = this.#stage(base, 0, atPs, begunPs);
    atPs = this.#stage(base, 1, atPs, this.#at(record, MILESTONE_FETCHED));
    atPs = this.#stage(base, 2, atPs, this.#at(record, MILESTONE_TAKEN_UP));
    atPs = this.#stage(base, 3, atPs, this.#at(record, MILESTONE_GATHERED));
    atPs = this.#stage(base, 4, atPs, this.#at(record, MILESTONE_TRANSMITTED));
    atPs = this.#stage(base, 5, atPs, this.#at(record, MILESTONE_ACKNOWLEDGED));
    this.#stage(base, 6, atPs, endPs);
    this.lifePs[opcode] = this.lifePs[opcode]! + endPs - postedPs;
    if (endPs < postedPs) this.disorderCount++;
    this.count[opcode] = this.count[opcode]! + 1;
    this.payloadBytes[opcode] = this.payloadBytes[opcode]! + records.messageBytes[record]!;
    if (isSilent) this.silentCount[opcode] = this.silentCount[opcode]! + 1;
    else this.#tap?.cqeIssued(qpn, wqeCounter, endPs);
  }

  /** A work request was flushed before it was taken up: it completes, and had no stages. */
  flushedUnstarted(opcode: number): void {
    this.failedCount[opcode] = this.failedCount[opcode]! + 1;
  }

  #at(record: number, milestone: number): number {
    return this.#clock.edgePs(this.#records.milestone(record, milestone));
  }

  /** A WQE found on chip before it was posted (prefetched with its forerunner) has waited for nothing until posted. */
  #stage(base: number, stage: number, fromPs: number, toPs: number): number {
    if (toPs <= fromPs) return fromPs;
    this.stagePs[base + stage] = this.stagePs[base + stage]! + toPs - fromPs;
    return toPs;
  }
}
