import { describe, expect, it } from 'vitest';
import { arbitrationOf, NO_LANE, VlArbiter } from './vl-arbiter.ts';
import { VlArbitrationTable } from './vl-arbitration-table.ts';

const empty = (): VlArbitrationTable => arbitrationOf([], 8);
const tableOf = (...entries: readonly (readonly [lane: number, weight: number])[]): VlArbitrationTable => {
  const table = new VlArbitrationTable(new Uint8Array(2 * entries.length));
  entries.forEach(([lane, weight], index) => {
    table.setEntry(index, lane, weight);
  });
  return table;
};

const arbiterWith = (high: VlArbitrationTable, low: VlArbitrationTable, highLimit = 0): VlArbiter =>
  new VlArbiter({ high, low, highLimit });

/** Lanes of the next packets, each of so many blocks, if all of `ready` always have one. */
const sequenceOf = (arbiter: VlArbiter, ready: number, packets: number, blocks = 1): string =>
  Array.from({ length: packets }, () => {
    const lane = arbiter.choose(ready);
    if (lane !== NO_LANE) arbiter.sent(blocks);
    return lane === NO_LANE ? '-' : lane;
  }).join('');

describe('one table', () => {
  it('IBTA 7.6.9: shares by weights, 3 to 1', () => {
    const arbiter = arbiterWith(empty(), tableOf([0, 3], [1, 1]));
    expect(sequenceOf(arbiter, 0b11, 9)).toBe('000100010');
  });

  it('IBTA 7.6.9: lets a packet that begins with weight left leave whole, and counts no debt', () => {
    // 2 blocks each: lane 0 begins with 3, then with 1 left; lane 1 begins with its 1.
    const arbiter = arbiterWith(empty(), tableOf([0, 3], [1, 1]));
    expect(sequenceOf(arbiter, 0b11, 7, 2)).toBe('0010010');
  });

  it('IBTA 7.6.9: passes an entry whose lane has nothing, and the rest of its weight is lost', () => {
    const arbiter = arbiterWith(empty(), tableOf([0, 3], [1, 1]));
    expect(sequenceOf(arbiter, 0b01, 2)).toBe('00');
    expect(sequenceOf(arbiter, 0b10, 2)).toBe('11');
    expect(sequenceOf(arbiter, 0b11, 4)).toBe('0001');
  });

  it('IBTA 7.6.9: skips entries of weight 0, and never sends lanes without an entry', () => {
    const arbiter = arbiterWith(empty(), tableOf([0, 2], [1, 0]));
    expect(sequenceOf(arbiter, 0b111, 3)).toBe('000');
    expect(sequenceOf(arbiter, 0b110, 1)).toBe('-');
  });

  it('IBTA 7.6.9: may have a lane in several entries', () => {
    const arbiter = arbiterWith(empty(), tableOf([0, 1], [1, 1], [0, 1], [2, 1]));
    expect(sequenceOf(arbiter, 0b111, 8)).toBe('01020102');
  });
});

describe('VLHighLimit', () => {
  const arbiterOf = (highLimit: number): VlArbiter =>
    arbiterWith(tableOf([1, 255]), tableOf([0, 255]), highLimit);

  it('IBTA 7.6.9: 0 allows one packet before one of low priority', () => {
    expect(sequenceOf(arbiterOf(0), 0b11, 6, 33)).toBe('101010');
  });

  it('IBTA 7.6.9: counts 4 KiB: 1 allows two packets of 33 blocks', () => {
    // 64 blocks: 33 leave 31, with which the second packet begins.
    expect(sequenceOf(arbiterOf(1), 0b11, 6, 33)).toBe('110110');
    expect(sequenceOf(arbiterOf(1), 0b11, 4, 64)).toBe('1010');
  });

  it('IBTA 7.6.9: 255 has no limit', () => {
    expect(sequenceOf(arbiterOf(255), 0b11, 100, 66)).toBe('1'.repeat(100));
    expect(sequenceOf(arbiterOf(255), 0b01, 2)).toBe('00');
  });

  it('IBTA 7.6.9: counts by a new limit from the next packet on', () => {
    const port = { high: tableOf([1, 255]), low: tableOf([0, 255]), highLimit: 255 };
    const arbiter = new VlArbiter(port);
    expect(sequenceOf(arbiter, 0b11, 3)).toBe('111');
    port.highLimit = 0;
    expect(sequenceOf(arbiter, 0b11, 4)).toBe('1010');
  });

  it('IBTA 7.6.9: counts again after an opportunity that low priority could not use', () => {
    const arbiter = arbiterOf(0);
    expect(sequenceOf(arbiter, 0b10, 2)).toBe('11');
    // The second packet began the count again, and has used it up.
    expect(sequenceOf(arbiter, 0b11, 3)).toBe('010');
  });
});

it('IBTA 14.2.5.9: a table keeps a block up to its entries, and reads as zero beyond them', () => {
  const table = arbitrationOf([], 8);
  const block = new Uint8Array(64);
  block.set([3, 200, 0x15, 7], 0);
  block.set([2, 9], 16);
  table.setBlock(0, block);
  expect([table.laneAt(0), table.weightAt(0), table.laneAt(1), table.weightAt(1)]).toEqual([3, 200, 5, 7]);
  const read = new Uint8Array(64).fill(1);
  table.getBlock(0, read);
  expect([...read.subarray(0, 18)]).toEqual([3, 200, 0x15, 7, ...new Array<number>(14).fill(0)]);
  table.getBlock(1, read);
  expect(read).toEqual(new Uint8Array(64));
});
