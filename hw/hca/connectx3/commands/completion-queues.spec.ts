import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { cqc } from '../../../../abi/cqc.ts';
import { cqRecord } from '../../../../abi/doorbell-records.ts';
import {
  broughtUp,
  bufferAddress,
  createCq,
  createEq,
  firstCqn,
  icmBase,
  must,
  translate,
} from '../../testing/bring-up.ts';
import type { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_INDEX, BAD_RESOURCE, BAD_RES_STATE, BAD_PARAM, EXCEED_LIM, ICM_ERROR, BAD_SIZE, BAD_OP } =
  CommandStatus;

const ownerAt = (bench: ControlBench, buffer: number, entry: number): number =>
  bench.memory.read(bufferAddress(buffer) + entry * 32 + 0x1f, 1)[0]! >>> 7;

describe('SW2HW_CQ', () => {
  it('sheet 3.16: sets the owner bit of every entry with opcode modifier 0, and of none with 1', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    createCq(bench, 1, eqn);
    expect([ownerAt(bench, 1, 0), ownerAt(bench, 1, 127)]).toEqual([1, 1]);
    const inBox = cqc.encode({ logEntries: 7, uarPage: 200, eqn, mttAddress: translate(bench, 2, 1) });
    must(bench, 'SW2HW_CQ', { inBox, inputModifier: firstCqn + 2, opcodeModifier: 1 });
    expect(ownerAt(bench, 2, 0)).toBe(0);
    expect(bench.dataPath.calls).toEqual(['cqCreated 0', 'cqCreated 1']);
  });

  it.each([
    ['outside the table', 2 ** 16, BAD_INDEX],
    ['of the firmware', 127, BAD_RESOURCE],
  ])('sheet 3.2: refuses a number %s', (_what, inputModifier, status) => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    const inBox = cqc.encode({ logEntries: 7, eqn, mttAddress: translate(bench, 1, 1) });
    expect(bench.command('SW2HW_CQ', { inBox, inputModifier }).status).toBe(status);
  });

  it.each([
    ['an EQ that does not exist', { eqn: 99 }, BAD_RESOURCE],
    ['more entries than the device takes', { logEntries: 23 }, EXCEED_LIM],
    ['a UAR page beyond the area', { uarPage: 1024 }, BAD_PARAM],
    ['an MTT address that is not mapped', { mttAddress: 0xff_0000_0000 }, ICM_ERROR],
  ])('sheet 5.2: refuses a context with %s', (_what, fields, status) => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    const inBox = cqc.encode({
      logEntries: 7,
      uarPage: 200,
      eqn,
      mttAddress: translate(bench, 1, 1),
      ...fields,
    });
    expect(bench.command('SW2HW_CQ', { inBox, inputModifier: firstCqn }).status).toBe(status);
    expect(bench.tables.cqs.liveCount).toBe(0);
  });

  it('sheet 3.2, 4.3: refuses a CQ that exists and a chunk that is not mapped, and takes any number in between', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    createCq(bench, 1, eqn);
    const inBox = cqc.encode({ logEntries: 7, eqn, mttAddress: translate(bench, 1, 1) });
    expect(bench.command('SW2HW_CQ', { inBox, inputModifier: firstCqn + 1 }).status).toBe(BAD_RES_STATE);
    // 64 bytes each: 4096 contexts per mapped chunk of 256 KiB.
    expect(bench.command('SW2HW_CQ', { inBox, inputModifier: 4096 }).status).toBe(ICM_ERROR);
    for (let cqn = 1000; cqn < 1200; cqn++) must(bench, 'SW2HW_CQ', { inBox, inputModifier: cqn });
    expect(bench.tables.cqs.liveCount).toBe(201);
    must(bench, 'UNMAP_ICM', { inParam: icmBase.cqc, inputModifier: 64 });
  });
});

describe('HW2SW_CQ and QUERY_CQ', () => {
  it('sheet 3.16: wait until nothing of the CQ is in the pipelines', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    bench.dataPath.busyCqs.add(0);
    bench.post('HW2SW_CQ', { inputModifier: cqn, opcodeModifier: 1 });
    bench.run(50_000);
    expect(bench.tables.cqs.liveCount).toBe(1);
    expect(bench.dataPath.calls).toContain('cqDestroyed 0');
    bench.dataPath.busyCqs.clear();
    bench.run();
    expect(bench.tables.cqs.liveCount).toBe(0);
    expect(bench.command('HW2SW_CQ', { inputModifier: cqn, opcodeModifier: 1 }).status).toBe(BAD_RES_STATE);
  });

  it('sheet 3.16: outlast completion events that have been posted, so that none comes afterwards', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    const cqn = createCq(bench, 1, eqn);
    const { events } = bench.control;
    bench.dataPath.cqDestroyed = () => events.postCompletion(eqn, cqn, bench.cycle, 0);
    bench.post('HW2SW_CQ', { inputModifier: cqn, opcodeModifier: 1 });
    for (let cycle = 0; cycle < 100_000 && bench.tables.cqs.liveCount > 0; cycle++) bench.run(1);
    expect([bench.tables.cqs.liveCount, events.holdsCompletion(cqn), events.writtenCount]).toEqual([
      0,
      false,
      1,
    ]);
  });

  it('sheet 5.2: report the live context', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    bench.dataPath.onCqSync = (slot) =>
      cqc.fields.producerCounter.set(bench.tables.cqs.view, bench.tables.cqs.offsetOf(slot), 77);
    const context = cqc.decode(must(bench, 'QUERY_CQ', { inputModifier: cqn, outBytes: 64 }).outBox);
    expect([context.producerCounter, context.uarPage, context.logEntries]).toEqual([77, 200, 7]);
  });
});

