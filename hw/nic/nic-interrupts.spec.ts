import { beforeEach, describe, expect, it } from 'vitest';
import { NicCause } from '../../abi/nic/index.ts';
import { LogicalProcess } from '../../sim/index.ts';
import { NicCounters } from './nic-counters.ts';
import { NicInterrupts } from './nic-interrupts.ts';

const { RXT0, TXDW, LSC, RXO } = NicCause;
/** Receive causes on vector 0, transmit on 1, others on 2. */
const IVAR = 0x000a_0908;
const RECEIVE = RXT0 | NicCause.RXDMT0 | NicCause.PIORX;

/** A clock of 250 MHz: cycle n is at n × 4000 ps; 256 ns are 64 cycles. */
function bench() {
  const lp = new LogicalProcess('nic');
  const domain = lp.addClockDomain(250);
  const counters = new NicCounters();
  const messages: [vector: number, cycle: number][] = [];
  const pins: [isAsserted: boolean, cycle: number][] = [];
  const port = {
    msixEnabled: true,
    refusals: 0,
    isIdle: true,
    requestInterrupt(vector: number, cycle: number): boolean {
      if (this.refusals-- > 0) return false;
      messages.push([vector, cycle]);
      return true;
    },
    setIntx: (isAsserted: boolean, cycle: number) => pins.push([isAsserted, cycle]),
  };
  const interrupts = new NicInterrupts({ domain, port, writes: port, counters });
  const actions = new Map<number, () => void>();
  const stage = domain.addStage((cycle) => {
    actions.get(cycle)?.();
    actions.delete(cycle);
    domain.wake(stage, Math.min(...actions.keys()));
  });
  const at = (cycle: number, action: () => void): void => {
    actions.set(cycle, action);
    domain.wake(stage, cycle);
  };
  const runTo = (cycle: number): boolean => lp.advance(cycle * 4000);
  interrupts.assignVectors(IVAR);
  return { interrupts, counters, messages, pins, port, at, runTo };
}

