/** Records and bytes: each built from the other, for every opcode; and parsed by packet-bytes.ts, which shares only the tables. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { invariantCrc, variantCrc } from './crc.ts';
import { DamagePlace, damagePacket } from './damage.ts';
import { bytesBeforeGrh, opcodeTable, operandBytes, packetShapes } from './opcodes.ts';
import {
  ADDRESS_TOP_SHIFT,
  FLAG_ACK_REQUEST,
  FLAG_CONGESTION,
  FLAG_GRH,
  FLAG_MIGRATED,
  FLAG_SOLICITED,
  FLOAT_VIRTUAL_ADDRESS,
  grhPlace,
  PACKET_BYTES_SHIFT,
  PACKET_PAYLOAD_OFFSET,
  PAD_SHIFT,
  VIRTUAL_LANE_SHIFT,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  xrcethWord,
} from './packet.ts';
import { decodeInfiniband } from './packet-bytes.ts';
import { ICRC_WRONG, PACKET_MALFORMED, PACKET_RIGHT, RecordBytes, VCRC_WRONG } from './record-bytes.ts';

const RECORD_BYTES = 8192;

function area() {
  const buffer = new ArrayBuffer(RECORD_BYTES);
  return { bytes: new Uint8Array(buffer), words: new Int32Array(buffer), floats: new Float64Array(buffer) };
}

/** Services whose packets have records. */
const carried = opcodeTable.filter(({ service }) => ['RC', 'UC', 'UD', 'XRC'].includes(service));

const flagBits = [FLAG_ACK_REQUEST, FLAG_SOLICITED, FLAG_MIGRATED, FLAG_CONGESTION, FLAG_GRH];

const packets = fc.record({
  row: fc.constantFrom(...carried),
  payload: fc.uint8Array({ maxLength: 300 }),
  words: fc.array(fc.integer(), { minLength: 12, maxLength: 12 }),
  // The lower part, including a carry from an offset within a message.
  address: fc.integer({ min: 0, max: 2 ** 52 + 2 ** 32 }),
  addressTop: fc.nat(0xfff),
  operands: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  grh: fc.uint8Array({ minLength: 40, maxLength: 40 }),
  flags: fc.subarray(flagBits),
  lane: fc.nat(15),
  sharedQueue: fc.nat(0xffffff),
});
type Made = typeof packets extends fc.Arbitrary<infer T> ? T : never;

/** A SEND without data, with a GRH. */
const empty: Made = {
  row: carried.find(({ name }) => name === 'RC_SEND_ONLY')!,
  payload: new Uint8Array(0),
  words: new Array<number>(12).fill(0),
  address: 0,
  addressTop: 0,
  operands: new Uint8Array(32),
  grh: new Uint8Array(40),
  flags: [FLAG_GRH],
  lane: 0,
  sharedQueue: 0,
};

/** The record of a packet, at `offset`; fields that its opcode lacks hold leftovers. */
function fill({ bytes, words, floats }: ReturnType<typeof area>, offset: number, made: Made): number {
  const { opcode, hasPayload } = made.row;
  const payload = hasPayload ? made.payload : new Uint8Array(0);
  const flags = made.flags.reduce((all, flag) => all | flag, 0);
  const hasGrh = (flags & FLAG_GRH) !== 0;
  const packetBytes = packetShapes[opcode]!.packetBytes(payload.length, hasGrh);
  const word = offset >> 2;
  made.words.forEach((value, index) => {
    words[word + 4 + index] = value;
  });
  // Numbers of QPs and PSNs have 24 bits, partition key and service level 20, with BECN 21.
  for (const place of [5, 6, 11]) words[word + place]! &= 0xffffff;
  floats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS] = made.address;
  const isResponse = !made.row.isRequest;
  for (const place of [made.row.service === 'UD' ? 8 : isResponse ? 13 : 12])
    words[word + place]! &= isResponse ? 0x1f_ffff : 0xf_ffff;
  if (made.row.isRequest && made.row.service !== 'UD')
    words[word + 12]! |= made.addressTop << ADDRESS_TOP_SHIFT;
  words[word + WORD_OPCODE] = opcode;
  words[word + WORD_PAYLOAD_BYTES] = payload.length;
  words[word + WORD_PACKET_FLAGS] =
    flags |
    (((4 - (payload.length & 3)) & 3) << PAD_SHIFT) |
    (made.lane << VIRTUAL_LANE_SHIFT) |
    (packetBytes << PACKET_BYTES_SHIFT);
  bytes.set(made.operands.subarray(0, operandBytes(opcode)), offset + PACKET_PAYLOAD_OFFSET);
  bytes.set(payload, offset + PACKET_PAYLOAD_OFFSET + operandBytes(opcode));
  if (hasGrh) {
    const grh = made.grh.slice();
    grh[0] = 0x60 | (grh[0]! & 0xf);
    const length = packetBytes - 8 - 40 - 2;
    grh[4] = length >> 8;
    grh[5] = length & 0xff;
    grh[6] = 0x1b;
    bytes.set(grh, grhPlace(offset, bytesBeforeGrh(opcode, payload.length)));
  }
  if (packetShapes[opcode]!.hasXrceth)
    words[xrcethWord(offset, operandBytes(opcode) + payload.length)] = made.sharedQueue;
  return packetBytes;
}

