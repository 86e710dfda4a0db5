/** pcap and pcapng files written by other tools, read in pieces of any size, cut anywhere and damaged anywhere. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CaptureReading } from './capture-reading.ts';
import { type CapturedFrame, CaptureStream } from './capture-stream.ts';
import { FileBytes, interfaceBody, pcapFile, sectionHeader } from './testing/file-bytes.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name));
const fileOf = (name: string): Uint8Array => readFileSync(new URL(name, folder));

interface Read {
  readonly frames: CapturedFrame[];
  readonly stream: CaptureStream;
}

/** Reads a file in pieces of this size. */
function readInPieces(file: Uint8Array, pieceBytes = file.length): Read {
  const frames: CapturedFrame[] = [];
  const stream = new CaptureStream((frame) => frames.push(frame));
  for (let at = 0; at < file.length; at += pieceBytes) stream.push(file.subarray(at, at + pieceBytes));
  stream.end();
  return { frames, stream };
}

const reasonsOf = ({ stream }: Read): string[] => stream.problems.map(({ reason }) => reason);

/** Calls every accessor of a reading, to show that none throws. */
function readWhole(file: Uint8Array): CaptureReading {
  const reading = new CaptureReading({ lines: 1000, isTroubleOnly: false });
  reading.push(file);
  reading.end();
  reading.conversations();
  return reading;
}

/** An enhanced packet block's body. */
const packetBody = (isLittle: boolean, number: number, time: number, bytes: readonly number[]): FileBytes => {
  const body = new FileBytes(isLittle).words(number, 0, time, bytes.length, bytes.length + 7);
  return body.raw(bytes).raw(new Array<number>((4 - (bytes.length % 4)) % 4).fill(0));
};

