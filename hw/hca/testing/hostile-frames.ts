/**
 * Frames of a stranger on a link of Ethernet: RoCE of either version around what hostile-packets.ts draws, frames of other kinds, and
 * MAC control frames. Addresses, types, tags, lengths and checksums are right or wrong; ICRCs are right unless drawn otherwise. Shares no
 * code with encoder and decoder but the CRC. Sources: IBTA vol 1, annexes A16 and A17; RFC 791, 768, 8200; IEEE 802.1Q, 9; IEEE 802.3,
 * annexes 31A and 31B.
 */
import fc from 'fast-check';
import { type InvariantCover, invariantCrc } from '../../../wire/crc.ts';
import {
  type HostilePacket,
  ICRC,
  type PacketDraw,
  packetDraws,
  type Targets,
  type Transport,
  transportOf,
  type Verdict,
} from './hostile-packets.ts';
import { gidOfNode, type RoceForm } from './roce-ends.ts';

/** Targets of hostile frames on an Ethernet port, in addition to those of packets. */
export interface FrameTargets extends Targets {
  readonly form: RoceForm;
  /** The port's MAC, that of its MAC control, a group that it accepts and one that it does not, as numbers. */
  readonly mac: number;
  readonly controlMac: number | undefined;
  readonly group: number;
  readonly foreignGroup: number;
  readonly vlan: number;
  /** Longest frame with FCS that software has room for, and longest without that the cable carries. */
  readonly longestBytes: number;
  readonly frameBytesMax: number;
}

export type FrameDraw =
  | { readonly kind: 'packet'; readonly packet: PacketDraw; readonly tag: number }
  | {
      readonly kind: 'frame';
      readonly to: number;
      readonly type: number;
      readonly tags: readonly number[];
      readonly bytes: number;
      readonly first: number;
      readonly word: number;
    }
  | {
      readonly kind: 'control';
      readonly to: number;
      readonly opcode: number;
      readonly quanta: number;
      readonly bytes: number;
    };

/** Quanta of a pause that ends before any frame waits for it: 6 us at 40 Gb/s. */
export const QUANTA_UNWAITED = 500;
const words = fc.integer({ min: 0, max: 0xffff_ffff });
/** Tags: none, the right VLAN, priority alone, another one. */
const tags = fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, fc.nat(3));

export const frameDraws: fc.Arbitrary<FrameDraw> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('packet'), packet: packetDraws, tag: tags }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('frame'),
      to: fc.nat(5),
      type: fc.oneof(fc.nat(9), fc.integer({ min: 10, max: 0xffff })),
      tags: fc.array(tags, { maxLength: 3 }),
      bytes: fc.oneof(fc.constantFrom(14, 15, 17, 18, 34, 42, 54, 60, 61, 1514, 1518), fc.nat(4300)),
      first: fc.oneof(fc.constantFrom(0x45, 0x46, 0x4f, 0x41, 0x60, 0), fc.nat(255)),
      word: words,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('control'),
      to: fc.nat(3),
      opcode: fc.oneof({ arbitrary: fc.constant(1), weight: 4 }, fc.constantFrom(0, 2, 0x101, 0xffff)),
      quanta: fc.oneof(fc.nat(QUANTA_UNWAITED), fc.constantFrom(0, 0xffff)),
      bytes: fc.oneof({ arbitrary: fc.constant(60), weight: 3 }, fc.constantFrom(61, 64, 1514)),
    }),
  },
);

const HEADER = 14;
const TAG = 4;
const GRH = 40;
const UDP = 8;
const FCS = 4;
const STRANGER_MAC = 0x0002_c900_0001;
const PAUSE_GROUP = 0x0180_c200_0001;
const C_TAG = 0x8100;
const S_TAG = 0x88a8;
const CONTROL_TYPE = 0x8808;
const ROCE_TYPE = 0x8915;
const IPV4_TYPE = 0x0800;
const IPV6_TYPE = 0x86dd;
const ROCE_PORT = 4791;
const UDP_PROTOCOL = 17;
const VID = 0xfff;

/** The frame of a draw, without FCS. */
export function hostileFrame(draw: FrameDraw, targets: FrameTargets): HostilePacket {
  if (draw.kind === 'packet') return packetFrame(draw.packet, tagOf(draw.tag, targets), targets);
  return draw.kind === 'frame' ? plainFrame(draw, targets) : controlFrame(draw, targets);
}

/** Returns the tag for a draw; undefined for an untagged frame. */
function tagOf(draw: number, { vlan }: FrameTargets): number | undefined {
  return [undefined, 0x6000 | vlan, 0xe000, 0x2000 | (vlan + 1)][draw];
}

function writeMac(bytes: Uint8Array, at: number, mac: number): void {
  for (let place = 0; place < 6; place++) bytes[at + place] = Math.floor(mac / 2 ** (8 * (5 - place))) & 0xff;
}

function writeHeader(bytes: Uint8Array, to: number, tags: readonly number[], type: number): number {
  const view = new DataView(bytes.buffer);
  writeMac(bytes, 0, to);
  writeMac(bytes, 6, STRANGER_MAC);
  let at = 12;
  for (const tag of tags) {
    view.setUint16(at, C_TAG);
    view.setUint16(at + 2, tag);
    at += TAG;
  }
  view.setUint16(at, type);
  return at + 2;
}

