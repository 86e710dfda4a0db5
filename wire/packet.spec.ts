import { describe, expect, it } from 'vitest';
import { layout } from '../base/layout.ts';
import { ChannelWriter, channelBufferBytes } from '../sim/channel.ts';
import * as packet from './packet.ts';

const record = (words: readonly (readonly [word: number, value: number])[]) => {
  const writer = new ChannelWriter(new SharedArrayBuffer(channelBufferBytes(4096)));
  const offset = writer.append(77, packet.PACKET, 0);
  for (const [word, value] of words) writer.words[(offset >> 2) + word] = value;
  return { writer, bytes: writer.bytes, offset };
};

describe('the record of a packet', () => {
  it('is read as declared, after a write by index', () => {
    const { writer, bytes, offset } = record([
      [packet.WORD_OPCODE, 0x0a],
      [packet.WORD_DESTINATION_QPN, 0x12_3456],
      [packet.WORD_PSN, 0xff_ffff],
      [
        packet.WORD_PACKET_FLAGS,
        packet.FLAG_ACK_REQUEST |
          packet.FLAG_GRH |
          (3 << packet.PAD_SHIFT) |
          (15 << packet.VIRTUAL_LANE_SHIFT) |
          (4130 << packet.PACKET_BYTES_SHIFT),
      ],
      [packet.WORD_RKEY, 0xdead_beef],
      [packet.WORD_DMA_LENGTH, 4096],
      [
        packet.WORD_REQUEST_PKEY,
        0xffff | (5 << packet.SERVICE_LEVEL_SHIFT) | (0xabc << packet.ADDRESS_TOP_SHIFT),
      ],
      [packet.WORD_IMMEDIATE, 0x0102_0304],
      [packet.WORD_PAYLOAD_BYTES, 4096],
      [packet.WORD_LIDS, (0x0007 << 16) | 0xc001],
    ]);
    writer.floats[(offset >> 3) + packet.FLOAT_VIRTUAL_ADDRESS] = 0x7f12_3456_7890;
    expect(packet.requestRecord.decode(bytes, offset)).toEqual({
      arrivalPs: 77,
      recordBytes: 64,
      kind: packet.PACKET,
      opcode: 0x0a,
      destinationQpn: 0x12_3456,
      psn: 0xff_ffff,
      hasAckRequest: 1,
      isSolicited: 0,
      hasGrh: 1,
      isRetransmission: 0,
      isCorrupted: 0,
      isMigrated: 0,
      isCongested: 0,
      isDamagedInside: 0,
      padCount: 3,
      damagePlace: 0,
      virtualLane: 15,
      packetBytes: 4130,
      payloadBytes: 4096,
      sourceLid: 7,
      destinationLid: 0xc001,
      virtualAddress: 0x7f12_3456_7890,
      rKey: 0xdead_beef,
      dmaLength: 4096,
      partitionKey: 0xffff,
      serviceLevel: 5,
      virtualAddressTop: 0xabc,
      immediate: 0x0102_0304,
    });
    const flags = writer.words[(offset >> 2) + packet.WORD_PACKET_FLAGS]!;
    expect([packet.virtualLaneOf(flags), packet.packetBytesIn(flags)]).toEqual([15, 4130]);
  });

  it('IBTA 9.3.5: of a response has the AETH in the word of a request’s P_Key, and the P_Key in the word of the immediate', () => {
    const { bytes, offset } = record([
      [packet.WORD_AETH, (0x60 << 24) | 0x1234],
      [packet.WORD_RESPONSE_PKEY, 0x8001],
    ]);
    expect(packet.responseRecord.decode(bytes, offset)).toMatchObject({
      syndrome: 0x60,
      messageSequenceNumber: 0x1234,
      partitionKey: 0x8001,
    });
  });

  it('IBTA 9.3.2: of a datagram has P_Key, service level, Q_Key and source QPN in the words of the RETH', () => {
    const { bytes, offset } = record([
      [packet.WORD_DATAGRAM_PKEY, (5 << packet.SERVICE_LEVEL_SHIFT) | 0x7fff],
      [packet.WORD_DATAGRAM_QKEY, 0x8001_0000],
      [packet.WORD_DATAGRAM_SOURCE_QPN, 1],
    ]);
    expect(packet.datagramRecord.decode(bytes, offset)).toMatchObject({
      partitionKey: 0x7fff,
      serviceLevel: 5,
      queueKey: 0x8001_0000,
      sourceQpn: 1,
    });
  });

  it('of flow control and of training has words of its own', () => {
    const { bytes, offset } = record([
      [packet.WORD_FC_VIRTUAL_LANE, 1],
      [packet.WORD_FC_TOTAL_BLOCKS_SENT, 100],
      [packet.WORD_FC_CREDIT_LIMIT, 4095],
    ]);
    const decoded = packet.flowControlRecord.decode(bytes, offset);
    expect(decoded).toMatchObject({ virtualLane: 1, totalBlocksSent: 100, creditLimit: 4095 });
    expect(packet.trainingRecord.decode(bytes, offset).step).toBe(1);
  });

  it('may not have two fields in one place', () => {
    const { table, sizeBytes, byteOrder, source } = packet.requestRecord;
    const twice = { ...table, again: table.psn };
    expect(() => layout('twice', { sizeBytes, byteOrder, source }, twice)).toThrow(/already claimed by psn/);
  });
});
