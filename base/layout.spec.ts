import { BufferReader } from 'typed-binary';
import { describe, expect, test } from 'vitest';
import { DeclarationError, FieldValueError } from './assert.ts';
import { fromHex, toHex, viewOf } from './bytes.ts';
import { layout } from './layout.ts';
import {
  aligned,
  array,
  bits8,
  bits16,
  bits32,
  bits64,
  bytes,
  f64,
  joined,
  named,
  nested,
  notModelled,
  reserved,
  u8,
  u16,
  u32,
  u64,
} from './layout-field.ts';

const big16 = { sizeBytes: 16, byteOrder: 'big', source: 'test' } as const;
const little16 = { ...big16, byteOrder: 'little' } as const;

const inner = layout('inner', { ...big16, sizeBytes: 4 }, { kind: bits8(0x00, 7, 4), count: u16(0x02) });

const sample = layout(
  'sample',
  { ...big16, sizeBytes: 0x30 },
  {
    state: named(bits32(0x00, 31, 28), { RST: 0, RTS: 3 }),
    number: bits32(0x00, 23, 0),
    tableAddress: joined(u8(0x07), aligned(bits32(0x08, 31, 3)), 'high byte apart'),
    pageAddress: aligned(bits64(0x10, 63, 12)),
    logSize: bits8(0x17, 4, 0),
    address: u64(0x18),
    guid: bytes(0x20, 4),
    inner: nested(0x24, inner),
    shorts: array(u16(0x28), 2),
    hint: notModelled(bits16(0x2c, 15, 8)),
    zero: reserved(bits16(0x2c, 7, 0)),
  },
);

describe('a layout', () => {
  test('encodes literal bytes in its declared byte order', () => {
    const encoded = sample.encode({
      state: 3,
      number: 0x209,
      tableAddress: 0xff_0000_0088,
      pageAddress: 0x1234_5678_9000n,
      logSize: 6,
      address: 0x0102_0304_0506_0708n,
      guid: fromHex('cafe0001'),
      inner: { kind: 0xa, count: 0x1234 },
      shorts: [1, 2],
      hint: 0x7f,
    });
    expect(toHex(encoded)).toBe(
      '30000209' +
        '000000ff' +
        '00000088' +
        '00000000' +
        '0000123456789006' +
        '0102030405060708' +
        'cafe0001' +
        'a0001234' +
        '00010002' +
        '7f000000',
    );
  });

  test('leaves fields without a value zero', () => {
    expect(sample.encode({ number: 1 })).toEqual(fromHex('00000001', 0x30));
  });

  test('reads a little-endian table from the low byte up', () => {
    const little = layout('little', little16, {
      low: u16(0),
      word: u32(4),
      wide: u64(8),
      top: bits32(0, 31, 24),
    });
    const memory = fromHex('0102000304050607' + '08090a0b0c0d0e0f');
    const decoded = { low: 0x0201, word: 0x07060504, wide: 0x0f0e0d0c0b0a0908n, top: 3 };
    expect(little.decode(memory)).toEqual(decoded);
    expect(little.fields.wide.get(viewOf(memory), 0)).toBe(decoded.wide);
    expect(little.encode(decoded)).toEqual(memory);
  });

  test('decodes at an offset, and copies byte fields', () => {
    const memory = new Uint8Array(0x40);
    sample.encodeInto({ guid: fromHex('00000001') }, memory, 0x10);
    const decoded = sample.decode(memory, 0x10);
    memory.fill(0xff);
    expect(decoded.guid).toEqual(fromHex('00000001'));
  });

  test('works on shared memory', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(0x30));
    sample.encodeInto({ number: 0x4711, guid: fromHex('01020304') }, shared);
    expect(sample.decode(shared).number).toBe(0x4711);
    expect(sample.fields.guid.get(viewOf(shared), 0)[3]).toBe(4);
  });

  test('prints values with the names of their tables, and marks unmodelled fields', () => {
    const lines = sample.format(sample.encode({ state: 3, hint: 1, inner: { count: 0x10 } }));
    expect(lines).toContain('state=RTS (3)');
    expect(lines).toContain('hint=1 (not modelled)');
    expect(lines).toContain('inner.count=0x10');
    expect(lines).toContain('shorts[1]=0');
  });

  test('documents every field with its offset', () => {
    const row = sample.docRows().find(({ name }) => name === 'tableAddress');
    expect(row).toMatchObject({ offset: '0x07, 0x08', bits: 'u8, [31:3]', meaning: 'high byte apart' });
  });

  test('holds a float64 in memory format', () => {
    const record = layout('record', little16, { count: u32(0x00), instantPs: f64(0x08, 'an instant') });
    const values = { count: 3, instantPs: 1_234_567.5 };
    const memory = record.encode(values);
    expect(new Float64Array(memory.buffer)[1]).toBe(1_234_567.5);
    expect(record.decode(memory)).toEqual(values);
    record.fields.instantPs.set(viewOf(memory), 0, Number.POSITIVE_INFINITY);
    expect(record.fields.instantPs.get(viewOf(memory), 0)).toBe(Number.POSITIVE_INFINITY);
    expect(record.format(memory)).toEqual(['count=3', 'instantPs=Infinity']);
    expect(record.docRows()[1]).toMatchObject({ offset: '0x08', bits: 'f64' });
    expect(() => layout('broken', little16, { instantPs: f64(0x08), half: u32(0x0c) })).toThrow(
      DeclarationError,
    );
  });

  test('insists on its byte order when its schema reads a stream', () => {
    const reader = new BufferReader(new ArrayBuffer(0x30), { endianness: 'little' });
    expect(() => sample.schema.read(reader)).toThrow(FieldValueError);
    expect(sample.schema.measure(sample.decode(new Uint8Array(0x30))).size).toBe(0x30);
  });
});

