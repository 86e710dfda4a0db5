import { describe, expect, it } from 'vitest';
import { cqc, QueueStatus } from '../../abi/cqc.ts';
import { CQ_NOT_ARMED, CqTable } from './cq-table.ts';

describe('CqTable', () => {
  it('takes up a new context empty and not armed, whatever the slot held before', () => {
    const cqs = new CqTable(2);
    const slot = cqs.allocate(0x80);
    for (const values of [
      cqs.producer,
      cqs.consumer,
      cqs.solicitedProducer,
      cqs.firedCount,
      cqs.heldCount,
      cqs.armState,
      cqs.status,
      cqs.hasModerationTimer,
      cqs.inPipelineCount,
    ])
      values[slot] = 5;
    const generation = cqs.generation[slot]!;
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
      cqs.producer[slot],
      cqs.consumer[slot],
      cqs.solicitedProducer[slot],
      cqs.firedCount[slot],
      cqs.heldCount[slot],
    ]).toEqual([0, 0, 0, 0, 0]);
    expect([
      cqs.armState[slot],
      cqs.status[slot],
      cqs.hasModerationTimer[slot],
      cqs.inPipelineCount[slot],
    ]).toEqual([CQ_NOT_ARMED, QueueStatus.OK, 0, 0]);
    expect(cqs.generation[slot]).toBe(generation + 1);
    expect([
      cqs.logEntries[slot],
      cqs.uarPage[slot],
      cqs.eqn[slot],
      cqs.firstByte[slot],
      cqs.pageBytes[slot],
    ]).toEqual([7, 3, 6, 128, 8192]);
    expect([cqs.mttOffset[slot], cqs.doorbellRecord[slot], cqs.ignoreOverrun[slot]]).toEqual([
      0x1238, 0x1_0000_0040, 1,
    ]);
    expect([cqs.moderationCount[slot], cqs.moderationPeriodPs[slot]]).toEqual([4, 8_000_000]);
  });

  it('writes counters and status into the context', () => {
    const cqs = new CqTable(1);
    const slot = cqs.allocate(0x80);
    cqs.create(slot);
    cqs.producer[slot] = 0xffffff;
    cqs.consumer[slot] = 0xfffffe;
    cqs.solicitedProducer[slot] = 5;
    cqs.status[slot] = QueueStatus.OVERFLOW;
    cqs.sync(slot);
    expect(cqc.decode(cqs.bytes)).toMatchObject({
      producerCounter: 0xffffff,
      consumerCounter: 0xfffffe,
      solicitedProducerCounter: 5,
      status: QueueStatus.OVERFLOW,
    });
  });

  it('hands each slot out once and finds it by its number', () => {
    const cqs = new CqTable(2);
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
