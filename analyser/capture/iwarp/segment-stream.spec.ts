/** TCP streams put in order: compared with the sent bytes, and within a bound of steps however a stream is cut. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { CapturedSegment } from '../captured-packets.ts';
import { PendingBytes } from './pending-bytes.ts';
import { SegmentStream, WaitingBytes } from './segment-stream.ts';

/** Number of reads of sequence and length over all segments. */
let reads = 0;

function segmentOf(sequence: number, payload: Uint8Array): CapturedSegment {
  return {
    ...{ number: 1, timePs: 0n, from: 'a', to: 'b', network: 0, note: '', fromPort: 1, toPort: 2 },
    ...{ isSyn: false, payload },
    get sequence() {
      reads++;
      return sequence >>> 0;
    },
    get payloadBytes() {
      reads++;
      return payload.length;
    },
  };
}

const byteOf = (place: number): number => (place * 7) & 0xff;
const oneByte = (start: number, place: number): CapturedSegment =>
  segmentOf(start + place, Uint8Array.of(byteOf(place)));

/** The bytes of a stream whose one-byte segments arrive in this order. */
function bytesOf(start: number, places: readonly number[]): number[] {
  const stream = new SegmentStream(new WaitingBytes());
  reads = 0;
  return places.flatMap((place) =>
    stream.take(oneByte(start, place)).next.flatMap(({ bytes }) => [...bytes]),
  );
}

const ascending = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

afterEach(() => void vi.restoreAllMocks());

describe('a stream of TCP', () => {
  it.each([0, 0xffff_ff00])('puts segments in order that arrive in reverse, from sequence %i on', (start) => {
    const bytes = bytesOf(start, [0, ...ascending(600).slice(1).reverse()]);
    expect(bytes).toEqual(ascending(600).map(byteOf));
  });

  it.each([
    ['in order after a gap', (count: number) => [0, ...ascending(count).slice(2), 1]],
    ['in reverse', (count: number) => [0, ...ascending(count).slice(1).reverse()]],
    [
      'each twice',
      (count: number) => [
        0,
        ...ascending(count)
          .slice(2)
          .flatMap((place) => [place, place]),
        1,
      ],
    ],
    ['each before the one that precedes it', (count: number) => ascending(count).map((place) => place ^ 1)],
  ])('needs a bounded number of steps for each one-byte segment: %s', (_name, orderOf) => {
    for (const count of [500, 1000]) {
      const places = orderOf(count);
      bytesOf(0, places);
      // A search among 1000 needs ten steps. Each segment is read a few times on arrival and on delivery.
      expect(reads / places.length).toBeLessThan(30);
    }
  });

  it('abandons a gap if too many bytes wait for it, in one stream and in all', () => {
    const ofAll = new WaitingBytes();
    const streams = Array.from({ length: 1000 }, () => new SegmentStream(ofAll));
    const payload = new Uint8Array(1000);
    let most = 0;
    for (let place = 0; place < 200; place++)
      for (const stream of streams) {
        stream.take(segmentOf(place === 0 ? 0 : 2000 * place, payload));
        most = Math.max(most, ofAll.bytes);
      }
    expect(most).toBeGreaterThan(60 * 2 ** 20);
    expect(most).toBeLessThan(65 * 2 ** 20);
    for (const stream of streams) stream.clear();
    expect(ofAll.bytes).toBe(0);
    const one = new SegmentStream(ofAll);
    const lost = ascending(400).flatMap((place) => one.take(segmentOf(2000 * place, payload)).next);
    expect(lost.filter(({ lostBytes }) => lostBytes > 0).length).toBeGreaterThan(0);
    expect(ofAll.bytes).toBeLessThan(600 * 2 ** 10);
  });
});

describe('pending bytes', () => {
  it('keeps added bytes that were not removed', () => {
    const pending = new PendingBytes();
    const model: number[] = [];
    for (let step = 0; step < 5000; step++) {
      const bytes = Uint8Array.from({ length: (step * 31) % 17 }, (_, index) => byteOf(step + index));
      pending.append(bytes);
      model.push(...bytes);
      const taken = Math.min(model.length, (step * 13) % 19);
      pending.drop(taken);
      model.splice(0, taken);
      expect([...pending.view()]).toEqual(model);
    }
  });

  it('copies each byte a few times, for any size of pieces and messages', () => {
    let copied = 0;
    const set = Uint8Array.prototype.set;
    vi.spyOn(Uint8Array.prototype, 'set').mockImplementation(function (this: Uint8Array, source, offset) {
      copied += source.length;
      set.call(this, source, offset);
    });
    vi.spyOn(Uint8Array.prototype, 'slice').mockImplementation(() => expect.fail('copies the rest'));
    const pending = new PendingBytes();
    for (let place = 0; place < 65_536; place++) pending.append(Uint8Array.of(place));
    for (let taken = 0; taken < 65_536; taken += 8) pending.drop(8);
    expect(copied).toBeLessThan(4 * 65_536);
  });
});