describe('MODIFY_CQ', () => {
  it('sheet 3.16: changes moderation alone with opcode modifier 1', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    const inBox = cqc.encode({ moderationPeriodUs: 16, moderationCount: 8, logEntries: 3 });
    must(bench, 'MODIFY_CQ', { inBox, inputModifier: cqn, opcodeModifier: 1 });
    const context = cqc.decode(bench.tables.cqs.bytes, bench.tables.cqs.offsetOf(0));
    expect([context.moderationPeriodUs, context.moderationCount, context.logEntries]).toEqual([16, 8, 7]);
    expect(bench.dataPath.calls).toContain('cqModerated 0');
  });

  it('sheet 3.16: goes over to a new buffer, whose entries are invalid for the passes to come', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    bench.dataPath.onCqSync = (slot) => {
      const base = bench.tables.cqs.offsetOf(slot);
      cqc.fields.producerCounter.set(bench.tables.cqs.view, base, 140);
      cqc.fields.consumerCounter.set(bench.tables.cqs.view, base, 100);
    };
    const inBox = cqc.encode({ logEntries: 8, mttAddress: translate(bench, 2, 2) });
    must(bench, 'MODIFY_CQ', { inBox, inputModifier: cqn });
    // The mark has number 140, in the old buffer: the new one is written from 141 on. Entries up to 255 belong to pass
    // 0, owner 1; places before them, and that of number 140, are next written in pass 1, owner 0.
    expect([139, 140, 141, 255].map((entry) => ownerAt(bench, 2, entry))).toEqual([0, 0, 1, 1]);
    const context = cqc.decode(bench.tables.cqs.bytes, bench.tables.cqs.offsetOf(0));
    expect([context.logEntries, context.mttAddress, context.uarPage]).toEqual([8, 0x1000, 200]);
    expect(bench.dataPath.calls).toContain('cqResized 0');
  });

  it("sheet 3.16: ends when the last entry of the old buffer has left, which is software's again", () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    bench.dataPath.isResizing = true;
    const inBox = cqc.encode({ logEntries: 8, mttAddress: translate(bench, 2, 2) });
    bench.post('MODIFY_CQ', { inBox, inputModifier: cqn });
    bench.run(200_000);
    expect(bench.dataPath.calls).toContain('cqResized 0');
    expect(bench.control.processor.isIdle).toBe(false);
    bench.dataPath.isResizing = false;
    bench.run();
    expect(bench.control.processor.isIdle).toBe(true);
  });

  it('sheet 3.2: refuses a size that what is in the CQ does not fit, or that the device does not take', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    bench.dataPath.onCqSync = (slot) =>
      cqc.fields.producerCounter.set(bench.tables.cqs.view, bench.tables.cqs.offsetOf(slot), 33);
    const resize = (logEntries: number) => {
      const inBox = cqc.encode({ logEntries, mttAddress: translate(bench, 2, 2) });
      return bench.command('MODIFY_CQ', { inBox, inputModifier: cqn }).status;
    };
    expect(resize(5)).toBe(BAD_SIZE);
    expect(resize(23)).toBe(EXCEED_LIM);
    expect(resize(6)).toBe(OK);
  });

  it('sheet 6.8: knows from the doorbell record what software has taken since the device last looked', () => {
    const bench = broughtUp();
    const recordAddress = bufferAddress(5);
    const cqn = createCq(bench, 1, createEq(bench, 0));
    const base = bench.tables.cqs.offsetOf(0);
    cqc.fields.doorbellRecordAddress.set(bench.tables.cqs.view, base, BigInt(recordAddress));
    bench.dataPath.onCqSync = () => cqc.fields.producerCounter.set(bench.tables.cqs.view, base, 1000);
    const inBox = cqc.encode({ logEntries: 5, mttAddress: translate(bench, 2, 2) });
    // 33 and then 32 of the 1000 are left: 32 fit.
    for (const [taken, status] of [
      [967, BAD_SIZE],
      [968, OK],
    ] as const) {
      bench.memory.write(recordAddress, cqRecord.encode({ consumerCounter: taken }));
      expect(bench.command('MODIFY_CQ', { inBox, inputModifier: cqn }).status).toBe(status);
    }
  });

  it('sheet 3.2: refuses other opcode modifiers and other CQs', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    expect(bench.command('MODIFY_CQ', { inputModifier: cqn, opcodeModifier: 2 }).status).toBe(BAD_OP);
    expect(bench.command('MODIFY_CQ', { inputModifier: cqn + 1, opcodeModifier: 1 }).status).toBe(
      BAD_RES_STATE,
    );
  });
});
