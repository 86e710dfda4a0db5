import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ObjectImage } from '../base/object-image.ts';
import {
  ChannelOverflowError,
  ChannelReader,
  ChannelWriter,
  channelBufferBytes,
  joinEnds,
  RECORD_HEADER_BYTES,
} from './channel.ts';

function channel(capacityBytes = 4096): { writer: ChannelWriter; reader: ChannelReader } {
  const buffer = new SharedArrayBuffer(channelBufferBytes(capacityBytes));
  return { writer: new ChannelWriter(buffer), reader: new ChannelReader(buffer) };
}

/** Appends a record whose payload bytes all equal `mark`. */
function append(writer: ChannelWriter, timePs: number, mark: number, payloadBytes: number): void {
  const offset = writer.append(timePs, 1 + (mark & 7), payloadBytes);
  const start = offset + RECORD_HEADER_BYTES;
  writer.words[(offset >> 2) + 4] = payloadBytes;
  writer.bytes.fill(mark, start, start + payloadBytes);
}

describe('channel', () => {
  it('shows records only once they are published, in order, with their time, kind and bytes', () => {
    const { writer, reader } = channel();
    append(writer, 100, 5, 3);
    append(writer, 250, 6, 0);
    expect(reader.refresh()).toBe(0);
    expect(reader.nextPs).toBe(Number.POSITIVE_INFINITY);
    writer.publish(90);
    expect(reader.isDrained).toBe(false);
    expect(reader.refresh()).toBe(90);
    expect(reader.nextPs).toBe(100);
    expect(reader.nextKind).toBe(6);
    const first = reader.take();
    expect(reader.nextKind).toBe(7);
    expect(reader.kindAt(first)).toBe(6);
    expect([...reader.bytes.subarray(first + 64, first + 67)]).toEqual([5, 5, 5]);
    expect(reader.nextPs).toBe(250);
    const second = reader.take();
    // Header of 64 bytes, payload of 3, padded to a multiple of 16.
    expect(second - first).toBe(80);
    expect(reader.isDrained).toBe(true);
    expect(reader.nextPs).toBe(Number.POSITIVE_INFINITY);
  });

  it('keeps the last of several promises', () => {
    const { writer, reader } = channel();
    for (let ps = 1; ps <= 1000; ps++) writer.publish(ps * 1e9 + 7);
    expect(reader.refresh()).toBe(1e12 + 7);
    expect(writer.promisedPs).toBe(1e12 + 7);
  });

  it('never splits a record at the end of the ring, and skips the rest of the ring', () => {
    const { writer, reader } = channel(4096);
    // Two records of 64 + 1400 = 1464 bytes leave 4096 - 2928 = 1168 bytes: too few for a third.
    for (const mark of [1, 2]) append(writer, mark, mark, 1400);
    writer.publish(0);
    reader.refresh();
    for (const _ of [1, 2]) reader.release(reader.take());
    append(writer, 3, 3, 1400);
    writer.publish(0);
    reader.refresh();
    expect(reader.nextPs).toBe(3);
    expect(reader.nextKind).toBe(1 + 3);
    const offset = reader.take();
    expect(offset).toBe(0);
    expect(reader.bytes[offset + 64 + 1399]).toBe(3);
  });

  it('reuses the room of records released out of order only when the oldest is released', () => {
    const { writer, reader } = channel(4096);
    for (const mark of [1, 2]) append(writer, mark, mark, 1600);
    writer.publish(0);
    reader.refresh();
    const [first, second] = [reader.take(), reader.take()];
    reader.release(second);
    expect(() => writer.append(3, 1, 1600)).toThrow(ChannelOverflowError);
    expect(reader.bytes[first + 64]).toBe(1);
    reader.release(first);
    expect(writer.append(3, 1, 1600)).toBe(0);
  });

  it('returns the next record only if it is of the requested kind, also after the rest of the ring', () => {
    const { writer, reader } = channel(4096);
    for (const mark of [1, 2]) append(writer, mark, mark, 1400);
    writer.publish(0);
    reader.refresh();
    expect(reader.takeOf(3)).toBe(-1);
    expect(reader.nextPs).toBe(1);
    const first = reader.takeOf(2);
    expect(first).toBe(0);
    expect(reader.takenKind).toBe(2);
    reader.release(first);
    reader.release(reader.takeOf(3));
    append(writer, 3, 3, 1400);
    writer.publish(0);
    reader.refresh();
    expect(reader.takeOf(3)).toBe(-1);
    expect(reader.takeOf(4)).toBe(0);
    expect(reader.nextPs).toBe(Number.POSITIVE_INFINITY);
    expect(reader.isDrained).toBe(true);
  });

  it('an image restores unreleased records, also those after the end of the ring', () => {
    const { writer, reader } = channel(4096);
    const pass = (mark: number): void => {
      append(writer, mark, mark, 1400);
      writer.publish(mark);
      reader.refresh();
      reader.release(reader.take());
    };
    pass(1);
    // Records of 1472 bytes each: from byte 1472 to 2944; then, after 1152 bytes of padding, from 0 on.
    for (const mark of [2, 3]) append(writer, mark, mark, 1400);
    writer.publish(3);
    reader.refresh();
    const first = reader.take();
    const image = new ObjectImage([writer, reader]);
    for (let round = 0; round < 2; round++) {
      expect(first).toBe(1472);
      expect([...reader.bytes.subarray(1472 + 64, 1472 + 1464)]).toEqual(new Array(1400).fill(2));
      expect(reader.nextPs).toBe(3);
      const second = reader.take();
      expect(second).toBe(0);
      expect([...reader.bytes.subarray(64, 1464)]).toEqual(new Array(1400).fill(3));
      reader.release(second);
      reader.release(first);
      for (let mark = 4; mark < 14; mark++) pass(mark);
      image.restore();
      expect([reader.takenBytes, writer.promisedPs]).toEqual([1472, 3]);
    }
  });

  it('holds the whole capacity and refuses one byte more', () => {
    const { writer } = channel(4096);
    writer.append(1, 1, 4096 - 64 - 64);
    writer.append(1, 1, 0);
    expect(() => writer.append(1, 1, 0)).toThrow(/channel of 4096 bytes has no room for 64 more/);
  });

  it('refuses records whose time runs backwards', () => {
    const { writer } = channel();
    writer.append(10, 1, 0);
    writer.append(10, 1, 0);
    expect(() => writer.append(9, 1, 0)).toThrow(/time of a record in ps is 9, expected at least 10/);
  });

  it('refuses a capacity that is not a power of two of at least 4096 bytes', () => {
    for (const bytes of [0, 2048, 5000]) {
      expect(() => new ChannelWriter(new SharedArrayBuffer(channelBufferBytes(bytes)))).toThrow(RangeError);
    }
  });

  it('reports whether there was anything to flush or to read', () => {
    const { writer, reader } = channel();
    expect([writer.isDirty, writer.flush(), reader.refreshRecords()]).toEqual([false, false, false]);
    writer.append(1, 1, 0);
    expect([writer.isDirty, writer.flush(), reader.refreshRecords()]).toEqual([true, true, true]);
    expect(reader.knownTail).toBe(writer.tail);
    expect([writer.isDirty, reader.refreshRecords()]).toEqual([false, false]);
  });

  it.each([
    ['apart', false],
    ['joined', true],
  ])('delivers every record once, intact and in order, for any order of releases: ends %s', (_, isJoined) => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), payloadBytes: fc.nat(900) }),
      fc.record({ kind: fc.constant('publish' as const) }),
      fc.record({ kind: fc.constant('take' as const) }),
      fc.record({ kind: fc.constant('release' as const), which: fc.nat(50) }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 400 }), (actions) => {
        const { writer, reader } = channel(4096);
        const arrivals = Float64Array.of(Number.POSITIVE_INFINITY);
        if (isJoined) joinEnds(writer, reader, arrivals, 0);
        let [written, published, taken] = [0, 0, 0];
        const held: { offset: number; mark: number }[] = [];
        const intact = (offset: number, mark: number): boolean => {
          const start = offset + RECORD_HEADER_BYTES;
          return reader.bytes
            .subarray(start, start + reader.words[(offset >> 2) + 4]!)
            .every((byte) => byte === mark);
        };
        for (const act of actions) {
          if (act.kind === 'append') {
            try {
              append(writer, written + 1, (written + 1) & 255, act.payloadBytes);
              written++;
              if (isJoined) published = written;
            } catch (thrown) {
              expect(thrown).toBeInstanceOf(ChannelOverflowError);
            }
          } else if (act.kind === 'publish') {
            writer.publish(written);
            published = written;
            reader.refresh();
          } else if (act.kind === 'take' && taken < published) {
            taken++;
            expect(reader.nextPs).toBe(taken);
            if (isJoined) expect(arrivals[0]).toBe(taken);
            held.push({ offset: reader.take(), mark: taken & 255 });
            expect(reader.takenKind).toBe(1 + (taken & 7));
            // Code that the owner of `arrivals` runs after each turn.
            arrivals[0] = reader.nextPs;
          } else if (act.kind === 'release' && held.length > 0) {
            const [{ offset, mark }] = held.splice(act.which % held.length, 1) as [
              { offset: number; mark: number },
            ];
            expect(intact(offset, mark)).toBe(true);
            reader.release(offset);
          }
          if (taken === published) expect(reader.nextPs).toBe(Number.POSITIVE_INFINITY);
          for (const { offset, mark } of held) expect(intact(offset, mark)).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });
});
