/** FPDUs against the figures of RFC 5044, and against a frame that is built byte after byte here. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readFpdu } from '../../analyser/capture/iwarp/mpa.ts';
import { fromHex, toHex } from '../../base/index.ts';
import {
  crc32c,
  FpduReader,
  FpduWriter,
  IwarpError,
  multiplePduBytes,
  SegmentHeader,
  type SegmentSink,
  segmentBytesWithin,
} from './index.ts';

/** SEND of 24 zero bytes, as in the figures. */
function sendHeader(message: number): SegmentHeader {
  const header = new SegmentHeader();
  header.isLast = true;
  header.message = message;
  return header;
}

/** CRC32c bit by bit, from RFC 3385's polynomial. */
function bitwiseCrc(bytes: Iterable<number>): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f6_3b78;
  }
  return ~crc >>> 0;
}

/** Bytes of the stream that FPDUs with these segments make, by RFC 5044, 4: one byte at a time. */
function streamOf(segments: readonly Uint8Array[], hasMarkers: boolean): number[] {
  const stream: number[] = [];
  for (const segment of segments) {
    const from = stream.length;
    const start = hasMarkers && from % 512 === 0 ? from + 4 : from;
    const put = (byte: number): void => {
      if (hasMarkers && stream.length % 512 === 0) {
        const pointer = Math.max(0, stream.length - start);
        stream.push(0, 0, pointer >> 8, pointer & 0xff);
      }
      stream.push(byte);
    };
    for (const byte of [segment.length >> 8, segment.length & 0xff, ...segment]) put(byte);
    for (let pad = (2 + segment.length) % 4; pad % 4 !== 0; pad++) put(0);
    if (hasMarkers && stream.length % 512 === 0) {
      const pointer = stream.length - start;
      stream.push(0, 0, pointer >> 8, pointer & 0xff);
    }
    const crc = bitwiseCrc(stream.slice(from));
    stream.push(crc & 0xff, (crc >> 8) & 0xff, (crc >> 16) & 0xff, crc >>> 24);
  }
  return stream;
}

class Segments implements SegmentSink {
  readonly arrived: string[] = [];
  error: number | undefined;

  segmentArrived(bytes: Uint8Array, at: number, segmentBytes: number): void {
    this.arrived.push(toHex(bytes.subarray(at, at + segmentBytes)));
  }

  mayPlaceEarly(): boolean {
    return true;
  }

  placeEarly(): void {}

  segmentReached(bytes: Uint8Array, at: number, segmentBytes: number): void {
    this.arrived.push(`${toHex(bytes.subarray(at, at + 14))} ${segmentBytes}`);
  }

  framingFailed(error: number): void {
    this.error = error;
  }
}

const readerOf = (sink: SegmentSink, hasMarkers: boolean, usesCrc = true): FpduReader =>
  new FpduReader(sink, { hasMarkers, usesCrc, earlySegmentsMax: 8 });

/** Writes WRITEs with payloads of these lengths. */
function written(
  lengths: readonly number[],
  hasMarkers: boolean,
): { bytes: Uint8Array; segments: Uint8Array[] } {
  const writer = new FpduWriter({ hasMarkers, usesCrc: true });
  const target = new Uint8Array(lengths.reduce((sum, length) => sum + 2 * length + 64, 0));
  let at = 0;
  const segments = lengths.map((length, index) => {
    const header = new SegmentHeader();
    header.isTagged = true;
    header.isLast = true;
    header.opcode = 0;
    header.steeringTag = 0x100 + index;
    header.offset = 0x1234_5678_9abc;
    header.offsetTop = 0xfed;
    const payload = Uint8Array.from({ length }, (_, byte) => byte * 7 + index);
    at += writer.write(target, at, header, payload, 0, length);
    const head = fromHex(`c140${(0x100 + index).toString(16).padStart(8, '0')}fed0123456789abc`);
    return Uint8Array.from([...head, ...payload]);
  });
  return { bytes: target.slice(0, at), segments };
}

describe('CRC32c', () => {
  it('RFC 3385: of 123456789 is 0xE3069283', () => {
    expect(crc32c.of(Uint8Array.from(Buffer.from('123456789')), 0, 9)).toBe(0xe306_9283);
  });

  it('RFC 3385: equals that of the bitwise division, of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(crc32c.of(bytes, 0, bytes.length)).toBe(bitwiseCrc(bytes));
      }),
    );
  });
});