describe('the bytes of a record', () => {
  it('IBTA 7 to 9: are a packet that other readers parse, with right CRCs and the fields of the record', () => {
    fc.assert(
      fc.property(packets, (made) => {
        const from = area();
        const length = fill(from, 128, made);
        const bytes = new Uint8Array(length);
        expect(new RecordBytes(from).pack(128, bytes, 0)).toBe(length);
        const read = decodeInfiniband(bytes);
        if (read.kind !== 'packet') throw new Error(JSON.stringify(read));
        expect([read.isIcrcRight, read.isVcrcRight]).toEqual([true, true]);
        expect(read.bth).toMatchObject({
          opcode: made.row.opcode,
          migrationRequest: made.flags.includes(FLAG_MIGRATED) ? 1 : 0,
          ackRequest: made.flags.includes(FLAG_ACK_REQUEST) ? 1 : 0,
          solicitedEvent: made.flags.includes(FLAG_SOLICITED) ? 1 : 0,
          fecn: made.flags.includes(FLAG_CONGESTION) ? 1 : 0,
          becn: made.row.isRequest ? 0 : (made.words[9]! >> 20) & 1,
          destinationQp: made.words[1]! & 0xffffff,
          psn: made.words[2]! & 0xffffff,
        });
        expect(read.lrh).toMatchObject({
          virtualLane: made.lane,
          linkNextHeader: read.grh === undefined ? 2 : 3,
        });
        expect(read.payload).toEqual(made.row.hasPayload ? made.payload : new Uint8Array(0));
        const { AtomicETH: atomic, MaskedAtomicETH: masked } = read.headers;
        const named = read.headers.RETH ?? atomic ?? masked;
        if (named !== undefined)
          expect(named.virtualAddress).toBe(
            BigInt.asUintN(64, (BigInt(made.addressTop) << 52n) + BigInt(made.address)),
          );
        if (made.row.service === 'XRC' && made.row.isRequest)
          expect(read.headers.XRCETH?.sharedReceiveQueue).toBe(made.sharedQueue);
        const view = new DataView(made.operands.buffer, made.operands.byteOffset);
        const operands = [0, 8, 16, 24].map((at) => view.getBigUint64(at, true));
        if (atomic !== undefined) expect([atomic.swapOrAdd, atomic.compare]).toEqual(operands.slice(0, 2));
        if (masked !== undefined) {
          const { swap, compare, swapMask, compareMask } = masked;
          expect([swap, compare, swapMask, compareMask]).toEqual(operands);
        }
      }),
    );
  });

  it('restore the same record, which gives the same bytes', () => {
    fc.assert(
      fc.property(packets, (made) => {
        const [from, to] = [area(), area()];
        to.bytes.fill(0xee);
        // The lane is that of the packet's buffer.
        to.words[(256 >> 2) + WORD_PACKET_FLAGS] = made.lane << VIRTUAL_LANE_SHIFT;
        const length = fill(from, 128, made);
        const first = new Uint8Array(length);
        const again = new Uint8Array(length);
        new RecordBytes(from).pack(128, first, 0);
        expect(new RecordBytes(to).unpack(first, 0, length, 256)).toBe(PACKET_RIGHT);
        new RecordBytes(to).pack(256, again, 0);
        expect(again).toEqual(first);
      }),
    );
  });

  it.each([
    ['link version', 0, 0x01],
    ['lane', 0, 0x10],
    ['next header', 1, 0x02],
    ['length', 5, 0x01],
    ['version of the GRH', 8, 0x10],
    ['next header of the GRH', 14, 0x01],
    ['transport version', 49, 0x01],
    ['pad, longer than what there is', 49, 0x30],
  ])('IBTA 7.7, 8.3, 9.6.1.1: are not a packet with another %s under right CRCs', (_, place, bits) => {
    const from = area();
    const packet = fill(from, 128, empty);
    const bytes = new Uint8Array(packet);
    const codec = new RecordBytes(from);
    codec.pack(128, bytes, 0);
    expect(codec.unpack(bytes.slice(), 0, packet, 128)).toBe(PACKET_RIGHT);
    bytes[place]! ^= bits;
    const view = new DataView(bytes.buffer);
    view.setUint32(packet - 6, invariantCrc(bytes, 0, packet - 6, 'localWithGrh'), true);
    view.setUint16(packet - 2, variantCrc(bytes, 0, packet - 2), true);
    const before = from.bytes.slice();
    expect(codec.unpack(bytes, 0, packet, 128)).toBe(PACKET_MALFORMED);
    expect(from.bytes).toEqual(before);
  });

  it('IBTA 7.8: are rejected after a bit error: by the VCRC on a link, by the ICRC within a switch', () => {
    fc.assert(
      fc.property(
        packets,
        fc.constantFrom(...Object.values(DamagePlace)),
        fc.boolean(),
        (made, place, isInside) => {
          const from = area();
          const length = fill(from, 128, made);
          const bytes = new Uint8Array(length);
          const codec = new RecordBytes(from);
          codec.pack(128, bytes, 0);
          damagePacket(bytes, 0, length, place, isInside);
          const before = from.bytes.slice();
          expect(codec.unpack(bytes, 0, length, 128)).toBe(isInside ? ICRC_WRONG : VCRC_WRONG);
          expect(from.bytes).toEqual(before);
        },
      ),
    );
  });
});
