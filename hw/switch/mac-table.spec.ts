import { describe, expect, it } from 'vitest';
import { MacTable } from './mac-table.ts';

const secondPs = 1e12;

describe('a table of stations', () => {
  it('IEEE 802.1Q 8.8.3: forgets a station that has been silent for the ageing time', () => {
    const table = new MacTable(10, 300 * secondPs);
    table.learn(1, 0xa, 3, 0);
    table.learn(1, 0xb, 4, 0);
    table.learn(1, 0xb, 4, 10 * secondPs);
    expect(table.portOf(1, 0xa, 300 * secondPs - 1)).toBe(3);
    expect(table.portOf(1, 0xa, 300 * secondPs)).toBeUndefined();
    table.rebase(300 * secondPs);
    expect(table.portOf(1, 0xb, 10 * secondPs - 1)).toBe(4);
    expect(table.portOf(1, 0xb, 10 * secondPs)).toBeUndefined();
  });

  it('follows a station that moves, and knows it in its VLAN alone', () => {
    const table = new MacTable(10, 300 * secondPs);
    table.learn(1, 0xa, 3, 0);
    table.learn(1, 0xa, 5, 1);
    expect([table.portOf(1, 0xa, 2), table.portOf(2, 0xa, 2)]).toEqual([5, undefined]);
  });

  it('learns no more stations than it has entries, until others are silent', () => {
    const table = new MacTable(2, 300 * secondPs);
    for (const mac of [0xa, 0xb, 0xc]) table.learn(1, mac, mac, 0);
    expect([0xa, 0xb, 0xc].map((mac) => table.portOf(1, mac, 1))).toEqual([0xa, 0xb, undefined]);
    expect(table.overflowCount).toBe(1);
    table.learn(1, 0xc, 7, 300 * secondPs);
    expect([0xa, 0xb, 0xc].map((mac) => table.portOf(1, mac, 300 * secondPs))).toEqual([
      undefined,
      undefined,
      7,
    ]);
  });
});
