import { describe, expect, it } from 'vitest';
import { WorkFailedError } from './completion-poller.ts';
import { checkAnswer, putStamp, serverOfItem, writeKey, writeValue } from './kv-items.ts';
import { endLength, type KvPlan, putBytes, slotBytes, slotOffset } from './kv-plan.ts';

const plan: KvPlan = {
  servers: 3,
  window: 4,
  keyBytes: 16,
  valueBytes: 32,
  items: 3000,
  getPercent: 95,
  lookupCycles: 100,
  pattern: 'random',
};

const keyOf = (item: number): Uint8Array => {
  const key = new Uint8Array(plan.keyBytes);
  writeKey(key, 0, plan, item);
  return key;
};
const bytesOfValue = (item: number, stamp: number): Uint8Array => {
  const value = new Uint8Array(plan.valueBytes);
  writeValue(value, 0, plan, item, stamp);
  return value;
};

describe('keys and values of a store', () => {
  it('differ, and no key ends with a zero, which marks a free slot', () => {
    const keys = Array.from({ length: plan.items }, (_, item) => keyOf(item));
    expect(new Set(keys.map((key) => key.join())).size).toBe(plan.items);
    expect(keys.every((key) => key.at(-1) !== 0)).toBe(true);
    const values = [
      bytesOfValue(1, 0),
      bytesOfValue(2, 0),
      bytesOfValue(1, putStamp(0, 1)),
      bytesOfValue(1, putStamp(1, 1)),
    ];
    expect(new Set(values.map((value) => value.join())).size).toBe(4);
  });

  it('are distributed over the threads of the server', () => {
    const counts = [0, 0, 0];
    for (let item = 0; item < plan.items; item++) counts[serverOfItem(plan, item)]!++;
    for (const count of counts) expect(count).toBeGreaterThan(900);
  });

  it('decide whether an answer is possible', () => {
    const own = putStamp(1, 7);
    const expected = { client: 1, item: 5, ownStamp: own };
    checkAnswer(bytesOfValue(5, own), plan, expected);
    // Another client has since done a PUT.
    checkAnswer(bytesOfValue(5, putStamp(0, 3)), plan, expected);
    checkAnswer(bytesOfValue(5, 0), plan, { ...expected, ownStamp: 0 });
    const isNoValue = 'the answer to GET 5 is no value of that key';
    expect(() => checkAnswer(bytesOfValue(6, own), plan, expected)).toThrow(isNoValue);
    const damaged = bytesOfValue(5, own);
    damaged[31]! ^= 1;
    expect(() => checkAnswer(damaged, plan, expected)).toThrow(isNoValue);
    const isOld = 'older than the last PUT of client 1';
    expect(() => checkAnswer(bytesOfValue(5, putStamp(1, 6)), plan, expected)).toThrow(isOld);
    expect(() => checkAnswer(bytesOfValue(5, 0), plan, expected)).toThrow(WorkFailedError);
  });
});

it('a request ends at the end of its slot; slots are ordered as in HERD 4.2: thread, client, place', () => {
  // 32 + 2 + 16 bytes of a PUT, rounded up to whole cache lines.
  expect(putBytes(plan)).toBe(50);
  expect(slotBytes(plan)).toBe(64);
  expect(slotBytes({ ...plan, valueBytes: 47 })).toBe(128);
  // s · (W · NC) + c · W + r mod W, of 64 bytes each.
  const offset = slotOffset(plan, { clients: 5, server: 2, client: 3, place: 1 });
  expect(offset).toBe((2 * 4 * 5 + 3 * 4 + 1) * 64);
  expect(endLength).toBeGreaterThan(4096);
});
