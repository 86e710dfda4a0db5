import { describe, expect, it } from 'vitest';
import { functionBench } from './function-bench.ts';

const ASSERT_INTA = 0x20;
const DEASSERT_INTA = 0x24;

const bench = (...options: Parameters<typeof functionBench>) => {
  const made = functionBench(...options);
  const setIntx = (isAsserted: boolean): void => {
    made.fn.setIntx(isAsserted, made.cycleNow());
    made.settle();
  };
  return { ...made, setIntx };
};

describe('the legacy interrupt', () => {
  it('PCIe 2.2.8.1: is a pair of messages, and shows in Status', () => {
    const { setIntx, messages, software } = bench();
    setIntx(true);
    setIntx(true);
    expect(messages).toEqual([ASSERT_INTA]);
    expect(software.config(0x06, 2)).toBe(0x0018);
    setIntx(false);
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA]);
    expect(software.config(0x06, 2)).toBe(0x0010);
  });

  it('PCIe 6.1.2: uses the wire of the interrupt pin', () => {
    const { setIntx, messages } = bench({ interruptPin: 4 });
    setIntx(true);
    setIntx(false);
    // Assert_INTD, Deassert_INTD.
    expect(messages).toEqual([0x23, 0x27]);
  });

  it('PCIe 2.2.8.1: is lowered by the disable bit and raised again when that is cleared, with Status unmoved', () => {
    const { setIntx, messages, software } = bench();
    setIntx(true);
    software.setConfig(0x04, 2, 0x0400);
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA]);
    expect(software.config(0x06, 2)).toBe(0x0018);
    software.setConfig(0x04, 2, 0);
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA, ASSERT_INTA]);
  });

  it('PCI Local Bus 6.8.2: is not used while MSI-X is enabled or the function is in D3hot', () => {
    const { setIntx, messages, software } = bench();
    software.setConfig(0x9e, 2, 0x8000);
    setIntx(true);
    expect(messages).toEqual([]);
    software.setConfig(0x9e, 2, 0);
    expect(messages).toEqual([ASSERT_INTA]);
    software.setConfig(0x44, 2, 3);
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA]);
  });

  it('PCIe 7.5.1: needs no bus mastering, and no message when the level falls before one could leave', () => {
    const { fn, cycleNow, messages, settle } = bench();
    expect(fn.busMasterEnabled).toBe(false);
    fn.setIntx(true, cycleNow());
    fn.setIntx(false, cycleNow());
    settle();
    expect(messages).toEqual([]);
  });

  it('PCIe 2.2.8.1: is lowered when the device leaves its slot, as by the root port when the link goes down', () => {
    const { fn, cycleNow, settle, setIntx, messages } = bench();
    setIntx(true);
    fn.setPresent(false, cycleNow());
    settle();
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA]);
    fn.setPresent(true, cycleNow());
    settle();
    setIntx(true);
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA, ASSERT_INTA]);
  });

  it('PCIe 6.6.2: is lowered by a function-level reset', () => {
    const { setIntx, messages, software } = bench();
    setIntx(true);
    software.setConfig(0x68, 2, 0x8000);
    expect(messages).toEqual([ASSERT_INTA, DEASSERT_INTA]);
    expect(software.config(0x06, 2)).toBe(0x0010);
  });

  it('waits for room at the link port', () => {
    const { setIntx, messages, fn } = bench(
      {},
      { rootPort: { postedHeaders: 1 }, endpoint: { postedFifoTlps: 1 } },
    );
    for (let at = 0; at < 6; at++) setIntx(at % 2 === 0);
    expect(messages.length).toBe(fn.blocks.intx.assertedCount + fn.blocks.intx.deassertedCount);
    expect(messages.at(-1)).toBe(DEASSERT_INTA);
  });
});