describe('accessors', () => {
  test('set one field and leave its neighbours alone, truncating like a register', () => {
    const view = viewOf(new Uint8Array(0x30).fill(0xff));
    sample.fields.number.set(view, 0, 0x5_0000_0001);
    expect(view.getUint32(0)).toBe(0xff00_0001);
    sample.fields.pageAddress.set(view, 0, 0x1000n);
    expect(view.getBigUint64(0x10)).toBe(0x1fffn);
  });

  test('read a 64-bit field as bigint, as number and as words', () => {
    const view = viewOf(sample.encode({ pageAddress: 0x12_3456_7000n, logSize: 5 }));
    expect(sample.fields.pageAddress.get(view, 0)).toBe(0x12_3456_7000n);
    expect(sample.fields.pageAddress.getNumber(view, 0)).toBe(0x12_3456_7000);
    expect(sample.fields.pageAddress.getHighWord(view, 0)).toBe(0x12);
    expect(sample.fields.pageAddress.getLowWord(view, 0)).toBe(0x3456_7000);
    sample.fields.pageAddress.setNumber(view, 0, 0x1f_ffff_f000);
    expect(sample.fields.pageAddress.get(view, 0)).toBe(0x1f_ffff_f000n);
    expect(sample.fields.logSize.get(view, 0)).toBe(5);
  });

  test('give hot callers the constants to inline', () => {
    const { wordOffset, shift, mask } = sample.fields.state;
    expect({ wordOffset, shift, mask }).toEqual({ wordOffset: 0, shift: 28, mask: 0xf000_0000 });
  });

  test('reach into nested layouts and array elements', () => {
    const view = viewOf(sample.encode({ inner: { kind: 7 }, shorts: [1, 0xbeef] }));
    expect(sample.fields.inner.fields.kind.get(view, 0)).toBe(7);
    const { element, strideBytes, count } = sample.fields.shorts;
    expect(count).toBe(2);
    expect(element.get(view, strideBytes)).toBe(0xbeef);
  });
});

describe('encode rejects', () => {
  test.each([
    ['a number wider than its field', { number: 0x100_0000 }],
    ['a negative number', { number: -1 }],
    ['a fraction', { number: 1.5 }],
    ['a bigint wider than its field', { address: 1n << 64n }],
    ['an address that is not aligned', { pageAddress: 0x1001n }],
    ['a split address that is not aligned', { tableAddress: 4 }],
    ['bytes of the wrong length', { guid: new Uint8Array(3) }],
    ['too many elements', { shorts: [1, 2, 3] }],
    ['a nested value out of range', { inner: { kind: 16 } }],
  ])('%s', (_, values) => {
    expect(() => sample.encode(values)).toThrow(FieldValueError);
  });

  test('names the field, the value and the range', () => {
    expect(() => sample.encode({ inner: { kind: 16 } })).toThrow(
      'sample.inner.kind is 16, expected an integer from 0 to 0xf in steps of 1',
    );
  });

  test('an unknown or a reserved name', () => {
    const unknown: Record<string, number> = { colour: 1 };
    const reservedName: Record<string, number> = { zero: 0 };
    expect(() => sample.encode(unknown)).toThrow(FieldValueError);
    expect(() => sample.encode(reservedName)).toThrow(FieldValueError);
  });

  test('a buffer without room', () => {
    expect(() => sample.encodeInto({}, new Uint8Array(0x30), 1)).toThrow(FieldValueError);
    expect(() => sample.decode(new Uint8Array(0x2f))).toThrow(FieldValueError);
  });
});

describe('loading a table rejects', () => {
  test.each([
    ['two fields on one bit', { a: bits32(0x00, 7, 0), b: bits8(0x03, 7, 7) }],
    ['the same field twice', { a: u32(0x04), b: u32(0x04) }],
    ['a field over the end', { a: u32(0x0d) }],
    ['bytes over the end', { a: bytes(0x0c, 5) }],
    ['a bit beyond its unit', { a: bits8(0x00, 8, 0) }],
    ['bits upside down', { a: bits32(0x00, 3, 4) }],
    ['a 64-bit range that a dword would hold', { a: bits64(0x00, 31, 0) }],
    ['a number of more than 53 bits', { a: joined(u32(0x00), u32(0x04)) }],
    ['an array that overlaps itself', { a: array(u32(0x00), 2, '', 2) }],
    ['an array over the end', { a: array(u32(0x00), 5) }],
    ['a reserved field on a used bit', { a: u8(0x00), b: reserved(bits8(0x00, 0, 0)) }],
    ['a nested layout over the end', { a: nested(0x0e, inner) }],
    ['a byte field inside a shared unit', { a: bits32(0x00, 7, 0), b: bytes(0x00, 2) }],
  ])('%s', (_, table) => {
    expect(() => layout('broken', big16, table)).toThrow(DeclarationError);
  });

  test('a nested layout of the other byte order', () => {
    expect(() => layout('broken', little16, { a: nested(0x00, inner) })).toThrow(DeclarationError);
  });

  test('and says which bit of which field', () => {
    const table = { a: bits32(0x00, 7, 0), b: bits8(0x03, 7, 7) };
    expect(() => layout('broken', big16, table)).toThrow(
      'broken.b is "bit 7 of byte 0x3", expected a bit not already claimed by a',
    );
  });
});
