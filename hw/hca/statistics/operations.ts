/**
 * The ledger of send work requests: for each operation how many completed, and the picoseconds of each stage. The
 * stages of a request tile the time from its posting to its CQE's departure, without gap or overlap.
 *
 * Instrumentation next to the doorbell supplies the posting time ({@link OperationTap}): a work request is posted when
 * software's stores become visible. With no tap that time begins with the fetch of its WQE.
 */

import { frameOperation, WqeOpcode } from '../../../abi/index.ts';
import type { Cycles, Picoseconds, Wide } from '../../../base/index.ts';
import { type Clock, farPs } from '../../../sim/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  NO_ATTEMPT,
  NOT_REACHED,
  type Qpn,
  type QpSlot,
  type QpTable,
  type SendRecord,
} from '../objects/index.ts';

/**
 * Stages on the device's side, in order; each is named after what the request waited for. All but the last end with a
 * milestone of the request (send-record.ts). A retransmitted request passes the stages from payloadRead on again:
 * `ackTimeout` lasts from its last packet to the timeout that ended the attempt, `rnrDelay` is the delay that an RNR
 * NAK requested, `remote` the time until a NAK arrived. `rateLimit` is the time for which congestion control or a static rate
 * held back packets of the request, in all attempts together ({@link rateStages}).
 *
 * Only transports over a byte stream have the stages {@link streamStages}: `tcpWindow` is the time for which TCP had no room for the next
 * segment, `framing` the time in which the last FPDU was written, with its CRC and markers. A READ also has `tcpSend`, the time in TCP until the
 * frame of its request was formed; `retransmission`, from then until that frame was formed for the last time; and `placement`, from the
 * delivery of the response by TCP to its end.
 */
export const operationStages = [
  'doorbell',
  'wqeFetch',
  'scheduling',
  'rateLimit',
  'tcpWindow',
  'payloadRead',
  'transmit',
  'framing',
  'tcpSend',
  'retransmission',
  'ackTimeout',
  'rnrDelay',
  'remote',
  'placement',
  'completion',
] as const;
export type OperationStage = (typeof operationStages)[number];
/** Stages that exist only where the transport is a byte stream. */
export const streamStages: ReadonlySet<OperationStage> = new Set<OperationStage>([
  ...(['tcpWindow', 'framing', 'tcpSend', 'retransmission', 'placement'] as const),
]);

/** Stages that exist only where QPs have rates. */
export const rateStages: ReadonlySet<OperationStage> = new Set<OperationStage>(['rateLimit']);

/** Source of posting times and destination of completion times; both sides of the PCIe link share it. */
export interface OperationTap {
  /** Picosecond of the epoch at which the WQE became visible, or NaN when it is not known. */
  postedPs(qpn: Qpn, wqeCounter: number): number;
  /** The same exactly, if known and so long ago that a number does not hold it. */
  exactPostedPs(qpn: Qpn, wqeCounter: number): bigint;
  /** The request's CQE was handed to the link at this picosecond of the epoch. */
  cqeIssued(qpn: Qpn, wqeCounter: number, atPs: Picoseconds): void;
}

export const operationNames: Readonly<Record<number, string>> = {
  [WqeOpcode.NOP]: 'NOP',
  [WqeOpcode.SEND]: 'SEND',
  [WqeOpcode.SEND_IMM]: 'SEND_IMM',
  [WqeOpcode.SEND_INVAL]: 'SEND_INV',
  [WqeOpcode.RDMA_WRITE]: 'WRITE',
  [WqeOpcode.RDMA_WRITE_IMM]: 'WRITE_IMM',
  [WqeOpcode.RDMA_READ]: 'READ',
  [WqeOpcode.ATOMIC_CS]: 'CMP_SWAP',
  [WqeOpcode.ATOMIC_FA]: 'FETCH_ADD',
  [WqeOpcode.MASKED_ATOMIC_CS]: 'MASKED_CMP_SWAP',
  [WqeOpcode.MASKED_ATOMIC_FA]: 'MASKED_FETCH_ADD',
  [WqeOpcode.BIND_MW]: 'BIND_MW',
  [WqeOpcode.FMR]: 'FAST_REG_MR',
  [WqeOpcode.LOCAL_INVAL]: 'LOCAL_INV',
  [frameOperation]: 'FRAME',
};

/** Number of operations: those of WQEs, and frames. */
const OPERATION_COUNT = frameOperation + 1;

