/**
 * Draws packets that a hostile peer may send, from the BTH to the payload: valid and invalid bytes of every service,
 * with headers near those that the receiver expects. Each comes with the reason for which the standard drops it, if its
 * headers alone decide that. The link's files add the headers around it: hostile-link-packets.ts, hostile-frames.ts.
 * Shares no code with the encoder but the CRCs. Sources: IBTA vol 1, 9.2 to 9.6, annex A14.
 */
import fc from 'fast-check';

/** Targets of a hostile packet. All numbers are the receiver's. */
export interface Targets {
  readonly lid: number;
  readonly gid: Uint8Array;
  /** QP numbers of victims; of each the PSN that it expects next, and the service of its opcodes (bits 7:5). */
  readonly qpns: readonly number[];
  psnOf(qpn: number): number;
  serviceOf(qpn: number): number | undefined;
  /** Number of the shared receive queue of an XRC target. */
  srqnOf(qpn: number): number;
  /** Whether there is a QP that the wire calls so, of whatever kind. */
  hasQp(qpn: number): boolean;
  readonly regions: readonly { readonly address: number; readonly bytes: number; readonly key: number }[];
  /** Others, whose addresses have all of 64 bits. */
  readonly highRegions: readonly HighRegion[];
  readonly qkey: number;
}

interface HighRegion {
  readonly start: bigint;
  readonly bytes: number;
  readonly key: number;
  /** Packets may name it; else all differ from its addresses in the upper bits. */
  readonly isOpen: boolean;
}

/** A packet before it has numbers: each choice a small number, so that a failing one shrinks. */
export interface PacketDraw {
  readonly opcode: number;
  readonly qpn: number;
  readonly psn: number;
  readonly region: number;
  readonly place: number;
  readonly length: number;
  readonly payloadDwords: number;
  readonly pad: number;
  readonly flags: number;
  readonly word: number;
  readonly wrong: number;
  readonly bit: number;
  /** Place in {@link Targets.highRegions} of the region that is named in place of `region`, and what bits 63:52 of its address differ in. */
  readonly high?: number;
  readonly top?: number;
}

const words = fc.integer({ min: 0, max: 0xffff_ffff });

/** Operations, those of one packet more often than the others. */
const operations = [4, 5, 10, 11, 12, 19, 20, 23, 4, 10, 12, ...Array.from({ length: 0x18 }, (_, at) => at)];

export const packetDraws: fc.Arbitrary<PacketDraw> = fc.record({
  /** An operation of the victim's service; from 32 on an opcode, plus 32, of whatever service. */
  opcode: fc.oneof(
    { arbitrary: fc.constantFrom(...operations), weight: 9 },
    fc.nat(255).map((opcode) => opcode + 32),
  ),
  qpn: fc.oneof({ arbitrary: fc.nat(19), weight: 8 }, fc.nat(26)),
  psn: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, fc.integer({ min: -3, max: 3 }), words),
  region: fc.nat(7),
  place: fc.nat(9),
  length: fc.nat(9),
  payloadDwords: fc.oneof(
    fc.constantFrom(0, 1, 16, 64, 100, 255, 256, 256, 257, 1024, 1025, 2000),
    fc.nat(1024),
  ),
  pad: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, fc.nat(3)),
  flags: words,
  word: words,
  /** Selects the packet's defect; mostly none. */
  wrong: fc.oneof({ arbitrary: fc.constant(0), weight: 6 }, fc.nat(15)),
  bit: words,
});

/**
 * The same packets with 64-bit addresses that are right, or differ from right ones in their upper bits only. These
 * draws follow the others, so the packets of a seed stay the same.
 */
export const highPacketDraws: fc.Arbitrary<PacketDraw> = fc
  .tuple(
    packetDraws,
    fc.record({
      high: fc.nat(3),
      top: fc.oneof(fc.constantFrom(0, 0, 1, 0x400, 0x800, 0xfff), fc.nat(0xfff)),
    }),
    // Most are WRITEs, READs and atomics whose headers are right.
    fc.option(fc.record({ opcode: fc.constantFrom(10, 10, 11, 12, 19, 20), place: fc.nat(2) }), { freq: 3 }),
  )
  .map(([draw, high, right]) => ({
    ...draw,
    ...high,
    ...(right === null ? {} : { ...right, psn: 0, length: 0, wrong: 0 }),
  }));

