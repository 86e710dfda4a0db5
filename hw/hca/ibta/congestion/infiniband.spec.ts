/**
 * FECN and BECN between two cards with InfiniBand at 32 Gb/s (annex A10): notifications in acknowledgements and in CNPs to the byte,
 * and the pauses of a QP's packets. The expected CNP was computed by a script of struct and zlib.crc32 from IBTA vol 1, 7.7, 7.8
 * and 9.2, with the fields of Linux 6.1 drivers/infiniband/hw/hfi1/ud.c, return_cnp.
 */
import { describe, expect, it } from 'vitest';
import { ServiceType } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { toHex } from '../../../../base/index.ts';
import { decodeInfiniband, Opcode, type WirePacket } from '../../../../wire/index.ts';
import { type BenchOptions, type DataPathBench, dataPathBench } from '../../testing/data-path-bench.ts';
import { connectedPair, Region } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramTo } from '../../testing/datagrams.ts';

const { RC_ACKNOWLEDGE, CNP_INFINIBAND } = Opcode;
/** BECNs alone, and no decrease. */
const still = {
  algorithm: 'cct',
  cct: { increase: 1, limit: 127, min: 0, timer: 65_535, multiplierStep: 1, shift: 0 },
} as const;

interface Seen {
  readonly atPs: number;
  readonly bytes: Uint8Array;
  readonly packet: WirePacket;
}

/** Packets as they leave a node. */
function sentBy({ wire }: DataPathBench['a']): Seen[] {
  const packets: Seen[] = [];
  wire.tap = {
    packetPassed: (direction, atPs, from, at, lengthBytes) => {
      if (direction !== 'outbound') return;
      const bytes = from.slice(at, at + lengthBytes);
      const packet = decodeInfiniband(bytes);
      if (packet.kind !== 'packet') throw new Error(packet.kind);
      packets.push({ atPs, bytes, packet });
    },
  };
  return packets;
}

async function annexBench(options: BenchOptions = {}) {
  const bench = await dataPathBench({ congestion: still, ...options });
  return { bench, fromA: sentBy(bench.a), fromB: sentBy(bench.b) };
}

/** Marks packets of a node: all, or that many. */
const mark = ({ wire }: DataPathBench['a'], shots = 1_000_000): void =>
  wire.faults.addRule({ kind: 'congested' }, { shots }, { fired: () => undefined });

const opcodesOf = (packets: readonly Seen[]): readonly number[][] =>
  packets.map(({ packet: { bth } }) => [bth.opcode, bth.fecn, bth.becn]);

/** Marked, CNPs, BECNs in responses; BECNs received, ignored. */
const countsOf = ({ dataPath }: DataPathBench['a']): readonly number[] => {
  const { notificationPoint: np, reactionPoint: rp } = dataPath.blocks;
  return [np.markedCount, np.sentCount, np.becnCount, rp.handledCount, rp.ignoredCount];
};