/** Picoseconds of each stage. */
class StageTimes implements Record<OperationStage, number> {
  doorbell: Wide = 0;
  wqeFetch: Wide = 0;
  scheduling: Wide = 0;
  rateLimit: Wide = 0;
  tcpWindow: Wide = 0;
  payloadRead: Wide = 0;
  transmit: Wide = 0;
  framing: Wide = 0;
  tcpSend: Wide = 0;
  retransmission: Wide = 0;
  ackTimeout: Wide = 0;
  rnrDelay: Wide = 0;
  remote: Wide = 0;
  placement: Wide = 0;
  completion: Wide = 0;
}

/** Counts and times of the work requests of one opcode. */
class OperationRow {
  count = 0;
  failedCount = 0;
  /** Work requests without a CQE: they end with the acknowledgement. */
  silentCount = 0;
  payloadBytes: Wide = 0;
  /** Packets of their requests, or of the responses to a READ. */
  packetCount: Wide = 0;
  /** Time from posting to the end on the device, measured independently of the stages. */
  lifePs = 0;
  readonly stagesPs = new StageTimes();
  /** The part of both times that exceeds what a number holds exactly: hours of waiting. */
  far: FarTimes | undefined = undefined;
}

/** Life and stages beyond what numbers hold exactly. */
export interface FarTimes {
  readonly lifePs: bigint;
  readonly stagesPs: Readonly<Record<OperationStage, bigint>>;
}

export class OperationLedger {
  /** Rows by opcode; frames of Ethernet rings have a row of their own, whatever their opcodes. */
  readonly rows: readonly OperationRow[] = Array.from({ length: OPERATION_COUNT }, () => new OperationRow());
  /** Requests whose stages were out of order: a fault of the model. */
  disorderCount = 0;
  readonly #clock: Clock;
  readonly #tap: OperationTap | undefined;
  readonly #qps: QpTable;
  /**
   * Progress through the request being recorded: the last milestone, its picosecond, and the end of the last stage that
   * took time.
   */
  #cycle = 0;
  #reachedPs = 0;
  #atPs = 0;

  constructor(clock: Clock, qps: QpTable, tap: OperationTap | undefined) {
    this.#clock = clock;
    this.#qps = qps;
    this.#tap = tap;
  }