describe('interrupt causes', () => {
  let b: ReturnType<typeof bench>;
  beforeEach(() => {
    b = bench();
  });
  const expectBalance = (): void => {
    const { interruptsRaised, interruptMessages, interruptsModerated, interruptsForgotten } = b.counters;
    expect(interruptMessages + interruptsModerated + interruptsForgotten + b.interrupts.waitingCount).toBe(
      interruptsRaised,
    );
  };

  it('send the message of their vector in the next cycle', () => {
    b.at(10, () => b.interrupts.enable(RXT0 | TXDW | LSC, 10));
    b.at(20, () => b.interrupts.set(RXT0, 20));
    b.at(30, () => b.interrupts.set(TXDW | LSC, 30));
    b.runTo(100);
    expect(b.messages).toEqual([
      [0, 21],
      [1, 31],
      [2, 31],
    ]);
    expectBalance();
  });

  it('82574 datasheet 7.4: that are masked stay set, and interrupt when they are enabled', () => {
    b.at(10, () => b.interrupts.set(RXT0, 10));
    b.at(50, () => b.interrupts.enable(RXT0, 50));
    b.runTo(100);
    expect(b.messages).toEqual([[0, 51]]);
    expect(b.interrupts.readCauses(100)).toBe(RXT0);
    expect(b.interrupts.readCauses(100)).toBe(0);
  });

  it('interrupt again only when they rise again', () => {
    b.interrupts.enable(RXT0, 0);
    for (const cycle of [10, 20, 30]) b.at(cycle, () => b.interrupts.set(RXT0, cycle));
    b.at(40, () => b.interrupts.clear(RXT0, 40));
    b.at(50, () => b.interrupts.set(RXT0, 50));
    b.runTo(100);
    expect(b.messages.map(([, cycle]) => cycle)).toEqual([11, 51]);
    expectBalance();
  });

  it('work NAPI style: one message until software has polled and enabled them again', () => {
    b.interrupts.autoClear = RECEIVE;
    b.interrupts.autoMask = RECEIVE;
    b.interrupts.enable(RECEIVE | LSC, 0);
    for (const cycle of [10, 20, 30]) b.at(cycle, () => b.interrupts.set(RXT0, cycle));
    b.at(25, () => {
      expect(b.interrupts.mask).toBe(LSC);
    });
    b.at(60, () => b.interrupts.enable(RECEIVE, 60));
    b.runTo(100);
    // Causes at 20 and 30, after the first message, interrupt as soon as allowed.
    expect(b.messages).toEqual([
      [0, 11],
      [0, 61],
    ]);
    expectBalance();
  });

  it('that are cleared or masked before their message can leave are forgotten', () => {
    b.interrupts.enable(RXT0, 0);
    b.port.refusals = 100;
    b.at(10, () => b.interrupts.set(RXT0, 10));
    b.at(20, () => b.interrupts.disable(RXT0, 20));
    b.runTo(60);
    expect(b.messages).toEqual([]);
    expect(b.counters.interruptsForgotten).toBe(1);
    expectBalance();
  });

  it('are retried every cycle while the function has no room', () => {
    b.interrupts.enable(RXT0, 0);
    b.port.refusals = 5;
    b.at(10, () => b.interrupts.set(RXT0, 10));
    b.runTo(60);
    expect(b.messages).toEqual([[0, 16]]);
  });

  it('of a group without a vector have no message', () => {
    b.interrupts.assignVectors(0x0000_0908);
    b.interrupts.enable(RXO, 0);
    b.at(10, () => b.interrupts.set(RXO, 10));
    b.runTo(60);
    expect(b.messages).toEqual([]);
    expect(b.interrupts.readCauses(60)).toBe(RXO);
  });

  it('drive the pin without MSI-X, once the write-backs have left', () => {
    b.port.msixEnabled = false;
    b.port.isIdle = false;
    b.interrupts.enable(RXT0, 0);
    b.at(10, () => b.interrupts.set(RXT0, 10));
    b.at(20, () => {
      b.port.isIdle = true;
    });
    b.at(50, () => b.interrupts.readCauses(50));
    b.runTo(100);
    expect(b.pins).toEqual([
      [true, 21],
      [false, 51],
    ]);
  });
});

describe('moderation', () => {
  const causesAt = (b: ReturnType<typeof bench>, cycles: readonly number[]): void => {
    b.interrupts.autoClear = RXT0;
    b.interrupts.enable(RXT0 | TXDW, 0);
    for (const cycle of cycles) b.at(cycle, () => b.interrupts.set(RXT0, cycle));
  };

  it('by time keeps messages apart: the first leaves at once, the rest share the next', () => {
    const b = bench();
    b.interrupts.eitr[0] = 4; // 4 × 256 ns: 256 cycles
    causesAt(b, [10, 50, 100, 150, 900]);
    b.runTo(2000);
    expect(b.messages.map(([, cycle]) => cycle)).toEqual([11, 267, 901]);
    expect(b.counters.interruptMessages).toBe(3);
  });

  it('by count ends the wait early', () => {
    const b = bench();
    b.interrupts.eitr[0] = 4;
    b.interrupts.eict[0] = 3;
    causesAt(b, [10, 50, 100, 150, 200]);
    b.runTo(2000);
    expect(b.messages.map(([, cycle]) => cycle)).toEqual([11, 151, 407]);
  });

  it('is each vector’s own', () => {
    const b = bench();
    b.interrupts.eitr[0] = 4;
    causesAt(b, [10, 50]);
    b.at(60, () => b.interrupts.set(TXDW, 60));
    b.runTo(2000);
    expect(b.messages).toEqual([
      [0, 11],
      [1, 61],
      [0, 267],
    ]);
  });

  it('is disabled when the register is set to 0', () => {
    const b = bench();
    b.interrupts.eitr[0] = 0xffff;
    causesAt(b, [10, 50]);
    b.at(80, () => {
      b.interrupts.eitr[0] = 0;
      b.interrupts.moderationChanged(80);
    });
    b.runTo(2000);
    expect(b.messages.map(([, cycle]) => cycle)).toEqual([11, 81]);
  });
});
