/** Writes pcapng files with picosecond time stamps: one section, one interface for each point of the wire, packets in time order. */
import {
  BlockType,
  BYTE_ORDER_MAGIC,
  ERF_VARYING_LENGTH,
  ErfType,
  erfHeader,
  littleEndian,
  OptionCode,
} from './capture-layouts.ts';

const { section, interface: interfaceLayout, packet, statistics, option } = littleEndian;

/** Longest kept packet: more than any link carries. */
const SNAP_BYTES = 65_535;
/** Ten to the minus twelfth of a second. */
const PICOSECONDS = 12;
const NOT_SAID = 0xffff_ffff;
const WORD_BYTES = 4;

const Direction = { inbound: 1, outbound: 2 } as const;

interface WrittenInterface {
  readonly linkType: number;
  readonly name: string;
  readonly description: string;
  readonly bitsPerSecond: bigint;
  /** Packets dropped because the capture was full. */
  readonly droppedPackets: number;
}

export interface WrittenPacket {
  /** Index of the interface. */
  readonly interface: number;
  readonly timePs: bigint;
  readonly direction: keyof typeof Direction;
  readonly bytes: Uint8Array;
  /** A comment on facts that the packet's bytes do not show; empty if there are no such facts. */
  readonly comment: string;
}

/**
 * Returns a whole file.
 * @param application name of the writing program
 */
export function writeCapture(
  application: string,
  interfaces: readonly WrittenInterface[],
  packets: Iterable<WrittenPacket>,
): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = [sectionBlock(application)];
  for (const entry of interfaces) pieces.push(interfaceBlock(entry));
  let lastPs = 0n;
  for (const entry of packets) {
    pieces.push(packetBlock(entry));
    lastPs = entry.timePs;
  }
  interfaces.forEach(({ droppedPackets }, number) => {
    pieces.push(statisticsBlock(number, lastPs, droppedPackets));
  });
  return concatenated(pieces);
}

const PS_PER_SECOND = 1_000_000_000_000n;

/** An InfiniBand packet, LRH to VCRC, as a frame of link type ERF. */
export function erfRecord(packet: Uint8Array, timePs: bigint): Uint8Array {
  const header = erfHeader.encode({
    timeStamp: littleBytes((timePs << 32n) / PS_PER_SECOND, 8),
    type: ErfType.INFINIBAND,
    flags: ERF_VARYING_LENGTH,
    recordLength: erfHeader.sizeBytes + packet.length,
    wireLength: packet.length,
  });
  return concatenated([header, packet]);
}

function sectionBlock(application: string): Uint8Array {
  const options = [optionOf(OptionCode.SECTION_APPLICATION, utf8(application))];
  const header = {
    byteOrderMagic: BYTE_ORDER_MAGIC,
    major: 1,
    minor: 0,
    lengthLow: NOT_SAID,
    lengthHigh: NOT_SAID,
  };
  return block(section.sizeBytes, [], options, (into, length) =>
    section.encodeInto({ type: BlockType.SECTION, length, ...header }, into),
  );
}

function interfaceBlock({ linkType, name, description, bitsPerSecond }: WrittenInterface): Uint8Array {
  const options = [
    optionOf(OptionCode.INTERFACE_NAME, utf8(name)),
    optionOf(OptionCode.INTERFACE_DESCRIPTION, utf8(description)),
    optionOf(OptionCode.INTERFACE_SPEED, littleBytes(bitsPerSecond, 8)),
    optionOf(OptionCode.INTERFACE_RESOLUTION, Uint8Array.of(PICOSECONDS)),
  ];
  return block(interfaceLayout.sizeBytes, [], options, (into, length) =>
    interfaceLayout.encodeInto({ type: BlockType.INTERFACE, length, linkType, snapLength: SNAP_BYTES }, into),
  );
}

function packetBlock({ interface: number, timePs, direction, bytes, comment }: WrittenPacket): Uint8Array {
  const options = [optionOf(OptionCode.PACKET_FLAGS, littleBytes(BigInt(Direction[direction]), WORD_BYTES))];
  if (comment !== '') options.push(optionOf(OptionCode.COMMENT, utf8(comment)));
  return block(packet.sizeBytes, [padded(bytes)], options, (into, length) =>
    packet.encodeInto(
      {
        type: BlockType.PACKET,
        length,
        interface: number,
        ...timeOf(timePs),
        capturedLength: bytes.length,
        originalLength: bytes.length,
      },
      into,
    ),
  );
}

function statisticsBlock(number: number, timePs: bigint, droppedPackets: number): Uint8Array {
  const options = [optionOf(OptionCode.STATISTICS_DROPPED, littleBytes(BigInt(droppedPackets), 8))];
  return block(statistics.sizeBytes, [], options, (into, length) =>
    statistics.encodeInto(
      { type: BlockType.INTERFACE_STATISTICS, length, interface: number, ...timeOf(timePs) },
      into,
    ),
  );
}

const timeOf = (timePs: bigint): { timeHigh: number; timeLow: number } => ({
  timeHigh: Number(timePs >> 32n),
  timeLow: Number(timePs & 0xffff_ffffn),
});

/** A block: its fixed part, data, options, and its length a second time. */
function block(
  fixedBytes: number,
  data: readonly Uint8Array[],
  options: readonly Uint8Array[],
  fill: (into: Uint8Array, length: number) => void,
): Uint8Array {
  const rest = concatenated([...data, ...options, optionOf(OptionCode.END, new Uint8Array(0))]);
  const length = fixedBytes + rest.length + WORD_BYTES;
  const bytes = new Uint8Array(length);
  fill(bytes, length);
  bytes.set(rest, fixedBytes);
  bytes.set(littleBytes(BigInt(length), WORD_BYTES), length - WORD_BYTES);
  return bytes;
}

const optionOf = (code: number, value: Uint8Array): Uint8Array =>
  concatenated([option.encode({ code, length: value.length }), padded(value)]);

function padded(bytes: Uint8Array): Uint8Array {
  if (bytes.length % WORD_BYTES === 0) return bytes;
  const all = new Uint8Array((bytes.length + WORD_BYTES - 1) & ~(WORD_BYTES - 1));
  all.set(bytes);
  return all;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

const littleBytes = (value: bigint, bytes: number): Uint8Array =>
  Uint8Array.from({ length: bytes }, (_, byte) => Number((value >> BigInt(8 * byte)) & 0xffn));

function concatenated(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