  /** `request` ends at `cycle`: its CQE has left, or (silent) it was acknowledged. */
  completed(request: SendRecord, cycle: Cycles, isSilent: boolean): void {
    const { wqeCounter } = request;
    const qpn = this.#qps.numberOf[request.qp]!;
    const tap = this.#tap;
    const endPs = this.#clock.edgePs(cycle);
    const row = this.rows[this.operationOf(request.qp, request.opcode)]!;
    if (request.syndrome !== 0) {
      row.failedCount++;
      tap?.cqeIssued(qpn, wqeCounter, endPs);
      return;
    }
    // An unreliable message is complete as it leaves, which may be while its last bytes are still being read.
    if (request.gatheredCycle > cycle) request.gatheredCycle = cycle;
    const tapped = tap === undefined ? Number.NaN : tap.postedPs(qpn, wqeCounter);
    row.count++;
    if (endPs - (Number.isNaN(tapped) ? this.#clock.edgePs(request.fetchBegunCycle) : tapped) > farPs) {
      this.#addFar(request, row, qpn, Number.isNaN(tapped), cycle);
    } else {
      const postedPs = this.#addStages(request, row.stagesPs, tapped, cycle, endPs);
      row.lifePs += endPs - postedPs;
      if (endPs < postedPs) this.disorderCount++;
      if (row.lifePs > farPs) carry(row);
    }
    row.payloadBytes += request.messageBytes;
    row.packetCount += request.packetCount;
    if (isSilent) row.silentCount++;
    else tap?.cqeIssued(qpn, wqeCounter, endPs);
  }

  /** Under which number a work request of a QP counts. */
  operationOf(qp: QpSlot, opcode: number): number {
    return this.#qps.rows[qp]!.opcodeBase === ETHERNET_OPCODE_BASE ? frameOperation : opcode;
  }

  /**
   * Counts a work request that was flushed before it was started: it completes without stages. @param operation see
   * {@link operationOf}
   */
  flushedUnstarted(operation: number): void {
    this.rows[operation]!.failedCount++;
  }

  /** Discounts a work request flushed so whose CQE had no CQ: like a started one, it does not count as completed. */
  unstartedDiscarded(operation: number): void {
    this.rows[operation]!.failedCount--;
  }

  /**
   * Adds the stages from posting, or from the fetch when that is not known (NaN), to the end: each ends where the next
   * begins. A WQE found on chip before it was posted (prefetched with its forerunner) has waited for nothing until
   * posted. Returns the instant at which the first stage begins.
   */
  #addStages(
    request: SendRecord,
    stagesPs: StageTimes,
    tappedPs: Picoseconds,
    endCycle: Cycles,
    endPs: Picoseconds,
  ): number {
    const begunPs = this.#clock.edgePs(request.fetchBegunCycle);
    const postedPs = Number.isNaN(tappedPs) ? begunPs : tappedPs;
    this.#cycle = request.fetchBegunCycle;
    this.#reachedPs = begunPs;
    this.#atPs = postedPs;
    stagesPs.doorbell += this.#stageUntil(request.fetchBegunCycle);
    stagesPs.wqeFetch += this.#stageUntil(request.fetchedCycle);
    stagesPs.scheduling += this.#stageUntil(request.startedCycle);
    if (request.earlier.endCycle !== NO_ATTEMPT) this.#addEarlier(request, stagesPs);
    if (request.rateWaitCycles > 0) stagesPs.rateLimit += this.#stageUntil(heldUntil(request, endCycle));
    if (request.stream.isUsed) {
      this.#addStream(request, stagesPs);
    } else {
      stagesPs.payloadRead += this.#stageUntil(request.gatheredCycle);
      stagesPs.transmit += this.#stageUntil(request.transmittedCycle);
    }
    stagesPs.remote += this.#stageUntil(request.acknowledgedCycle);
    if (endPs > this.#atPs) stagesPs.completion += endPs - this.#atPs;
    return postedPs;
  }

  /** From the start to the answer's placement, over a byte stream: a milestone that was not reached ends no stage. */
  #addStream(request: SendRecord, stagesPs: StageTimes): void {
    for (const [stage, cycle] of streamStagesOf(request)) stagesPs[stage] += this.#stageUntil(cycle);
  }

  /**
   * Adds the attempts before the last one, part by part: together they last from the start of the request to the end of
   * the last of them. The response to one of them may have arrived during the last attempt, whose stages end with it.
   */
  #addEarlier(request: SendRecord, stagesPs: StageTimes): void {
    const { earlier } = request;
    endLastAttempt(request);
    const held = request.startedCycle + earlier.rateWaitCycles;
    const gathered = held + earlier.gatherCycles;
    const transmitted = gathered + earlier.transmitCycles;
    const timedOut = transmitted + earlier.timeoutCycles;
    const ready = timedOut + earlier.rnrDelayCycles;
    stagesPs.rateLimit += this.#stageUntil(held);
    stagesPs.payloadRead += this.#stageUntil(gathered);
    stagesPs.transmit += this.#stageUntil(transmitted);
    stagesPs.ackTimeout += this.#stageUntil(timedOut);
    stagesPs.rnrDelay += this.#stageUntil(ready);
    stagesPs.remote += this.#stageUntil(ready + earlier.answerCycles);
  }

  /**
   * {@link #addStages} for a request that took more than an hour: its instants lie further apart than a number holds exactly. The
   * milestones in the same order.
   */
  #addFar(request: SendRecord, row: OperationRow, qpn: Qpn, isUntapped: boolean, endCycle: Cycles): void {
    const clock = this.#clock;
    const { earlier } = request;
    const begunPs = clock.exactEdgePs(request.fetchBegunCycle);
    const postedPs = isUntapped ? begunPs : this.#tap!.exactPostedPs(qpn, request.wqeCounter);
    const far = farSumsOf(row);
    let atPs = postedPs;
    let lastCycle = request.fetchBegunCycle;
    const until = (stage: OperationStage, cycle: Cycles): void => {
      lastCycle = Math.max(lastCycle, cycle);
      const ps = clock.exactEdgePs(lastCycle);
      if (ps <= atPs) return;
      far.stagesPs[stage] += ps - atPs;
      atPs = ps;
    };
    until('doorbell', request.fetchBegunCycle);
    until('wqeFetch', request.fetchedCycle);
    until('scheduling', request.startedCycle);
    if (earlier.endCycle !== NO_ATTEMPT) {
      endLastAttempt(request);
      let endedCycle = request.startedCycle + earlier.rateWaitCycles;
      until('rateLimit', endedCycle);
      endedCycle += earlier.gatherCycles;
      until('payloadRead', endedCycle);
      endedCycle += earlier.transmitCycles;
      until('transmit', endedCycle);
      endedCycle += earlier.timeoutCycles;
      until('ackTimeout', endedCycle);
      endedCycle += earlier.rnrDelayCycles;
      until('rnrDelay', endedCycle);
      until('remote', endedCycle + earlier.answerCycles);
    }
    until('rateLimit', heldUntil(request, endCycle));
    if (request.stream.isUsed) {
      for (const [stage, cycle] of streamStagesOf(request)) until(stage, cycle);
    } else {
      until('payloadRead', request.gatheredCycle);
      until('transmit', request.transmittedCycle);
    }
    until('remote', request.acknowledgedCycle);
    const endPs = clock.exactEdgePs(endCycle);
    if (endPs > atPs) far.stagesPs.completion += endPs - atPs;
    far.lifePs += endPs - postedPs;
    row.far = far;
  }

  /** Ends a stage with the milestone at `cycle`, or where the stage before it ended. Returns the picoseconds it took. */
  #stageUntil(cycle: Cycles): number {
    if (cycle > this.#cycle) {
      this.#cycle = cycle;
      this.#reachedPs = this.#clock.edgePs(cycle);
    }
    const durationPs = this.#reachedPs - this.#atPs;
    if (durationPs <= 0) return 0;
    this.#atPs = this.#reachedPs;
    return durationPs;
  }
}