/** Counters that tell why a packet was dropped: those of the port, and the device's by their names. */
export type Verdict =
  | 'damaged'
  | 'malformed'
  | 'packetForeignLid'
  | 'packetUnknownQp'
  | 'packetOpcode'
  | 'packetPkey'
  | 'datagramPkey'
  | 'datagramQkey'
  | 'packetForeignGid'
  | 'foreignMac'
  | 'multicastFilter'
  | 'vlanFilter'
  | 'tooLong'
  | 'pauseFrames'
  | 'unknownControlFrames'
  | 'malformedControlFrames';

/** Bytes as they are put on the cable. */
export interface HostilePacket {
  readonly bytes: Uint8Array;
  /** Virtual lane on a link of InfiniBand. */
  readonly virtualLane: number;
  /** Offset of the BTH; absent in frames that carry no packet. */
  readonly base?: number;
  /** The single reason to drop it; omitted: its fate does not depend on its headers alone. */
  readonly verdict?: Verdict | undefined;
}

const BTH = 12;
export const ICRC = 4;
const PAYLOAD_MAX = 4096;
const MULTICAST_QPN = 0xff_ffff;
const DEFAULT_PARTITION = 0x7fff;

const RC = 0;
const UC = 1;
const RD = 2;
const DATAGRAMS = 3;
export const XRC_SERVICE_CODE = 5;
/** CNP of RoCE v2, and of InfiniBand. */
const CONGESTION_NOTIFICATION = 0x81;
const BARE_NOTIFICATION = 0x80;
const RD_RESYNC = 0x55;

const headerBytes = {
  reth: 16,
  atomic: 28,
  masked: 44,
  aeth: 4,
  original: 8,
  immediate: 4,
  deth: 8,
  rdeth: 4,
  xrceth: 4,
  reserved: 16,
} as const;
type Header = keyof typeof headerBytes;

/** Responses are from here on, up to {@link LAST_RESPONSE}. */
const FIRST_RESPONSE = 13;
const LAST_RESPONSE = 18;

/** Extended headers of an opcode, by the table of IBTA vol 1, 9.2, written out once more, and of masked atomics. */
function headersOf(opcode: number): Header[] {
  const operation = opcode & 0x1f;
  const service = opcode >> 5;
  if (opcode === CONGESTION_NOTIFICATION) return ['reserved'];
  if (opcode === BARE_NOTIFICATION) return [];
  if (service === DATAGRAMS) return operation === 5 ? ['deth', 'immediate'] : ['deth'];
  const own = ownHeadersOf(service, operation);
  const isResponse = operation >= FIRST_RESPONSE && operation <= LAST_RESPONSE;
  if (service === RD) return isResponse ? ['rdeth', ...own] : ['rdeth', 'deth', ...own];
  return service === XRC_SERVICE_CODE && !isResponse ? ['xrceth', ...own] : own;
}

function ownHeadersOf(service: number, operation: number): Header[] {
  if (operation === 3 || operation === 5 || operation === 9) return ['immediate'];
  if (operation === 6 || operation === 10 || operation === 12) return ['reth'];
  if (operation === 11) return ['reth', 'immediate'];
  if (operation === 13 || operation === 15 || operation === 16 || operation === 17) return ['aeth'];
  if (operation === 18) return ['aeth', 'original'];
  if (operation === 19 || operation === 20) return ['atomic'];
  if (service === RC && operation === 24) return ['masked'];
  if (service === RC && operation === 25) return ['atomic'];
  return operation === 22 || operation === 23 ? ['immediate'] : [];
}

/** Operations of connections whose packets have no payload. */
const bare: readonly number[] = [12, 17, 18, 19, 20, 24, 25];

const isBare = (opcode: number): boolean =>
  opcode === CONGESTION_NOTIFICATION ||
  opcode === BARE_NOTIFICATION ||
  opcode === RD_RESYNC ||
  (opcode >> 5 !== DATAGRAMS && bare.includes(opcode & 0x1f));

