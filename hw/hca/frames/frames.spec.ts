import { crc32 as zlibCrc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState, rssContext, rssOffsetInQpc } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { fromHex, toHex } from '../../../base/bytes.ts';
import { Random } from '../../../sim/index.ts';
import type { FrameDropReason } from '../port/frame-steering.ts';
import { oneLineCaches, tightest } from '../testing/data-path-bench.ts';
import { pattern } from '../testing/data-path-verbs.ts';
import {
  frameCompletions,
  frameOf,
  MAC_B,
  Ring,
  type RingScene,
  ringScene,
  steer,
} from '../testing/rings.ts';

const BROADCAST = 0xffff_ffff_ffff;

/** Sends the frame from a's memory. */
function send({ a, from }: RingScene, frame: Uint8Array, place = 0, request = {}): number {
  from.write(frame, place);
  return a.send({ segments: [from.part(place, frame.length)], ...request });
}

/** Frames that the end of the cable at b has handed on by now, in all. */
const arrivedAt = ({ bench }: RingScene): number => bench.b.ethernet!.port.received.deliveredFrames;
const dropsAt = ({ bench }: RingScene): Partial<Record<FrameDropReason, number>> =>
  Object.fromEntries(Object.entries(bench.b.ethernet!.side.steering.drops).filter(([, count]) => count > 0));

