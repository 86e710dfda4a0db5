/**
 * Segments that are placed before the gap in front of them is closed (RFC 5041, 5.3), between two cards over their TCP. With markers the ULPDU
 * of a segment of 1460 bytes has at most 1460 - (6 + 4 * 3) = 1442 bytes (RFC 5044, appendix A), 14 of which are a tagged header.
 */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { RtrKind } from '../../../abi/tcp-connection.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { RdmapOpcode } from '../../../protocol/iwarp/index.ts';
import { pattern } from '../testing/data-path-verbs.ts';
import { cardScene } from './testing/card-bench.ts';

const { RDMA_READ, RDMA_WRITE, SEND } = WqeOpcode;
const payloadMax = 1442 - 14;
/** Frames with less than an FPDU of 60 bytes carry none of the messages below. */
const dataFrameBytes = 14 + 20 + 20 + 60;

const scene = (iwarp: { earlySegments: number }, hasMarkers = true) =>
  cardScene({ hasMarkers, rtr: RtrKind.WRITE }, { iwarp: { retransmitMinUs: 400, ...iwarp } });

type Node = Awaited<ReturnType<typeof cardScene>>['bench']['a'];

interface Gap {
  /** From now on retransmissions pass. */
  isOpen: boolean;
}

/** Loses one frame with data, `number` frames after the next one, and all retransmissions while the gap is open. */
function openGap({ ethernet }: Node, number: number): Gap {
  const { port } = ethernet!;
  const send = port.send.bind(port);
  let count = 0;
  const gap: Gap = { isOpen: true };
  port.send = (source, at, lengthBytes, fromPs, isSentAgain) => {
    const isLost = isSentAgain === true ? gap.isOpen : lengthBytes >= dataFrameBytes && count++ === number;
    if (!isLost) send(source, at, lengthBytes, fromPs, isSentAgain);
  };
  return gap;
}

