/** IBTA volume 1, 14.2.2.2 for a channel adapter: a directed route begins and ends at it, and never passes through. */
import { describe, expect, it } from 'vitest';
import { viewOf } from '../../base/index.ts';
import { arriveDirected, returnDirected } from './directed-end.ts';

const permissive = 0xffff;
/** Offsets of the SMP's fields. */
const at = { pointer: 6, count: 7, sourceLid: 0x20, destinationLid: 0x22, back: 0xc0 };

function smpOf(
  pointer: number,
  count: number,
  lids: { source?: number; destination?: number } = {},
): DataView {
  const view = viewOf(new Uint8Array(256));
  view.setUint8(at.pointer, pointer);
  view.setUint8(at.count, count);
  view.setUint16(at.sourceLid, lids.source ?? permissive);
  view.setUint16(at.destinationLid, lids.destination ?? permissive);
  return view;
}

describe('a request that arrives at an adapter', () => {
  it('IBTA C14-9 (3): ends there with its pointer at its count, and names the port for its way back', () => {
    const view = smpOf(2, 2);
    expect(arriveDirected(view, 1)).toBe(true);
    expect([view.getUint8(at.pointer), view.getUint8(at.back + 2)]).toEqual([3, 1]);
  });

  it('IBTA C14-9 (3): ends there without hops, and nothing is written to its way back', () => {
    const view = smpOf(0, 0);
    expect([arriveDirected(view, 1), view.getUint8(at.pointer), view.getUint8(at.back)]).toEqual([
      true,
      1,
      0,
    ]);
  });

  it('IBTA C14-9 (4): has ended its route before, by LIDs', () => {
    expect(arriveDirected(smpOf(3, 2), 1)).toBe(true);
  });

  it.each<[string, DataView]>([
    ['IBTA C14-9 (1): without its sender’s step', smpOf(0, 2)],
    ['IBTA C14-9 (2): on its way to another node', smpOf(1, 2)],
    ['IBTA C14-9 (3): with a part by LIDs after it', smpOf(2, 2, { destination: 9 })],
    ['IBTA C14-9 (5): beyond its end', smpOf(4, 2)],
    ['IBTA 14.2.2: with more than 63 hops', smpOf(64, 64)],
  ])('is dropped %s', (_, view) => {
    expect(arriveDirected(view, 1)).toBe(false);
  });
});

describe('a response that leaves an adapter', () => {
  it('IBTA C14-13 (1): begins at the last place of the way back, which names its port', () => {
    const view = smpOf(3, 2);
    view.setUint8(at.back + 2, 1);
    expect([returnDirected(view, 1), view.getUint8(at.pointer)]).toEqual([true, 2]);
  });

  it('IBTA C14-13 (1): is dropped if another port is named there', () => {
    expect(returnDirected(smpOf(3, 2), 1)).toBe(false);
  });

  it('without hops leaves by its port, unless its DrDLID routes it by LIDs', () => {
    expect(returnDirected(smpOf(1, 0), 1)).toBe(true);
    expect(returnDirected(smpOf(1, 0, { source: 9 }), 1)).toBe(false);
  });
});
