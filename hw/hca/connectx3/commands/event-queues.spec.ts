import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { QueueStatus } from '../../../../abi/cqc.ts';
import { EqArmState, eqc } from '../../../../abi/eqc.ts';
import { EventType } from '../../../../abi/eqe.ts';
import {
  broughtUp,
  bufferAddress,
  createEq,
  eqContext,
  firstEqn,
  icmBase,
  icmHostBase,
  must,
} from '../../testing/bring-up.ts';

const { OK, BAD_INDEX, BAD_RESOURCE, BAD_RES_STATE, BAD_PARAM, EXCEED_LIM, ICM_ERROR } = CommandStatus;

describe('SW2HW_EQ', () => {
  it('sheet 3.16: gives every entry an owner bit that software does not take for valid, and touches nothing else', () => {
    const bench = broughtUp();
    const end = bufferAddress(0) + 2 ** 8 * 32;
    bench.memory.write(end, new Uint8Array([0xab]));
    createEq(bench, 0, 8); // 256 entries, two pages
    for (let entry = 0; entry < 256; entry++) {
      expect(bench.memory.read(bufferAddress(0) + entry * 32 + 0x1f, 1)[0]).toBe(0x80);
    }
    expect(bench.memory.read(end, 1)[0]).toBe(0xab);
  });

  it('sheet 5.3: starts at the page offset of the context', () => {
    const bench = broughtUp();
    createEq(bench, 0, 4, { pageOffset32: 3 }); // 16 entries from byte 96
    expect(bench.memory.read(bufferAddress(0) + 96 - 1, 1)[0]).toBe(0);
    expect(bench.memory.read(bufferAddress(0) + 96 + 0x1f, 1)[0]).toBe(0x80);
    expect(bench.memory.read(bufferAddress(0) + 96 + 16 * 32 + 0x1f, 1)[0]).toBe(0);
  });

  it.each([
    ['outside the table', 128, BAD_INDEX],
    ['of the firmware', 3, BAD_RESOURCE],
  ])('sheet 3.2: refuses a number %s', (_what, inputModifier, status) => {
    const bench = broughtUp();
    expect(bench.command('SW2HW_EQ', { inBox: eqContext(bench, 0, 7), inputModifier }).status).toBe(status);
  });

  it('sheet 3.2: refuses an EQ that exists', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    const again = bench.command('SW2HW_EQ', { inBox: eqContext(bench, 0, 7), inputModifier: eqn });
    expect(again.status).toBe(BAD_RES_STATE);
    expect(bench.control.eqs.liveCount).toBe(1);
  });

  it('sheet 4.3: refuses a context chunk that is not mapped', () => {
    const bench = broughtUp();
    must(bench, 'UNMAP_ICM', { inParam: icmBase.eqc, inputModifier: 64 });
    expect(bench.command('SW2HW_EQ', { inBox: eqContext(bench, 0, 7), inputModifier: firstEqn }).status).toBe(
      ICM_ERROR,
    );
  });

  it.each([
    ['more entries than the device takes', { logEntries: 23 }, EXCEED_LIM],
    ['an interrupt beyond the MSI-X table', { interruptNumber: 128 }, BAD_PARAM],
    ['pages larger than any', { logPageSize4k: 20 }, BAD_PARAM],
    ['an MTT address that is not mapped', { mttAddress: 0x10_0000_0000 - 8 }, ICM_ERROR],
  ])('sheet 5.3: refuses a context with %s', (_what, fields, status) => {
    const bench = broughtUp();
    const inBox = eqContext(bench, 0, 7, fields);
    expect(bench.command('SW2HW_EQ', { inBox, inputModifier: firstEqn }).status).toBe(status);
    expect(bench.control.eqs.liveCount).toBe(0);
  });

  it('sheet 5.6: refuses a buffer one of whose pages is not present', () => {
    const bench = broughtUp();
    const inBox = eqContext(bench, 0, 8);
    bench.memory.write(icmHostBase + icmBase.mtt + 8, new Uint8Array(8)); // second entry
    expect(bench.command('SW2HW_EQ', { inBox, inputModifier: firstEqn }).status).toBe(BAD_PARAM);
  });
});

describe('QUERY_EQ and HW2SW_EQ', () => {
  it('sheet 5.3: report the live counters and arm state', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    bench.control.events.postCompletion(eqn, 200, bench.cycle);
    bench.run();
    bench.control.events.eqDoorbell(eqn, 1, false, bench.cycle);
    const context = eqc.decode(must(bench, 'QUERY_EQ', { inputModifier: eqn, outBytes: 64 }).outBox);
    expect(context.producerCounter).toBe(1);
    expect(context.consumerCounter).toBe(1);
    expect(context.status).toBe(QueueStatus.OK);
    expect(context.armState).toBe(EqArmState.FIRED);
  });

  it('sheet 3.16: end the EQ, with or without its context in a box', () => {
    const bench = broughtUp();
    const first = createEq(bench, 0);
    const second = createEq(bench, 1);
    must(bench, 'HW2SW_EQ', { inputModifier: first, opcodeModifier: 1 });
    const { outBox } = must(bench, 'HW2SW_EQ', { inputModifier: second, outBytes: 64 });
    expect(eqc.decode(outBox).logEntries).toBe(7);
    expect(bench.control.eqs.liveCount).toBe(0);
    for (const name of ['HW2SW_EQ', 'QUERY_EQ'] as const) {
      expect(bench.command(name, { inputModifier: first }).status).toBe(BAD_RES_STATE);
    }
  });

  it('sheet 3.16: drop what waits for the EQ', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    bench.post('HW2SW_EQ', { inputModifier: eqn, opcodeModifier: 1 });
    bench.run(4300); // decoded and worked: about to end the EQ
    for (let event = 0; event < 50; event++) bench.control.events.postCompletion(eqn, 1, bench.cycle);
    bench.run();
    expect(bench.control.events.isIdle).toBe(true);
    expect(bench.control.events.writtenCount + bench.control.events.droppedCount).toBe(50);
    expect(bench.control.eqs.liveCount).toBe(0);
  });
});

describe('MAP_EQ', () => {
  it('sheet 3.16: sends types to an EQ, and takes them away again', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    must(bench, 'MAP_EQ', {
      inParam: 2 ** EventType.PORT_CHANGE + 2 ** EventType.CMD,
      inputModifier: eqn,
    });
    expect(bench.control.events.eqnOfType(EventType.PORT_CHANGE)).toBe(eqn);
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.PORT_CHANGE, inputModifier: 0x8000_0000 + eqn });
    expect(bench.control.events.eqnOfType(EventType.PORT_CHANGE)).toBe(-1);
    expect(bench.control.events.eqnOfType(EventType.CMD)).toBe(eqn);
  });

  it('sheet 3.16: takes types above 31', () => {
    const bench = broughtUp();
    const eqn = createEq(bench, 0);
    bench.control.events.mapEvents(2 ** (EventType.RECOVERABLE_ERROR_EVENT - 32), 0, eqn);
    expect(bench.control.events.eqnOfType(EventType.RECOVERABLE_ERROR_EVENT)).toBe(eqn);
  });

  it('sheet 3.2: refuses an EQ that does not exist', () => {
    const bench = broughtUp();
    expect(bench.command('MAP_EQ', { inParam: 2, inputModifier: firstEqn }).status).toBe(BAD_RES_STATE);
    expect(bench.command('NOP').status).toBe(OK);
  });
});
