import { writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nativeUnavailableReason } from '../../guests/slot/index.ts';
import { GuestRam, pageBytes } from './guest-ram.ts';

const unavailable = nativeUnavailableReason();

describe.skipIf(unavailable !== undefined)('the memory of a guest', () => {
  let ram: GuestRam;
  /** Writes to the file as the server does, without the guest's knowledge. */
  const serverWrites = (offset: number): void =>
    void writeSync(ram.descriptor, Uint8Array.of(1), 0, 1, offset);
  beforeEach(() => {
    ram = new GuestRam(4 * pageBytes, 0x5a);
  });
  afterEach(() => ram.close());

  it('may be written where it is mapped, and nowhere else', () => {
    ram.mapped(pageBytes, 2 * pageBytes);
    serverWrites(pageBytes);
    serverWrites(3 * pageBytes - 1);
    expect(ram.damages()).toEqual([]);
    serverWrites(3 * pageBytes + 7);
    expect(ram.damages()).toEqual([expect.stringContaining('byte 7 of page 3')]);
  });

  it('may not be written when it is mapped no longer, twice mapped counts twice', () => {
    ram.mapped(0, pageBytes);
    ram.mapped(0, pageBytes);
    ram.unmapped(0, pageBytes);
    serverWrites(3);
    expect(ram.damages()).toEqual([]);
    ram.unmapped(0, pageBytes);
    serverWrites(4);
    expect(ram.damages()).toHaveLength(1);
    expect(ram.mapped(0, pageBytes)).toHaveLength(1);
  });

  it("is the guest's own to write, and no one's when the guest has gone", () => {
    ram.write(pageBytes - 1, Uint8Array.of(1, 2));
    expect(ram.damages()).toEqual([]);
    expect([...ram.read(pageBytes - 2, 4)]).toEqual([0x5a, 1, 2, 0x5a]);
    ram.mapped(0, 4 * pageBytes);
    ram.forsaken();
    serverWrites(0);
    expect(ram.damages()).toHaveLength(1);
  });
});
