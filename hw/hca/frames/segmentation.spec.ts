import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { fromHex, toHex } from '../../../base/bytes.ts';
import { Random } from '../../../sim/index.ts';
import { oneLineCaches, tightest } from '../testing/data-path-bench.ts';
import { pattern } from '../testing/data-path-verbs.ts';
import {
  joined,
  type OwnPacket,
  ownFrame,
  ownPacketBytes,
  ownTcpHeader,
  TCP_CHECKSUM_PLACE,
} from '../testing/own-frames.ts';
import {
  frameCompletions,
  frameOf,
  type LsoRequest,
  MAC_B,
  Ring,
  type RingScene,
  ringScene,
} from '../testing/rings.ts';

const { LOCAL_LENGTH_ERR, LOCAL_PROT_ERR, LOCAL_QP_OP_ERR } = CqeSyndrome;
const lso = { offloads: { logMaxLsoBytes: 16 } };
const FIN = 0x01;
const SYN = 0x02;
const PSH = 0x08;
const ACK = 0x10;
const TCP = 6;
const BUFFER_BYTES = 2000;

/** Header fields of the packets from which one LSO is built. */
interface Stream {
  readonly isIpv4: boolean;
  readonly ipOptions: Uint8Array;
  readonly tcpOptions: Uint8Array;
  readonly addresses: Uint8Array;
  readonly identification: number;
  readonly sequence: number;
  readonly flags: number;
  /** Tag in the headers. */
  readonly tag: number | undefined;
}

const none = new Uint8Array(0);
const plain: Stream = {
  isIpv4: true,
  ipOptions: none,
  tcpOptions: none,
  addresses: fromHex('0a0200010a020002'),
  identification: 0x1234,
  sequence: 0x0102_0304,
  flags: ACK,
  tag: undefined,
};
const ipv6 = { isIpv4: false, addresses: pattern(9, 32) };

/** Returns one frame of the stream as a stack would send it. */
function frameOfStream(stream: Stream, index: number, firstByte: number, data: Uint8Array, flags: number) {
  const { isIpv4, tcpOptions, ipOptions, addresses, identification, sequence, tag } = stream;
  const packet: OwnPacket = {
    isIpv4,
    protocol: TCP,
    identification: (identification + index) & 0xffff,
    options: ipOptions,
    addresses,
    transport: joined(ownTcpHeader((sequence + firstByte) >>> 0, flags, tcpOptions), data),
    checksumPlace: TCP_CHECKSUM_PLACE,
  };
  return ownFrame(ownPacketBytes(packet), isIpv4, tag);
}

/** The headers that software supplies: those of the first frame, with lengths and checksums of no frame. */
function headersOf(stream: Stream): Uint8Array {
  const frame = frameOfStream(stream, 0, 0, none, stream.flags);
  const network = stream.tag === undefined ? 14 : 18;
  const transport = frame.length - stream.tcpOptions.length - 20;
  frame.set([0xab, 0xcd], network + (stream.isIpv4 ? 2 : 4));
  if (stream.isIpv4) frame.set([0x55, 0xaa], network + 10);
  frame.set([0x77, 0x66], transport + TCP_CHECKSUM_PLACE);
  return frame;
}

/** All frames of an LSO. */
function framesOf(stream: Stream, data: Uint8Array, segmentBytes: number): Uint8Array[] {
  const count = Math.max(1, Math.ceil(data.length / segmentBytes));
  return Array.from({ length: count }, (_, index) => {
    const first = index * segmentBytes;
    const isLast = index === count - 1;
    const flags = isLast ? stream.flags : stream.flags & ~(FIN | PSH);
    return frameOfStream(stream, index, first, data.slice(first, first + segmentBytes), flags);
  });
}

/** Posts `count` buffers at b. */
function receive({ b, to }: RingScene, count: number): void {
  for (let index = 0; index < count; index++) b.qp.receive([to.part(index * BUFFER_BYTES, BUFFER_BYTES)]);
}

