/**
 * Packets of a stranger on a link of InfiniBand: LRH, now and then a GRH, ICRC and VCRC around what hostile-packets.ts draws. Sources:
 * IBTA vol 1, 7.7, 7.8 and 8.3.
 */
import { invariantCrc, variantCrc } from '../../../wire/crc.ts';
import {
  type HostilePacket,
  ICRC,
  type PacketDraw,
  type Targets,
  type Transport,
  transportOf,
  type Verdict,
} from './hostile-packets.ts';

const LRH = 8;
const BTH = 12;
const GRH = 40;
const VCRC = 2;
const VL_MANAGEMENT = 15;
const PAYLOAD_DWORDS_MAX = 1024;
const FIRST_MULTICAST_LID = 0xc000;

/** The packet of a draw. */
export function hostilePacket(draw: PacketDraw, targets: Targets): HostilePacket {
  const { flags, wrong } = draw;
  const hasGrh = (flags & 0x70) === 0x70;
  const virtualLane = (flags & 0xf00) === 0xf00 ? VL_MANAGEMENT : 0;
  const transport = transportOf(draw, targets, PAYLOAD_DWORDS_MAX);
  const base = LRH + (hasGrh ? GRH : 0);
  const bytes = new Uint8Array(base + transport.bytes.length + ICRC + VCRC);
  const view = new DataView(bytes.buffer);
  writeLrh(view, draw, targets, virtualLane, hasGrh);
  if (hasGrh) writeGrh(bytes, draw, targets);
  bytes.set(transport.bytes, base);
  // One bit anywhere ahead of the CRCs, under CRCs that are right.
  const crcs = ICRC + VCRC;
  if (wrong === 2) bytes[draw.bit % (bytes.length - crcs)]! ^= 1 << (draw.bit >>> 29);
  writeCrcs(bytes, view, wrong, draw.bit);
  return {
    bytes,
    virtualLane,
    base,
    verdict: verdictOf(draw, targets, virtualLane, hasGrh, bytes, transport),
  };
}

function verdictOf(
  { wrong, word }: PacketDraw,
  { lid }: Targets,
  virtualLane: number,
  hasGrh: boolean,
  bytes: Uint8Array,
  transport: Transport,
): Verdict | undefined {
  const dwords = (bytes.length - VCRC) >> 2;
  const isOdd = [
    wrong === 3 && (word & 0xf) !== virtualLane,
    wrong === 4 && (word & 0xf) !== 0,
    wrong === 7 && (word & 0x7ff) !== dwords,
    wrong === 8 && hasGrh && (word & 0xf) !== 6,
    wrong === 9 && hasGrh && (word & 0xff) !== 0x1b,
  ].some((is) => is);
  // A flipped bit, and another next header, turn it into another packet.
  if (wrong === 2 || wrong === 5) return undefined;
  if (wrong === 15) return 'damaged';
  if (isOdd || transport.verdict === 'malformed') return 'malformed';
  const toLid = wrong === 6 ? word & 0xffff : lid;
  if (toLid !== lid && toLid < FIRST_MULTICAST_LID) return 'packetForeignLid';
  const isForeign = wrong === 10 && hasGrh && transport.isForVictim;
  return transport.verdict ?? (isForeign ? 'packetForeignGid' : undefined);
}

function writeLrh(view: DataView, draw: PacketDraw, { lid }: Targets, lane: number, hasGrh: boolean): void {
  const { wrong, word, flags } = draw;
  const dwords = (view.byteLength - VCRC) >> 2;
  view.setUint8(0, ((wrong === 3 ? word & 0xf : lane) << 4) | (wrong === 4 ? word & 0xf : 0));
  view.setUint8(1, ((flags & 0xf) << 4) | (wrong === 5 ? word & 3 : hasGrh ? 3 : 2));
  view.setUint16(2, wrong === 6 ? word & 0xffff : lid);
  view.setUint16(4, wrong === 7 ? word & 0x7ff : dwords);
  view.setUint16(6, 1);
}

function writeGrh(bytes: Uint8Array, { wrong, word }: PacketDraw, { gid }: Targets): void {
  bytes[LRH] = (wrong === 8 ? word & 0xf : 6) << 4;
  const counted = bytes.length - LRH - GRH - VCRC;
  bytes[LRH + 4] = counted >> 8;
  bytes[LRH + 5] = counted & 0xff;
  bytes[LRH + 6] = wrong === 9 ? word : 0x1b;
  bytes.set(gid, LRH + 8);
  bytes.set(gid, LRH + 24);
  if (wrong === 10) bytes[LRH + 24 + (word & 15)]! ^= 1;
}

function writeCrcs(bytes: Uint8Array, view: DataView, wrong: number, bit: number): void {
  const icrcAt = bytes.length - ICRC - VCRC;
  const cover = (bytes[1]! & 3) === 3 && icrcAt >= LRH + GRH + BTH ? 'localWithGrh' : 'local';
  view.setUint32(
    icrcAt,
    (invariantCrc(bytes, 0, icrcAt, cover) ^ (wrong === 15 && bit & 1 ? 1 << (bit >>> 27) : 0)) >>> 0,
    true,
  );
  view.setUint16(
    icrcAt + ICRC,
    variantCrc(bytes, 0, icrcAt + ICRC) ^ (wrong === 15 && !(bit & 1) ? 1 << (bit >>> 28) : 0),
    true,
  );
}
