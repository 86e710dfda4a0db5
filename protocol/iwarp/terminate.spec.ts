/** Terminate against the tables of RFC 5040, 4.8, with bytes written out by hand. */
import { describe, expect, it } from 'vitest';
import { fromHex, toHex, viewOf } from '../../base/index.ts';
import { IwarpError, QuotedSegment, RdmapSender, ReadRequest } from './index.ts';
import { readTerminate, TERMINATE_BYTES_MAX, TerminateNotice, writeTerminate } from './terminate.ts';

const writeHeader = `c140${'11223344'}${'00000000deadbeef'}`;
const sendHeader = `4143${'00000000'}${'00000000'}00000007${'00000000'}`;
const readPayload = `aaaa0001${'0000000000001000'}00000064bbbb0002${'0000000000002000'}`;
const readSegment = `4141${'00000000'}${'00000001'}00000001${'00000000'}${readPayload}`;

/** Quotes a segment of these first bytes, whose whole length is `segmentBytes`. */
function quotedOf(hex: string, segmentBytes: number): QuotedSegment {
  const quoted = new QuotedSegment();
  const bytes = fromHex(hex, 64);
  quoted.quote(viewOf(bytes), 0, segmentBytes);
  return quoted;
}

function terminateOf(error: number, quoted: QuotedSegment): string {
  const bytes = new Uint8Array(TERMINATE_BYTES_MAX);
  return toHex(bytes.subarray(0, writeTerminate(viewOf(bytes), 0, error, quoted)));
}

