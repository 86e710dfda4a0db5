import { describe, expect, it } from 'vitest';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_STATUS_SHIFT,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  tlpRecord,
  WORD_FLAGS,
} from './tlp.ts';
import { tlpHeaderOf } from './tlp-header.ts';

interface Fields {
  readonly kind: number;
  readonly address?: number;
  readonly lengthBytes?: number;
  readonly flags?: number;
  readonly tag?: number;
  readonly requesterId?: number;
  readonly byteCount?: number;
  readonly aux?: number;
}

function headerOf({ flags = 0, ...fields }: Fields): string[] {
  const bytes = tlpRecord.encode(fields);
  new Int32Array(bytes.buffer)[WORD_FLAGS] = flags;
  return tlpHeaderOf({ bytes }, 0).map((dword) => dword.toString(16).padStart(8, '0'));
}

describe('the header of a TLP', () => {
  it('PCIe 2.2.7: is 3 dwords for a read below 4 GiB, with byte enables for the bytes asked for', () => {
    // MRd32; 5 bytes at 0x1002 touch two dwords: first enables c, last 7.
    expect(
      headerOf({ kind: MEMORY_READ, address: 0x1002, lengthBytes: 5, tag: 0x42, requesterId: 0x0008 }),
    ).toEqual(['00000002', '0008427c', '00001000', '00000000']);
  });

  it('PCIe 2.2.1: is 4 dwords for a write above 4 GiB, with the attributes and the poisoned bit', () => {
    // EP, and both attributes.
    const flags = 0b111;
    // MWr64: Fmt 3; EP bit 14, Attr 3; 64 bytes are 16 dwords.
    expect(headerOf({ kind: MEMORY_WRITE, address: 0x8_1234_5678, lengthBytes: 64, flags })).toEqual([
      '60007010',
      '000000ff',
      '00000008',
      '12345678',
    ]);
  });

  it('PCIe 2.2.7: names target and register of a configuration request', () => {
    expect(
      headerOf({ kind: CONFIG_READ, address: 0x154, lengthBytes: 4, aux: 0x0100, tag: 7, requesterId: 8 }),
    ).toEqual(['04000001', '0008070f', '01000154', '00000000']);
    expect(headerOf({ kind: CONFIG_WRITE, address: 0x06, lengthBytes: 2, aux: 0x0100 })[1]).toBe('0000000c');
  });

  it('PCIe 2.2.9: carries status, byte count and lower address of a completion', () => {
    const common = { tag: 9, requesterId: 0x0100, aux: 0x0008, byteCount: 128, address: 0x40 };
    expect(headerOf({ kind: COMPLETION_DATA, lengthBytes: 64, ...common })).toEqual([
      '4a000010',
      '00080080',
      '01000940',
      '00000000',
    ]);
    const flags = 4 << FLAG_STATUS_SHIFT;
    expect(headerOf({ kind: COMPLETION, flags, ...common })).toEqual([
      '0a000000',
      '00088080',
      '01000940',
      '00000000',
    ]);
  });

  it('PCIe 2.2.8: carries the code of a message', () => {
    expect(headerOf({ kind: MESSAGE, aux: 0x20, requesterId: 0x0100 }).slice(0, 2)).toEqual([
      '34000000',
      '01000020',
    ]);
  });
});
