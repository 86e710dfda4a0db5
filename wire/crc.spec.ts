/** The CRCs against bytes from other sources, and against code that follows the clauses bit by bit. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc16, crc32, invariantCrc, variantCrc } from './crc.ts';

/** The specification's sample packet, a local RC WRITE: ICRC and VCRC are its last six bytes (reference/wire/README.md). */
const sample = Uint8Array.from(
  Buffer.from(
    '7012375c000e17d20a2024870087b1b3000dec2a01710a1c015d400238f27a050000000ebb884d85fd5cfba4728bc0690ed400009625b75a45fa',
    'hex',
  ),
);

/** An ARP request over InfiniBand to a multicast group, by real hardware: frame 5 of ib-hardware-sample.pcap. */
const withGrh = Uint8Array.from(
  Buffer.from(
    '0003c000002100046000000000541b00fe800000000000000002c9020024f636ff12401bffff000000000000ffffffff6440ffff00ffffff000020af' +
      '00000b1b0000040508060000002008001404000180000405fe800000000000000002c9020024f6360a00012200000000000000000000000000000000' +
      '000000000a00003abd6bd6a88883',
    'hex',
  ),
);
const icrcOf = (packet: Uint8Array): string =>
  invariantCrc(packet, 0, packet.length - 6, 'localWithGrh').toString(16);
const bitsOf = (byte: number): [byte: number, bit: number][] =>
  Array.from({ length: 8 }, (_, bit) => [byte, bit]);
/** Bits that routers change: the LRH; traffic class, flow label and hop limit of the GRH; FECN, BECN and the bits after them in the BTH. */
const unfixedBits = [
  ...[0, 1, 2, 3, 4, 5, 6, 7].flatMap(bitsOf),
  ...bitsOf(8).slice(0, 4),
  ...[9, 10, 11, 15, 48 + 4].flatMap(bitsOf),
];

/** A shift register of this many bits: one bit a step, the low bit of a byte first, the register's high bit first. */
function bitwise(bytes: Iterable<number>, polynomial: bigint, bits: bigint): bigint {
  const ones = (1n << bits) - 1n;
  let register = ones;
  for (const byte of bytes)
    for (let bit = 0; bit < 8; bit++) {
      const isSet = ((register >> (bits - 1n)) & 1n) !== BigInt((byte >> bit) & 1);
      register = (register << 1n) & ones;
      if (isSet) register ^= polynomial;
    }
  const complement = register ^ ones;
  let sent = 0n;
  for (let bit = 0n; bit < bits; bit++)
    if (((complement >> bit) & 1n) !== 0n) sent |= 1n << (bits - 1n - bit);
  return sent;
}

describe('the CRCs of a packet', () => {
  it('IBTA 7.8.1: cover the sample packet as the specification prints it', () => {
    const icrc = invariantCrc(sample, 0, sample.length - 6, 'local');
    expect(icrc.toString(16)).toBe('5ab72596'); // 96 25 b7 5a, low byte first
    expect(variantCrc(sample, 0, sample.length - 2).toString(16)).toBe('fa45');
  });

  it('IBTA 7.8: cover a packet with a GRH as hardware does: the whole LRH counts as ones in the ICRC', () => {
    expect(icrcOf(withGrh)).toBe('a8d66bbd');
    expect(variantCrc(withGrh, 0, withGrh.length - 2).toString(16)).toBe('8388');
  });

  it('IBTA 7.8.1: leave the ICRC as it is when a switch changes the lane or marks congestion', () => {
    const changed = sample.slice();
    changed[0] = 0x30;
    changed[8 + 4] = 0x80;
    expect(invariantCrc(changed, 0, changed.length - 6, 'local').toString(16)).toBe('5ab72596');
    expect(variantCrc(changed, 0, changed.length - 2).toString(16)).not.toBe('fa45');
  });

  it('IBTA 7.8.1: keep the ICRC of a packet with a GRH for any LRH and any change by a router', () => {
    for (const [at, bit] of unfixedBits) {
      const changed = withGrh.slice();
      changed[at]! ^= 1 << bit;
      expect([at, bit, icrcOf(changed)]).toEqual([at, bit, 'a8d66bbd']);
    }
    // The bytes from the GRH on that a router does not change.
    for (let at = 8; at < withGrh.length - 6; at++)
      for (let bit = 0; bit < 8; bit++) {
        if (unfixedBits.some(([byte, one]) => byte === at && one === bit)) continue;
        const changed = withGrh.slice();
        changed[at]! ^= 1 << bit;
        expect(icrcOf(changed)).not.toBe('a8d66bbd');
      }
  });

  it('compute for "123456789" the CRC-32 of the catalogues: CBF43926', () => {
    const digits = Uint8Array.from(Buffer.from('123456789'));
    expect(crc32.of(digits, 0, 9).toString(16)).toBe('cbf43926');
  });

  it('equal those of a shift register, for any length and offset', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(8), (bytes, skipped) => {
        const from = Math.min(skipped, bytes.length);
        const rest = bytes.subarray(from);
        expect(BigInt(crc32.of(bytes, from, bytes.length))).toBe(bitwise(rest, 0x04c1_1db7n, 32n));
        expect(BigInt(crc16.of(bytes, from, bytes.length))).toBe(bitwise(rest, 0x100bn, 16n));
      }),
    );
  });
});
