/** Files of our own are read back as they were written; those of others, and damaged ones, as their formats say. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CaptureError, LinkType, packetsIn, readCapture, writeCapture } from './index.ts';

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

  it.each<[string, (readonly [end: 0 | 1, direction: 'inbound' | 'outbound'])[], number[]]>([
    [
      'of both ends, all that passed the first',
      [
        [0, 'outbound'],
        [1, 'inbound'],
        [1, 'outbound'],
        [0, 'inbound'],
      ],
      [1, 4],
    ],
    [
      'of what arrived, what did at either end',
      [
        [0, 'inbound'],
        [1, 'inbound'],
        [0, 'inbound'],
      ],
      [1, 2, 3],
    ],
    [
      'of one end of which only arrivals were kept',
      [
        [0, 'inbound'],
        [1, 'outbound'],
        [1, 'inbound'],
      ],
      [1, 3],
    ],
    [
      'of a first end that kept nothing, all of the other',
      [
        [1, 'inbound'],
        [1, 'outbound'],
      ],
      [1, 2],
    ],
  ])('%s', (_what, passed, taken) => {
    const written = passed.map(([end, direction], at) => ({
      ...{ interface: end, direction, timePs: BigInt(at), bytes: new Uint8Array(4), comment: '' },
    }));
    const file = writeCapture('a test', [interfaceOf('hca0'), interfaceOf('hca1')], written);
    // Four bytes are no packet: those that are looked at are found malformed.
    const { malformed, incomplete } = packetsIn(readCapture(file));
    expect(malformed.map(({ number }) => number)).toEqual(taken);
    expect(incomplete).toMatchObject([
      { name: 'hca0', droppedPackets: 3 },
      { name: 'hca1', droppedPackets: 3 },
    ]);
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

  it('that are cut or damaged are refused with the place, never otherwise', () => {
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
