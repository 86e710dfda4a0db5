import { describe, expect, it } from 'vitest';
import {
  AethKind,
  ackSyndrome,
  CREDIT_CODE_INVALID,
  creditCodeFor,
  creditCountByCode,
  NakCode,
  nakSyndrome,
  rnrNakSyndrome,
  syndromeKind,
  syndromeValue,
} from './aeth.ts';
import { psnAdd, psnDistance } from './psn.ts';
import { rnrTimerPsByCode } from './rnr-timer.ts';

const MS = 1_000_000_000;

describe('the AETH syndrome', () => {
  it('IBTA 9.7.5.2: spells ACK, RNR NAK and NAK', () => {
    expect(ackSyndrome(CREDIT_CODE_INVALID)).toBe(0x1f);
    expect(rnrNakSyndrome(12)).toBe(0x2c);
    expect(nakSyndrome(NakCode.PSN_SEQUENCE_ERROR)).toBe(0x60);
    expect(nakSyndrome(NakCode.REMOTE_ACCESS_ERROR)).toBe(0x62);
    expect([syndromeKind(0x62), syndromeValue(0x62)]).toEqual([AethKind.NAK, 2]);
    expect([syndromeKind(0x2c), syndromeValue(0x2c)]).toEqual([AethKind.RNR_NAK, 12]);
  });

  it('IBTA 9.7.7.2: has 31 credit codes that double every second step', () => {
    expect(creditCountByCode).toHaveLength(31);
    for (let code = 4; code <= 30; code++) {
      expect(creditCountByCode[code]).toBe(2 * creditCountByCode[code - 2]!);
    }
    expect(creditCountByCode[30]).toBe(32768);
  });

  it('never promises more messages than have room', () => {
    for (const count of [0, 1, 4, 5, 6, 7, 8, 100, 32767, 32768, 1_000_000]) {
      const code = creditCodeFor(count);
      expect(creditCountByCode[code]).toBeLessThanOrEqual(count);
      if (code < 30) expect(creditCountByCode[code + 1]).toBeGreaterThan(count);
    }
  });

  it('IBTA 9.7.5.2.8: has the RNR NAK timers from 0.01 ms to 655.36 ms', () => {
    expect(rnrTimerPsByCode).toHaveLength(32);
    expect(rnrTimerPsByCode[0]).toBe(655.36 * MS);
    expect(rnrTimerPsByCode[1]).toBe(0.01 * MS);
    expect(rnrTimerPsByCode[12]).toBe(0.64 * MS);
    expect(rnrTimerPsByCode[14]).toBe(1.28 * MS);
    expect(rnrTimerPsByCode[31]).toBe(491.52 * MS);
  });
});

describe('packet sequence numbers', () => {
  it('IBTA 9.2: wrap at 2^24', () => {
    expect(psnAdd(0xff_ffff, 1)).toBe(0);
    expect(psnAdd(0, -1)).toBe(0xff_ffff);
  });

  it('IBTA 9.7: are ahead for less than half of the circle, and older for the rest', () => {
    expect(psnDistance(5, 3)).toBe(2);
    expect(psnDistance(1, 0xff_ffff)).toBe(2);
    expect(psnDistance(0xff_ffff, 1)).toBe(-2);
    expect(psnDistance(0x7f_ffff, 0)).toBe(0x7f_ffff);
    expect(psnDistance(0x80_0000, 0)).toBe(-0x80_0000);
  });
});
