/** Rules about doorbells, doorbell records and the contents of queues. */
import { CqArmCommand, type cqArm, type eqDoorbell, QpState } from '../../abi/index.ts';
import { bytesEqual, type Decoded, distance, mask24, toHex } from '../../base/index.ts';
import type { RungTable } from '../follow/device-view.ts';
import type { FollowedCq, FollowedEq, FollowedQp, FollowedSrq } from '../follow/objects.ts';
import { walkPosted, wqeInMemory } from '../follow/send-queue.ts';
import { type AnyLayout, reservedBitsIn } from '../layout-fields.ts';
import type { WalkedWqe } from '../wqe-segments.ts';
import { hex, type LintContext } from './context.ts';
import type { RuleName } from './rules.ts';

/** Whether a counter is ahead; a lagging counter appears more than half the range ahead. */
const isAhead = (counter: number, of: number): boolean => {
  const by = distance(counter, of, mask24);
  return by > 0 && by <= mask24 >> 1;
};

export function checkDoorbellBits(lint: LintContext, layout: AnyLayout, bytes: Uint8Array): void {
  const reserved = reservedBitsIn(layout, bytes);
  if (reserved !== undefined)
    lint.report('doorbell-reserved', layout.name, `bits ${hex(reserved.bits)} of byte ${reserved.offset}`);
}

const kindOf = { qps: 'QP', cqs: 'CQ', eqs: 'EQ' } as const satisfies Record<RungTable, string>;
const unknownRule = {
  qps: 'doorbell-unknown-qp',
  cqs: 'cq-arm-unknown',
  eqs: 'eq-doorbell-unknown',
} as const satisfies Record<RungTable, RuleName>;

/**
 * A doorbell of an object that does not exist: it was destroyed, was lost at a reset that the program may not have
 * noticed yet, or never existed.
 */
function reportUnknown(lint: LintContext, table: RungTable, number: number): void {
  const { destroyed, lostAtReset } = lint.view;
  const object = `${kindOf[table]} ${hex(number)}`;
  if (destroyed[table].has(number))
    lint.report('use-after-destroy', object, `is no ${kindOf[table]} of the device`);
  else if (lostAtReset[table].has(number))
    lint.report('left-at-reset', object, 'is rung, but was destroyed by the reset');
  else lint.report(unknownRule[table], object, `is no ${kindOf[table]} of the device`);
}

/** Checks a send doorbell or a BlueFlame post, which includes one. Returns the QP if it may be rung. */
export function checkRing(lint: LintContext, qpn: number, uarPage: number): FollowedQp | undefined {
  const { view } = lint;
  const qp = view.qps.get(qpn);
  const object = `QP ${hex(qpn)}`;
  if (qp === undefined) {
    reportUnknown(lint, 'qps', qpn);
    return undefined;
  }
  if (qp.state === QpState.INIT || qp.state === QpState.RTR) {
    const name = qp.state === QpState.INIT ? 'INIT' : 'RTR';
    lint.report('doorbell-qp-state', object, `is in state ${name}`);
  }
  if (qp.uarPage !== uarPage)
    lint.report(
      'doorbell-foreign-uar',
      object,
      `by UAR page ${hex(uarPage)}, its context says ${hex(qp.uarPage)}`,
    );
  walkPosted(qp, lint.memory);
  qp.rings++;
  if (qp.rings > qp.postedWqes)
    lint.report(
      'doorbell-without-work',
      object,
      `doorbell ${qp.rings} with ${qp.postedWqes} WQEs posted: at block ${hex(qp.walkedBlock)} the owner bit is not that of its pass`,
    );
  return qp;
}

/**
 * Compares a whole BlueFlame post with memory, for a WQE that the device has not fetched from memory. If an earlier
 * doorbell made the device fetch it, the WQE may have completed and its slot may belong to the driver again before the
 * post arrives.
 */
export function checkBlueFlame(lint: LintContext, qp: FollowedQp, counter: number, wqe: Uint8Array): void {
  if (qp.hasTaken(counter)) return;
  const inMemory = wqeInMemory(qp, counter, wqe.length, lint.memory);
  if (inMemory === undefined || bytesEqual(inMemory, wqe.subarray(0, inMemory.length))) return;
  const at = inMemory.findIndex((byte, index) => byte !== wqe[index]);
  const around = (bytes: Uint8Array): string => toHex(bytes.subarray(at & ~3, (at & ~3) + 4));
  lint.report(
    'blueflame-differs',
    `QP ${hex(qp.qpn)}`,
    `WQE ${hex(counter)} byte ${hex(at)}: posted ${around(wqe)}, in memory ${around(inMemory)}`,
  );
}

