import { describe, expect, it } from 'vitest';
import { ChannelReader, ChannelWriter, channelBufferBytes } from '../../../sim/channel.ts';
import { RecordMemory } from '../link/record-memory.ts';
import {
  COMPLETION_DATA,
  descriptorOf,
  FLAG_RELAXED_ORDERING,
  FLAG_STATUS_SHIFT,
  STATUS_ABORT,
  tagOf,
  tlpRecord,
  trafficClassOf,
  UPDATE_FC,
  updateFcRecord,
  WORD_AUX,
  WORD_BYTE_COUNT,
  WORD_FC_FLOW,
  WORD_FC_LIMIT,
} from './tlp.ts';

const channel = () => {
  const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
  return { writer: new ChannelWriter(buffer), reader: new ChannelReader(buffer) };
};

describe('the record of a TLP', () => {
  it('is read as declared, after a write by index', () => {
    const { writer, reader } = channel();
    writer.append(1_000, UPDATE_FC, 0);
    const offset = writer.append(123_456.5, COMPLETION_DATA, 20);
    writer.publish(0);
    reader.refresh();
    const memory = new RecordMemory(writer.bytes);
    const flags = FLAG_RELAXED_ORDERING | (STATUS_ABORT << FLAG_STATUS_SHIFT);
    memory.describe(offset, 0x12_3456_7890, 20, flags, descriptorOf(0x0100, 0xfe, 7));
    memory.set(offset, WORD_BYTE_COUNT, 84);
    memory.set(offset, WORD_AUX, 0x0208);
    memory.writeReference(offset, 0x4000, 9);
    expect(tlpRecord.decode(reader.bytes, offset)).toEqual({
      arrivalPs: 123_456.5,
      // 64 and 20 bytes, in units of 16.
      recordBytes: 96,
      kind: COMPLETION_DATA,
      isPoisoned: 0,
      isRelaxedOrdering: 1,
      isNoSnoop: 0,
      isPlacedEarly: 0,
      isReference: 0,
      status: STATUS_ABORT,
      heldCredits: 0,
      requesterId: 0x0100,
      tag: 0xfe,
      trafficClass: 7,
      address: 0x12_3456_7890,
      lengthBytes: 20,
      byteCount: 84,
      data: 0,
      aux: 0x0208,
      referencedOffset: 0x4000,
      reference: 9,
    });
    expect(tlpRecord.format(reader.bytes, offset)).toContain('kind=CplD (3)');
    expect(tlpRecord.format(reader.bytes, offset)).toContain('status=abort (4)');
  });

  it('PCIe 2.2.6: has a descriptor of 16, 8 and 8 bits', () => {
    const descriptor = descriptorOf(0xffff, 0xa5, 0x5a);
    expect(descriptor >>> 0).toBe(0xffff_a55a);
    expect([descriptor >>> 16, tagOf(descriptor), trafficClassOf(descriptor)]).toEqual([0xffff, 0xa5, 0x5a]);
  });

  it('of an UpdateFC has a flow and its limit', () => {
    const { writer } = channel();
    const offset = writer.append(5, UPDATE_FC, 0);
    writer.words[(offset >> 2) + WORD_FC_FLOW] = 2;
    writer.words[(offset >> 2) + WORD_FC_LIMIT] = 0x0123_4567;
    const decoded = updateFcRecord.decode(writer.bytes, offset);
    expect(decoded).toEqual({ arrivalPs: 5, recordBytes: 64, kind: UPDATE_FC, flow: 2, limit: 0x0123_4567 });
  });
});