describe('a frame', () => {
  it('sheet 6.6: comes as it was sent, and completes at both ends without a word on checksums', async () => {
    const scene = await ringScene();
    const { bench, a, b, to } = scene;
    const frame = frameOf(MAC_B, pattern(1, 200));
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frame);
    await bench.until(() => arrivedAt(scene) === 1);
    await bench.run(5);
    expect(to.read(0, frame.length)).toEqual(frame);
    const common = { hash: 0, syndrome: 0, status: 0, checksum: 0, tag: undefined, wqeCounter: 0 };
    expect(frameCompletions(bench.a, a.cq)).toEqual([
      { ...common, qpn: a.qp.qpn, isSend: true, byteCount: 0 },
    ]);
    expect(frameCompletions(bench.b, b.cq)).toEqual([
      { ...common, qpn: b.qp.qpn, isSend: false, byteCount: frame.length },
    ]);
  });

  it('IEEE 802.3-2018, 31B: waits for the end of a pause, which is what the transmitter is stalled for', async () => {
    const scene = await ringScene({ hasFlowControl: true });
    const { bench, a, b, to } = scene;
    const frame = frameOf(MAC_B, pattern(1, 200));
    b.qp.receive([to.part(0, 1536)]);
    // 100 quanta of 51.2 ns from the far port's client, which has it a MAC control frame as any.
    const pause = fromHex(`0180c2000001020000000009880800010064${'00'.repeat(42)}`);
    bench.b.act(() => bench.b.ethernet!.port.send(pause, 0, pause.length));
    await bench.run(1);
    send(scene, frame);
    await bench.until(() => arrivedAt(scene) === 1);
    await bench.run(5);
    expect(frameCompletions(bench.a, a.cq)).toHaveLength(1);
    const { account } = bench.a.dataPath.blocks.frameTransmitter;
    const stalledPs = account.stalledCycles[account.stallReasons.indexOf('pause')]! * 2341.92;
    const { port, side } = bench.a.ethernet!;
    const { pausedPs, pauseWaitPs, receivedPauses } = port.flowControl.totals();
    expect([pausedPs, receivedPauses]).toEqual([5_120_000, 1]);
    // The stage tries again at the first edge after the end of the pause, and is idle one edge later.
    expect(Math.abs(stalledPs - pauseWaitPs)).toBeLessThan(2 * 2342);
    expect(pauseWaitPs).toBeGreaterThan(2_000_000);
    // The PAUSE frame reaches no ring, and DUMP_ETH_STATS does not count it.
    expect([port.received.deliveredFrames, side.statistics.inspect()]).toEqual([
      0,
      { received: 0, transmitted: 1 },
    ]);
  });

  it('IEEE 802.3 4.2.3.3: that is short comes with zeros behind it', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    const frame = frameOf(BROADCAST, pattern(2, 20));
    to.fill(9);
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frame);
    await bench.until(() => arrivedAt(scene) === 1);
    await bench.run(5);
    expect(to.read(0, 60)).toEqual(Uint8Array.from({ length: 60 }, (_, at) => frame[at] ?? 0));
    expect(frameCompletions(bench.b, b.cq).map(({ byteCount }) => byteCount)).toEqual([60]);
  });

  it.each([
    ['', {}],
    [' at the smallest sizes', { hca: tightest }],
    [' with one context on chip', { hca: oneLineCaches }],
    [' with WQEs read one block at a time', { hca: { wqePrefetchCount: 1 } }],
  ])(
    'sheet 6.1: is gathered from WQEs of any number of blocks, around the ring%s',
    async (_what, options) => {
      const scene = await ringScene(options);
      const { bench, a, b, from, to } = scene;
      let counter = 0;
      for (let index = 0; index < 40; index++) {
        const frame = frameOf(MAC_B, pattern(index, 100 + 7 * index));
        // Inline data in at least 3 blocks, or 1 to 14 pieces, of which 4 or more take at least 2 blocks.
        const isInline = index % 3 === 0;
        const pieces = 1 + (index % 14);
        const pieceBytes = Math.ceil(frame.length / pieces);
        from.write(frame, 100);
        const segments = Array.from({ length: pieces }, (_, piece) => {
          const at = piece * pieceBytes;
          return from.part(100 + at, Math.max(0, Math.min(pieceBytes, frame.length - at)));
        }).filter(({ bytes }) => bytes > 0);
        b.qp.receive([to.part(0, 128), to.part(2000, 1400)]);
        const posted = a.send(isInline ? { inline: frame } : { segments });
        expect(posted).toBe(counter);
        await bench.until(() => b.cq.takenCount() === index + 1, 200);
        const [first, rest] = [frame.subarray(0, 128), frame.subarray(128)];
        expect([to.read(0, first.length), to.read(2000, rest.length)]).toEqual([first, rest]);
        await bench.run(2);
        expect(frameCompletions(bench.a, a.cq).map(({ wqeCounter }) => wqeCounter)).toEqual([counter]);
        const inlineBytes = frame.length + 4 * Math.ceil((frame.length + 16) / 60);
        const wqeBytes = 16 + (isInline ? Math.ceil(inlineBytes / 16) * 16 : 16 * segments.length);
        counter += Math.ceil(wqeBytes / 64);
      }
    },
  );

  it('IEEE 802.3 4.4.2: is on the wire for as long as its bytes take, and the next one follows at once', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    const arrivals: number[] = [];
    const { frameReceiver } = bench.b.dataPath.blocks;
    const { frameArrived } = frameReceiver;
    frameReceiver.frameArrived = (slot) => {
      arrivals.push(bench.b.lp.nowPs);
      frameArrived.call(frameReceiver, slot);
    };
    const sizes = [1514, 1514, 60, 1000];
    for (const [index, size] of sizes.entries()) {
      b.qp.receive([to.part(index * 2000, 1536)]);
      send(scene, frameOf(MAC_B, pattern(index, size - 14)), index * 2000);
    }
    await bench.until(() => arrivals.length === sizes.length);
    // Preamble 8, FCS 4, gap 12 at 800 ps each: 24 bytes.
    const gaps = arrivals.slice(1).map((ps, index) => ps - arrivals[index]!);
    expect(gaps).toEqual([(1514 + 24) * 800, (60 + 24) * 800, (1000 + 24) * 800]);
  });

  it('costs the cycles in which its bytes pass, on either side', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frameOf(MAC_B, pattern(1, 1500)));
    await bench.until(() => b.cq.takenCount() === 1);
    await bench.run(5);
    const { transmitBytesPerCycle, receiveBytesPerCycle, receiveHeadCycles } = bench.a.config;
    expect(bench.a.dataPath.blocks.frameTransmitter.account.busyCycles).toBe(
      Math.ceil(1514 / transmitBytesPerCycle),
    );
    expect(bench.b.dataPath.blocks.frameReceiver.account.busyCycles).toBe(
      receiveHeadCycles + Math.ceil(1514 / receiveBytesPerCycle),
    );
  });
});

