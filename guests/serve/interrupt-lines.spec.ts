import { describe, expect, it } from 'vitest';
import { InterruptLines } from './interrupt-lines.ts';

const WINDOW = 0xfee0_0000;

function lines() {
  const raised: number[] = [];
  return { raised, lines: new InterruptLines(4, WINDOW, (descriptor) => raised.push(descriptor)) };
}

describe('interrupt lines', () => {
  it('write the descriptor of a message’s vector', () => {
    const { raised, lines: all } = lines();
    all.setVector(2, 77);
    const { address, data } = all.messageFor(2);
    all.message(address, data);
    all.message(address, data);
    expect(raised).toEqual([77, 77]);
    expect([...all.counters.arrived]).toEqual([0, 0, 2, 0]);
    expect([...all.counters.raised]).toEqual([0, 0, 2, 0]);
  });

  it('count a message of a vector without a listener, and raise nothing', () => {
    const { raised, lines: all } = lines();
    all.setVector(1, 5);
    all.setVector(1, -1);
    all.message(WINDOW, 1);
    expect(raised).toEqual([]);
    expect([all.counters.arrived[1], all.counters.raised[1]]).toEqual([1, 0]);
  });

  it('count messages without a vector separately', () => {
    const { lines: all } = lines();
    all.message(WINDOW, 4);
    all.message(WINDOW + 4, 1);
    expect(all.unroutedCount).toBe(2);
    expect(all.vectorOf(WINDOW, 4)).toBe(-1);
  });

  it('raise an asserted level once, and again after an unmask while it is asserted', () => {
    const { raised, lines: all } = lines();
    all.setPin(9);
    all.intx(0, true);
    all.intx(0, true);
    expect(raised).toEqual([9]);
    all.maskPin(false);
    expect(raised).toEqual([9, 9]);
    all.intx(0, false);
    all.maskPin(false);
    expect(raised).toEqual([9, 9]);
    expect([all.pinAssertedCount, all.pinRaisedCount]).toEqual([2, 2]);
  });

  it('raise a level that was asserted while masked or before a descriptor was set', () => {
    const { raised, lines: all } = lines();
    all.intx(0, true);
    all.setPin(9);
    expect(raised).toEqual([9]);
    all.intx(0, false);
    all.maskPin(true);
    all.intx(0, true);
    expect(raised).toEqual([9]);
    all.maskPin(false);
    expect(raised).toEqual([9, 9]);
  });

  it('forget everything at a reset', () => {
    const { raised, lines: all } = lines();
    all.setVector(0, 3);
    all.setPin(4);
    all.reset();
    all.message(WINDOW, 0);
    all.intx(0, true);
    expect(raised).toEqual([]);
    expect(all.hasVectors).toBe(false);
  });
});