/** Returns the frames that arrived in b's buffers, without the padding of short frames. */
async function receivedAt(scene: RingScene, frames: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const { bench, b, to } = scene;
  const sizes: number[] = [];
  await bench.until(() => {
    sizes.push(...frameCompletions(bench.b, b.cq).map(({ byteCount }) => byteCount));
    return sizes.length >= frames.length;
  });
  await bench.run(2);
  expect(sizes).toEqual(frames.map(({ length }) => Math.max(60, length)));
  return frames.map(({ length }, index) => to.read(index * BUFFER_BYTES, length));
}

describe('an LSO', () => {
  /** Computed by hand: 14 + 20 + 20 bytes, data 01 02 03, two bytes per frame; sums are those of RFC 1071. */
  it('sheet 6.3: becomes frames with length, identification, sequence, flags and checksums of their own', async () => {
    const scene = await ringScene(lso);
    const { bench, a, from, to } = scene;
    const macs = '0002c90000020002c90000010800';
    const ip = (length: string, id: string, sum: string): string =>
      `4500${length}${id}40004006${sum}0a0000010a000002`;
    const tcp = (sequence: string, flags: string, sum: string): string =>
      `00010002${sequence}0000000050${flags}0001${sum}0000`;
    from.write(fromHex('010203'), 0);
    receive(scene, 2);
    const headers = fromHex(macs + ip('0000', 'ffff', '0000') + tcp('ffffffff', '19', '0000'));
    a.send({ segments: [from.part(0, 3)], lso: { segmentBytes: 2, headers } });
    await bench.until(() => scene.b.cq.takenCount() === 2);
    // IP: 4500 + 002a + ffff + 4000 + 4006 + 0a00 + 0001 + 0a00 + 0002 = 1d932 -> d933, complement 26cc; 4500 + 0029 + 0000 … = d932, 26cd.
    // TCP: 0a00 + 0001 + 0a00 + 0002 + 0006 + 0016 + 0001 + 0002 + ffff + ffff + 5010 + 0001 + 0102 -> 6535, complement 9aca;
    // length 0015, sequence 00000001, flags 19, data 0300: 0a00 + 0001 + 0a00 + 0002 + 0006 + 0015 + 0001 + 0002 + 0000 + 0001 + 5019 + 0001 + 0300 = 673c, 98c3.
    expect([toHex(to.read(0, 56)), toHex(to.read(BUFFER_BYTES, 55))]).toEqual([
      `${macs}${ip('002a', 'ffff', '26cc')}${tcp('ffffffff', '10', '9aca')}0102`,
      `${macs}${ip('0029', '0000', '26cd')}${tcp('00000001', '19', '98c3')}03`,
    ]);
  });

  it('completes once, and its ring goes on behind all its blocks', async () => {
    const scene = await ringScene(lso);
    const { bench, a, from } = scene;
    receive(scene, 8);
    const data = from.read(0, 5000);
    const request: LsoRequest = { segmentBytes: 1000, headers: headersOf(plain) };
    const counters = [
      a.send({ segments: [from.part(0, 5000)], lso: request }),
      a.send({ segments: [from.part(0, 100)] }),
    ];
    await bench.until(() => scene.b.cq.takenCount() === 6);
    // 16 + 4 + 54 bytes of header to a multiple of 16, and a pointer: 96, two blocks.
    expect(counters).toEqual([0, 2]);
    const sent = frameCompletions(bench.a, a.cq);
    expect(sent.map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual([
      [0, 0],
      [2, 0],
    ]);
    const frames = framesOf(plain, data, 1000);
    expect(frames.map((_, index) => scene.to.read(index * BUFFER_BYTES, 1054))).toEqual(frames);
    const { transmitted } = bench.a.ethernet!.port;
    expect([transmitted.frames, bench.a.dataPath.parts.requestPackets.heldCount]).toEqual([6, 0]);
  });

  it.each([
    ['', {}],
    [' at the smallest sizes', { hca: tightest }],
    [' with one context on chip', { hca: oneLineCaches }],
  ])(
    'RFC 9293: of any headers, data and pieces is the frames that a stack would send%s',
    async (_what, options) => {
      const scene = await ringScene({ ...lso, ...options });
      const { bench, a, from } = scene;
      const random = new Random(23);
      for (let round = 0; round < 40; round++) {
        const isIpv4 = random.chance(0.6);
        const insertedTag = random.chance(0.3) ? 0x2005 : undefined;
        const stream: Stream = {
          isIpv4,
          // Destination options of IPv6: next header TCP, one unit of 8 bytes more than none, padding.
          ipOptions: random.chance(0.3)
            ? isIpv4
              ? pattern(round, 4 * (1 + random.below(3)))
              : fromHex('0600010400000000')
            : none,
          tcpOptions: pattern(round, 4 * random.below(6)),
          addresses: isIpv4 ? plain.addresses : ipv6.addresses,
          identification: random.below(0x1_0000),
          sequence: random.uint32(),
          flags: ACK | random.below(64),
          tag: insertedTag === undefined && random.chance(0.3) ? 0x0000 : undefined,
        };
        const segmentBytes = 1 + random.below(1380);
        const dataBytes = random.below(Math.min(segmentBytes * 12, 12_000));
        const data = from.read(0, dataBytes);
        const isInline = dataBytes < 400 && random.chance(0.5);
        const expected = framesOf(stream, data, segmentBytes);
        receive(scene, expected.length);
        const tag = insertedTag === undefined ? {} : { tag: insertedTag };
        bench.b.ethernet!.side.steering.vlanFilter.fill(1);
        const what = { lso: { segmentBytes, headers: headersOf(stream) }, ...tag };
        a.send({
          ...(isInline ? { inline: data } : { segments: piecesOf(random, dataBytes, from) }),
          ...what,
        });
        const received = await receivedAt(
          scene,
          expected.map((frame) => untagged(frame)),
        );
        expect(received.map(toHex)).toEqual(expected.map((frame) => toHex(untagged(frame))));
        expect(frameCompletions(bench.a, a.cq)).toMatchObject([{ syndrome: 0 }]);
      }
    },
  );

  it('sheet 6.3: of a frame without data sends that one', async () => {
    const scene = await ringScene(lso);
    const stream = { ...plain, flags: ACK | FIN };
    receive(scene, 1);
    scene.a.send({ lso: { segmentBytes: 100, headers: headersOf(stream) } });
    expect((await receivedAt(scene, framesOf(stream, none, 100))).map(toHex)).toEqual(
      framesOf(stream, none, 100).map(toHex),
    );
  });

  it('shares the port with another ring in bursts', async () => {
    const scene = await ringScene({ ...lso, hca: { burstPackets: 2 } });
    const { bench, a, from, to } = scene;
    const other = new Ring(bench.a);
    await bench.run(5);
    receive(scene, 30);
    a.send({ segments: [from.part(0, 20_000)], lso: { segmentBytes: 1000, headers: headersOf(plain) } });
    other.send({ segments: [from.part(0, 100)] });
    await bench.until(() => scene.b.cq.takenCount() === 21, 500);
    const places = Array.from({ length: 21 }, (_, index) => toHex(to.read(index * BUFFER_BYTES, 20)));
    const own = toHex(from.read(0, 20));
    expect(places.indexOf(own)).toBeGreaterThan(-1);
    expect(places.indexOf(own)).toBeLessThan(12);
  });

  it('costs what as many frames cost: their cycles in the transmitter, and their time on the cable', async () => {
    const scene = await ringScene(lso);
    const { bench, a, from } = scene;
    receive(scene, 3);
    const arrivals: number[] = [];
    const { frameReceiver } = bench.b.dataPath.blocks;
    const { frameArrived } = frameReceiver;
    frameReceiver.frameArrived = (slot) => {
      arrivals.push(bench.b.lp.nowPs);
      frameArrived.call(frameReceiver, slot);
    };
    a.send({ segments: [from.part(0, 4000)], lso: { segmentBytes: 1400, headers: headersOf(plain) } });
    await bench.until(() => scene.b.cq.takenCount() === 3);
    await bench.run(5);
    const sizes = [1454, 1454, 1254];
    // Preamble 8, FCS 4, gap 12 at 800 ps each.
    expect(arrivals.slice(1).map((ps, index) => ps - arrivals[index]!)).toEqual(
      sizes.slice(1).map((size) => (size + 24) * 800),
    );
    const { transmitBytesPerCycle } = bench.a.config;
    const cycles = sizes.reduce((sum, size) => sum + Math.ceil(size / transmitBytesPerCycle), 0);
    expect(bench.a.dataPath.blocks.frameTransmitter.account.busyCycles).toBe(cycles);
  });
});

/** The data in pieces, up to six. */
function piecesOf(random: Random, dataBytes: number, from: RingScene['from']) {
  const cuts = Array.from({ length: random.below(6) }, () => random.below(dataBytes + 1)).sort(
    (x, y) => x - y,
  );
  const ends = [...cuts, dataBytes];
  return ends
    .map((end, index) =>
      from.part(index === 0 ? 0 : ends[index - 1]!, end - (index === 0 ? 0 : ends[index - 1]!)),
    )
    .filter(({ bytes }) => bytes > 0);
}

/** Returns a frame as a ring that removes tags writes it. */
function untagged(frame: Uint8Array): Uint8Array {
  const hasTag = frame[12] === 0x81 && frame[13] === 0x00;
  return hasTag ? joined(frame.slice(0, 12), frame.slice(16)) : frame;
}

describe('an LSO that is none', () => {
  const headers = headersOf(plain);
  const changed = (place: number, value: number): Uint8Array => {
    const copy = headers.slice();
    copy[place] = value;
    return copy;
  };
  const request = (fields: Partial<LsoRequest>): { lso: LsoRequest } => ({
    lso: { segmentBytes: 1000, headers, ...fields },
  });

  it.each([
    ['that cuts nothing', request({ segmentBytes: 0 }), 100, LOCAL_QP_OP_ERR],
    ['whose headers are longer than its WQE', request({ headerBytes: 200 }), 100, LOCAL_QP_OP_ERR],
    ['whose headers are not there', request({ headerBytes: 0 }), 100, LOCAL_QP_OP_ERR],
    ['whose headers end in those of TCP', request({ headerBytes: 53 }), 100, LOCAL_QP_OP_ERR],
    ['whose headers pass 64 bytes and do not say so', request({ isLong: false }), 100, LOCAL_QP_OP_ERR],
    ['of UDP', request({ headers: changed(23, 17) }), 100, LOCAL_QP_OP_ERR],
    ['of a fragment', request({ headers: changed(20, 0x20) }), 100, LOCAL_QP_OP_ERR],
    ['of no IP', request({ headers: changed(13, 6) }), 100, LOCAL_QP_OP_ERR],
    ['of a header of IP of 16 bytes', request({ headers: changed(14, 0x44) }), 100, LOCAL_QP_OP_ERR],
    ['of a header of TCP of 16 bytes', request({ headers: changed(46, 0x40) }), 100, LOCAL_QP_OP_ERR],
    ['of frames longer than the port sends', request({ segmentBytes: 1465 }), 1465, LOCAL_LENGTH_ERR],
    ['of more than was offered', request({}), 65_537, LOCAL_LENGTH_ERR],
    ['that is half a WQE', { opcode: WqeOpcode.LSO }, 0, LOCAL_QP_OP_ERR],
  ])('sheet 6.6: %s completes in error, and sends nothing', async (_what, fields, bytes, syndrome) => {
    const { bench, a, from } = await ringScene(lso);
    const halves = [from.part(0, Math.min(bytes, 40_000)), from.part(0, Math.max(0, bytes - 40_000))];
    a.send({ segments: halves.filter((part) => part.bytes > 0), ...fields });
    await bench.run(20);
    expect(frameCompletions(bench.a, a.cq)).toMatchObject([{ syndrome, wqeCounter: 0 }]);
    expect(bench.a.ethernet!.port.transmitted.frames).toBe(0);
  });

  it('sheet 6.6: fails in the middle where its data ends, with the frames before it sent', async () => {
    const scene = await ringScene(lso);
    const { bench, a, from } = scene;
    receive(scene, 8);
    const missing = { ...from.part(0, 1000), key: 0xdead_00 };
    a.send({ segments: [from.part(0, 3000), missing], lso: { segmentBytes: 1000, headers } });
    await bench.run(100);
    expect(frameCompletions(bench.a, a.cq)).toMatchObject([{ syndrome: LOCAL_PROT_ERR, wqeCounter: 0 }]);
    expect(bench.a.ethernet!.port.transmitted.frames).toBeLessThanOrEqual(3);
  });

  it('takes the flags of a connection that begins as they are', async () => {
    const scene = await ringScene(lso);
    const stream = { ...plain, flags: SYN };
    receive(scene, 2);
    scene.from.write(pattern(1, 20), 0);
    scene.a.send({
      segments: [scene.from.part(0, 20)],
      lso: { segmentBytes: 10, headers: headersOf(stream) },
    });
    const frames = framesOf(stream, pattern(1, 20), 10);
    expect((await receivedAt(scene, frames)).map(toHex)).toEqual(frames.map(toHex));
  });
});

describe('LSOs of hostile software', () => {
  it('complete, fail or send frames, and another ring goes on', async () => {
    const random = new Random(29);
    for (let round = 0; round < 25; round++) {
      const scene = await ringScene({ ...lso, ...(random.chance(0.5) ? { hca: tightest } : {}) });
      const { bench, b, from, to } = scene;
      const rough = new Ring(bench.a);
      await bench.run(5);
      for (let index = 0; index < 6; index++) {
        const headers = headersOf(random.chance(0.5) ? plain : { ...plain, ...ipv6 });
        for (let changes = random.below(4); changes > 0; changes--)
          headers[random.below(headers.length)] = random.below(256);
        const fields = {
          segmentBytes: random.below(random.chance(0.5) ? 0x1_0000 : 30),
          headers,
          ...(random.chance(0.3) ? { headerBytes: random.below(1024) } : {}),
          ...(random.chance(0.2) ? { isLong: false } : {}),
        };
        const key = random.chance(0.2) ? { key: 0xdead_00 } : {};
        rough.send({ segments: [{ ...from.part(0, random.below(3000)), ...key }], lso: fields });
        if (random.chance(0.5)) await bench.run(2);
      }
      await bench.run(300);
      const frame = frameOf(MAC_B, pattern(round, 120));
      const taken = b.cq.takenCount();
      b.qp.receive([to.part(0, BUFFER_BYTES)]);
      from.write(frame, 10_000);
      scene.a.send({ segments: [from.part(10_000, frame.length)] });
      await bench.until(() => b.cq.takenCount() > taken);
      expect(to.read(0, frame.length)).toEqual(frame);
    }
  });

  it('leave nothing behind when they are reset, however many of their frames have gone', async () => {
    const { frameTransmitter } = (await ringScene(lso)).bench.a.dataPath.blocks;
    const rest = frameTransmitter.inspect();
    for (let step = 0; step < 12; step++) {
      const scene = await ringScene({ ...lso, hca: tightest });
      const { bench, a, from } = scene;
      receive(scene, 30);
      a.send({ segments: [from.part(0, 9000)], lso: { segmentBytes: 500, headers: headersOf(plain) } });
      await bench.run(1 + step * 2);
      const node = bench.a;
      node.act(() => {
        node.reads.reset(node.domain.cycle);
        node.writes.reset(node.domain.cycle);
        node.dataPath.control.resetAll();
      });
      await bench.run(30);
      expect(node.dataPath.blocks.frameTransmitter.inspect()).toEqual(rest);
      expect(node.dataPath.parts.requestPackets.heldCount).toBe(0);
    }
  });
});
