import { describe, expect, it } from 'vitest';
import { cqc, QueueStatus } from '../../../abi/cqc.ts';
import { cqContext } from '../connectx3/cq-context.ts';
import { CQ_NOT_ARMED } from './completion-queue.ts';
import { CqTable } from './cq-table.ts';

describe('CqTable', () => {
  it('sheet 3.16: takes up a new context empty and not armed, whatever the slot held before', () => {
    const cqs = new CqTable(2, cqContext);
    const slot = cqs.allocate(0x80);
    Object.assign(cqs.rows[slot]!, {
      producer: 5,
      consumer: 5,
      solicitedProducer: 5,
      firedCount: 5,
      heldCount: 5,
      armState: 5,
      status: 5,
      hasModerationTimer: 5,
      inPipelineCount: 5,
    });
    const generation = cqs.rows[slot]!.generation;
    cqs.bytes.set(
      cqc.encode({
        logEntries: 7,
        uarPage: 3,
        eqn: 6,
        pageOffset32: 4,
        logPageSize4k: 1,
        mttAddress: 0x1238,
        moderationCount: 4,
        moderationPeriodUs: 8,
        doorbellRecordAddress: 0x1_0000_0040n,
        ignoreOverrun: 1,
      }),
      cqs.offsetOf(slot),
    );
    cqs.create(slot);
    expect([
      cqs.rows[slot]!.producer,
      cqs.rows[slot]!.consumer,
      cqs.rows[slot]!.solicitedProducer,
      cqs.rows[slot]!.firedCount,
      cqs.rows[slot]!.heldCount,
    ]).toEqual([0, 0, 0, 0, 0]);
    expect([
      cqs.rows[slot]!.armState,
      cqs.rows[slot]!.status,
      cqs.rows[slot]!.hasModerationTimer,
      cqs.rows[slot]!.inPipelineCount,
    ]).toEqual([CQ_NOT_ARMED, QueueStatus.OK, 0, 0]);
    expect(cqs.rows[slot]!.generation).toBe(generation + 1);
    expect([
      cqs.rows[slot]!.logEntries,
      cqs.rows[slot]!.uarPage,
      cqs.rows[slot]!.eqn,
      cqs.rows[slot]!.firstByte,
      cqs.rows[slot]!.pageBytes,
    ]).toEqual([7, 3, 6, 128, 8192]);
    expect([
      cqs.rows[slot]!.mttOffset,
      cqs.rows[slot]!.doorbellRecord,
      cqs.rows[slot]!.ignoreOverrun,
    ]).toEqual([0x1238, 0x1_0000_0040, 1]);
    expect([cqs.rows[slot]!.moderationCount, cqs.rows[slot]!.moderationPeriodPs]).toEqual([4, 8_000_000]);
  });

  it('sheet 5.2: writes counters and status into the context', () => {
    const cqs = new CqTable(1, cqContext);
    const slot = cqs.allocate(0x80);
    cqs.create(slot);
    cqs.rows[slot]!.producer = 0xffffff;
    cqs.rows[slot]!.consumer = 0xfffffe;
    cqs.rows[slot]!.solicitedProducer = 5;
    cqs.rows[slot]!.status = QueueStatus.OVERFLOW;
    cqs.sync(slot);
    expect(cqc.decode(cqs.bytes)).toMatchObject({
      producerCounter: 0xffffff,
      consumerCounter: 0xfffffe,
      solicitedProducerCounter: 5,
      status: QueueStatus.OVERFLOW,
    });
  });

  it('hands each slot out once and finds it by its number', () => {
    const cqs = new CqTable(2, cqContext);
    const first = cqs.allocate(0x80);
    const second = cqs.allocate(0xf0_0000);
    expect([cqs.slotOf(0x80), cqs.slotOf(0xf0_0000), cqs.slotOf(0x81), cqs.allocate(0x82)]).toEqual([
      first,
      second,
      -1,
      -1,
    ]);
    cqs.free(second);
    expect([cqs.slotOf(0xf0_0000), cqs.liveCount, cqs.allocate(0x83)]).toEqual([-1, 1, second]);
    expect(cqs.liveSlots().sort()).toEqual([first, second].sort());
  });
});
