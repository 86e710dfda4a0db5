/**
 * Packets as a stranger at the other end of the cable may send them: bytes, right and wrong, of every service, with headers that are
 * drawn around what the receiver expects. The generator gets what there is to aim at, and shares no code with the encoder but
 * the CRCs.
 */
import fc from 'fast-check';
import { invariantCrc, variantCrc } from '../../../wire/crc.ts';

/** What a packet can be aimed at. All numbers are the receiver's. */
export interface Targets {
  readonly lid: number;
  readonly gid: Uint8Array;
  /** QP numbers of victims; of each the PSN that it expects next, and the service of its opcodes (bits 7:5). */
  readonly qpns: readonly number[];
  psnOf(qpn: number): number;
  serviceOf(qpn: number): number | undefined;
  readonly regions: readonly { readonly address: number; readonly bytes: number; readonly key: number }[];
  readonly qkey: number;
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
  qpn: fc.oneof({ arbitrary: fc.nat(9), weight: 6 }, fc.nat(15)),
  psn: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, fc.integer({ min: -3, max: 3 }), words),
  region: fc.nat(7),
  place: fc.nat(9),
  length: fc.nat(9),
  payloadDwords: fc.oneof(fc.constantFrom(0, 1, 16, 64, 100, 255, 256, 256, 257, 1024), fc.nat(1024)),
  pad: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, fc.nat(3)),
  flags: words,
  word: words,
  /** What is wrong with it; mostly nothing. */
  wrong: fc.oneof({ arbitrary: fc.constant(0), weight: 6 }, fc.nat(15)),
  bit: words,
});

const LRH = 8;
const GRH = 40;
const BTH = 12;
const CRCS = 6;
const VL_MANAGEMENT = 15;

export interface HostilePacket {
  readonly bytes: Uint8Array;
  readonly virtualLane: number;
}

/** Extended headers of an opcode, by the table of IBTA vol 1, 9.2, written out once more, and of masked atomics. */
function headersOf(opcode: number): (keyof typeof headerBytes)[] {
  const operation = opcode & 0x1f;
  const service = opcode >> 5;
  if (service === 3) return operation === 5 ? ['deth', 'immediate'] : ['deth'];
  if (operation === 3 || operation === 5 || operation === 9) return ['immediate'];
  if (operation === 6 || operation === 10 || operation === 12) return ['reth'];
  if (operation === 11) return ['reth', 'immediate'];
  if (operation === 13 || operation === 15 || operation === 16 || operation === 17) return ['aeth'];
  if (operation === 18) return ['aeth', 'original'];
  if (operation === 19 || operation === 20) return ['atomic'];
  if (service === 0 && operation === 24) return ['masked'];
  if (service === 0 && operation === 25) return ['atomic'];
  return operation === 22 || operation === 23 ? ['immediate'] : [];
}

const headerBytes = {
  reth: 16,
  atomic: 28,
  masked: 44,
  aeth: 4,
  original: 8,
  immediate: 4,
  deth: 8,
} as const;

/** The packet of a draw. */
export function hostilePacket(draw: PacketDraw, targets: Targets): HostilePacket {
  const { flags, wrong } = draw;
  const opcode = opcodeOf(draw, targets);
  const headers = headersOf(opcode);
  const hasGrh = (flags & 0x70) === 0x70;
  const extended = headers.reduce((sum, name) => sum + headerBytes[name], 0);
  const hasPayload = !headers.some((name) => name === 'atomic' || name === 'masked' || name === 'original');
  const payload = hasPayload || wrong === 1 ? draw.payloadDwords * 4 : 0;
  const base = LRH + (hasGrh ? GRH : 0);
  const bytes = new Uint8Array(base + BTH + extended + payload + CRCS);
  const view = new DataView(bytes.buffer);
  const virtualLane = (flags & 0xf00) === 0xf00 ? VL_MANAGEMENT : 0;
  writeLrh(view, draw, targets, virtualLane, hasGrh);
  if (hasGrh) writeGrh(bytes, draw, targets);
  view.setUint8(base, opcode);
  writeBth(view, base, draw, targets);
  let at = base + BTH;
  for (const name of headers) {
    writeHeader(name, view, at, draw, targets, payload);
    at += headerBytes[name];
  }
  for (let place = at; place < bytes.length - CRCS; place++) bytes[place] = place + draw.word;
  // One bit anywhere ahead of the CRCs, under CRCs that are right.
  if (wrong === 2) bytes[draw.bit % (bytes.length - CRCS)]! ^= 1 << (draw.bit >>> 29);
  writeCrcs(bytes, view, wrong, draw.bit);
  return { bytes, virtualLane };
}

