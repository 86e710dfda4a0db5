import { describe, expect, it } from 'vitest';
import { isComplete, PACKET_PAYLOAD_BYTES_MAX, PacketQueue } from './packet-queue.ts';

describe('PacketQueue', () => {
  it('hands slots out in order, each with a payload place of its own, and says when it is full', () => {
    const queue = new PacketQueue(3, 8192);
    expect(queue.isEmpty).toBe(true);
    const slots = [1, 2, 3].map((qp) => queue.open(qp, 0, -1));
    expect(slots).toEqual([0, 1, 2]);
    expect(queue.isFull).toBe(true);
    expect(slots.map((slot) => queue.payloadOffset(slot) - 8192)).toEqual(
      [0, 1, 2].map((place) => place * PACKET_PAYLOAD_BYTES_MAX),
    );
    queue.close();
    expect([queue.oldest.slot, queue.open(4, 0, -1), queue.isFull]).toEqual([1, 0, true]);
    for (let index = 0; index < 3; index++) queue.close();
    expect([queue.isEmpty, queue.open(5, 0, -1), queue.oldest.slot]).toEqual([true, 1, 1]);
  });

  it('has a complete head when the oldest packet is sealed and all its reads are done', () => {
    const queue = new PacketQueue(2, 0);
    expect(isComplete(queue.oldest)).toBe(false);
    const first = queue.open(1, 0, 5);
    const second = queue.open(1, 0, 6);
    queue.rows[second]!.isSealed = 1;
    expect(isComplete(queue.oldest)).toBe(false);
    queue.rows[first]!.pendingReads = 1;
    queue.rows[first]!.isSealed = 1;
    expect(isComplete(queue.oldest)).toBe(false);
    queue.rows[first]!.pendingReads = 0;
    expect(isComplete(queue.oldest)).toBe(true);
    queue.close();
    expect(isComplete(queue.oldest)).toBe(true);
  });

  it('opens a slot that knows nothing of the packet before it', () => {
    const queue = new PacketQueue(1, 0);
    const slot = queue.open(1, 2, 3);
    const fresh = { isSealed: 0, failure: 0, isLast: 0, isRepeat: 0, flags: 0 };
    const counters = { payloadBytes: 0, pendingReads: 0, readyCycle: 0 };
    Object.assign(queue.rows[slot]!, { isSealed: 1, failure: 1, isLast: 1, isRepeat: 1, flags: 9 });
    Object.assign(queue.rows[slot]!, { payloadBytes: 9, pendingReads: 9, readyCycle: 9 });
    queue.close();
    queue.open(4, 5, -1);
    expect(queue.rows[slot]).toMatchObject({ qp: 4, epoch: 5, record: -1, ...fresh, ...counters });
  });

  it('is empty when cleared', () => {
    const queue = new PacketQueue(2, 0);
    queue.open(1, 0, -1);
    queue.clear();
    expect([queue.isEmpty, isComplete(queue.oldest)]).toEqual([true, false]);
  });
});
