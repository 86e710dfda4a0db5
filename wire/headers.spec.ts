/**
 * The headers in packets from other sources: the specification's sample packet, and captures of Linux' rdma_rxe, whose operands
 * and keys are those of the program that ran (reference/wire/README.md, reference/wire/wt.c).
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bth, deth, extendedHeaders, ICRC_BYTES, lrh, VCRC_BYTES } from './headers.ts';
import { Opcode, packetBytesOf, transportHeaderBytes } from './opcodes.ts';

const FILE_HEADER_BYTES = 24;
const RECORD_HEADER_BYTES = 16;
/** Ethernet, IPv4 and UDP before the BTH of RoCEv2. */
const ROCE_HEADER_BYTES = 14 + 20 + 8;
const BTH_BYTES = 12;

/** The frames of a little-endian pcap file, each without its first `skipped` bytes. */
function framesOf(name: string, skipped: number): Uint8Array[] {
  const bytes = new Uint8Array(readFileSync(new URL(`../reference/wire/${name}`, import.meta.url)));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const frames: Uint8Array[] = [];
  for (let at = FILE_HEADER_BYTES; at < bytes.length; ) {
    const start = at + RECORD_HEADER_BYTES;
    at = start + view.getUint32(at + 8, true);
    frames.push(bytes.slice(start + skipped, at));
  }
  return frames;
}

describe('the headers', () => {
  it('IBTA 7.7, 9.2, 9.3.3: are arranged in a WRITE as in the sample packet of the specification', () => {
    const [packet] = framesOf('ib-ibta-sample-packet.pcap', 0);
    expect(lrh.decode(packet!)).toMatchObject({
      virtualLane: 7,
      serviceLevel: 1,
      linkNextHeader: 2,
      destinationLid: 0x375c,
      packetLength: 14,
      sourceLid: 0x17d2,
    });
    expect(bth.decode(packet!, 8)).toMatchObject({
      opcode: Opcode.RC_RDMA_WRITE_ONLY,
      solicitedEvent: 0,
      migrationRequest: 0,
      padCount: 2,
      transportVersion: 0,
      partitionKey: 0x2487,
      destinationQp: 0x87_b1b3,
      ackRequest: 0,
      psn: 0x0d_ec2a,
    });
    expect(extendedHeaders.RETH.decode(packet!, 8 + BTH_BYTES)).toEqual({
      virtualAddress: 0x0171_0a1c_015d_4002n,
      rKey: 0x38f2_7a05,
      dmaLength: 14,
    });
    expect(packetBytesOf(Opcode.RC_RDMA_WRITE_ONLY, 14, false)).toBe(packet!.length);
    expect(packet!.length - VCRC_BYTES).toBe(4 * 14);
  });

  it('IBTA 9.3.4, 9.3.5: carry operands, results and sequence numbers of atomics', () => {
    const frames = framesOf('rc-atomic-ipv4.pcap', ROCE_HEADER_BYTES);
    const requests = frames.filter((_, index) => index % 2 === 0);
    const operands = requests.map((frame) => extendedHeaders.AtomicETH.decode(frame, BTH_BYTES));
    // fadd:5, cswp and fadd:1 at one address.
    expect(operands.map(({ swapOrAdd, compare }) => [swapOrAdd, compare])).toEqual([
      [5n, 0n],
      [0xa0a1_a2a3_a4a5_a6a7n, 0x1122_3344_5566_7788n],
      [1n, 0n],
    ]);
    expect(new Set(operands.map(({ virtualAddress, rKey }) => `${virtualAddress} ${rKey}`)).size).toBe(1);
    const answers = frames.filter((_, index) => index % 2 === 1);
    // An AETH of four bytes follows the BTH, followed by an AtomicAckETH.
    const at = BTH_BYTES;
    expect(answers.map((frame) => extendedHeaders.AETH.decode(frame, at))).toEqual(
      [1, 2, 3].map((messageSequenceNumber) => ({ syndrome: 0x1f, messageSequenceNumber })),
    );
    const resultAt = at + 4;
    const [first, second, third] = answers.map(
      (frame) => extendedHeaders.AtomicAckETH.decode(frame, resultAt).originalData,
    );
    // The swap finds another value than it compares with.
    expect([second! - first!, third! - second!]).toEqual([5n, 0n]);
    for (const [opcode, frame] of [
      [Opcode.RC_FETCH_ADD, requests[0]!],
      [Opcode.RC_COMPARE_SWAP, requests[1]!],
      [Opcode.RC_ATOMIC_ACKNOWLEDGE, answers[0]!],
    ] as const) {
      expect(bth.decode(frame).opcode).toBe(opcode);
      expect(frame.length).toBe(transportHeaderBytes(opcode) + ICRC_BYTES);
    }
  });

  it('IBTA 9.3.2: carry the Q_Key of a datagram and its source QP', () => {
    const frames = framesOf('ud-wrong-qkey-ipv4.pcap', ROCE_HEADER_BYTES);
    const { destinationQp } = bth.decode(frames[0]!);
    expect(frames.map((frame) => deth.decode(frame, BTH_BYTES).queueKey)).toEqual([0x9999, 0x1234]);
    // Both ends chose the same number.
    expect(frames.map((frame) => deth.decode(frame, BTH_BYTES).sourceQp)).toEqual(
      frames.map(() => destinationQp),
    );
  });
});
