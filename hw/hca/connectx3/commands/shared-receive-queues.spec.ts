import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { srqc } from '../../../../abi/srqc.ts';
import { broughtUp, createSrq, firstSrqn, must } from '../../testing/bring-up.ts';

const { BAD_INDEX, BAD_RESOURCE, BAD_RES_STATE, BAD_PARAM, EXCEED_LIM, ICM_ERROR } = CommandStatus;

describe('shared receive queue commands', () => {
  it('sheet 3.16: create, report, arm and destroy', () => {
    const bench = broughtUp();
    const srqn = createSrq(bench);
    must(bench, 'ARM_SRQ', { inParam: 16, inputModifier: srqn });
    const context = srqc.decode(must(bench, 'QUERY_SRQ', { inputModifier: srqn, outBytes: 48 }).outBox);
    expect([context.srqn, context.limitWatermark, context.logWqes]).toEqual([srqn, 16, 8]);
    must(bench, 'HW2SW_SRQ', { inputModifier: srqn, opcodeModifier: 1 });
    expect(bench.dataPath.calls).toEqual(['srqCreated 0', 'srqArmed 0', 'srqDestroyed 0', 'srqGone 0']);
    for (const name of ['QUERY_SRQ', 'ARM_SRQ', 'HW2SW_SRQ'] as const) {
      expect(bench.command(name, { inputModifier: srqn, opcodeModifier: 1 }).status).toBe(BAD_RES_STATE);
    }
  });

  it('destroy only when nothing of the queue is being read any more', () => {
    const bench = broughtUp();
    const srqn = createSrq(bench);
    bench.dataPath.busySrqs.add(0);
    bench.post('HW2SW_SRQ', { inputModifier: srqn, opcodeModifier: 1 });
    bench.run(50_000);
    expect(bench.tables.srqs.liveCount).toBe(1);
    bench.dataPath.busySrqs.clear();
    bench.run();
    expect(bench.tables.srqs.liveCount).toBe(0);
  });

  it('refuse a limit beyond the queue, and leave the old one', () => {
    const bench = broughtUp();
    const srqn = createSrq(bench);
    expect(bench.command('ARM_SRQ', { inParam: 257, inputModifier: srqn }).status).toBe(BAD_PARAM);
    expect(srqc.decode(bench.tables.srqs.bytes).limitWatermark).toBe(0);
  });

  it.each([
    ['too many WQEs', { logWqes: 15 }, EXCEED_LIM],
    ['a stride without room for a data pointer', { logStride16: 0 }, BAD_PARAM],
    ['a stride beyond the largest descriptor', { logStride16: 6 }, BAD_PARAM],
    ['an MTT address that is not mapped', { mttAddress: 0xff_0000_0000 }, ICM_ERROR],
  ])('sheet 5.5: refuse a context with %s', (_what, fields, status) => {
    const bench = broughtUp();
    const inBox = srqc.encode({ logWqes: 8, logStride16: 2, ...fields });
    expect(bench.command('SW2HW_SRQ', { inBox, inputModifier: firstSrqn }).status).toBe(status);
    expect(bench.tables.srqs.liveCount).toBe(0);
  });

  it('sheet 3.2, 4.3: refuse numbers that are reserved, taken, outside the table or not mapped, and take all others', () => {
    const bench = broughtUp();
    const inBox = srqc.encode({ logWqes: 8, logStride16: 2 });
    const create = (inputModifier: number) => bench.command('SW2HW_SRQ', { inBox, inputModifier }).status;
    createSrq(bench);
    expect(create(firstSrqn)).toBe(BAD_RES_STATE);
    expect(create(firstSrqn - 1)).toBe(BAD_RESOURCE);
    expect(create(2 ** 16)).toBe(BAD_INDEX);
    expect(create(4096)).toBe(ICM_ERROR);
    for (let srq = 1; srq < 200; srq++) expect(create(firstSrqn + srq)).toBe(CommandStatus.OK);
    expect(bench.tables.srqs.liveCount).toBe(200);
  });
});
