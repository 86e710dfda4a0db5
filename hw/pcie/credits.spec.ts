import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CREDITS_LACK_DATA,
  CREDITS_LACK_HEADERS,
  CREDITS_READY,
  ReceiveCredits,
  TransmitCredits,
} from './credits.ts';
import { COMPLETION_FLOW, NON_POSTED, POSTED } from './tlp.ts';

describe('transmit credits', () => {
  it('let a TLP go when header and data are there, and say what is missing', () => {
    const credits = new TransmitCredits();
    credits.initialise(POSTED, 2, 16);
    expect(credits.check(POSTED, 16)).toBe(CREDITS_READY);
    expect(credits.check(POSTED, 17)).toBe(CREDITS_LACK_DATA);
    credits.consume(POSTED, 1);
    expect(credits.check(POSTED, 16)).toBe(CREDITS_LACK_DATA);
    credits.consume(POSTED, 1);
    expect(credits.check(POSTED, 0)).toBe(CREDITS_LACK_HEADERS);
    credits.update(POSTED, 3, 16);
    expect(credits.check(POSTED, 14)).toBe(CREDITS_READY);
    expect(credits.check(POSTED, 15)).toBe(CREDITS_LACK_DATA);
  });

  it('never run out when infinite was advertised', () => {
    const credits = new TransmitCredits();
    credits.initialise(COMPLETION_FLOW, 0, 0);
    for (let tlp = 0; tlp < 10_000; tlp++) {
      expect(credits.check(COMPLETION_FLOW, 256)).toBe(CREDITS_READY);
      credits.consume(COMPLETION_FLOW, 256);
    }
    expect(credits.available(COMPLETION_FLOW * 2)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('receive credits', () => {
  it('are due when a quarter of what was advertised is free', () => {
    const credits = new ReceiveCredits();
    credits.initialise(POSTED, 16, 256, 25, 17);
    for (let tlp = 0; tlp < 4; tlp++) credits.receive(POSTED, 1);
    for (let tlp = 0; tlp < 3; tlp++) expect(credits.free(POSTED, 1)).toBe(false);
    expect(credits.free(POSTED, 1)).toBe(true);
    credits.allocateFreed(POSTED);
    expect([credits.allocated[0], credits.allocated[1]]).toEqual([20, 260]);
  });

  it('are due before the transmitter could be left with too few for the largest TLP', () => {
    const credits = new ReceiveCredits();
    credits.initialise(POSTED, 127, 20, 100, 17);
    // 20 - (4 - 1) = 17 stay at the transmitter.
    expect(credits.threshold[1]).toBe(4);
    expect(credits.free(POSTED, 3)).toBe(false);
    expect(credits.free(POSTED, 1)).toBe(true);
  });

  it('see a transmitter that sends without credits', () => {
    const credits = new ReceiveCredits();
    credits.initialise(NON_POSTED, 1, 1, 25, 1);
    expect(credits.receive(NON_POSTED, 0)).toBe(true);
    expect(credits.receive(NON_POSTED, 0)).toBe(false);
    const data = new ReceiveCredits();
    data.initialise(POSTED, 8, 16, 25, 16);
    expect(data.receive(POSTED, 16)).toBe(true);
    expect(data.receive(POSTED, 1)).toBe(false);
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
          const transmit = new TransmitCredits();
          const receive = new ReceiveCredits();
          transmit.initialise(POSTED, headers, data);
          receive.initialise(POSTED, headers, data, 25, 17);
          const held: number[] = [];
          for (const [isSend, units] of steps) {
            if (isSend && transmit.check(POSTED, units) === CREDITS_READY) {
              transmit.consume(POSTED, units);
              expect(receive.receive(POSTED, units)).toBe(true);
              held.push(units);
              expect(held.length).toBeLessThanOrEqual(headers);
              expect(held.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(data);
            } else if (held.length > 0 && receive.free(POSTED, held.shift()!)) {
              receive.allocateFreed(POSTED);
              transmit.update(POSTED, receive.allocated[0]!, receive.allocated[1]!);
            }
          }
          while (held.length > 0) {
            if (!receive.free(POSTED, held.shift()!)) continue;
            receive.allocateFreed(POSTED);
            transmit.update(POSTED, receive.allocated[0]!, receive.allocated[1]!);
          }
          // All given back: the largest TLP can go.
          expect(transmit.check(POSTED, 17)).toBe(CREDITS_READY);
        },
      ),
      { numRuns: 60 },
    );
  });
});
