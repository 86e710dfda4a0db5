/** Verbs over iWARP, between two cards whose byte streams are joined. */
import { describe, expect, it } from 'vitest';
import { ReceiveOpcode } from '../../../../abi/cqe.ts';
import { RtrKind } from '../../../../abi/tcp-connection.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { completionsOf, iwarpScene, runJoined } from '../testing/iwarp-bench.ts';

const { RDMA_READ, RDMA_WRITE, SEND } = WqeOpcode;
/** EMSS of 1460 bytes (RFC 5044, 4.5): 1460 − 6, since 1460 is a multiple of 4. */
const MULPDU = 1454;
const TAGGED = 14;
const UNTAGGED = 18;

const around = (headerBytes: number): number[] => [
  0,
  1,
  MULPDU - headerBytes - 1,
  MULPDU - headerBytes,
  MULPDU - headerBytes + 1,
  MULPDU,
  6000,
];

describe('an RDMA WRITE over iWARP', () => {
  it.each(around(TAGGED))('of %i bytes places them and completes once', async (lengthBytes) => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    const segments = lengthBytes === 0 ? [] : [local.part(100, lengthBytes)];
    a.send({ opcode: RDMA_WRITE, segments, remote: { address: remote.address + 11, key: remote.key } });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ wqeCounter: 0, syndrome: 0, isSend: true }]);
    await runJoined(bench, 20);
    expect(remote.read(11, lengthBytes)).toEqual(local.read(100, lengthBytes));
    expect(aCq.drain()).toEqual([]);
    const { received } = bench.b.dataPath.parts.segmentCounters;
    expect(received.segments[0]).toBe(Math.max(1, Math.ceil(lengthBytes / (MULPDU - TAGGED))));
  });
});

describe('a SEND over iWARP', () => {
  it.each(around(UNTAGGED))('of %i bytes is scattered and completes at both ends', async (lengthBytes) => {
    const { bench, a, b, aCq, bCq, local, remote } = await iwarpScene();
    b.receive([remote.part(5000, 600), remote.part(8000, 7000)]);
    a.send({ opcode: SEND, segments: lengthBytes === 0 ? [] : [local.part(64, lengthBytes)] });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ wqeCounter: 0, syndrome: 0 }]);
    expect(await completionsOf(bench, bCq, 1)).toMatchObject([
      { wqeCounter: 0, syndrome: 0, byteCount: lengthBytes, opcode: ReceiveOpcode.SEND },
    ]);
    const first = Math.min(600, lengthBytes);
    expect(remote.read(5000, first)).toEqual(local.read(64, first));
    expect(remote.read(8000, lengthBytes - first)).toEqual(local.read(64 + first, lengthBytes - first));
  });
});

describe('an RDMA READ over iWARP', () => {
  it.each(around(TAGGED))('of %i bytes brings them and completes once', async (lengthBytes) => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    const segments = lengthBytes === 0 ? [] : [local.part(100, lengthBytes)];
    a.send({ opcode: RDMA_READ, segments, remote: { address: remote.address + 11, key: remote.key } });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([
      { wqeCounter: 0, syndrome: 0, byteCount: lengthBytes },
    ]);
    expect(local.read(100, lengthBytes)).toEqual(remote.read(11, lengthBytes));
  });
});

describe.each([
  { hasCrc: true, hasMarkers: true },
  { hasCrc: false, hasMarkers: false, rtr: RtrKind.WRITE },
  { hasCrc: false, hasMarkers: true, rtr: RtrKind.SEND },
  { hasCrc: true, hasMarkers: false, rtr: RtrKind.READ },
])('with %o', (agreement) => {
  it.each([[[]], [[1, 700, 33]], [[1460, 1]], [[16_000]]])(
    'cut by %o, all verbs carry 6,000 bytes both ways',
    async (cuts) => {
      const { bench, a, b, aCq, bCq, local, remote, streams } = await iwarpScene(agreement);
      streams.a.cuts = cuts;
      streams.b.cuts = cuts;
      const sides = [
        { qp: a, cq: aCq, peer: b, peerCq: bCq, own: local, other: remote },
        { qp: b, cq: bCq, peer: a, peerCq: aCq, own: remote, other: local },
      ];
      for (const { qp, cq, peer, peerCq, own, other } of sides) {
        const target = { address: other.address, key: other.key };
        const expected = own.read(0, 6000);
        peer.receive([other.part(8000, 6000)]);
        qp.send({ opcode: RDMA_WRITE, segments: [own.part(0, 6000)], remote: target });
        qp.send({ opcode: SEND, segments: [own.part(0, 6000)] });
        qp.send({ opcode: RDMA_READ, segments: [own.part(8000, 6000)], remote: target });
        const done = await completionsOf(bench, cq, 3);
        expect(done.map(({ syndrome, wqeCounter }) => `${wqeCounter}: ${syndrome}`)).toEqual([
          '0: 0',
          '1: 0',
          '2: 0',
        ]);
        expect(await completionsOf(bench, peerCq, 1)).toMatchObject([{ syndrome: 0, byteCount: 6000 }]);
        expect(other.read(0, 6000)).toEqual(expected);
        expect(other.read(8000, 6000)).toEqual(expected);
        expect(own.read(8000, 6000)).toEqual(expected);
      }
      expect(streams.a.openCount + streams.b.openCount).toBe(0);
    },
  );
});
