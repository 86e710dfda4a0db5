import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../base/parameter.ts';
import { type WireConfig, wireParameters } from './parameters.ts';
import { receiveBufferBytesOf, takenBytesMax, wireChannelBytes } from './wire-sizing.ts';

const configOf = (set: Partial<WireConfig>): WireConfig => ({ ...defaultsOf(wireParameters), ...set });

describe('the receive buffer of a port', () => {
  it('IBTA 7.9.4: is the configured one up to 4X QDR, and grows with the rate of a faster link up to the limit of credits', () => {
    const bytesAt = (speed: WireConfig['speed'], lanes: WireConfig['lanes'] = '4') =>
      receiveBufferBytesOf(configOf({ speed, lanes }));
    expect(bytesAt('SDR')).toBe(16_384);
    expect(bytesAt('QDR')).toBe(16_384);
    // 54.54 and 100 Gb/s of data, compared with 32 (IBTA volume 2, chapters 5 and 6).
    expect(bytesAt('FDR')).toBe(Math.floor((16_384 * 250 * 3) / 440));
    expect(bytesAt('EDR')).toBe(51_200);
    expect(bytesAt('QDR', '8')).toBe(32_768);
    // 2048 blocks of 64 bytes (IBTA volume 1, 7.9.4).
    expect(bytesAt('EDR', '12')).toBe(131_072);
  });

  it('leaves room in the channel for everything that credits allow in flight, for any held packets', () => {
    for (const speed of ['SDR', 'QDR', 'FDR', 'EDR'] as const)
      for (const receiveBufferBytes of [8448, 16_384, 131_072]) {
        const config = configOf({ speed, receiveBufferBytes, transmitAheadBytes: 0, cableMetres: 0 });
        const capacity = wireChannelBytes(config);
        // A block of 64 bytes of credit needs at least its header more as a record.
        expect(capacity - takenBytesMax(config, capacity)).toBeGreaterThan(2 * receiveBufferBytesOf(config));
        expect(takenBytesMax(config, capacity)).toBeGreaterThan(2 * receiveBufferBytesOf(config));
      }
  });
});