describe('a Terminate', () => {
  // Layer, type and code of RFC 5040, 4.8; RFC 5041, 7.1 and 7.2; RFC 5044, 8; RFC 6581, 8.
  it.each([
    ['RDMAP_LOCAL_CATASTROPHIC', '0000'],
    ['PROTECTION_STAG_INVALID', '0100'],
    ['PROTECTION_BOUNDS', '0101'],
    ['PROTECTION_ACCESS_RIGHTS', '0102'],
    ['PROTECTION_STAG_OF_OTHER_STREAM', '0103'],
    ['PROTECTION_OFFSET_WRAPS', '0104'],
    ['PROTECTION_CANNOT_INVALIDATE', '0109'],
    ['PROTECTION_OTHER', '01ff'],
    ['OPERATION_RDMAP_VERSION', '0205'],
    ['OPERATION_UNEXPECTED_OPCODE', '0206'],
    ['OPERATION_CATASTROPHIC_STREAM', '0207'],
    ['OPERATION_CATASTROPHIC_ALL', '0208'],
    ['OPERATION_CANNOT_INVALIDATE', '0209'],
    ['OPERATION_OTHER', '02ff'],
    ['DDP_LOCAL_CATASTROPHIC', '1000'],
    ['TAGGED_STAG_INVALID', '1100'],
    ['TAGGED_BOUNDS', '1101'],
    ['TAGGED_STAG_OF_OTHER_STREAM', '1102'],
    ['TAGGED_OFFSET_WRAPS', '1103'],
    ['TAGGED_VERSION', '1104'],
    ['UNTAGGED_QUEUE', '1201'],
    ['UNTAGGED_NO_BUFFER', '1202'],
    ['UNTAGGED_MESSAGE', '1203'],
    ['UNTAGGED_OFFSET', '1204'],
    ['UNTAGGED_TOO_LONG', '1205'],
    ['UNTAGGED_VERSION', '1206'],
    ['MPA_CONNECTION_LOST', '2001'],
    ['MPA_CRC', '2002'],
    ['MPA_MARKER', '2003'],
    ['MPA_FRAME', '2004'],
    ['MPA_LOCAL_CATASTROPHIC', '2005'],
    ['MPA_INBOUND_READS', '2006'],
    ['MPA_NO_COMMON_READY', '2007'],
  ] as const)('RFC 5040, 4.8: of %s begins with %s', (name, start) => {
    const hex = terminateOf(IwarpError[name], new QuotedSegment());
    expect(hex).toBe(`${start}0000`);
    const notice = new TerminateNotice();
    readTerminate(viewOf(fromHex(hex)), 0, 4, notice);
    expect([notice.error, notice.isMirrored]).toEqual([IwarpError[name], false]);
  });

  it('names every error that the product has', () => {
    expect(Object.keys(IwarpError)).toHaveLength(33);
  });

  it.each([
    // Figure 10: layer 1 quotes length and DDP header.
    [
      'a WRITE with an STag that is not valid',
      IwarpError.TAGGED_STAG_INVALID,
      writeHeader,
      114,
      `1100c0000072${writeHeader}`,
    ],
    ['a SEND without a buffer', IwarpError.UNTAGGED_NO_BUFFER, sendHeader, 28, `1202c000001c${sendHeader}`],
    // Layer 0, types 1 and 2 quote them too; only remote protection of a READ request has the READ request.
    [
      'a READ with an STag that is not valid',
      IwarpError.PROTECTION_STAG_INVALID,
      readSegment,
      46,
      `0100e000002e${readSegment}`,
    ],
    [
      'an opcode that is not expected',
      IwarpError.OPERATION_UNEXPECTED_OPCODE,
      readSegment,
      46,
      `0206c000002e${readSegment.slice(0, 36)}`,
    ],
    [
      'a WRITE without rights',
      IwarpError.PROTECTION_ACCESS_RIGHTS,
      writeHeader,
      114,
      `0102c0000072${writeHeader}`,
    ],
    // Nothing is quoted for local catastrophic errors and for MPA.
    ['a local catastrophic error of RDMAP', IwarpError.RDMAP_LOCAL_CATASTROPHIC, readSegment, 46, '00000000'],
    ['a local catastrophic error of DDP', IwarpError.DDP_LOCAL_CATASTROPHIC, writeHeader, 114, '10000000'],
    ['a wrong CRC', IwarpError.MPA_CRC, writeHeader, 114, '20020000'],
  ])('RFC 5040, Figure 10: quotes headers as the error wants: %s', (_what, error, segment, bytes, hex) => {
    expect(terminateOf(error, quotedOf(segment, bytes))).toBe(hex);
  });

  it('RFC 5040, 4.8: quotes what is left of a READ that was served in part', () => {
    const quoted = new QuotedSegment();
    const request = new ReadRequest();
    Object.assign(request, { sinkTag: 0xaaaa0001, sinkOffset: 0x1040, lengthBytes: 0x24 });
    Object.assign(request, { sourceTag: 0xbbbb0002, sourceOffset: 0x2040 });
    quoted.quoteRead(1, request);
    expect(terminateOf(IwarpError.PROTECTION_BOUNDS, quoted)).toBe(
      `0101e000002e${readSegment.slice(0, 36)}aaaa0001${'0000000000001040'}00000024bbbb0002${'0000000000002040'}`,
    );
  });

  it.each([
    ['1100c0000072', writeHeader, '', 114],
    ['0100e000002e', readSegment.slice(0, 36), readPayload, 46],
    ['20020000', '', '', 0],
  ])('RFC 5040, 4.8: is read with its quoted headers: %s', (start, header, read, segmentBytes) => {
    const bytes = fromHex(`${start}${header}${read}`);
    const notice = new TerminateNotice();
    expect(readTerminate(viewOf(bytes), 0, bytes.length, notice)).toBe(true);
    const { quoted } = notice;
    expect([quoted.segmentBytes, quoted.headerBytes, quoted.hasReadRequest]).toEqual([
      segmentBytes,
      header.length / 2,
      read !== '',
    ]);
    expect(toHex(quoted.bytes).startsWith(header + read)).toBe(true);
  });

  it.each([
    ['11000300', IwarpError.TAGGED_STAG_INVALID],
    ['10000700', IwarpError.PROTECTION_STAG_INVALID],
    ['02020000', IwarpError.MPA_CRC],
  ])('is read in the order that siw sends: %s', (hex, error) => {
    const notice = new TerminateNotice();
    readTerminate(viewOf(fromHex(hex)), 0, 4, notice);
    expect([notice.error, notice.isMirrored]).toEqual([error, true]);
  });

  it.each(['1100c000', '1100c00000', '1100c0000072c140', '0100e000002e4141'])(
    'is read without headers that it promises and lacks: %s',
    (hex) => {
      const bytes = fromHex(hex);
      const notice = new TerminateNotice();
      expect(readTerminate(viewOf(bytes), 0, bytes.length, notice)).toBe(true);
      expect([notice.quoted.headerBytes, notice.quoted.hasReadRequest]).toEqual([0, false]);
      expect(readTerminate(viewOf(bytes), 0, 3, notice)).toBe(false);
    },
  );

  it('RFC 5040, 5.4: is the first message of queue 2', () => {
    const sender = new RdmapSender({ hasMarkers: false, usesCrc: false, effectiveSegmentBytes: 1448 });
    const target = new Uint8Array(128);
    const bytes = sender.writeTerminate(target, 0, IwarpError.MPA_CRC, new QuotedSegment());
    expect(toHex(target.subarray(0, bytes))).toBe(
      `00164147${'00000000'}00000002${'00000001'}${'00000000'}20020000${'00000000'}`,
    );
    expect(sender.hasTerminated).toBe(true);
  });
});
