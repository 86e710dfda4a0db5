/** Files of this project are read back as they were written; foreign and damaged files are read as their formats say. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CaptureError } from './capture-reader.ts';
import { LinkType, readCapture, writeCapture } from './index.ts';

const interfaceOf = (name: string) => ({
  linkType: LinkType.INFINIBAND,
  name,
  description: `${name}: a cable's end`,
  bitsPerSecond: 32_000_000_000n,
  droppedPackets: 3,
});

const packets = fc.array(
  fc.record({
    interface: fc.nat(1),
    timePs: fc.bigInt(0n, 2n ** 63n),
    direction: fc.constantFrom('inbound' as const, 'outbound' as const),
    bytes: fc.uint8Array({ maxLength: 100 }),
    comment: fc.constantFrom('', 'lost', 'a µ in UTF-8'),
  }),
  { maxLength: 20 },
);

describe('capture files', () => {
  it('are read back as they were written, to the picosecond', () => {
    fc.assert(
      fc.property(packets, (written) => {
        const file = writeCapture('a test', [interfaceOf('hca0'), interfaceOf('hca1')], written);
        const { interfaces, frames } = readCapture(file);
        expect(
          interfaces.map(({ name, linkType, droppedPackets }) => [name, linkType, droppedPackets]),
        ).toEqual([
          ['hca0', 247, 3],
          ['hca1', 247, 3],
        ]);
        expect(frames).toEqual(written.map((each) => ({ ...each, originalBytes: each.bytes.length })));
      }),
    );
  });

  it('of pcap are read in both byte orders and with both resolutions', () => {
    for (const isLittle of [true, false])
      for (const [magic, unitPs] of [
        [0xa1b2_c3d4, 1_000_000n],
        [0xa1b2_3c4d, 1000n],
      ] as const) {
        const file = new DataView(new ArrayBuffer(24 + 16 + 3));
        [magic, 0x0002_0004, 0, 0, 65_535, 1, 7, 5, 3, 9].forEach((word, index) => {
          file.setUint32(index * 4, word, isLittle);
        });
        file.setUint8(40, 0xab);
        const { interfaces, frames } = readCapture(new Uint8Array(file.buffer));
        expect(interfaces[0]!.linkType).toBe(LinkType.ETHERNET);
        expect(frames).toMatchObject([
          { timePs: 7_000_000_000_000n + 5n * unitPs, originalBytes: 9, bytes: Uint8Array.of(0xab, 0, 0) },
        ]);
      }
  });

  it('are rejected with the place if they are cut or damaged and only sound files are read', () => {
    const written = [
      {
        interface: 0,
        timePs: 5n,
        direction: 'inbound' as const,
        bytes: Uint8Array.of(1, 2, 3),
        comment: 'x',
      },
    ];
    const file = writeCapture('a test', [interfaceOf('hca0')], written);
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.nat(255), fc.nat(file.length), (at, value, length) => {
        const damaged = file.slice(0, length);
        damaged[at] = value;
        try {
          readCapture(damaged);
        } catch (error) {
          expect(error).toBeInstanceOf(CaptureError);
          expect((error as Error).message).toMatch(/at byte \d+/);
        }
      }),
    );
    expect(() => readCapture(file.slice(0, file.length - 1))).toThrow(CaptureError);
    expect(() => readCapture(Uint8Array.from({ length: 40 }))).toThrow(/neither the first word/);
  });
});