describe('an FPDU that is written', () => {
  const zeros = new Uint8Array(24);

  it('RFC 5044, Figure 5: is that of the figure, the first of its stream, after a marker of zeros', () => {
    const writer = new FpduWriter({ hasMarkers: true, usesCrc: true });
    const target = new Uint8Array(64);
    const bytes = writer.write(target, 4, sendHeader(1), zeros, 0, 24);
    expect(toHex(target.subarray(4, 4 + bytes))).toBe(
      `00000000002a4143${'00000000'}${'00000000'}00000001${'00000000'}${'00'.repeat(24)}52239983`,
    );
  });

  it('RFC 5044, Figure 6: is that of the figure with a marker 20 bytes after its length', () => {
    const writer = new FpduWriter({ hasMarkers: true, usesCrc: true });
    writer.phase = 512 - 20;
    const target = new Uint8Array(64);
    const bytes = writer.write(target, 0, sendHeader(2), zeros, 0, 24);
    expect(toHex(target.subarray(0, bytes))).toBe(
      `002a4143${'00000000'}${'00000000'}00000002${'00000000'}00000014${'00'.repeat(24)}84925898`,
    );
  });

  it('siw-rping-crc-ipv4: is frame 10 of the capture', () => {
    const writer = new FpduWriter({ hasMarkers: false, usesCrc: true });
    const target = new Uint8Array(64);
    const payload = fromHex('0000560eb373b3704701ba0000000040');
    const bytes = writer.write(target, 0, sendHeader(1), payload, 0, 16);
    expect(toHex(target.subarray(0, bytes))).toBe(
      '002241430000000000000000000000010000000000'.slice(0, 40) +
        '0000560eb373b3704701ba0000000040' +
        'cf9fea9d',
    );
  });

  it('RFC 5044, 4.4: has a CRC of 0 if none is used', () => {
    const writer = new FpduWriter({ hasMarkers: false, usesCrc: false });
    const target = new Uint8Array(64).fill(0xff);
    const bytes = writer.write(target, 0, sendHeader(1), zeros, 0, 23);
    expect(bytes).toBe(48);
    expect(toHex(target.subarray(43, 49))).toBe('0000000000ff');
  });

  it.each([false, true])('RFC 5044, 4.2: has a marker at each multiple of 512: %s', (hasMarkers) => {
    const lengths = fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(lengths, (all) => {
        const { bytes, segments } = written(all, hasMarkers);
        expect(toHex(bytes)).toBe(toHex(Uint8Array.from(streamOf(segments, hasMarkers))));
      }),
    );
  });

  it.each([false, true])(
    'RFC 5044, 4: is read by the analyser, which has code of its own, with markers: %s',
    (hasMarkers) => {
      const lengths = fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 1, maxLength: 6 });
      fc.assert(
        fc.property(lengths, (all) => {
          const { bytes, segments } = written(all, hasMarkers);
          let at = 0;
          for (const segment of segments) {
            const fpdu = readFpdu(bytes.subarray(at), hasMarkers ? at : undefined)!;
            expect([toHex(fpdu.segment), fpdu.isCrcRight]).toEqual([toHex(segment), true]);
            at += fpdu.streamBytes;
          }
          expect(at).toBe(bytes.length);
        }),
      );
    },
  );
});

describe('MULPDU', () => {
  it.each([
    [1448, false, 1442],
    [4448, false, 4442],
    [1448, true, 1430],
    [1461, false, 1454],
    [100, false, 128],
    [65_536, false, 64_768],
  ])('RFC 5044, 4.5: of EMSS %i with markers %s is %i', (emss, hasMarkers, bytes) => {
    expect(multiplePduBytes(emss, hasMarkers)).toBe(bytes);
  });

  it('RFC 5044, 4.5: fits into a segment of TCP wherever markers lie', () => {
    const phases = fc.integer({ min: 0, max: 127 }).map((word) => word * 4);
    fc.assert(
      fc.property(fc.integer({ min: 160, max: 9000 }), phases, (emss, phase) => {
        expect(segmentBytesWithin(emss, phase, true)).toBeGreaterThanOrEqual(multiplePduBytes(emss, true));
        const writer = new FpduWriter({ hasMarkers: true, usesCrc: false });
        writer.phase = phase;
        const payloadBytes = segmentBytesWithin(emss, phase, true) - 18;
        const target = new Uint8Array(emss);
        expect(
          writer.write(target, 0, sendHeader(1), new Uint8Array(payloadBytes), 0, payloadBytes),
        ).toBeLessThanOrEqual(emss);
      }),
    );
  });
});

