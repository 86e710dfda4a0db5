import { describe, expect, it } from 'vitest';
import { transportTable } from './render.ts';

const rowsOf = (violations: Readonly<Record<string, number>>): string[] =>
  (transportTable([{ hca: { transport: {}, violations } }])[0] ?? '')
    .split('\n')
    .filter((line) => line.includes(':'))
    .map((line) => line.replaceAll(/[│\s]+/g, ' ').trim());

describe('the refusals of the device', () => {
  it('sheet 6.10: do not count a second arm of a CQ before the event was read as an error', () => {
    expect(rowsOf({ armStale: 22 })).toEqual(['lawful, without effect: armStale 22']);
  });

  it('IBTA 9.6.1.1: list a packet for an unknown QP as discarded: it may be late or the peer’s mistake', () => {
    expect(rowsOf({ packetUnknownQp: 61, packetQpState: 2 })).toEqual([
      'packet discarded: packetUnknownQp 61',
      'packet discarded: packetQpState 2',
    ]);
  });

  it('list violated rules first, whichever block counted them', () => {
    const rows = rowsOf({ armStale: 1, packetUnknownQp: 2, doorbellForeignUar: 3, registerAccessSize: 4 });
    expect(rows.map((row) => row.split(':')[0])).toEqual([
      'against the rules',
      'against the rules',
      'packet discarded',
      'lawful, without effect',
    ]);
  });
});
