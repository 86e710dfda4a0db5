import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CREDITS_LACK_DATA,
  CREDITS_LACK_HEADERS,
  CREDITS_READY,
  ReceiveCredits,
  TransmitCredits,
} from './credits.ts';

describe('transmit credits', () => {
  it('let a TLP go when header and data are there, and say what is missing', () => {
    const credits = new TransmitCredits(2, 16);
    expect(credits.check(16)).toBe(CREDITS_READY);
    expect(credits.check(17)).toBe(CREDITS_LACK_DATA);
    credits.consume(1);
    expect(credits.check(16)).toBe(CREDITS_LACK_DATA);
    credits.consume(1);
    expect(credits.check(0)).toBe(CREDITS_LACK_HEADERS);
    credits.update(3, 16);
    expect(credits.check(14)).toBe(CREDITS_READY);
    expect(credits.check(15)).toBe(CREDITS_LACK_DATA);
  });

  it('never run out when infinite was advertised', () => {
    const credits = new TransmitCredits(0, 0);
    for (let tlp = 0; tlp < 10_000; tlp++) {
      expect(credits.check(256)).toBe(CREDITS_READY);
      credits.consume(256);
    }
  });
});

describe('receive credits', () => {
  it('are due when a quarter of what was advertised is free', () => {
    const credits = new ReceiveCredits(16, 256, 25, 17);
    for (let tlp = 0; tlp < 4; tlp++) credits.receive(1);
    for (let tlp = 0; tlp < 3; tlp++) expect(credits.free(1)).toBe(false);
    expect(credits.free(1)).toBe(true);
    credits.allocateFreed();
    expect([credits.headersAllocated, credits.dataAllocated]).toEqual([20, 260]);
  });

  it('are due before the transmitter could be left with too few for the largest TLP', () => {
    const credits = new ReceiveCredits(127, 20, 100, 17);
    // 20 - (4 - 1) = 17 stay at the transmitter.
    expect(credits.dataThreshold).toBe(4);
    expect(credits.free(3)).toBe(false);
    expect(credits.free(1)).toBe(true);
  });

  it('see a transmitter that sends without credits', () => {
    const credits = new ReceiveCredits(1, 1, 25, 1);
    expect(credits.receive(0)).toBe(true);
    expect(credits.receive(0)).toBe(false);
    const data = new ReceiveCredits(8, 16, 25, 16);
    expect(data.receive(16)).toBe(true);
    expect(data.receive(1)).toBe(false);
  });
});

describe('both sides together', () => {
  it('agree for ever: what one side sends with credits the other never sees as an overflow', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 127 }),
        fc.integer({ min: 17, max: 2047 }),
        fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 17 })), {
          minLength: 500,
          maxLength: 1500,
        }),
        (headers, data, steps) => {
          const transmit = new TransmitCredits(headers, data);
          const receive = new ReceiveCredits(headers, data, 25, 17);
          const held: number[] = [];
          for (const [isSend, units] of steps) {
            if (isSend && transmit.check(units) === CREDITS_READY) {
              transmit.consume(units);
              expect(receive.receive(units)).toBe(true);
              held.push(units);
              expect(held.length).toBeLessThanOrEqual(headers);
              expect(held.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(data);
            } else if (held.length > 0 && receive.free(held.shift()!)) {
              receive.allocateFreed();
              transmit.update(receive.headersAllocated, receive.dataAllocated);
            }
          }
          while (held.length > 0) {
            if (!receive.free(held.shift()!)) continue;
            receive.allocateFreed();
            transmit.update(receive.headersAllocated, receive.dataAllocated);
          }
          // All given back: the largest TLP can go.
          expect(transmit.check(17)).toBe(CREDITS_READY);
        },
      ),
      { numRuns: 60 },
    );
  });
});