describe('a tag', () => {
  const tag = 0xa007;

  it('sheet 6.3: is put in on the way out and taken out on the way in, where the completion has it', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    bench.b.ethernet!.side.steering.vlanFilter[7] = 1;
    const frame = frameOf(MAC_B, pattern(3, 300));
    b.qp.receive([to.part(0, 100), to.part(200, 1536)]);
    send(scene, frame, 0, { tag });
    await bench.until(() => b.cq.takenCount() >= 0 && arrivedAt(scene) === 1);
    await bench.run(5);
    expect([to.read(0, 100), to.read(200, frame.length - 100)]).toEqual([
      frame.slice(0, 100),
      frame.slice(100),
    ]);
    const { received } = bench.b.ethernet!.side.statistics;
    expect([received.frames[5], bench.b.ethernet!.port.received.deliveredBytes]).toEqual([1, 314 + 4 + 4]);
  });

  it('sheet 6.6: is in the completion with its priority', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    bench.b.ethernet!.side.steering.vlanFilter[7] = 1;
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frameOf(MAC_B, pattern(3, 300)), 0, { tag });
    await bench.until(() => arrivedAt(scene) === 1);
    await bench.run(5);
    expect(frameCompletions(bench.b, b.cq)).toMatchObject([{ tag, byteCount: 314 }]);
  });

  it.each([
    ['sheet 5.1: stays where the ring keeps tags', { keepVlanTag: 1 }, {}, '8100a007'],
    ['sheet 6.3: of a service is put in as such, and stays', {}, { isServiceTag: true }, '88a8a007'],
  ])('%s', async (_what, fields, request, bytes) => {
    const scene = await ringScene({}, { fields });
    const { bench, b, to } = scene;
    bench.b.ethernet!.side.steering.vlanFilter[7] = 1;
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frameOf(MAC_B, pattern(3, 300)), 0, { tag, ...request });
    await bench.until(() => arrivedAt(scene) === 1);
    await bench.run(5);
    expect(toHex(to.read(12, 4))).toBe(bytes);
    expect(frameCompletions(bench.b, b.cq)).toMatchObject([{ tag: undefined, byteCount: 318 }]);
  });
});

describe('a frame check sequence', () => {
  it.each([
    ['of an untagged frame', undefined, {}],
    ['of a frame whose tag is taken out, which the FCS covers', 0xa007, {}],
    ['at the smallest sizes', undefined, { hca: tightest }],
  ])(
    'IEEE 802.3 3.2.9, sheet 5.1: follows the frame where the ring keeps it, %s',
    async (_what, vlan, options) => {
      const scene = await ringScene(options, { fields: { keepFcs: 1 } });
      const { bench, b, to } = scene;
      bench.b.ethernet!.side.steering.vlanFilter[7] = 1;
      const frames = [0, 1, 2].map((index) => frameOf(MAC_B, pattern(index, 100 + index)));
      for (const index of frames.keys())
        b.qp.receive([to.part(1000 * index, 101), to.part(1000 * index + 101, 500)]);
      for (const [index, frame] of frames.entries())
        send(scene, frame, 1000 * index, vlan === undefined ? {} : { tag: vlan });
      await bench.until(() => arrivedAt(scene) === frames.length);
      await bench.run(5);
      expect(frameCompletions(bench.b, b.cq)).toMatchObject(
        frames.map(({ length }) => ({ byteCount: length + 4 })),
      );
      for (const [index, frame] of frames.entries()) {
        const tagBytes = vlan === undefined ? [] : [0x81, 0x00, vlan >> 8, vlan & 0xff];
        const asSent = Uint8Array.from([...frame.subarray(0, 12), ...tagBytes, ...frame.subarray(12)]);
        expect(to.read(1000 * index, frame.length)).toEqual(frame);
        const fcs = to.read(1000 * index + frame.length, 4);
        expect(new DataView(fcs.slice().buffer).getUint32(0, true)).toBe(zlibCrc32(asSent));
      }
    },
  );
});

describe('checksums', () => {
  it('sheet 6.3: of IP and UDP are computed where the WQE asks for it', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    // The datagram of frame-headers.spec.ts, with wrong bytes in its checksum fields.
    const packet = fromHex('4500001d00000000401112340a0000010a000002000100020009567841');
    const frame = frameOf(MAC_B, packet, undefined, 0x0800);
    for (const place of [0, 2000]) b.qp.receive([to.part(place, 1536)]);
    send(scene, frame);
    send(scene, frame, 500, { hasChecksums: true });
    await bench.until(() => b.cq.takenCount() === 2);
    expect(to.read(14, packet.length)).toEqual(packet);
    expect(toHex(to.read(2014, packet.length))).toBe(
      '4500001d00000000401166ce0a0000010a000002000100020009aad641',
    );
  });
});