const isOf = (operation: number, last: number, others: readonly number[] = []): boolean =>
  operation <= last || others.includes(operation);

/** Whether the table has a packet of this service with this operation. */
function isKnown(opcode: number): boolean {
  const operation = opcode & 0x1f;
  switch (opcode >> 5) {
    case RC:
      return isOf(operation, 20, [22, 23, 24, 25]);
    case UC:
      return isOf(operation, 11);
    case RD:
      return isOf(operation, 21);
    case DATAGRAMS:
      return operation === 4 || operation === 5;
    case XRC_SERVICE_CODE:
      return isOf(operation, 20, [22, 23]);
    default:
      return opcode === CONGESTION_NOTIFICATION || opcode === BARE_NOTIFICATION;
  }
}

/** BTH, extended headers and payload of a draw. */
export interface Transport {
  readonly bytes: Uint8Array;
  readonly verdict: Verdict | undefined;
  /** It is for a QP of whose service something is known. */
  readonly isForVictim: boolean;
}

export function transportOf(draw: PacketDraw, targets: Targets, payloadDwordsMax: number): Transport {
  const { wrong } = draw;
  const opcode = opcodeOf(draw, targets);
  const headers = headersOf(opcode);
  const extended = headers.reduce((sum, name) => sum + headerBytes[name], 0);
  const hasPayload = !isBare(opcode);
  const payload = hasPayload || wrong === 1 ? Math.min(draw.payloadDwords, payloadDwordsMax) * 4 : 0;
  const bytes = new Uint8Array(BTH + extended + payload);
  const view = new DataView(bytes.buffer);
  writeBth(view, opcode, draw, targets);
  let at = BTH;
  for (const name of headers) {
    writeHeader(name, view, at, draw, targets, payload);
    at += headerBytes[name];
  }
  for (let place = at; place < bytes.length; place++) bytes[place] = place + draw.word;
  const isForVictim = targets.serviceOf(qpnOf(draw, targets)) !== undefined;
  // The headers that precede the payload of an unknown opcode are unknown.
  const ownBytes = payload + (isKnown(opcode) ? 0 : extended);
  return { bytes, verdict: verdictOf(draw, opcode, ownBytes, targets), isForVictim };
}

/**
 * Returns the verdict by the headers alone: IBTA vol 1, 9.6.1.1 (connections) and 9.6.1.2 to 9.8.3 (datagrams), in
 * their order.
 */
function verdictOf(
  draw: PacketDraw,
  opcode: number,
  payloadBytes: number,
  targets: Targets,
): Verdict | undefined {
  const { wrong, word, pad } = draw;
  const version = wrong === 11 ? word & 0xf : 0;
  const placeBytes = payloadBytes - pad;
  if (version !== 0 || placeBytes < 0 || placeBytes > (isKnown(opcode) && isBare(opcode) ? 0 : PAYLOAD_MAX))
    return 'malformed';
  const qpn = qpnOf(draw, targets);
  if (qpn === MULTICAST_QPN) return undefined;
  if (!targets.hasQp(qpn)) return 'packetUnknownQp';
  const service = targets.serviceOf(qpn);
  if (service === undefined) return undefined;
  if (!isKnown(opcode) || opcode >> 5 !== service) return 'packetOpcode';
  const isForeign = wrong === 12 && (word & DEFAULT_PARTITION) !== DEFAULT_PARTITION;
  if (isForeign) return service === DATAGRAMS ? 'datagramPkey' : 'packetPkey';
  return wrong === 14 && service === DATAGRAMS && word !== targets.qkey ? 'datagramQkey' : undefined;
}

function writeBth(view: DataView, opcode: number, draw: PacketDraw, targets: Targets): void {
  const { flags, wrong, word, pad } = draw;
  const qpn = qpnOf(draw, targets);
  view.setUint8(0, opcode);
  view.setUint8(1, (flags & 0xc0_0000 ? 0 : 0x80) | 0x40 | (pad << 4) | (wrong === 11 ? word & 0xf : 0));
  view.setUint16(2, wrong === 12 ? word & 0xffff : 0xffff);
  view.setUint32(4, qpn | (wrong === 13 ? word & 0xff00_0000 : 0));
  const psn = draw.psn === draw.word ? draw.psn : targets.psnOf(qpn) + draw.psn;
  view.setUint32(8, ((flags & 0x1000 ? 0x8000_0000 : 0) | (psn & 0xff_ffff)) >>> 0);
}