/** Waits for the rate in the last attempt, as if all preceded its first packet; an answer to an earlier attempt may end it. */
function heldUntil(request: SendRecord, endCycle: Cycles): Cycles {
  const begunCycle = Math.max(request.startedCycle, request.earlier.endCycle);
  return Math.min(begunCycle + request.rateWaitUntil(endCycle), endCycle);
}

/** Stages of a request over a byte stream up to its acknowledgement, and the cycles at which they end. */
function streamStagesOf({
  startedCycle,
  gatheredCycle,
  transmittedCycle,
  acknowledgedCycle,
  stream,
}: SendRecord): readonly (readonly [OperationStage, Cycles])[] {
  const { windowCycles, framedCycle, times, handedCycle } = stream;
  // TCP may send a segment again whose answer is there: the request has not waited for that.
  const resentCycle = times?.resentCycle ?? NOT_REACHED;
  const isWaited = resentCycle <= handedCycle;
  return [
    ['tcpWindow', startedCycle + windowCycles],
    ['payloadRead', gatheredCycle],
    ['transmit', framedCycle],
    ['framing', transmittedCycle],
    ['tcpSend', times?.sentCycle ?? NOT_REACHED],
    ['retransmission', isWaited ? resentCycle : NOT_REACHED],
    ['remote', handedCycle],
    ['placement', handedCycle === NOT_REACHED ? NOT_REACHED : acknowledgedCycle],
  ];
}

/** The stages of the last attempt end with the answer, which may be one to an attempt before. */
function endLastAttempt(request: SendRecord): void {
  const { acknowledgedCycle } = request;
  if (request.gatheredCycle > acknowledgedCycle) request.gatheredCycle = acknowledgedCycle;
  if (request.transmittedCycle > acknowledgedCycle) request.transmittedCycle = acknowledgedCycle;
}

/** A copy of a row's far sums, to add to. */
function farSumsOf({ far }: OperationRow): { lifePs: bigint; stagesPs: Record<OperationStage, bigint> } {
  const stages = operationStages.map((stage) => [stage, far?.stagesPs[stage] ?? 0n] as const);
  return {
    lifePs: far?.lifePs ?? 0n,
    stagesPs: Object.fromEntries(stages) as Record<OperationStage, bigint>,
  };
}

/** The sums of a row become part of the far ones, and begin again: one more request is then exact in a number. */
function carry(row: OperationRow): void {
  const far = farSumsOf(row);
  far.lifePs += BigInt(row.lifePs);
  row.lifePs = 0;
  for (const stage of operationStages) {
    far.stagesPs[stage] += BigInt(row.stagesPs[stage]);
    row.stagesPs[stage] = 0;
  }
  row.far = far;
}