describe('a capture stream', () => {
  it('delivers the same frames for any division of a file into pieces', () => {
    for (const name of ['rc-mtu256-ipv4.pcap', 'dup-send-ipv4.pcapng', 'ib-ibta-sample-packet.pcap']) {
      const whole = readInPieces(fileOf(name));
      expect(whole.stream.problems).toEqual([]);
      expect(whole.frames.length).toBeGreaterThan(0);
      for (const pieceBytes of [1, 3, 16, 24, 1000])
        expect(readInPieces(fileOf(name), pieceBytes).frames).toEqual(whole.frames);
    }
  });

  it.each([true, false])(
    'pcapng 4.3 to 4.6: reads all kinds of packet blocks (little endian: %s)',
    (isLittle) => {
      // if_tsoffset (14) of 5 s and if_tsresol (9) of 10^-9; epb_flags (2) of an outbound packet; opt_comment (1).
      const option = (code: number, value: readonly number[]): number[] => [
        ...new FileBytes(isLittle).word(code, 2).word(value.length, 2).done,
        ...value,
        ...new Array<number>((4 - (value.length % 4)) % 4).fill(0),
      ];
      const five = isLittle ? [5, 0, 0, 0, 0, 0, 0, 0] : [0, 0, 0, 0, 0, 0, 0, 5];
      const outbound = isLittle ? [2, 0, 0, 0] : [0, 0, 0, 2];
      const file = sectionHeader(isLittle)
        .block(1, interfaceBody(isLittle, 1, [...option(9, [9]), ...option(14, five)]))
        .block(6, packetBody(isLittle, 0, 20, [1, 2, 3]).raw([...option(2, outbound), ...option(1, [0x78])]))
        // Obsolete: interface and drops of 16 bits each.
        .block(2, new FileBytes(isLittle).word(0, 2).word(4, 2).words(0, 30, 2, 2).raw([4, 5, 0, 0]))
        .block(3, new FileBytes(isLittle).words(3).raw([6, 7, 8, 0]))
        // Interfaces of a second section count from 0 again.
        .raw(sectionHeader(isLittle).done)
        .block(1, interfaceBody(isLittle, 276))
        .block(6, packetBody(isLittle, 0, 40, [9])).done;
      const read = readInPieces(file);
      expect(read.stream.problems).toEqual([]);
      expect(read.frames).toEqual([
        {
          ...{ interface: 0, timePs: 5_000_000_020_000n, bytes: Uint8Array.of(1, 2, 3) },
          ...{ originalBytes: 10, direction: 'outbound', comment: 'x' },
        },
        {
          ...{ interface: 0, timePs: 5_000_000_030_000n, bytes: Uint8Array.of(4, 5) },
          ...{ originalBytes: 2, direction: 'unknown', comment: '' },
        },
        {
          ...{ interface: 0, timePs: 5_000_000_030_000n, bytes: Uint8Array.of(6, 7, 8) },
          ...{ originalBytes: 3, direction: 'unknown', comment: '' },
        },
        {
          ...{ interface: 1, timePs: 40_000_000n, bytes: Uint8Array.of(9) },
          ...{ originalBytes: 8, direction: 'unknown', comment: '' },
        },
      ]);
      const { interfaces, untimedFrames } = read.stream;
      expect(interfaces.map(({ linkType }) => linkType)).toEqual([1, 276]);
      expect([interfaces[0]!.droppedPackets, untimedFrames]).toEqual([4, 1]);
    },
  );

  it('pcapng 3.2: skips blocks without packets by name, and reports unknown ones as unread', () => {
    const file = sectionHeader(true)
      .block(4, [0, 0, 0, 0])
      .block(0xbad, [1, 2, 3, 4])
      .block(0x0000_0b0b, [1, 2, 3, 4])
      .block(1, interfaceBody(true, 1))
      .block(6, packetBody(true, 0, 1, [1])).done;
    for (const pieceBytes of [file.length, 5]) {
      const read = readInPieces(file, pieceBytes);
      expect(read.frames).toHaveLength(1);
      expect([...read.stream.skippedBlocks]).toEqual([
        ['name resolution', 1],
        ['custom', 1],
      ]);
      expect(read.stream.problems).toEqual([
        { atByte: 60, reason: 'a block of unknown type 0xb0b: not read', isNoCapture: false },
      ]);
    }
  });

  it('continues after a packet of an undescribed interface', () => {
    const file = sectionHeader(true)
      .block(1, interfaceBody(true, 1))
      .block(6, packetBody(true, 3, 1, [1]))
      .block(6, packetBody(true, 0, 2, [2])).done;
    const read = readInPieces(file);
    expect(reasonsOf(read)).toEqual(['interface 3, which was not described']);
    expect(read.frames.map(({ bytes }) => bytes[0])).toEqual([2]);
  });

  it('continues after a block that claims more options than it keeps', () => {
    const options = new FileBytes(true);
    // An option without a value has four bytes (pcapng 3.5).
    for (let count = 0; count < 2000; count++) options.word(2988, 2).word(0, 2);
    const body = new FileBytes(true).words(0, 0, 1, 4, 4).raw([1, 2, 3, 4]).raw(options.done);
    const file = sectionHeader(true)
      .block(1, interfaceBody(true, 1))
      .block(6, body)
      .block(6, packetBody(true, 0, 2, [2])).done;
    const read = readInPieces(file);
    expect(reasonsOf(read)).toEqual(['a block of more than 1024 options']);
    expect(read.frames.map(({ bytes }) => bytes[0])).toEqual([1, 2]);
  });

  it('keeps a bounded number of interfaces, and assigns no frame to a wrong one', () => {
    const section = sectionHeader(true)
      .block(1, interfaceBody(true, 1))
      .block(6, packetBody(true, 0, 1, [7])).done;
    const numbers: number[] = [];
    const stream = new CaptureStream((frame) => numbers.push(frame.interface));
    const sections = 65_536 + 10;
    for (let count = 0; count < sections; count++) stream.push(section);
    stream.end();
    expect(stream.interfaces).toHaveLength(65_536);
    expect(numbers).toEqual(Array.from({ length: 65_536 }, (_, index) => index));
    // Each further section counts as two problems: its interface and its packet.
    expect(stream.problemCount).toBe(20);
  });

  it('delivers all frames before the place where a file is cut, and reports that place', () => {
    const file = pcapFile(1, [{ bytes: new Uint8Array(60) }, { bytes: new Uint8Array(60) }]);
    // 24 bytes of file header, and 76 for each record.
    expect(readInPieces(file.subarray(0, 100))).toMatchObject({
      frames: { length: 1 },
      stream: { problems: [] },
    });
    const inHeader = readInPieces(file.subarray(0, 110));
    expect(inHeader.frames).toHaveLength(1);
    expect(inHeader.stream.problems).toEqual([
      {
        atByte: 100,
        reason: 'the file is cut within a record header, of which it has 10 bytes',
        isNoCapture: false,
      },
    ]);
    expect(reasonsOf(readInPieces(file.subarray(0, 150)))).toEqual([
      'the file is cut within a record with 60 bytes of a frame, of which it has 50 bytes',
    ]);
    expect(reasonsOf(readInPieces(file.subarray(0, 20)))).toEqual([
      'the file is cut within the file header, of which it has 20 bytes',
    ]);
  });

  it.each([
    ['nothing', [], '0 bytes are too few'],
    ['gzip', [0x1f, 0x8b, 8, 0], 'compressed by gzip'],
    ['zstd', [0x28, 0xb5, 0x2f, 0xfd], 'compressed by zstd'],
    ['text', [0x68, 0x65, 0x6c, 0x6c], 'neither the first word of pcap nor that of pcapng'],
  ])('rejects a file that is not a capture: %s', (_name, bytes, reason) => {
    const { stream } = readInPieces(Uint8Array.from(bytes), 1);
    expect(stream.problems).toEqual([{ atByte: 0, reason, isNoCapture: true }]);
  });

  it('reads more than 2 GiB while it holds only one piece', () => {
    // 2,200 pieces of 1 MiB, each of 16 records of 64 KiB; the last record is cut.
    const frame = new Uint8Array(65_536 - 16);
    const record = pcapFile(1, [{ bytes: frame }]).subarray(24);
    const piece = new Uint8Array(2 ** 20);
    for (let at = 0; at < piece.length; at += record.length) piece.set(record, at);
    let frames = 0;
    const stream = new CaptureStream(() => frames++);
    stream.push(pcapFile(1, []));
    for (let index = 0; index < 2200; index++) stream.push(piece);
    stream.push(record.subarray(0, 20));
    stream.end();
    expect(frames).toBe(2200 * 16);
    expect(stream.problems.map(({ atByte }) => atByte)).toEqual([24 + 2200 * 2 ** 20]);
  });
});

