import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { linesOf, placeOf, readGolden } from '../../../abi/testing/golden.ts';
import {
  atomicSegment,
  controlSegment,
  dataPointer,
  inlineHeader,
  remoteAddressSegment,
} from '../../../abi/wqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { fromHex } from '../../../base/bytes.ts';
import { SendRecords } from '../objects/send-records.ts';
import { isReadOrAtomic, takesCredit } from '../send-queue/operation-traits.ts';
import { encodeWqe, pattern, type SendRequest } from '../testing/data-path-verbs.ts';
import { decodeWqe, isFenced, opcodeOf } from './wqe-decoder.ts';

const RC = 0;
const executed: readonly number[] = [
  WqeOpcode.SEND,
  WqeOpcode.SEND_IMM,
  WqeOpcode.RDMA_WRITE,
  WqeOpcode.RDMA_WRITE_IMM,
  WqeOpcode.RDMA_READ,
  WqeOpcode.ATOMIC_CS,
  WqeOpcode.ATOMIC_FA,
];

/** Decodes into a fresh record; the bytes lie at an odd place. */
function decode(wqe: Uint8Array) {
  const bytes = new Uint8Array(2048);
  bytes.set(wqe, 192);
  const request = new SendRecords(2).allocate();
  const syndrome = decodeWqe(new DataView(bytes.buffer), bytes, 192, request);
  const inline = request.inlineData.slice(0, request.messageBytes);
  const segments = Array.from({ length: request.segmentCount }, (_, index) => ({
    ...request.segment(index),
  }));
  return { request, syndrome, inline, segments };
}