// ---- RoCE ----

const typeOf = { v1: ROCE_TYPE, 'v2 over IPv4': IPV4_TYPE, 'v2 over IPv6': IPV6_TYPE } as const;
const networkBytesOf = { v1: GRH, 'v2 over IPv4': 20 + UDP, 'v2 over IPv6': 40 + UDP } as const;
const coverOf: Readonly<Record<RoceForm, InvariantCover>> = {
  v1: 'roce1',
  'v2 over IPv4': 'roce2Ipv4',
  'v2 over IPv6': 'roce2Ipv6',
};

function packetFrame(draw: PacketDraw, tag: number | undefined, targets: FrameTargets): HostilePacket {
  const { wrong, word, bit } = draw;
  const { form } = targets;
  const tags = tag === undefined ? [] : [tag];
  const network = HEADER + tags.length * TAG;
  const base = network + networkBytesOf[form];
  const transport = transportOf(draw, targets, (targets.frameBytesMax - base - 64) >> 2);
  const icrcAt = base + transport.bytes.length;
  const bytes = new Uint8Array(icrcAt + ICRC);
  writeHeader(bytes, wrong === 3 ? macOf(word % 6, targets) : targets.mac, tags, typeOf[form]);
  const isOdd = writeNetwork(bytes, network, draw, targets);
  bytes.set(transport.bytes, base);
  // One bit anywhere, under an ICRC that is right.
  if (wrong === 2) bytes[bit % icrcAt]! ^= 1 << (bit >>> 29);
  const icrc = invariantCrc(bytes, network, icrcAt, coverOf[form]);
  new DataView(bytes.buffer).setUint32(icrcAt, (icrc ^ (wrong === 15 ? 1 << (bit >>> 27) : 0)) >>> 0, true);
  const verdict = packetVerdict(draw, targets, isOdd, transport);
  return { bytes, virtualLane: 0, base, verdict };
}

/** Defect of a network header: malformed, not that of a packet, or with other addresses. */
type Oddness = 'none' | 'malformed' | 'otherFrame' | 'unknown';

function packetVerdict(
  { wrong, word }: PacketDraw,
  targets: FrameTargets,
  oddness: Oddness,
  transport: Transport,
): Verdict | undefined {
  if (wrong === 2 || oddness === 'otherFrame' || oddness === 'unknown') return undefined;
  if (wrong === 3 && macOf(word % 6, targets) === STRANGER_MAC) return 'foreignMac';
  if (oddness === 'malformed') return 'malformed';
  if (wrong === 15) return 'damaged';
  const isForeign = wrong === 10 && transport.isForVictim;
  return transport.verdict ?? (isForeign ? 'packetForeignGid' : undefined);
}

function writeNetwork(bytes: Uint8Array, at: number, draw: PacketDraw, targets: FrameTargets): Oddness {
  if (targets.form === 'v1') return writeGrh(bytes, at, draw, targets);
  const udp = at + networkBytesOf[targets.form] - UDP;
  const isOtherPort = draw.wrong === 7 && (draw.word & 0xffff) !== ROCE_PORT;
  const view = new DataView(bytes.buffer);
  view.setUint16(udp, 0xc123);
  view.setUint16(udp + 2, isOtherPort ? draw.word & 0xffff : ROCE_PORT);
  const udpBytes = bytes.length - udp;
  view.setUint16(udp + 4, draw.wrong === 6 ? draw.word & 0xffff : udpBytes);
  const isOddLength = draw.wrong === 6 && (draw.word & 0xffff) !== udpBytes;
  const ip =
    targets.form === 'v2 over IPv4'
      ? writeIpv4(bytes, at, draw, targets)
      : writeGrh(bytes, at, draw, targets);
  if (ip === 'otherFrame' || isOtherPort) return 'otherFrame';
  return isOddLength ? 'malformed' : ip;
}

/** Writes a GRH, or an IPv6 header, which differs only in its next header. */
function writeGrh(bytes: Uint8Array, at: number, draw: PacketDraw, targets: FrameTargets): Oddness {
  const { wrong, word } = draw;
  const isIp = targets.form !== 'v1';
  const next = isIp ? UDP_PROTOCOL : 0x1b;
  const counted = bytes.length - at - GRH;
  bytes[at] = (wrong === 8 ? word & 0xf : 6) << 4;
  const length = wrong === 5 ? word & 0xffff : counted;
  bytes[at + 4] = length >> 8;
  bytes[at + 5] = length & 0xff;
  bytes[at + 6] = wrong === 9 ? word : next;
  bytes[at + 7] = 64;
  bytes.set(gidOfNode(targets.form, 1), at + 8);
  bytes.set(targets.gid, at + 24);
  if (wrong === 10) bytes[at + 24 + (word & 15)]! ^= 1;
  const isOtherKind = (wrong === 8 && (word & 0xf) !== 6) || (wrong === 9 && (word & 0xff) !== next);
  if (isOtherKind) return isIp ? 'otherFrame' : 'malformed';
  if (wrong !== 5 || length === counted) return 'none';
  // A GRH that ends earlier makes another packet; IP and UDP disagree.
  return isIp ? 'malformed' : length > counted ? 'malformed' : 'unknown';
}

