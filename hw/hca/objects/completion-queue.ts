/**
 * The device's state of one completion queue: the fields of its context, decoded once per command, and counters and arm
 * state. One object per slot of the {@link CqTable}, made once.
 */

import { QueueStatus } from '../../../abi/index.ts';
import type { Wide } from '../../../base/index.ts';

/** Arm states of a CQ, private to the device. */
export const CQ_NOT_ARMED = 0;
export const CQ_ARMED_SOLICITED = 1;
export const CQ_ARMED_NEXT = 2;

export class CompletionQueue {
  status = 0;
  logEntries = 0;
  mttOffset: Wide = 0;
  pageBytes: Wide = 0;
  firstByte = 0;
  eqn = 0;
  uarPage = 0;
  doorbellRecord: Wide = 0;
  ignoreOverrun = 0;
  /** CQEs carry the core clock. */
  hasTimestamps = 0;
  moderationCount = 0;
  moderationPeriodPs = 0;
  /** 24-bit counters. */
  producer = 0;
  consumer = 0;
  /** Producer counter after the last CQE that a solicited arm waits for. */
  solicitedProducer = 0;
  /** Producer counter at the last event: CQEs before it have been reported. */
  lastNotified = 0;
  armState = 0;
  /** Completion events fired, which an arm request's sequence number must be ahead of by one. */
  firedCount = 0;
  /** CQEs since the CQ was armed that moderation holds back. */
  heldCount = 0;
  /** CQEs since the last event that qualify for an event. */
  wantedCount = 0;
  hasModerationTimer = 0;
  /** CQEs on their way to memory. */
  inPipelineCount = 0;
  generation = 0;

  /** A context was just created: empty, not armed. */
  begin(): void {
    this.status = QueueStatus.OK;
    this.producer = 0;
    this.consumer = 0;
    this.solicitedProducer = 0;
    this.lastNotified = 0;
    this.firedCount = 0;
    this.heldCount = 0;
    this.wantedCount = 0;
    this.inPipelineCount = 0;
    this.armState = CQ_NOT_ARMED;
    this.hasModerationTimer = 0;
    this.generation++;
  }
}
