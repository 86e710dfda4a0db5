import { describe, expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { MsixTable } from './msix-table.ts';

const config = configurationOf().pcie.function;
const enable = 0x80;
const functionMask = 0x40;
const firstDescriptor = 100;

/** A table, and what it asks of the slot: descriptors by vector, and masks. */
function tableWithCalls() {
  const calls: (readonly [what: string, vector: number, value: number | boolean])[] = [];
  const slot = {
    setInterrupt: (_index: number, vector: number, descriptor: number) =>
      calls.push(['set', vector, descriptor]),
    maskInterrupt: (_index: number, vector: number, isMasked: boolean) =>
      calls.push(['mask', vector, isMasked]),
  };
  const table = new MsixTable(slot, config, firstDescriptor);
  const control = (high: number): void => table.configWritten(config.msixOffset + 2, Uint8Array.of(0, high));
  const write = (vector: number, word: number, value: number): void =>
    table.write(config.msixTableOffset + 16 * vector + 4 * word, value, 4);
  return { table, calls, control, write };
}

describe("the guest's MSI-X table", () => {
  it('has masked entries at first, as PCI 3.0, 6.8.2.9 demands', () => {
    const { table } = tableWithCalls();
    expect(table.read(config.msixTableOffset + 12, 4)).toBe(1);
    expect(table.contains(config.msixTableOffset - 1)).toBe(false);
    expect(table.contains(config.msixTableOffset + 16 * config.msixVectorCount)).toBe(false);
  });

  it('gives a vector a descriptor when it is unmasked while MSI-X is enabled, and knows its message', () => {
    const { table, calls, control, write } = tableWithCalls();
    write(3, 0, 0xfee0_1000 | 0);
    write(3, 2, 0x4041);
    write(3, 3, 0);
    expect(calls).toEqual([]);
    control(enable);
    expect(calls).toEqual([['set', 3, firstDescriptor + 3]]);
    expect(table.messageOf(firstDescriptor + 3)).toEqual({ address: 0xfee0_1000, data: 0x4041 });
  });

  it('holds a vector back while its entry or the function is masked', () => {
    const { calls, control, write } = tableWithCalls();
    control(enable);
    write(0, 3, 0);
    write(0, 3, 1);
    write(0, 3, 0);
    control(enable | functionMask);
    control(enable);
    expect(calls).toEqual([
      ['set', 0, firstDescriptor],
      ...[true, false, true, false].map((isMasked) => ['mask', 0, isMasked]),
    ]);
  });

  it('takes the descriptors back when MSI-X is disabled, or the function reset', () => {
    const { table, calls, control, write } = tableWithCalls();
    control(enable);
    write(1, 3, 0);
    control(0);
    expect(calls.at(-1)).toEqual(['set', 1, -1]);
    control(enable);
    table.reset();
    expect(calls.slice(-2)).toEqual([
      ['set', 1, firstDescriptor + 1],
      ['set', 1, -1],
    ]);
  });

  it('ignores writes of configuration space elsewhere', () => {
    const { table, calls, write } = tableWithCalls();
    write(0, 3, 0);
    table.configWritten(4, Uint8Array.of(6, enable));
    expect(calls).toEqual([]);
  });
});