function opcodeOf(draw: PacketDraw, targets: Targets): number {
  const { opcode, word } = draw;
  if (opcode >= 32) return opcode - 32;
  const service = targets.serviceOf(qpnOf(draw, targets));
  // A datagram is a SEND, with or without immediate.
  if (service === undefined || service === DATAGRAMS) return (DATAGRAMS << 5) | 4 | (word & 1);
  return (service << 5) | opcode;
}

/** QP numbers from here on belong to no victim, or are special. */
const FIRST_STRANGE = 20;

function qpnOf({ qpn, word }: PacketDraw, { qpns }: Targets): number {
  if (qpn < FIRST_STRANGE) return qpns[qpn % qpns.length]!;
  const strange = [0, 1, MULTICAST_QPN, word & 0xff_ffff, 2, qpns[0]! ^ 0x100, 1];
  return strange[qpn - FIRST_STRANGE]!;
}

function writeHeader(
  name: Header,
  view: DataView,
  at: number,
  draw: PacketDraw,
  targets: Targets,
  payloadBytes: number,
): void {
  const { word, flags, wrong } = draw;
  switch (name) {
    case 'reth':
      writeAddress(view, at, draw, targets);
      view.setUint32(at + 12, lengthOf(draw, payloadBytes));
      return;
    case 'atomic':
    case 'masked':
      writeAddress(view, at, draw, targets);
      view.setUint32(at + 16, word);
      view.setUint32(at + 24, flags);
      return;
    case 'deth':
      view.setUint32(at, wrong === 14 ? word : targets.qkey);
      view.setUint32(at + 4, flags & 0xff_ffff);
      return;
    case 'xrceth':
      view.setUint32(at, wrong === 14 ? word : targets.srqnOf(qpnOf(draw, targets)));
      return;
    default:
      for (let place = 0; place < headerBytes[name]; place += 4) view.setUint32(at + place, word);
  }
}

/** Writes an address in the region, at its edges, around it, or at the end of the address space. */
function writeAddress(view: DataView, at: number, draw: PacketDraw, { regions, highRegions }: Targets): void {
  if (draw.high !== undefined) return writeHighAddress(view, at, draw, highRegions[draw.high]!);
  const { address, bytes, key } = regions[draw.region % regions.length]!;
  const wanted = BigInt(address + placesIn(bytes)[draw.place]!);
  const ends = [0n, 0xffff_ffff_ffff_fff8n, 0x8000_0000_0000_0000n];
  view.setBigUint64(at, draw.region === 7 ? ends[draw.place % ends.length]! : BigInt.asUintN(64, wanted));
  view.setUint32(at + 8, draw.region === 6 ? draw.word : key);
}

const placesIn = (bytes: number): number[] => [0, 8, 100, bytes - 8, bytes - 1, bytes, -1, -8, 1, 4096];

const TOP_SHIFT = 52n;

/** Writes a 64-bit address; for a region that packets may not name, the upper bits are always wrong. */
function writeHighAddress(view: DataView, at: number, draw: PacketDraw, region: HighRegion): void {
  const { start, bytes, key, isOpen } = region;
  const { place, top = 0 } = draw;
  const wanted = BigInt.asUintN(64, start + BigInt(placesIn(bytes)[place]!));
  const difference = BigInt(isOpen || top !== 0 ? top : 1) << TOP_SHIFT;
  view.setBigUint64(at, wanted ^ difference);
  view.setUint32(at + 8, key);
}

function lengthOf({ length, payloadDwords, pad, word }: PacketDraw, payloadBytes: number): number {
  const own = Math.max(0, payloadBytes - pad);
  return (
    [own, own, own, own, own + 1024, payloadDwords, own + 1, 0x8000_0001, 0xffff_ffff, word & 0x3fff][
      length
    ]! >>> 0
  );
}
