/** Bar map, keys, ICM, capability bits and the inline rule: values that are computed instead of laid out. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bar0,
  blueFlameOffset,
  cqArmOffset,
  eqDoorbellOffset,
  eqNumberOfDoorbell,
  isBlueFlame,
  isEqDoorbell,
  offsetInBlueFlameHalf,
  sendDoorbellOffset,
  uarPageBytes,
  uarPageOf,
} from './bar-map.ts';
import {
  CapabilityFlag,
  capabilityFlagsOf,
  ExtendedFlag,
  flagsOf,
  hasCapability,
  hasFlag,
  MemoryManagementFlag,
} from './capability-flags.ts';
import { CmptType, cmptOffset } from './icm.ts';
import { indexFormOfKey, keyOfIndexForm, mptIndexOfKey, variantOfKey, withVariant } from './keys.ts';
import { defaultMcgModifier, mcgMembersMax } from './mcg.ts';
import { boardIdBytes, boardIdText } from './query-adapter.ts';
import { inlineBytes, inlinePieces } from './wqe-inline.ts';
import { WqeOpcode, wqeOpcodeRows } from './wqe-opcodes.ts';

describe('the bar map', () => {
  test('puts the registers where the sheet says', () => {
    const { hcr, owner, reset, semaphore, msixTable } = bar0.registers;
    const offsets = [hcr, owner, reset, semaphore, msixTable].map(({ offset }) => offset);
    expect(offsets).toEqual([0x80680, 0x8069c, 0xf0010, 0xf03fc, 0x7c000]);
    expect(bar0.nameAt(0x80698)).toBe('hcr');
    expect(bar0.nameAt(0x0)).toBeUndefined();
  });

  test('finds doorbells in UAR pages', () => {
    expect(sendDoorbellOffset(132)).toBe(132 * 4096 + 0x14);
    expect(cqArmOffset(1)).toBe(0x1020);
    expect(eqDoorbellOffset(34)).toBe(8 * 4096 + 0x810); // EQN 34 is the third of page 8
    expect(eqNumberOfDoorbell(8, 0x810)).toBe(34);
    expect([0x7f8, 0x800, 0x804, 0x818, 0x820].map(isEqDoorbell)).toEqual([false, true, false, true, false]);
  });

  test('finds BlueFlame registers after the UAR area', () => {
    const geometry = { uarAreaBytes: 0x40_0000, registerBytes: 512, registersPerPage: 8 };
    const offset = blueFlameOffset(geometry, 3, 2, 1);
    expect(offset).toBe(0x40_0000 + 3 * uarPageBytes + 2 * 512 + 256);
    expect([isBlueFlame(geometry, offset), isBlueFlame(geometry, offset - 0x40_0000)]).toEqual([true, false]);
    expect(uarPageOf(geometry, offset)).toBe(3);
    expect(uarPageOf(geometry, sendDoorbellOffset(3))).toBe(3);
    expect(offsetInBlueFlameHalf(geometry, offset + 8)).toBe(8);
  });
});

describe('keys', () => {
  test('rotate in both directions', () => {
    expect(keyOfIndexForm(0x0010_0010)).toBe(0x1000_1000); // an entry and its key in the captures
    fc.assert(fc.property(fc.nat(0xffff_ffff), (key) => keyOfIndexForm(indexFormOfKey(key)) === key >>> 0));
  });

  test('find the slot and separate the variant', () => {
    expect(mptIndexOfKey(0x8000_1103, 19)).toBe(0x11);
    expect(variantOfKey(0x1103)).toBe(3);
    expect(withVariant(0xffff_ff03, 0x104)).toBe(0xffff_ff04);
  });
});

test('capability bits beyond 32 are kept exactly', () => {
  const flags = capabilityFlagsOf(CapabilityFlag.RC, CapabilityFlag.PORT_MNG_CHG_EV);
  expect(flags).toBe((1n << 59n) | 1n);
  expect([hasCapability(flags, CapabilityFlag.RC), hasCapability(flags, CapabilityFlag.UD)]).toEqual([
    true,
    false,
  ]);
  const word = flagsOf(MemoryManagementFlag.LOCAL_INV, ExtendedFlag.FLOWSTATS_EN);
  expect(word).toBe((1 << 6) | (1 << 28));
  expect(hasFlag(word, MemoryManagementFlag.LOCAL_INV)).toBe(true);
});

test('the cMPT table is four arrays of 2^24 entries', () => {
  expect(cmptOffset(CmptType.EQ, 1, 64)).toBe(3 * 2 ** 30 + 64); // 2^24 entries × 64 bytes = 1 GiB each
});

test('an MCG entry of 1 KiB holds 248 members', () => {
  expect(mcgMembersMax(10)).toBe(248);
  expect(defaultMcgModifier(2, 1)).toBe(0x2_0002);
});

test('a board id is stored with each group of four reversed', () => {
  expect(boardIdText(boardIdBytes('MT_1090120019'))).toBe('MT_1090120019');
  expect(new TextDecoder().decode(boardIdBytes('MT_1090120019').slice(0, 4))).toBe('1_TM');
});

describe('inline data', () => {
  test.each([
    [0x20, 0, []],
    [0x20, 28, [28]],
    [0x20, 29, [28, 1]],
    [0x20, 200, [28, 60, 60, 52]],
    [0x10, 44, [44]],
    [0x10, 45, [44, 1]],
    [0x40, 60, [60]],
  ])('from 0x%s, %i bytes are cut into %j', (start, count, pieces) => {
    expect(inlinePieces(start, count).map(({ byteCount }) => byteCount)).toEqual(pieces);
  });

  test('never crosses a 64-byte boundary, loses nothing, and ends on a unit', () => {
    const starts = fc.integer({ min: 1, max: 10 }).map((units) => units * 16);
    fc.assert(
      fc.property(starts, fc.nat(900), (start, count) => {
        const pieces = inlinePieces(start, count);
        for (const { headerOffset, byteCount } of pieces) {
          expect(Math.floor(headerOffset / 64)).toBe(Math.floor((headerOffset + 3 + byteCount) / 64));
        }
        expect(pieces.reduce((sum, { byteCount }) => sum + byteCount, 0)).toBe(count);
        expect((start + inlineBytes(start, count)) % 16).toBe(0);
      }),
    );
  });
});

describe('the opcode table', () => {
  test('has a row for each opcode except CONFIG', () => {
    const names = wqeOpcodeRows.flatMap((row) => (row === undefined ? [] : [row.name]));
    expect(new Set(names)).toEqual(new Set(Object.keys(WqeOpcode).filter((name) => name !== 'CONFIG')));
    expect(wqeOpcodeRows[WqeOpcode.CONFIG]).toBeUndefined();
  });

  test('gives the datagram segment to the sends of UD only', () => {
    const withDatagram = wqeOpcodeRows.flatMap((row) => (row?.takesDatagram ? [row.name] : []));
    expect(withDatagram).toEqual(['SEND', 'SEND_IMM', 'LSO']);
  });
});