describe('the WQE decoder', () => {
  it('sheet 6.3: reads the WQEs of real drivers as the layouts of the interface do', () => {
    const lines = linesOf(readGolden(), 'wqe').filter(
      (line) => line.qp_type === RC && executed.includes(Number(line.opcode)),
    );
    expect(lines.length).toBeGreaterThan(50);
    for (const line of lines) {
      const name = placeOf(line);
      const bytes = fromHex(line.bytes, line.slot_size);
      const control = controlSegment.decode(bytes);
      const { request, syndrome, segments, inline } = decode(bytes);
      expect(syndrome, name).toBe(0);
      expect(request.opcode, name).toBe(control.opcode);
      expect(request.isSignalled, name).toBe(control.completion === 3 ? 1 : 0);
      expect(request.isSolicited, name).toBe(control.solicited);
      expect(isFenced(new DataView(bytes.buffer, bytes.byteOffset), 0), name).toBe(control.fence === 1);
      expect(request.immediate >>> 0, name).toBe(control.immediate);
      let next = 16;
      const isSend = control.opcode === WqeOpcode.SEND || control.opcode === WqeOpcode.SEND_IMM;
      if (!isSend) {
        const remote = remoteAddressSegment.decode(bytes.subarray(next));
        const { remoteAddress, remoteAddressTop, remoteKey } = request;
        expect((BigInt(remoteAddressTop) << 52n) + BigInt(remoteAddress), name).toBe(remote.address);
        expect(remoteKey, name).toBe(remote.rkey);
        next += 16;
      }
      if (control.opcode === WqeOpcode.ATOMIC_CS || control.opcode === WqeOpcode.ATOMIC_FA) {
        const atomic = atomicSegment.decode(bytes.subarray(next));
        const words = request.operands;
        const joined = (at: number): bigint =>
          (BigInt(words[at + 1]! >>> 0) << 32n) | BigInt(words[at]! >>> 0);
        expect([joined(0), joined(2)], name).toEqual([atomic.swapOrAdd, atomic.compare]);
        next += 16;
      }
      const wantedSegments: { address: number; addressTop: number; key: number; bytes: number }[] = [];
      const wantedInline: number[] = [];
      while (next < control.ds * 16) {
        const head = inlineHeader.decode(bytes.subarray(next));
        if (head.isInline === 1) {
          wantedInline.push(...bytes.subarray(next + 4, next + 4 + head.byteCount));
          const end = next + 4 + head.byteCount;
          next = end % 64 === 0 ? end : Math.ceil(end / 16) * 16;
          continue;
        }
        const pointer = dataPointer.decode(bytes.subarray(next));
        if (pointer.byteCount > 0)
          wantedSegments.push({
            address: Number(BigInt.asUintN(52, pointer.address)),
            addressTop: Number(pointer.address >> 52n),
            key: pointer.lkey,
            bytes: pointer.byteCount,
          });
        next += 16;
      }
      expect(segments, name).toEqual(wantedSegments);
      if (wantedInline.length > 0) expect([...inline], name).toEqual(wantedInline);
      const total = wantedSegments.reduce((sum, { bytes: count }) => sum + count, wantedInline.length);
      expect(request.messageBytes, name).toBe(total);
    }
  });

  it('sheet 6.3: joins inline data of any length that was cut at 64-byte lines', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 900 }),
        fc.constantFrom<number>(WqeOpcode.SEND, WqeOpcode.RDMA_WRITE),
        (length, opcode) => {
          const { syndrome, inline, request } = decode(
            encodeWqe({ opcode, inline: pattern(length, length) }, 0),
          );
          expect(syndrome).toBe(0);
          expect(request.isInline).toBe(1);
          expect(inline).toEqual(pattern(length, length));
        },
      ),
    );
  });

  it('sheet 6.3: leaves empty segments out and takes as many as QUERY_DEV_CAP offers: all that fit the largest WQE', () => {
    const list = (count: number) =>
      Array.from({ length: count }, (_, index) => ({
        address: 4096 * index,
        key: index,
        bytes: index === 1 ? 0 : 8,
      }));
    const { syndrome, segments } = decode(encodeWqe({ opcode: WqeOpcode.SEND, segments: list(62) }, 0));
    expect(syndrome).toBe(0);
    expect(segments).toHaveLength(61);
  });

  it('sheet 6.3: refuses what is malformed', () => {
    const refused: [string, SendRequest, (bytes: Uint8Array) => void, number][] = [
      ['an unknown opcode', { opcode: 0x1d }, () => undefined, CqeSyndrome.LOCAL_QP_OP_ERR],
      [
        'a known opcode that is not executed',
        { opcode: WqeOpcode.LSO },
        () => undefined,
        CqeSyndrome.LOCAL_QP_OP_ERR,
      ],
      [
        'a WRITE without its remote address',
        { opcode: WqeOpcode.RDMA_WRITE },
        (bytes) => bytes.fill(1, 7, 8),
        CqeSyndrome.LOCAL_QP_OP_ERR,
      ],
      [
        'an atomic without operands',
        { opcode: WqeOpcode.ATOMIC_CS },
        () => undefined,
        CqeSyndrome.LOCAL_QP_OP_ERR,
      ],
      [
        'an atomic of 4 bytes',
        { opcode: WqeOpcode.ATOMIC_CS, swapOrAdd: 1n, segments: [{ address: 0, key: 0, bytes: 4 }] },
        () => undefined,
        CqeSyndrome.LOCAL_LENGTH_ERR,
      ],
      [
        'inline data past the end',
        { opcode: WqeOpcode.SEND, inline: new Uint8Array(10) },
        (bytes) => bytes.fill(40, 19, 20),
        CqeSyndrome.LOCAL_QP_OP_ERR,
      ],
    ];
    for (const [name, request, spoil, syndrome] of refused) {
      const bytes = encodeWqe(request, 0);
      spoil(bytes);
      expect(decode(bytes).syndrome, name).toBe(syndrome);
    }
  });

  it('never reads past a WQE or throws, whatever its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1024, maxLength: 1024 }), (bytes) => {
        bytes[7] = (bytes[7]! & 0xc0) | 2 | (bytes[7]! & 0x3f);
        expect(decode(bytes).syndrome).toBeLessThan(0x20);
      }),
    );
  });

  it('sheet 6.4: takes from the opcode what a request has', () => {
    const view = new DataView(encodeWqe({ opcode: WqeOpcode.RDMA_READ, isFenced: true }, 1).buffer);
    expect([opcodeOf(view, 0), isFenced(view, 0)]).toEqual([WqeOpcode.RDMA_READ, true]);
    expect(executed.filter(isReadOrAtomic)).toEqual([
      WqeOpcode.RDMA_READ,
      WqeOpcode.ATOMIC_CS,
      WqeOpcode.ATOMIC_FA,
    ]);
    expect(executed.filter(takesCredit)).toEqual([
      WqeOpcode.SEND,
      WqeOpcode.SEND_IMM,
      WqeOpcode.RDMA_WRITE_IMM,
    ]);
  });
});