function writeIpv4(bytes: Uint8Array, at: number, draw: PacketDraw, targets: FrameTargets): Oddness {
  const { wrong, word } = draw;
  const view = new DataView(bytes.buffer);
  const counted = bytes.length - at;
  const version = wrong === 8 ? word & 0xff : 0x45;
  bytes[at] = version;
  const length = wrong === 5 ? word & 0xffff : counted;
  view.setUint16(at + 2, length);
  bytes[at + 8] = 64;
  const protocol = wrong === 9 ? word & 0xff : UDP_PROTOCOL;
  bytes[at + 9] = protocol;
  bytes.set(gidOfNode(targets.form, 1).subarray(12), at + 12);
  bytes.set(targets.gid.subarray(12), at + 16);
  if (wrong === 10) bytes[at + 16 + (word & 3)]! ^= 1;
  let sum = 0;
  for (let place = 0; place < 20; place += 2) sum += view.getUint16(at + place);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  const flipped = wrong === 4 ? 1 << (word & 15) : 0;
  view.setUint16(at + 10, (~sum & 0xffff) ^ flipped);
  if (version !== 0x45 || protocol !== UDP_PROTOCOL) return 'otherFrame';
  return flipped !== 0 || length !== counted ? 'malformed' : 'none';
}

// ---- other frames ----

/** Returns the destination MAC for a draw. */
function macOf(draw: number, targets: FrameTargets): number {
  const { mac, group, foreignGroup } = targets;
  return [mac, STRANGER_MAC, group, foreignGroup, 2 ** 48 - 1, mac][draw]!;
}

const plainTypes = [
  ...[IPV4_TYPE, IPV6_TYPE, 0x0806, 0x88cc, S_TAG, 0x88f7, ROCE_TYPE, 0x0000, 0x05dc, 0x88b5],
];
const plainProtocols = [6, 17, 1, 58, 0];

function plainFrame(
  { to, type, tags, bytes: wanted, first, word }: FrameDraw & { readonly kind: 'frame' },
  targets: FrameTargets,
): HostilePacket {
  const drawn = tags.map((tag) => tagOf(tag, targets)).filter((tag) => tag !== undefined);
  const shortest = HEADER + drawn.length * TAG;
  const length = Math.min(Math.max(wanted, shortest), targets.frameBytesMax);
  const bytes = new Uint8Array(length);
  const destination = macOf(to, targets);
  const etherType = type < plainTypes.length ? plainTypes[type]! : type;
  const at = writeHeader(bytes, destination, drawn, etherType);
  for (let place = at; place < length; place++) bytes[place] = place * word;
  if (at < length) bytes[at] = first;
  const protocolAt = at + (etherType === IPV6_TYPE ? 6 : 9);
  if (protocolAt < length) bytes[protocolAt] = plainProtocols[word % plainProtocols.length]!;
  const isPlain = etherType !== ROCE_TYPE && etherType !== CONTROL_TYPE;
  return { bytes, virtualLane: 0, verdict: isPlain ? frameVerdict(bytes, targets) : undefined };
}

/** Returns the verdict of the port's steering on a frame that is not a packet: sheet 3.12, in its order. */
function frameVerdict(
  bytes: Uint8Array,
  { vlan, longestBytes, foreignGroup }: FrameTargets,
): Verdict | undefined {
  const [high = 0, low = 0, first = 0, second = 0] = bytes.subarray(HEADER - 2);
  const isTagged = [C_TAG, S_TAG].includes((high << 8) | low);
  const vid = isTagged ? ((first << 8) | second) & VID : 0;
  if (Math.max(bytes.length, 60) + FCS > longestBytes) return 'tooLong';
  if (vid !== 0 && vid !== vlan) return 'vlanFilter';
  const destination = bytes.subarray(0, 6).reduce((sum, byte) => sum * 256 + byte, 0);
  if (destination === STRANGER_MAC) return 'foreignMac';
  return destination === foreignGroup || destination === 2 ** 48 - 1 ? 'multicastFilter' : undefined;
}

function controlFrame(
  { to, opcode, quanta, bytes: length }: FrameDraw & { readonly kind: 'control' },
  targets: FrameTargets,
): HostilePacket {
  const { controlMac } = targets;
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  const destination = [PAUSE_GROUP, controlMac ?? PAUSE_GROUP, targets.mac, 2 ** 48 - 1][to]!;
  writeHeader(bytes, destination, [], CONTROL_TYPE);
  view.setUint16(HEADER, opcode);
  view.setUint16(HEADER + 2, quanta);
  if (controlMac === undefined) return { bytes, virtualLane: 0 };
  const isRight = length === 60 && to < 2;
  const verdict = opcode !== 1 ? 'unknownControlFrames' : isRight ? 'pauseFrames' : 'malformedControlFrames';
  return { bytes, virtualLane: 0, verdict };
}
