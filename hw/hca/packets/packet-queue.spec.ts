import { describe, expect, it } from 'vitest';
import { QueuePair } from '../objects/queue-pair.ts';
import { noRecord } from '../objects/send-record.ts';
import { SendRecords } from '../objects/send-records.ts';
import { PACKET_PAYLOAD_BYTES_MAX, PacketQueue, PacketSlot } from './packet-queue.ts';

const makeSlot = (slot: number, payloadOffset: number, none: QueuePair): PacketSlot =>
  new PacketSlot(slot, payloadOffset, none);

const pair = new QueuePair(1);
const openResponse = (queue: PacketQueue) => queue.open(pair, 0, noRecord);

describe('PacketQueue', () => {
  it('hands slots out in order, each with a payload place of its own, and is full when all are taken', () => {
    const queue = new PacketQueue(3, 8192, makeSlot);
    expect(queue.isEmpty).toBe(true);
    const packets = [1, 2, 3].map(() => openResponse(queue));
    expect(packets.map(({ slot }) => slot)).toEqual([0, 1, 2]);
    expect(queue.isFull).toBe(true);
    const places = [0, 1, 2].map((place) => 8192 + place * PACKET_PAYLOAD_BYTES_MAX);
    expect(packets.map(({ slot }) => queue.payloadOffset(slot))).toEqual(places);
    expect(packets.map(({ payloadOffset }) => payloadOffset)).toEqual(places);
    queue.close();
    expect([queue.oldest.slot, openResponse(queue).slot, queue.isFull]).toEqual([1, 0, true]);
    for (let index = 0; index < 3; index++) queue.close();
    expect([queue.isEmpty, openResponse(queue).slot, queue.oldest.slot]).toEqual([true, 1, 1]);
  });

  it('has a complete head when the oldest packet is sealed and all its reads are done', () => {
    const queue = new PacketQueue(2, 0, makeSlot);
    expect(queue.oldest.isComplete).toBe(false);
    const first = openResponse(queue);
    const second = openResponse(queue);
    second.isSealed = 1;
    expect(queue.oldest.isComplete).toBe(false);
    first.pendingReads = 1;
    first.isSealed = 1;
    expect(queue.oldest.isComplete).toBe(false);
    first.pendingReads = 0;
    expect(queue.oldest.isComplete).toBe(true);
    queue.close();
    expect(queue.oldest.isComplete).toBe(true);
  });

  it('opens a slot with nothing left of the packet before it', () => {
    const queue = new PacketQueue(1, 0, makeSlot);
    const packet = queue.open(pair, 2, new SendRecords(1).allocate());
    const fresh = { isSealed: 0, failure: 0, isLast: false };
    const counters = { payloadBytes: 0, pendingReads: 0, readyCycle: 0 };
    Object.assign(packet, { isSealed: 1, failure: 1, isLast: true });
    Object.assign(packet, { payloadBytes: 9, pendingReads: 9, readyCycle: 9 });
    queue.close();
    const other = new QueuePair(4);
    expect(queue.open(other, 5, noRecord)).toBe(packet);
    expect([packet.pair === other, packet.request === noRecord]).toEqual([true, true]);
    expect(packet).toMatchObject({ sendGeneration: 5, ...fresh, ...counters });
  });

  it('is empty when cleared', () => {
    const queue = new PacketQueue(2, 0, makeSlot);
    openResponse(queue);
    queue.clear();
    expect([queue.isEmpty, queue.oldest.isComplete]).toEqual([true, false]);
  });
});
