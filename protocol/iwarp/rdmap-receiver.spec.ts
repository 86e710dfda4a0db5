/** Checks and deliveries of a receiver. Segments are written out by hand, from RFC 5041, 4 and RFC 5040, 4; none comes from our sender. */
import { beforeEach, describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/index.ts';
import { IwarpError, RdmapReceiver, ReadyMessage, type ReceiverOptions } from './index.ts';
import { RecordingOwner } from './testing/recording-owner.ts';

const options: ReceiverOptions = {
  hasMarkers: false,
  usesCrc: false,
  inboundReads: 2,
  outboundReads: 2,
  hasExtensions: false,
  awaitedReady: ReadyMessage.NONE,
  earlySegmentsMax: 0,
};

const word = (value: number): string => (value >>> 0).toString(16).padStart(8, '0');
const tagged = (opcode: number, tag: number, offset: string, payload: string, isLast = true): string =>
  `${isLast ? 'c1' : '81'}4${opcode}${word(tag)}${offset.padStart(16, '0')}${payload}`;

interface Untagged {
  readonly queue: number;
  readonly message?: number;
  readonly offset?: number;
  readonly isLast?: boolean;
  readonly tag?: number;
}

const untagged = (opcode: number, payload: string, at: Untagged): string =>
  `${at.isLast === false ? '01' : '41'}4${opcode.toString(16)}${word(at.tag ?? 0)}${word(at.queue)}${word(at.message ?? 1)}${word(at.offset ?? 0)}${payload}`;

const readOf = (message: number, lengthBytes: number): string =>
  untagged(1, `${word(0xaa)}${'0000000000001000'}${word(lengthBytes)}${word(0xbb)}${'0000000000002000'}`, {
    queue: 1,
    message,
  });

const atomicOf = (message: number, requestId: number): string =>
  untagged(
    10,
    `${word(2)}${word(requestId)}${word(0xbb)}${'0000000000002000'}${word(0)}${word(9)}${'f'.repeat(16)}${word(0)}${word(5)}${'f'.repeat(16)}`,
    { queue: 1, message },
  );

/** A stream with these options and an owner with one region and two receive buffers. */
class Scene {
  readonly owner = new RecordingOwner();
  readonly receiver: RdmapReceiver;

  constructor(changes: Partial<ReceiverOptions> = {}) {
    this.receiver = new RdmapReceiver(this.owner, { ...options, ...changes });
    this.owner.regions.set(0xaa, { base: 0x1000, baseTop: 0, bytes: new Uint8Array(64) });
    this.owner.receives.set(1, new Uint8Array(16));
    this.owner.receives.set(2, new Uint8Array(16));
  }

  take(...segments: string[]): this {
    for (const segment of segments) {
      const length = segment.length / 2;
      const padded = (2 + length + 3) & ~3;
      const fpdu = fromHex(length.toString(16).padStart(4, '0') + segment, padded + 4);
      this.receiver.reader.take(fpdu, 0, fpdu.length);
    }
    return this;
  }

  get error(): string | undefined {
    return this.owner.failure?.error.toString(16).padStart(4, '0');
  }
}

describe('a WRITE', () => {
  it('RFC 5041, 5.3: is placed, and delivered at its last segment', () => {
    const { owner, error } = new Scene().take(
      tagged(0, 0xaa, '1004', '01020304', false),
      tagged(0, 0xaa, '1008', '0506'),
    );
    expect(error).toBeUndefined();
    expect(toHex(owner.regions.get(0xaa)!.bytes.subarray(0, 12))).toBe('000000000102030405060000');
    expect(owner.log).toEqual(['write 170']);
  });

  it('RFC 5041, 5.2: without payload has no STag that is checked', () => {
    const { owner, error } = new Scene().take(tagged(0, 0xdead, 'ffffffffffffffff', ''));
    expect([error, owner.log]).toEqual([undefined, ['write 57005']]);
  });

  it.each([
    ['an STag that is not valid', tagged(0, 0xab, '1000', '01'), '1100'],
    ['bytes before the region', tagged(0, 0xaa, 'fff', '01'), '1101'],
    ['bytes after the region', tagged(0, 0xaa, '103f', '0102'), '1101'],
    ['an offset that wraps', tagged(0, 0xaa, 'ffffffffffffffff', '0102'), '1103'],
    ['another version of DDP', `c0${tagged(0, 0xaa, '1000', '01').slice(2)}`, '1104'],
    ['another version of RDMAP', `c180${tagged(0, 0xaa, '1000', '01').slice(4)}`, '0205'],
    ['the opcode of a SEND', tagged(3, 0xaa, '1000', '01'), '0206'],
    ['fewer bytes than a header', 'c140000000aa', '1000'],
  ])('RFC 5041, 7.1: fails with %s', (_what, segment, error) => {
    const scene = new Scene().take(segment, tagged(0, 0xaa, '1000', '01'));
    expect(scene.error).toBe(error);
    // Nothing is passed up after an error.
    expect([scene.owner.placed, scene.owner.log]).toEqual([[], []]);
  });

  it('RFC 5041, 5.1: to the last byte of the offsets does not wrap', () => {
    expect(new Scene().take(tagged(0, 0xaa, 'fffffffffffffffe', '0102')).error).toBe('1101');
  });
});

describe('a SEND', () => {
  it('RFC 5041, 5.3: is delivered once it is complete, with its length', () => {
    const { owner } = new Scene().take(
      untagged(3, '0102', { queue: 0, isLast: false }),
      untagged(3, '0304', { queue: 0, offset: 2 }),
      untagged(5, '', { queue: 0, message: 2 }),
    );
    expect(owner.log).toEqual(['send 3 1 01020304', 'send 5 2 ']);
  });

  it('RFC 5040, 5.3: with invalidate names an STag, which the owner may refuse', () => {
    const scene = new Scene();
    scene.owner.invalidatable.add(0x55);
    scene.take(untagged(4, '01', { queue: 0, tag: 0x55 }));
    expect(scene.error).toBeUndefined();
    scene.take(untagged(6, '01', { queue: 0, message: 2, tag: 0x56 }));
    expect(scene.error).toBe('0109');
  });

  it.each([
    ['a queue that does not exist', untagged(3, '01', { queue: 4 }), '1201'],
    ['a queue of the extensions', untagged(11, '01', { queue: 3 }), '1201'],
    ['a message out of order', untagged(3, '01', { queue: 0, message: 2 }), '1203'],
    ['an offset out of order', untagged(3, '01', { queue: 0, offset: 1 }), '1204'],
    ['more bytes than its buffer has', untagged(3, '00'.repeat(17), { queue: 0 }), '1205'],
    ['another version of DDP', `43${untagged(3, '01', { queue: 0 }).slice(2)}`, '1206'],
    ['another version of RDMAP', `4103${untagged(3, '01', { queue: 0 }).slice(4)}`, '0205'],
    ['the opcode of a WRITE', untagged(0, '01', { queue: 0 }), '0206'],
    ['immediate data without the extensions', untagged(8, '00'.repeat(8), { queue: 0 }), '0206'],
  ])('RFC 5041, 7.2: fails with %s', (_what, segment, error) => {
    const scene = new Scene().take(segment);
    expect([scene.error, scene.owner.placed]).toEqual([error, []]);
    expect(scene.owner.failure?.quotedBytes).toBe(segment.slice(0, 36));
  });

  it('RFC 5041, 7.2: fails without a buffer', () => {
    const scene = new Scene();
    scene.owner.receives.clear();
    expect(scene.take(untagged(3, '01', { queue: 0 })).error).toBe('1202');
  });

  it('RFC 5040, 4.2: fails if its segments have two opcodes', () => {
    const segments = [
      untagged(3, '01', { queue: 0, isLast: false }),
      untagged(5, '02', { queue: 0, offset: 1 }),
    ];
    expect(new Scene().take(...segments).error).toBe('0206');
  });
});

describe('a READ', () => {
  it('RFC 5040, 5.2: is handed to the owner, up to IRD at once', () => {
    const scene = new Scene().take(readOf(1, 8), readOf(2, 0));
    expect(scene.owner.log).toEqual(['read 1 8 187 8192 170 4096', 'read 2 0 187 8192 170 4096']);
    scene.receiver.requestServed();
    expect(scene.take(readOf(3, 1)).error).toBeUndefined();
    expect(scene.take(readOf(4, 1)).error).toBe('1202');
  });

  it.each([
    ['a byte too many', `${readOf(1, 8)}00`, '1205'],
    ['a byte too few', readOf(1, 8).slice(0, -2), '0207'],
    ['another segment to follow', `01${readOf(1, 8).slice(2)}`, '0207'],
    ['the opcode of an atomic without the extensions', `414a${readOf(1, 8).slice(4)}`, '0206'],
  ])('RFC 5040, 4.4: fails with %s', (_what, segment, error) => {
    expect(new Scene().take(segment).error).toBe(error);
  });

  it('RFC 5040, 5.2: completes when its whole response is placed', () => {
    const scene = new Scene();
    scene.receiver.outstanding.addRead(0xaa, 0x1000, 0, 6);
    scene.receiver.outstanding.addRead(0xaa, 0x1020, 0, 0);
    scene.take(tagged(2, 0xaa, '1000', '01020304', false));
    expect(scene.owner.log).toEqual([]);
    scene.take(tagged(2, 0xaa, '1004', '0506'), tagged(2, 0, '0', ''));
    expect([scene.error, scene.owner.log]).toEqual([undefined, ['read completed', 'read completed']]);
  });

  it.each([
    ['another STag', tagged(2, 0xab, '1000', '01020304'), '1100'],
    ['another offset', tagged(2, 0xaa, '1001', '01020304'), '1101'],
    ['more bytes than were asked for', tagged(2, 0xaa, '1000', '0102030405'), '1101'],
    ['an end too early', tagged(2, 0xaa, '1000', '010203'), '1101'],
    ['no end', tagged(2, 0xaa, '1000', '01020304', false), '1101'],
  ])('RFC 5040, 5.2: fails if its response has %s', (_what, segment, error) => {
    const scene = new Scene();
    scene.receiver.outstanding.addRead(0xaa, 0x1000, 0, 4);
    expect(scene.take(segment).error).toBe(error);
  });

  it('RFC 5040, 7: fails if a response answers no request', () => {
    expect(new Scene().take(tagged(2, 0xaa, '1000', '01')).error).toBe('0206');
    const scene = new Scene({ hasExtensions: true });
    scene.receiver.outstanding.addAtomic(1);
    expect(scene.take(tagged(2, 0xaa, '1000', '01')).error).toBe('0206');
  });
});

describe('messages of RFC 7306', () => {
  let scene = new Scene();
  beforeEach(() => {
    scene = new Scene({ hasExtensions: true });
  });

  it('RFC 7306, 5: atomics share the queue and IRD of READs', () => {
    scene.take(atomicOf(1, 77), readOf(2, 4));
    expect(scene.owner.log).toEqual(['atomic 1 2 77 9 5', 'read 2 4 187 8192 170 4096']);
    expect(scene.take(atomicOf(3, 78)).error).toBe('1202');
  });

  it('RFC 7306, 5.2.2: an atomic response answers the oldest request', () => {
    scene.receiver.outstanding.addAtomic(77);
    scene.take(untagged(11, `${word(77)}${word(1)}${word(2)}`, { queue: 3 }));
    expect([scene.error, scene.owner.log]).toEqual([undefined, ['atomic completed 77 1 2']]);
    scene.receiver.outstanding.addRead(0xaa, 0x1000, 0, 4);
    expect(scene.take(untagged(11, `${word(78)}${word(1)}${word(2)}`, { queue: 3, message: 2 })).error).toBe(
      '0206',
    );
  });

  it('RFC 7306, 6: immediate data takes a receive buffer and leaves it as it is', () => {
    scene.take(untagged(9, `${word(3)}${word(4)}`, { queue: 0 }));
    expect([scene.owner.log, scene.owner.placed]).toEqual([['immediate 9 1 3 4'], []]);
    expect(scene.take(untagged(8, '00'.repeat(7), { queue: 0, message: 2 })).error).toBe('0207');
  });

  it.each([
    ['a response with the opcode of a SEND', untagged(3, '00'.repeat(12), { queue: 3 }), '0206'],
    ['an atomic response to no request', untagged(11, '00'.repeat(12), { queue: 3 }), '0206'],
    ['an atomic response of 16 bytes', untagged(11, '00'.repeat(16), { queue: 3 }), '1205'],
  ])('RFC 7306, 8: the stream fails with %s', (_what, segment, error) => {
    expect(scene.take(segment).error).toBe(error);
  });
});

describe('a stream', () => {
  it('RFC 5040, 5.4: ends at a Terminate', () => {
    const scene = new Scene().take(untagged(7, '20020000', { queue: 2 }), tagged(0, 0xaa, '1000', '01'));
    expect(scene.owner.notice).toEqual({ error: IwarpError.MPA_CRC, isMirrored: false, segmentBytes: 0 });
    expect(scene.owner.placed).toEqual([]);
  });

  it.each([
    ['the opcode of a SEND in its queue', untagged(3, '20020000', { queue: 2 }), '0206'],
    ['three bytes', untagged(7, '200200', { queue: 2 }), '0207'],
    ['more bytes than all headers', untagged(7, '00'.repeat(53), { queue: 2 }), '1205'],
  ])('RFC 5040, 4.8: fails at a Terminate with %s', (_what, segment, error) => {
    expect(new Scene().take(segment).error).toBe(error);
  });

  it('RFC 5041, 4.3: has message numbers that wrap to 0', () => {
    const scene = new Scene();
    scene.owner.postedBytes = 8;
    scene.receiver.messages[0] = 0xffff_ffff;
    scene.take(
      untagged(3, '01', { queue: 0, message: 0xffff_ffff }),
      untagged(3, '02', { queue: 0, message: 0 }),
    );
    expect([scene.error, scene.owner.log]).toEqual([undefined, ['send 3 4294967295 01', 'send 3 0 02']]);
  });

  it('RFC 5044, 7.1.2: lets a responder send once an FPDU was valid', () => {
    const scene = new Scene();
    expect(scene.receiver.hasReceived).toBe(false);
    scene.take(untagged(3, '', { queue: 0 }));
    expect(scene.receiver.hasReceived).toBe(true);
  });

  it('drops what arrives after its owner has stopped it', () => {
    const scene = new Scene();
    scene.receiver.stop();
    expect(scene.take(tagged(0, 0xaa, '1000', '01')).owner.placed).toEqual([]);
  });
});

describe('the ready-to-receive message', () => {
  const { SEND, WRITE, READ } = ReadyMessage;

  it.each([
    ['a WRITE of siw', WRITE, tagged(0, 1, '0', '')],
    ['a WRITE of cxgb4', WRITE | READ, tagged(0, 1, '1', '')],
    ['a SEND, which takes no buffer', SEND, untagged(3, '', { queue: 0 })],
  ])('RFC 6581, 4.3: is %s', (_what, awaitedReady, segment) => {
    const scene = new Scene({ awaitedReady }).take(segment);
    expect([scene.error, scene.owner.log]).toEqual([undefined, ['ready']]);
    const message = awaitedReady === SEND ? 2 : 1;
    expect(scene.take(untagged(3, '01', { queue: 0, message })).owner.log).toEqual([
      'ready',
      `send 3 ${message} 01`,
    ]);
  });

  it('RFC 6581, 4.3: is a READ of no bytes, which is answered', () => {
    const scene = new Scene({ awaitedReady: READ }).take(readOf(1, 0));
    expect(scene.owner.log).toEqual(['ready', 'read 1 0 187 8192 170 4096']);
  });

  it.each([
    ['another kind', READ, tagged(0, 1, '0', '')],
    ['payload in a WRITE', WRITE, tagged(0, 0xaa, '1000', '01')],
    ['payload in a SEND', SEND, untagged(3, '01', { queue: 0 })],
    ['a READ of a byte', READ, readOf(1, 1)],
    ['a READ response', WRITE, tagged(2, 0xaa, '1000', '')],
  ])('RFC 6581, 8: fails with %s', (_what, awaitedReady, segment) => {
    const scene = new Scene({ awaitedReady }).take(segment);
    expect([scene.error, scene.owner.log, scene.owner.placed]).toEqual(['2007', [], []]);
  });
});
