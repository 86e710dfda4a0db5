import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { creditsOf, dataOf, headersOf, ReceiveCredits, TransmitCredits, tlpCredits } from './flow-control.ts';

describe('transmit credits', () => {
  /** Missing amount, in units that a TLP with this many units of data cannot use; 0 is none. */
  const lacking = (credits: TransmitCredits, dataCredits: number): string => {
    const deficit = credits.deficit(tlpCredits(dataCredits));
    return `${headersOf(deficit) === 0 ? '' : 'header'}${dataOf(deficit) === 0 ? '' : 'data'}`;
  };

  it('PCIe 2.6.1: let a TLP leave if header and data credits are available, and report missing ones', () => {
    const credits = new TransmitCredits(2, 16);
    expect([lacking(credits, 16), lacking(credits, 17)]).toEqual(['', 'data']);
    credits.consume(tlpCredits(1));
    expect(lacking(credits, 16)).toBe('data');
    credits.consume(tlpCredits(1));
    expect([lacking(credits, 0), lacking(credits, 15)]).toEqual(['header', 'headerdata']);
    credits.limit = creditsOf(3, 16);
    expect([lacking(credits, 14), lacking(credits, 15)]).toEqual(['', 'data']);
  });

  it('PCIe 2.6.1: are never exhausted if infinite was advertised', () => {
    const credits = new TransmitCredits(0, 0);
    for (let tlp = 0; tlp < 10_000; tlp++) {
      expect(credits.deficit(tlpCredits(256))).toBe(0);
      credits.consume(tlpCredits(256));
    }
  });
});

describe('receive credits', () => {
  it('are due when a quarter of the advertised ones is free', () => {
    const credits = new ReceiveCredits(16, 256, 25, 17);
    for (let tlp = 0; tlp < 4; tlp++) credits.receive(tlpCredits(1));
    for (let tlp = 0; tlp < 3; tlp++) expect(credits.free(tlpCredits(1))).toBe(false);
    expect(credits.free(tlpCredits(1))).toBe(true);
    credits.allocateFreed();
    expect([headersOf(credits.allocated), dataOf(credits.allocated)]).toEqual([20, 260]);
  });

  it('are due before the transmitter could be left with too few for the largest TLP', () => {
    const credits = new ReceiveCredits(127, 20, 100, 17);
    // Due at 4: 20 - (4 - 1) = 17 stay at the transmitter.
    expect(credits.free(tlpCredits(3))).toBe(false);
    expect(credits.free(tlpCredits(1))).toBe(true);
  });

  it('PCIe 2.6.1: detect a transmitter that sends without credits', () => {
    const credits = new ReceiveCredits(1, 1, 25, 1);
    expect(credits.receive(tlpCredits(0))).toBe(true);
    expect(credits.receive(tlpCredits(0))).toBe(false);
    const data = new ReceiveCredits(8, 16, 25, 16);
    expect(data.receive(tlpCredits(16))).toBe(true);
    expect(data.receive(tlpCredits(1))).toBe(false);
  });
});

describe('both sides together', () => {
  it('PCIe 2.6.1: agree indefinitely: the receiver never sees an overflow by TLPs sent with credits', () => {
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
            if (isSend && transmit.deficit(tlpCredits(units)) === 0) {
              transmit.consume(tlpCredits(units));
              expect(receive.receive(tlpCredits(units))).toBe(true);
              held.push(units);
              expect(receive.heldCount).toBe(held.length);
              expect(held.length).toBeLessThanOrEqual(headers);
              expect(held.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(data);
            } else if (held.length > 0 && receive.free(tlpCredits(held.shift()!))) {
              receive.allocateFreed();
              transmit.limit = receive.allocated;
            }
          }
          while (held.length > 0) {
            if (!receive.free(tlpCredits(held.shift()!))) continue;
            receive.allocateFreed();
            transmit.limit = receive.allocated;
          }
          // All credits returned: the largest TLP can leave.
          expect(transmit.deficit(tlpCredits(17))).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });
});