export function checkSendWqe(
  lint: LintContext,
  qp: FollowedQp,
  block: number,
  walked: WalkedWqe,
  wqe: Uint8Array,
): void {
  const object = `QP ${hex(qp.qpn)}`;
  if (walked.sizeBytes === 0) lint.report('wqe-size', object, `WQE ${hex(block)} has size 0`);
  else if (walked.sizeBytes > qp.sqBytes)
    lint.report('wqe-size', object, `WQE ${hex(block)} is longer than its queue`);
  if (walked.flaw !== undefined) {
    lint.report(walked.flaw.rule, object, `WQE ${hex(block)}: ${walked.flaw.text}`);
    return;
  }
  for (const { title, layout, offset } of walked.parts) {
    if (title === 'inline') continue;
    const reserved = reservedBitsIn(layout, wqe, offset);
    if (reserved !== undefined)
      lint.report(
        'wqe-reserved',
        `${object} ${walked.name}`,
        `WQE ${hex(block)}: bits ${hex(reserved.bits)} of byte ${hex(reserved.offset)} of the ${layout.name}`,
      );
  }
}

export function checkArm(lint: LintContext, arm: Decoded<typeof cqArm>, uarPage: number): void {
  const { cqn, command, sequenceNumber, consumerCounter } = arm;
  const object = `CQ ${hex(cqn)}`;
  const cq = lint.view.cqs.get(cqn);
  if (cq === undefined) return reportUnknown(lint, 'cqs', cqn);
  if (command !== CqArmCommand.NEXT && command !== CqArmCommand.SOLICITED)
    lint.report('cq-arm-unknown', object, `arm command ${command}`);
  if (cq.context.uarPage !== uarPage)
    lint.report(
      'doorbell-foreign-uar',
      object,
      `by UAR page ${hex(uarPage)}, its context says ${hex(cq.context.uarPage)}`,
    );
  const behind = (cq.firedCount + 1 - sequenceNumber) & 3;
  // Software that has not yet handled the last event is one arm late: the device drops such an arm.
  if (behind > 1 || (behind === 1 && cq.firedCount === 0))
    lint.report(
      'cq-arm-sequence',
      object,
      `sequence ${sequenceNumber} after ${cq.firedCount} events, expected ${(cq.firedCount + 1) & 3}`,
    );
  checkConsumer(lint, cq, consumerCounter, 'the arm register');
}

export function checkCqRecord(lint: LintContext, cq: FollowedCq, consumer: number): void {
  checkConsumer(lint, cq, consumer, 'the doorbell record');
}

function checkConsumer(lint: LintContext, cq: FollowedCq, consumer: number, where: string): void {
  // A resize copies entries to the new buffer and adds one that software skips.
  const produced = (cq.produced + cq.resizeCount) & mask24;
  if (isAhead(consumer, produced))
    lint.report(
      'cq-consumer-ahead',
      `CQ ${hex(cq.cqn)}`,
      `${where} says ${hex(consumer)} consumed, ${hex(cq.produced)} were written`,
    );
}

export function checkEqDoorbell(lint: LintContext, eqn: number, doorbell: Decoded<typeof eqDoorbell>): void {
  const eq: FollowedEq | undefined = lint.view.eqs.get(eqn);
  if (eq === undefined) reportUnknown(lint, 'eqs', eqn);
  else if (isAhead(doorbell.consumerCounter, eq.produced))
    lint.report(
      'eq-consumer-ahead',
      `EQ ${hex(eqn)}`,
      `${hex(doorbell.consumerCounter)} consumed, ${hex(eq.produced)} were written`,
    );
}

/** Checks the doorbell record of a receive queue: WQEs that are posted and not completed fit the queue. */
export function checkReceiveRecord(
  lint: LintContext,
  object: string,
  posted: number,
  completed: number,
  size: number,
): void {
  const outstanding = (posted - completed) & 0xffff;
  if (outstanding > size && outstanding < 0x8000)
    lint.report(
      'receive-overrun',
      object,
      `${outstanding} WQEs posted and not completed, in a queue of ${size}`,
    );
}

/** Counts a receive completion for its queue; a CQE of an XRC target does not name that queue by QP. */
export function noteReceived(qp: FollowedQp | undefined, srq: FollowedSrq | undefined): void {
  if (srq !== undefined) srq.completed = (srq.completed + 1) & 0xffff;
  else if (qp !== undefined) qp.receivesCompleted = (qp.receivesCompleted + 1) & 0xffff;
}