describe('what a ring does not take', () => {
  it.each([
    ['foreignMac', frameOf(0x0002_c900_0009, pattern(1, 50))],
    ['vlanFilter', frameOf(MAC_B, fromHex('00070800', 50), undefined, 0x8100)],
    ['unknownQp', frameOf(0x0002_c900_0003, pattern(1, 50))],
  ] as const)('%s is dropped and counted, and the next frame comes', async (reason, frame) => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    steer(bench.b, [MAC_B, 0x0002_c900_0003], { baseQpn: b.qp.qpn, multicastQpn: b.qp.qpn });
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frame);
    send(scene, frameOf(MAC_B, pattern(4, 80)), 500);
    await bench.until(() => b.cq.takenCount() === 1);
    expect(dropsAt(scene)).toEqual({ [reason]: 1 });
    expect(to.read(14, 80)).toEqual(pattern(4, 80));
  });

  it('frames without a buffer are dropped, and those behind a new one come', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    for (let index = 0; index < 3; index++) send(scene, frameOf(MAC_B, pattern(index, 50)), index * 100);
    await bench.until(() => arrivedAt(scene) === 3);
    await bench.run(20);
    expect(dropsAt(scene)).toEqual({ noReceiveWqe: 3 });
    b.qp.receive([to.part(0, 1536)]);
    send(scene, frameOf(MAC_B, pattern(9, 50)), 500);
    await bench.until(() => b.cq.takenCount() === 1);
    expect(to.read(14, 50)).toEqual(pattern(9, 50));
  });

  it('frames for a port that is not open are dropped', async () => {
    const scene = await ringScene();
    scene.bench.b.address.isActive = false;
    send(scene, frameOf(MAC_B, pattern(1, 50)));
    await scene.bench.until(() => arrivedAt(scene) === 1);
    await scene.bench.run(5);
    expect(dropsAt(scene)).toEqual({ portClosed: 1 });
  });

  it('a frame beyond its buffers completes with a length error, and its ring is in error', async () => {
    const scene = await ringScene();
    const { bench, b, to } = scene;
    b.qp.receive([to.part(0, 100)]);
    send(scene, frameOf(MAC_B, pattern(1, 200)));
    await bench.until(() => arrivedAt(scene) === 1);
    await bench.run(20);
    expect(frameCompletions(bench.b, b.cq)).toMatchObject([{ syndrome: CqeSyndrome.LOCAL_LENGTH_ERR }]);
    expect(b.qp.state).toBe(QpState.ERR);
    send(scene, frameOf(MAC_B, pattern(1, 200)));
    await bench.until(() => arrivedAt(scene) === 2);
    await bench.run(20);
    expect(dropsAt(scene)).toEqual({ qpState: 1 });
  });
});