describe('segments after a gap, with markers and hca.iwarp.earlySegments', () => {
  it('of a WRITE are placed before the gap is closed, once, and count as received after it', async () => {
    const { bench, a, b, bCq, local, remote } = await scene({ earlySegments: 16 });
    const gap = openGap(bench.a, 1);
    const before = remote.read(0, 6000);
    b.receive([remote.part(10_000, 100)]);
    a.post({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 6000)],
      remote: { address: remote.address, key: remote.key },
    });
    a.post({ opcode: SEND, segments: [local.part(7000, 100)] });
    a.ring();
    await bench.run(60);
    const isLost = (place: number): boolean => place >= payloadMax && place < 2 * payloadMax;
    const expected = local.read(0, 6000).map((byte, place) => (isLost(place) ? before[place]! : byte));
    expect(remote.read(0, 6000)).toEqual(expected);
    const { received } = bench.b.dataPath.parts.segmentCounters;
    expect(received.segments[RdmapOpcode.WRITE]).toBe(1 + 1);
    expect(bCq.takenCount()).toBe(0);
    // The SEND is kept: its receive is taken in order.
    expect(bench.b.dataPath.blocks.tcpEngine.inspect()['reorderMemory']).toBe(1);
    // Software's own bytes there stay: nothing is placed twice.
    const mark = pattern(77, 6000 - 2 * payloadMax);
    remote.write(mark, 2 * payloadMax);
    gap.isOpen = false;
    await bench.until(() => bCq.takenCount() === 1, 10_000);
    expect(remote.read(0, 2 * payloadMax)).toEqual(local.read(0, 2 * payloadMax));
    expect(remote.read(2 * payloadMax, mark.length)).toEqual(mark);
    expect(received.payloadBytes[RdmapOpcode.WRITE]).toBe(6000);
    expect(received.segments[RdmapOpcode.WRITE]).toBe(1 + 5);
    expect(remote.read(10_000, 100)).toEqual(local.read(7000, 100));
  });

  it('of a READ response are placed at once, and the READ completes when the gap is closed', async () => {
    const { bench, a, aCq, local, remote } = await scene({ earlySegments: 16 });
    const gap = openGap(bench.b, 0);
    const before = local.read(0, payloadMax);
    a.send({
      opcode: RDMA_READ,
      segments: [local.part(0, 6000)],
      remote: { address: remote.address, key: remote.key },
    });
    await bench.run(60);
    expect(local.read(payloadMax, 6000 - payloadMax)).toEqual(remote.read(payloadMax, 6000 - payloadMax));
    expect(local.read(0, payloadMax)).toEqual(before);
    expect(aCq.takenCount()).toBe(0);
    gap.isOpen = false;
    await bench.until(() => aCq.takenCount() === 1, 10_000);
    expect(local.read(0, 6000)).toEqual(remote.read(0, 6000));
  });

  it.each([
    ['no more than the parameter says', 2, true, 2],
    ['none without the parameter', 0, true, 0],
    ['none without markers, which alone locate an FPDU', 16, false, 0],
  ])('are placed early: %s', async (_, earlySegments, hasMarkers, placedCount) => {
    const { bench, a, local, remote } = await scene({ earlySegments }, hasMarkers);
    const gap = openGap(bench.a, 0);
    const before = remote.read(0, 10_000);
    a.send({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 10_000)],
      remote: { address: remote.address, key: remote.key },
    });
    await bench.run(60);
    const end = payloadMax * (1 + placedCount);
    expect(remote.read(0, payloadMax)).toEqual(before.slice(0, payloadMax));
    expect(remote.read(payloadMax, end - payloadMax)).toEqual(local.read(payloadMax, end - payloadMax));
    expect(remote.read(end + 20, 10_000 - end - 20)).toEqual(before.slice(end + 20));
    gap.isOpen = false;
    await bench.run(5000);
    expect(remote.read(0, 10_000)).toEqual(local.read(0, 10_000));
  });

  it('without a right are not placed, and end the stream when the gap is closed', async () => {
    const { bench, a, b, local, remote, logs, numbers } = await scene({ earlySegments: 16 });
    const gap = openGap(bench.a, 0);
    const target = { address: remote.address, key: remote.key };
    a.post({ opcode: RDMA_WRITE, segments: [local.part(0, 1000)], remote: target });
    a.post({
      opcode: RDMA_WRITE,
      segments: [local.part(1000, 1000)],
      remote: { address: remote.address - 1, key: remote.key },
    });
    a.ring();
    await bench.run(60);
    expect([b.state, logs.b.length]).toEqual([QpState.RTS, 1]);
    gap.isOpen = false;
    await bench.until(() => b.state === QpState.ERR, 10_000);
    expect(logs.b).toContain(`TERMINATE_SENT ${numbers.b} 0x1101`);
    expect(remote.read(0, 1000)).toEqual(local.read(0, 1000));
  });

  it('are placed, and not delivered, if what closes the gap ends the stream', async () => {
    const { bench, a, b, bCq, local, remote, logs, numbers } = await scene({ earlySegments: 16 });
    const gap = openGap(bench.a, 0);
    b.receive([remote.part(10_000, 100)]);
    const wrong = { address: remote.address - 1, key: remote.key };
    a.post({ opcode: RDMA_WRITE, segments: [local.part(0, 1000)], remote: wrong });
    a.post({
      opcode: RDMA_WRITE,
      segments: [local.part(1000, 1000)],
      remote: { address: remote.address, key: remote.key },
    });
    a.post({ opcode: SEND, segments: [local.part(0, 100)] });
    a.ring();
    await bench.run(60);
    expect(remote.read(0, 1000)).toEqual(local.read(1000, 1000));
    gap.isOpen = false;
    await bench.until(() => logs.a.some((line) => line.startsWith('TERMINATE')), 10_000);
    expect(logs.a).toContain(`TERMINATE_RECEIVED ${numbers.a} 0x1101`);
    const found: number[] = [];
    await bench.until(() => found.push(...bCq.drain().map(({ syndrome }) => syndrome)) > 0, 500);
    expect(found).toEqual([CqeSyndrome.WR_FLUSH_ERR]);
  });
});
