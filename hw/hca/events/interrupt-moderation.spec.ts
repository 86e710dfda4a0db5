import { describe, expect, it } from 'vitest';
import { EqArmState } from '../../../abi/eqc.ts';
import { broughtUp, createEq } from '../testing/bring-up.ts';
import type { ControlBench } from '../testing/control-bench.ts';

const vector = 3;
type EqFields = NonNullable<Parameters<typeof createEq>[3]>;

function withEq(fields: EqFields = {}): { bench: ControlBench; eqn: number } {
  const bench = broughtUp();
  const eqn = createEq(bench, 0, 7, { interruptNumber: vector, ...fields });
  return { bench, eqn };
}

const post = (bench: ControlBench, eqn: number): void => {
  bench.control.events.postCompletion(eqn, 128, bench.cycle);
};

/** requested = moderated + messages + periods that run. */
function expectBalance(bench: ControlBench): void {
  const { requestedCount, moderatedCount, messageCount } = bench.control.blocks.moderation;
  const slot = bench.control.eqs.slotOf(4);
  const running = bench.control.eqs.interruptCycle[slot] === Number.POSITIVE_INFINITY ? 0 : 1;
  expect(requestedCount[vector]).toBe(moderatedCount[vector]! + messageCount[vector]! + running);
}

describe('interrupts of an EQ', () => {
  it('sheet 6.10: come once per arming, behind the EQE that causes them', () => {
    const { bench, eqn } = withEq();
    for (let event = 0; event < 3; event++) post(bench, eqn);
    bench.run();
    expect(bench.interrupts.messages.map((message) => message.vector)).toEqual([vector]);
    bench.control.events.eqDoorbell(eqn, 3, true, bench.cycle);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(1); // nothing beyond the consumer counter
    post(bench, eqn);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(2);
    expectBalance(bench);
  });

  it('sheet 6.10: come at once when an EQ is armed that holds entries beyond the counter', () => {
    const { bench, eqn } = withEq({ armState: EqArmState.FIRED });
    post(bench, eqn);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(0);
    bench.control.events.eqDoorbell(eqn, 0, true, bench.cycle);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(1);
  });

  it('sheet 6.10: do not come from a doorbell that only updates the counter', () => {
    const { bench, eqn } = withEq({ armState: EqArmState.FIRED });
    post(bench, eqn);
    bench.run();
    bench.control.events.eqDoorbell(eqn, 0, false, bench.cycle);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(0);
  });

  it('sheet 5.3: come for every EQE of an EQ that is always armed', () => {
    const { bench, eqn } = withEq({ armState: EqArmState.ALWAYS_ARMED });
    for (let event = 0; event < 3; event++) post(bench, eqn);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(3);
  });

  it('sheet 5.3: wait for the moderation period after the first EQE', () => {
    const { bench, eqn } = withEq({ moderationPeriod: 10 });
    const written = bench.dma.writeLog.length;
    post(bench, eqn);
    bench.run(1000);
    post(bench, eqn);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(1);
    // The write leaves 10 cycles after it was requested; the period is 10 µs × 427 cycles from the request on.
    const requested = bench.dma.writeLog[written]!.cycle - 10;
    expect(bench.interrupts.messages[0]!.cycle - requested).toBe(4270);
    const { requestedCount, moderatedCount } = bench.control.blocks.moderation;
    expect([requestedCount[vector], moderatedCount[vector]]).toEqual([2, 1]);
    expectBalance(bench);
  });

  it('sheet 5.3: come before the end of the period when the count is reached', () => {
    const { bench, eqn } = withEq({ moderationPeriod: 1000, moderationCount: 3 });
    for (let event = 0; event < 2; event++) post(bench, eqn);
    bench.run(2000);
    expect(bench.interrupts.messages.length).toBe(0);
    expectBalance(bench);
    post(bench, eqn);
    bench.run(2000);
    expect(bench.interrupts.messages.length).toBe(1);
    expectBalance(bench);
  });

  it('are tried again while the function has no room', () => {
    const { bench, eqn } = withEq();
    bench.interrupts.refusals = 5;
    post(bench, eqn);
    bench.run();
    expect(bench.interrupts.messages.length).toBe(1);
    expectBalance(bench);
  });

  it('sheet 2.4: raise the pin without MSI-X, until software clears it', () => {
    const { bench, eqn } = withEq();
    bench.interrupts.msixEnabled = false;
    const written = bench.dma.writeLog.length;
    post(bench, eqn);
    while (!bench.interrupts.isPinAsserted) bench.run(1);
    expect(bench.dma.writeLog.length).toBe(written + 1); // not before the EQE has left
    expect([bench.interrupts.isPinAsserted, bench.interrupts.messages.length]).toEqual([true, 0]);
    bench.control.blocks.moderation.clearPin(bench.cycle);
    expect(bench.interrupts.isPinAsserted).toBe(false);
    expect(bench.control.blocks.moderation.pinAssertionCount).toBe(1);
    expect(bench.control.blocks.moderation.messageCount[vector]).toBe(0);
    expectBalance(bench);
  });

  it('end with the EQ: a period that runs is moderated away', () => {
    const { bench, eqn } = withEq({ moderationPeriod: 1000 });
    post(bench, eqn);
    bench.run(100);
    bench.command('HW2SW_EQ', { inputModifier: eqn, opcodeModifier: 1 });
    bench.run();
    expect(bench.interrupts.messages.length).toBe(0);
    const { requestedCount, moderatedCount } = bench.control.blocks.moderation;
    expect([requestedCount[vector], moderatedCount[vector]]).toEqual([1, 1]);
  });
});