describe('what a ring does not send', () => {
  it.each([
    ['segmentation, which is not offered', { opcode: WqeOpcode.LSO }, 100, CqeSyndrome.LOCAL_QP_OP_ERR],
    ['less than a header', {}, 13, CqeSyndrome.LOCAL_LENGTH_ERR],
    ['more than the MTU, a header and a tag', {}, 1519, CqeSyndrome.LOCAL_LENGTH_ERR],
  ])('sheet 6.6: %s', async (_what, request, bytes, syndrome) => {
    const { bench, a, from } = await ringScene();
    a.send({ segments: [from.part(0, bytes)], ...request });
    await bench.run(20);
    expect(frameCompletions(bench.a, a.cq)).toMatchObject([{ syndrome, wqeCounter: 0 }]);
    expect(bench.a.ethernet!.port.transmitted.frames).toBe(0);
  });

  it('sheet 6.6: a frame whose data has no key; and what is behind it is flushed, block for block', async () => {
    const { bench, a, from } = await ringScene();
    a.send({ segments: [{ ...from.part(0, 100), key: 0xdead_00 }] });
    const second = a.send({ inline: frameOf(MAC_B, pattern(1, 150)) });
    const third = a.send({ segments: [from.part(0, 100)] });
    await bench.run(50);
    expect(third - second).toBe(3);
    const flushed = CqeSyndrome.WR_FLUSH_ERR;
    expect(frameCompletions(bench.a, a.cq).map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual(
      [
        [0, CqeSyndrome.LOCAL_PROT_ERR],
        [second, flushed],
        [third, flushed],
      ],
    );
  });

  it('anything with the link down: frames go nowhere, and complete', async () => {
    const { bench, a, from } = await ringScene();
    const { port } = bench.a.ethernet!;
    bench.a.act(() => port.setEnabled(false));
    await bench.run(5);
    a.send({ segments: [from.part(0, 100)] });
    await bench.run(20);
    expect(frameCompletions(bench.a, a.cq)).toMatchObject([{ syndrome: 0 }]);
    expect([port.transmitted.frames, port.transmitted.discardedFrames]).toEqual([0, 1]);
  });
});

describe('a table of rings', () => {
  it('sheet 5.1: spreads frames by the hash of their addresses, which the completion has', async () => {
    const scene = await ringScene();
    const { bench, to } = scene;
    const first = 0x1000;
    const rings = [0, 1].map((index) => new Ring(bench.b, { qpn: first + index }));
    const table = new Ring(bench.b, { qpn: 0x2000, fields: { isRssIndirection: 1 } });
    const { qps } = bench.b.dataPath.parts;
    const IPV4 = 0x20;
    const XOR = 0;
    bench.b.act(() => {
      const at = qps.offsetOf(table.qp.slot) + rssOffsetInQpc;
      rssContext.encodeInto(
        {
          logTableSize: 1,
          baseQpn: first,
          defaultQpn: first,
          hashFunction: XOR,
          flags: IPV4,
          key: new Uint8Array(40),
        },
        qps.bytes,
        at,
      );
    });
    steer(bench.b, [MAC_B], { baseQpn: table.qp.qpn });
    const packetTo = (last: number): Uint8Array =>
      fromHex(`4500001400000000400100000a0000010a0000${last.toString(16).padStart(2, '0')}`);
    await bench.run(5);
    for (const last of [2, 3, 5]) {
      for (const ring of rings) ring.qp.receive([to.part(0, 1536)]);
      send(scene, frameOf(MAC_B, packetTo(last), undefined, 0x0800), last * 100);
    }
    await bench.until(() => arrivedAt(scene) === 3);
    await bench.run(20);
    // 0a000001 ^ 0a0000xx: 3, 2 and 4.
    const seen = rings.map((ring) => frameCompletions(bench.b, ring.cq).map(({ hash, qpn }) => [hash, qpn]));
    expect(seen).toEqual([
      [
        [2, first],
        [4, first],
      ],
      [[3, first + 1]],
    ]);
  });
});

describe('a reset', () => {
  it('leaves nothing behind of frames on their way, whenever it comes', async () => {
    const fresh = (await ringScene()).bench.b.dataPath.blocks;
    const rest = [fresh.frameReceiver.inspect(), fresh.frameTransmitter.inspect()];
    for (let step = 0; step < 30; step++) {
      const scene = await ringScene({ hca: tightest });
      const { bench, b, to } = scene;
      for (let index = 0; index < 6; index++) {
        b.qp.receive([to.part(index * 2000, 1536)]);
        send(scene, frameOf(MAC_B, pattern(index, 1000)), index * 2000);
      }
      await bench.run(step / 2);
      for (const node of bench.nodes)
        node.act(() => {
          node.reads.reset(node.domain.cycle);
          node.writes.reset(node.domain.cycle);
          node.dataPath.control.resetAll();
        });
      await bench.run(20);
      for (const { dataPath, ethernet } of bench.nodes) {
        expect([dataPath.blocks.frameReceiver.inspect(), dataPath.blocks.frameTransmitter.inspect()]).toEqual(
          rest,
        );
        expect([ethernet!.port.heldFrames, dataPath.blocks.writer.heldCount]).toEqual([0, 0]);
        expect(dataPath.parts.requestPackets.heldCount).toBe(0);
      }
    }
  });
});

describe('hostile software', () => {
  it('of rings gets completions, errors or nothing, and another ring goes on', async () => {
    const random = new Random(17);
    for (let round = 0; round < 20; round++) {
      const scene = await ringScene(random.chance(0.5) ? { hca: tightest } : {});
      const { bench, b, to } = scene;
      const rough = new Ring(bench.a, { sqLogCount: random.below(5), sqLogStride16: random.below(4) });
      await bench.run(5);
      for (let index = 0; index < 12; index++) {
        const wqe = Uint8Array.from({ length: 16 + 16 * random.below(3) }, () => random.below(256));
        // Most of them SENDs of any size by their own account.
        if (random.chance(0.8)) wqe[3] = WqeOpcode.SEND;
        rough.qp.sendBytes(wqe);
        if (random.chance(0.5)) await bench.run(1);
      }
      await bench.run(100);
      const frame = frameOf(MAC_B, pattern(round, 120));
      b.qp.receive([to.part(0, 1536)]);
      send(scene, frame);
      await bench.until(() => b.cq.takenCount() > 0, 200);
      expect(to.read(0, frame.length)).toEqual(frame);
    }
  });
});
