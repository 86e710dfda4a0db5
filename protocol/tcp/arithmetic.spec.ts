import { expect, test } from 'vitest';
import { Congestion } from './congestion.ts';
import { RoundTrip } from './round-trip.ts';
import { isAfter, isBefore, sequenceAdd, sequenceDistance } from './sequence.ts';

test('sequence numbers wrap', () => {
  expect(sequenceAdd(0xffff_fff0, 0x20)).toBe(0x10);
  expect(sequenceDistance(0x10, 0xffff_fff0)).toBe(0x20);
  expect([isBefore(0xffff_fff0, 0x10), isAfter(0xffff_fff0, 0x10)]).toEqual([true, false]);
});

test('the retransmission time is that of RFC 6298', () => {
  const roundTrip = new RoundTrip({ initialPs: 1000, minPs: 1, maxPs: 1e9 });
  expect(roundTrip.timeoutPs).toBe(1000);
  roundTrip.sample(800);
  // SRTT = R, RTTVAR = R / 2: 800 + 4 · 400.
  expect(roundTrip.timeoutPs).toBe(2400);
  roundTrip.sample(1600);
  // RTTVAR = 3/4 · 400 + 1/4 · 800, SRTT = 7/8 · 800 + 1/8 · 1600.
  expect(roundTrip.timeoutPs).toBe(900 + 4 * 500);
  roundTrip.backoff = 2;
  expect(roundTrip.timeoutPs).toBe(4 * 2900);
  // A measurement ends the backoff: RTTVAR = 3/4 · 500 + 1/4 · 0.
  roundTrip.sample(900);
  expect(roundTrip.timeoutPs).toBe(900 + 4 * 375);
});

test('the congestion window doubles a round trip, halves at a loss, and then grows by one segment a round trip', () => {
  const congestion = new Congestion(1000, 10);
  for (let ack = 1; ack <= 10; ack++) congestion.acknowledged(1000, ack * 1000);
  expect(congestion.windowBytes).toBe(20_000);
  expect(congestion.lost(20_000, 30_000, 3)).toBe(true);
  expect(congestion.lost(20_000, 30_000, 3)).toBe(false);
  expect(congestion.windowBytes).toBe(13_000);
  congestion.duplicate();
  expect(congestion.windowBytes).toBe(14_000);
  // A partial acknowledgement triggers the next retransmission (RFC 6582).
  expect(congestion.acknowledged(2000, 12_000)).toBe(true);
  expect(congestion.acknowledged(18_000, 30_000)).toBe(false);
  expect(congestion.windowBytes).toBe(10_000);
  for (let ack = 0; ack < 10; ack++) congestion.acknowledged(1000, 31_000 + ack * 1000);
  expect(congestion.windowBytes).toBeGreaterThan(10_900);
  expect(congestion.windowBytes).toBeLessThan(11_100);
  congestion.timedOut(11_000, 60_000, true);
  expect([congestion.windowBytes, congestion.thresholdBytes]).toEqual([1000, 5500]);
});

test('RFC 5681, 3.1: the threshold is of the first time-out of a segment, not of those of its retransmissions', () => {
  const congestion = new Congestion(1000, 10);
  congestion.timedOut(20_000, 60_000, true);
  congestion.timedOut(1000, 60_000, false);
  expect([congestion.windowBytes, congestion.thresholdBytes]).toEqual([1000, 10_000]);
});

test('RFC 6582, 3.2: after a time-out no recovery begins until all that had been sent is acknowledged', () => {
  const congestion = new Congestion(1000, 10);
  congestion.timedOut(20_000, 60_000, true);
  expect(congestion.lost(3000, 60_000, 3)).toBe(false);
  congestion.acknowledged(1000, 59_000);
  expect(congestion.lost(3000, 60_000, 3)).toBe(false);
  congestion.acknowledged(1000, 60_000);
  expect(congestion.lost(8000, 70_000, 3)).toBe(true);
});
