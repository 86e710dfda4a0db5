import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_ROOM, PacketBuffer } from './packet-buffer.ts';

describe('the packet buffer', () => {
  it('keeps frames in order, separate, each in one piece within its half', () => {
    const steps = fc.array(
      fc.record({ isPut: fc.boolean(), bytes: fc.integer({ min: 1, max: 1514 }), spare: fc.nat(500) }),
      {
        maxLength: 300,
      },
    );
    fc.assert(
      fc.property(steps, (list) => {
        const buffer = new PacketBuffer(4096, 8192);
        const held: { place: number; bytes: number }[] = [];
        for (const { isPut, bytes, spare } of list) {
          if (isPut) {
            const place = buffer.reserve(bytes + spare);
            if (place === NO_ROOM) continue;
            expect(place).toBeGreaterThanOrEqual(4096);
            expect(place + bytes + spare).toBeLessThanOrEqual(4096 + 8192);
            for (const other of held) {
              expect(place >= other.place + other.bytes || place + bytes + spare <= other.place).toBe(true);
            }
            buffer.commit(bytes, 7);
            held.push({ place, bytes });
          } else if (held.length > 0) {
            const { place, bytes: oldest } = held.shift()!;
            expect([buffer.placeOf(0), buffer.bytesOf(0)]).toEqual([place, oldest]);
            buffer.release();
          }
          expect(buffer.count).toBe(held.length);
          expect(buffer.usedBytes).toBe(held.reduce((sum, frame) => sum + frame.bytes, 0));
        }
      }),
      { seed: 4, numRuns: 300 },
    );
  });

  it('accepts a frame again after any of its frames was released', () => {
    const buffer = new PacketBuffer(0, 4096);
    for (let round = 0; round < 100; round++) {
      while (buffer.reserve(1000) !== NO_ROOM) buffer.commit(1000, 0);
      expect(buffer.count).toBeGreaterThanOrEqual(3);
      buffer.release();
    }
  });
});