function writeLrh(view: DataView, draw: PacketDraw, { lid }: Targets, lane: number, hasGrh: boolean): void {
  const { wrong, word, flags } = draw;
  const dwords = (view.byteLength - 2) >> 2;
  view.setUint8(0, ((wrong === 3 ? word & 0xf : lane) << 4) | (wrong === 4 ? word & 0xf : 0));
  view.setUint8(1, ((flags & 0xf) << 4) | (wrong === 5 ? word & 3 : hasGrh ? 3 : 2));
  view.setUint16(2, wrong === 6 ? word & 0xffff : lid);
  view.setUint16(4, wrong === 7 ? word & 0x7ff : dwords);
  view.setUint16(6, 1);
}

function writeGrh(bytes: Uint8Array, { wrong, word }: PacketDraw, { gid }: Targets): void {
  bytes[LRH] = (wrong === 8 ? word & 0xf : 6) << 4;
  const counted = bytes.length - LRH - GRH - 2;
  bytes[LRH + 4] = counted >> 8;
  bytes[LRH + 5] = counted & 0xff;
  bytes[LRH + 6] = wrong === 9 ? word : 0x1b;
  bytes.set(gid, LRH + 8);
  bytes.set(gid, LRH + 24);
  if (wrong === 10) bytes[LRH + 24 + (word & 15)]! ^= 1;
}

function writeBth(view: DataView, base: number, draw: PacketDraw, targets: Targets): void {
  const { flags, wrong, word, pad } = draw;
  const qpn = qpnOf(draw, targets);
  view.setUint8(
    base + 1,
    (flags & 0xc0_0000 ? 0 : 0x80) | 0x40 | (pad << 4) | (wrong === 11 ? word & 0xf : 0),
  );
  view.setUint16(base + 2, wrong === 12 ? word & 0xffff : 0xffff);
  view.setUint32(base + 4, qpn | (wrong === 13 ? word & 0xff00_0000 : 0));
  const psn = draw.psn === draw.word ? draw.psn : targets.psnOf(qpn) + draw.psn;
  view.setUint32(base + 8, ((flags & 0x1000 ? 0x8000_0000 : 0) | (psn & 0xff_ffff)) >>> 0);
}

function opcodeOf(draw: PacketDraw, targets: Targets): number {
  const { opcode, word } = draw;
  if (opcode >= 32) return opcode - 32;
  const service = targets.serviceOf(qpnOf(draw, targets));
  // A datagram is a SEND, with or without immediate.
  if (service === undefined || service === DATAGRAMS) return (DATAGRAMS << 5) | 4 | (word & 1);
  return (service << 5) | opcode;
}

const DATAGRAMS = 3;

function qpnOf({ qpn, word }: PacketDraw, { qpns }: Targets): number {
  if (qpn < 10) return qpns[qpn % qpns.length]!;
  return [0, 1, 0xff_ffff, word & 0xff_ffff, 2, qpns[0]! ^ 0x100][qpn - 10]!;
}

function writeHeader(
  name: keyof typeof headerBytes,
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
    default:
      for (let place = 0; place < headerBytes[name]; place += 4) view.setUint32(at + place, word);
  }
}

/** In the region, at its edges, around it, and where addresses end. */
function writeAddress(view: DataView, at: number, draw: PacketDraw, { regions }: Targets): void {
  const { address, bytes, key } = regions[draw.region % regions.length]!;
  const places = [0, 8, 100, bytes - 8, bytes - 1, bytes, -1, -8, 1, 4096];
  const wanted = BigInt(address + places[draw.place]!);
  const ends = [0n, 0xffff_ffff_ffff_fff8n, 0x8000_0000_0000_0000n];
  view.setBigUint64(at, draw.region === 7 ? ends[draw.place % ends.length]! : BigInt.asUintN(64, wanted));
  view.setUint32(at + 8, draw.region === 6 ? draw.word : key);
}

function lengthOf({ length, payloadDwords, pad, word }: PacketDraw, payloadBytes: number): number {
  const own = Math.max(0, payloadBytes - pad);
  return (
    [own, own, own, own, own + 1024, payloadDwords, own + 1, 0x8000_0001, 0xffff_ffff, word & 0x3fff][
      length
    ]! >>> 0
  );
}

function writeCrcs(bytes: Uint8Array, view: DataView, wrong: number, bit: number): void {
  const icrcAt = bytes.length - CRCS;
  const cover = (bytes[1]! & 3) === 3 && icrcAt >= LRH + GRH + BTH ? 'localWithGrh' : 'local';
  view.setUint32(
    icrcAt,
    (invariantCrc(bytes, 0, icrcAt, cover) ^ (wrong === 15 && bit & 1 ? 1 << (bit >>> 27) : 0)) >>> 0,
    true,
  );
  view.setUint16(
    icrcAt + 4,
    variantCrc(bytes, 0, icrcAt + 4) ^ (wrong === 15 && !(bit & 1) ? 1 << (bit >>> 28) : 0),
    true,
  );
}