describe('a packet with FECN', () => {
  it('annex A10: of a reliable connection is answered by BECN in its acknowledgement, once', async () => {
    const { bench, fromA, fromB } = await annexBench();
    const { a, aCq } = connectedPair(bench.a, bench.b);
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    mark(bench.a, 1);
    const write = () => a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    write();
    await bench.until(() => aCq.takenCount() === 1, 1000);
    write();
    await bench.until(() => aCq.takenCount() === 2, 1000);
    expect(opcodesOf(fromA)).toEqual([
      [Opcode.RC_RDMA_WRITE_ONLY, 1, 0],
      [Opcode.RC_RDMA_WRITE_ONLY, 0, 0],
    ]);
    expect(opcodesOf(fromB)).toEqual([
      [RC_ACKNOWLEDGE, 0, 1],
      [RC_ACKNOWLEDGE, 0, 0],
    ]);
    expect([countsOf(bench.a), countsOf(bench.b)]).toEqual([
      [0, 0, 0, 1, 0],
      [1, 0, 1, 0, 0],
    ]);
    bench.checkBalances();
  });

  it('annex A10: of a READ response is answered by a CNP to the responder, which paces its responses', async () => {
    const { bench, fromA, fromB } = await annexBench();
    const { a, aCq } = connectedPair(bench.a, bench.b);
    const [from, to] = [new Region(bench.a, 65_536), new Region(bench.b, 65_536)];
    await bench.run(5);
    mark(bench.b, 1);
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [from.part(0, 65_536)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 20_000);
    expect(opcodesOf(fromA)).toEqual([
      [Opcode.RC_RDMA_READ_REQUEST, 0, 0],
      [CNP_INFINIBAND, 0, 1],
    ]);
    expect(countsOf(bench.b)).toEqual([0, 0, 0, 1, 0]);
    expect(pauseOf(fromB, Opcode.RC_RDMA_READ_RESPONSE_MIDDLE)).toBeCloseTo(1, 1);
  });

  it('annex A10: of an unreliable connection is answered by this CNP, byte for byte', async () => {
    const { bench, fromB } = await annexBench();
    const service = { fields: { serviceType: ServiceType.UC } };
    const { a, aCq } = connectedPair(bench.a, bench.b, { a: { ...service, qpn: 0x118 }, b: service });
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    mark(bench.a);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    await bench.run(20);
    expect(fromB.map(({ bytes }) => toHex(bytes))).toEqual([
      '00020001000600028000ffff40000118000000002d911a6fb27c',
    ]);
    expect([countsOf(bench.a), countsOf(bench.b)]).toEqual([
      [0, 0, 0, 1, 0],
      [1, 1, 0, 0, 0],
    ]);
    bench.checkBalances();
  });

  it('of a datagram is counted', async () => {
    const { bench, fromB } = await annexBench();
    const { qp, cq } = datagramQp(bench.a);
    const target = datagramQp(bench.b);
    const [from, into] = [new Region(bench.a, 64), new Region(bench.b, 256)];
    target.qp.receive([into.part(0, 256)]);
    await bench.run(5);
    mark(bench.a);
    const datagram = datagramTo(target.qp.qpn, bench.b.address.lid);
    qp.send({ opcode: WqeOpcode.SEND, segments: [from.part(0, 64)], datagram });
    await bench.until(() => cq.takenCount() === 1, 1000);
    await bench.run(50);
    expect([fromB.length, countsOf(bench.b)]).toEqual([0, [1, 0, 0, 0, 0]]);
  });

  it('is not answered without congestion control', async () => {
    const { bench, fromB } = await annexBench({ congestion: {} });
    const { a, aCq } = connectedPair(bench.a, bench.b);
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    mark(bench.a);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    expect([opcodesOf(fromB), countsOf(bench.b)]).toEqual([[[RC_ACKNOWLEDGE, 0, 0]], [0, 0, 0, 0, 0]]);
  });
});

/** Time of a packet of 1024 bytes and its framing at 32 Gb/s: LRH 8, BTH 12, ICRC 4, VCRC 2. */
const framingBytes = 2;
const packetPs = (8 + 12 + 1024 + 4 + 2 + framingBytes) * 250;

/** Mean pause after packets of this opcode, in packet times; the first ones may have left before the notification arrived. */
function pauseOf(packets: readonly Seen[], opcode: number): number {
  const times = packets.filter(({ packet }) => packet.bth.opcode === opcode).map(({ atPs }) => atPs);
  const late = times.slice(times.length >> 1);
  return (late.at(-1)! - late[0]!) / (late.length - 1) / packetPs - 1;
}

describe('a QP whose packets were marked', () => {
  it.each([1, 2, 5])('annex A10: pauses after each packet for %i times its own', async (becns) => {
    const { bench, fromA } = await annexBench();
    const { a, aCq } = connectedPair(bench.a, bench.b);
    const [from, to] = [new Region(bench.a, 65_536), new Region(bench.b, 65_536)];
    await bench.run(5);
    mark(bench.a, becns);
    for (let count = 1; count <= becns; count++) {
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
      await bench.until(() => aCq.takenCount() === count, 1000);
    }
    fromA.length = 0;
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 65_536)], remote: to });
    await bench.until(() => aCq.takenCount() === becns + 1, 20_000);
    expect(pauseOf(fromA, Opcode.RC_RDMA_WRITE_MIDDLE)).toBeCloseTo(becns, 1);
    const { stallReasons, stalledCycles } = bench.a.dataPath.blocks.requester.account.closedAt(
      bench.a.domain.cycle,
    );
    expect(stalledCycles[stallReasons.indexOf('rateLimit')]).toBeGreaterThan(0);
    bench.checkBalances();
  });
});