describe('FPDUs that are read', () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 8 });
  const lengths = fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 1, maxLength: 5 });

  it.each([false, true])(
    'RFC 5044, 4.1: are found however TCP cuts the stream, with markers: %s',
    (hasMarkers) => {
      fc.assert(
        fc.property(lengths, cuts, (all, sizes) => {
          const { bytes, segments } = written(all, hasMarkers);
          const sink = new Segments();
          const reader = readerOf(sink, hasMarkers);
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const to = Math.min(bytes.length, at + sizes[turn % sizes.length]!);
            reader.take(bytes, at, to);
            at = to;
          }
          expect(sink.arrived).toEqual(segments.map(toHex));
          expect(reader.isBetween).toBe(true);
        }),
      );
    },
  );

  it.each([false, true])(
    'RFC 5044, 8: show each changed bit by their CRC, with markers: %s',
    (hasMarkers) => {
      fc.assert(
        fc.property(
          fc.integer({ min: 0, max: 900 }),
          fc.nat(),
          fc.integer({ min: 0, max: 7 }),
          (length, place, bit) => {
            const { bytes, segments } = written([length, 8], hasMarkers);
            const damaged = Uint8Array.from(bytes);
            damaged[place % (bytes.length - 32)]! ^= 1 << bit;
            const sink = new Segments();
            const reader = readerOf(sink, hasMarkers);
            reader.take(damaged, 0, damaged.length);
            // A damaged length may promise bytes that never arrive; no damaged segment is passed up.
            expect(sink.error === IwarpError.MPA_CRC || !reader.isBetween || sink.arrived.length === 1).toBe(
              true,
            );
            for (const [index, segment] of sink.arrived.entries())
              expect(segment).toBe(toHex(segments[index]!));
            expect(sink.arrived.length).toBeLessThan(2);
          },
        ),
      );
    },
  );

  it('RFC 5044, 8: pass a damaged FPDU up if CRCs are not used', () => {
    const { bytes } = written([40], false);
    bytes[30]! ^= 1;
    const sink = new Segments();
    readerOf(sink, false, false).take(bytes, 0, bytes.length);
    expect([sink.arrived.length, sink.error]).toEqual([1, undefined]);
  });

  it('RFC 5044, 8: fail on a marker that points elsewhere, even without CRC', () => {
    const { bytes } = written([600], true);
    bytes[512 + 3]! ^= 4;
    const sink = new Segments();
    readerOf(sink, true, false).take(bytes, 0, bytes.length);
    expect([sink.arrived, sink.error]).toEqual([[], IwarpError.MPA_MARKER]);
  });

  it('RFC 5044, 8: pass nothing up after an error', () => {
    const { bytes } = written([40, 40], false);
    bytes[10]! ^= 1;
    const sink = new Segments();
    readerOf(sink, false).take(bytes, 0, bytes.length);
    expect([sink.arrived, sink.error]).toEqual([[], IwarpError.MPA_CRC]);
  });
});

describe('FPDUs after a gap', () => {
  const { bytes, segments } = written([600, 600, 600], true);
  const firstBytes = written([600], true).bytes.length;

  it('RFC 5044, 4.2: are placed when a marker locates them, and passed up when the gap is closed', () => {
    const sink = new Segments();
    const reader = readerOf(sink, true);
    expect(reader.takeEarly(firstBytes, bytes, firstBytes, bytes.length)).toBe(true);
    expect(sink.arrived).toEqual([]);
    reader.take(bytes, 0, firstBytes);
    reader.takePlaced(bytes.length - firstBytes);
    expect(sink.arrived).toEqual([
      toHex(segments[0]!),
      ...segments.slice(1).map((segment) => `${toHex(segment.subarray(0, 14))} 614`),
    ]);
  });

  it.each([
    ['bytes that begin within an FPDU', firstBytes + 4, bytes.length],
    ['bytes that end within an FPDU', firstBytes, bytes.length - 4],
    ['bytes without a marker', firstBytes, firstBytes + 300],
  ])('RFC 5044, 5: are not located in %s', (_what, from, to) => {
    const sink = new Segments();
    expect(readerOf(sink, true).takeEarly(from, bytes, from, to)).toBe(false);
  });

  it('RFC 5044, 5: are not located in damaged bytes, nor without markers', () => {
    const damaged = Uint8Array.from(bytes);
    damaged[bytes.length - 20]! ^= 1;
    expect(readerOf(new Segments(), true).takeEarly(firstBytes, damaged, firstBytes, bytes.length)).toBe(
      false,
    );
    const plain = written([600, 600], false).bytes;
    expect(readerOf(new Segments(), false).takeEarly(620, plain, 620, plain.length)).toBe(false);
  });

  it('RFC 5044, 8: fail if the bytes that close the gap are not whole FPDUs', () => {
    const sink = new Segments();
    const reader = readerOf(sink, true);
    reader.takeEarly(firstBytes, bytes, firstBytes, bytes.length);
    const other = Uint8Array.from(bytes.subarray(0, firstBytes));
    other[4] = 0x03;
    reader.take(other, 0, firstBytes);
    reader.takePlaced(bytes.length - firstBytes);
    expect([sink.arrived, sink.error]).toEqual([[], IwarpError.MPA_MARKER]);
  });
});