describe('a reading of any capture', () => {
  it('holds few long frames until it has decided whether they come from two places', () => {
    const reading = new CaptureReading({ lines: 1000, isTroubleOnly: false });
    const bytes = new Uint8Array(8 * 2 ** 20);
    reading.push(pcapFile(1, []));
    const record = new Uint8Array(16 + bytes.length);
    new DataView(record.buffer).setUint32(8, bytes.length, true);
    new DataView(record.buffer).setUint32(12, bytes.length, true);
    for (let count = 0; count < 6; count++) reading.push(record);
    // No sighting waits any more, although the capture has far fewer than 400 frames and has not ended.
    expect(reading.feed.other).toMatchObject([{ count: 6 }]);
  });

  it.each(names)('says of every cut of the file that it is one, and throws nowhere: %s', (name) => {
    const file = fileOf(name);
    const { frames } = readInPieces(file);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: file.length - 1 }), (length) => {
        const reading = readWhole(file.slice(0, length));
        const { stream } = reading;
        // A cut between two records leaves a sound file with fewer frames.
        if (stream.problemCount === 0) {
          expect(stream.frameCount).toBeLessThan(frames.length);
          expect(readInPieces(file.slice(0, length)).frames).toEqual(frames.slice(0, stream.frameCount));
        } else expect(reading.isWhole).toBe(false);
      }),
      { numRuns: 20 },
    );
  });

  it.each(names)('accounts for every frame when any byte is damaged, and throws nowhere: %s', (name) => {
    const file = fileOf(name);
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), (at, difference) => {
        const damaged = file.slice();
        damaged[at]! ^= difference;
        const { stream, feed } = readWhole(damaged);
        const tallied = [...feed.other, ...feed.cut, ...feed.unread].reduce(
          (sum, { count }) => sum + count,
          0,
        );
        // A packet that is not tallied was handed to a conversation or repeats another packet.
        expect(tallied + feed.malformedCount).toBeLessThanOrEqual(stream.frameCount);
        if (feed.unread.length > 0)
          expect(feed.unread[0]!.reason).toMatch(/^(link type|ERF record of type) \d+$/);
        for (const { reason } of stream.problems) expect(reason).not.toBe('');
      }),
      { numRuns: 30 },
    );
  });
});
