/**
 * Marks of congestion between two cards with RoCE v2 at 10 Gb/s: CNPs to the byte, their distance, and the distance of packets
 * at a QP's rate. Expected frames were computed by a script of struct and zlib.crc32 from annex A17 alone, which also finds
 * the ICRC of the CNP captured on a ConnectX-4 Lx.
 */
import { describe, expect, it } from 'vitest';
import { ServiceType } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { fromHex, toHex } from '../../../../base/index.ts';
import { decodeEthernet, encodePacket, Opcode, RoceBytes, type WirePacket } from '../../../../wire/index.ts';
import { type BenchOptions, type DataPathBench, dataPathBench } from '../../testing/data-path-bench.ts';
import { Cq, connectedPair, Qp, Region } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramTo } from '../../testing/datagrams.ts';
import { GID_INDEX, gidOfNode, macBytes, macOfNode } from '../../testing/roce-ends.ts';

const v4 = 'v2 over IPv4' as const;
const forever = 1_000_000;
/** One CNP alone, and no increase. */
const still = { algorithm: 'dcqcn', minTimeBetweenCnpsUs: forever } as const;
const dcqcn = {
  gainPer1024: 4,
  alphaPeriodUs: forever,
  initialAlphaPer1024: 1024,
  timerUs: forever,
  byteCounter: 2 ** 30,
  fastRecoverySteps: 5,
  additiveIncreaseMbps: 40,
  hyperIncreaseMbps: 400,
  minRateMbps: 1,
};

interface Seen {
  readonly atPs: number;
  readonly frame: Uint8Array;
  readonly packet: WirePacket;
}

function packetOf(frame: Uint8Array): WirePacket {
  const packet = decodeEthernet(frame);
  return packet.kind === 'packet' ? packet : expect.fail(packet.kind);
}

/** Frames as they leave a node. */
function sentBy(node: DataPathBench['a']): Seen[] {
  const frames: Seen[] = [];
  node.ethernet!.port.tap = {
    packetPassed: (direction, atPs, bytes, at, lengthBytes) => {
      const frame = bytes.slice(at, at + lengthBytes);
      if (direction === 'outbound') frames.push({ atPs, frame, packet: packetOf(frame) });
    },
  };
  return frames;
}

/** Marks the packets that `a` sends and that accept a mark: all, or that many of them. */
function markAll({ a }: DataPathBench, shots?: number): void {
  a.ethernet!.port.faults.addRule({ kind: 'congested' }, { shots }, { fired: () => undefined });
}

async function roceBench(options: BenchOptions = {}) {
  const bench = await dataPathBench({ roce: v4, ethernet: {}, congestion: { ...still, dcqcn }, ...options });
  return { bench, fromA: sentBy(bench.a), fromB: sentBy(bench.b) };
}

const isCnp = ({ packet: { bth } }: Seen): boolean => bth.opcode === 0x81;
const ecnOf = ({ packet: { ipv4, ipv6 } }: Seen): number => (ipv4 ?? ipv6)!.ecn;

const countsOf = ({ dataPath }: DataPathBench['a']): readonly number[] => {
  const { notificationPoint: np, reactionPoint: rp } = dataPath.blocks;
  return [np.markedCount, np.sentCount, rp.handledCount, rp.ignoredCount];
};

describe('the notification point', () => {
  it.each([
    [
      'IPv4',
      v4,
      {},
      '0002c90000010002c9000002080045c0003c00004000401125eb0a0200020a020001c12312b7002800008100ffff400001180000000000000000000000000000000000000000cd138da0',
    ],
    [
      'IPv6 in a VLAN',
      'v2 over IPv6' as const,
      { forceVlan: 1, vlanIndex: 5, scheduleQueue: 0x83 | (3 << 3) },
      '0002c90000010002c90000028100c00786dd6c00000000281140fe800000000000000000000000000002fe800000000000000000000000000001c12312b7002800008100ffff400001180000000000000000000000000000000000000000a77fb28f',
    ],
  ])(
    'annex A17.9: answers a marked packet over %s by this CNP, byte for byte',
    async (_, roce, path, bytes) => {
      const { bench, fromB } = await roceBench({ roce });
      bench.a.ethernet!.side.steering.vlans[5] = 7;
      bench.b.ethernet!.side.steering.vlans[5] = 7;
      const { a, aCq } = connectedPair(bench.a, bench.b, { a: { qpn: 0x118 }, path });
      const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
      await bench.run(5);
      markAll(bench);
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
      await bench.until(() => aCq.takenCount() === 1, 1000);
      expect(fromB.map(({ packet }) => packet.bth.opcode)).toEqual([Opcode.CNP, Opcode.RC_ACKNOWLEDGE]);
      expect(toHex(fromB[0]!.frame)).toBe(bytes);
      expect([countsOf(bench.a), countsOf(bench.b)]).toEqual([
        [0, 0, 1, 0],
        [1, 1, 0, 0],
      ]);
      bench.checkBalances();
    },
  );

  it('annex A17.9: agrees with the CNP that a ConnectX-4 Lx sent (scapy roce.uts)', () => {
    const frame = fromHex(
      `e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000${'00'.repeat(16)}82fd002a`,
    );
    const bytes = new Uint8Array(512);
    const area = { bytes, words: new Int32Array(bytes.buffer), floats: new Float64Array(bytes.buffer) };
    const records = new RoceBytes(area);
    expect(records.unpack(frame, 0, frame.length, 0)).toBe(0);
    const again = new Uint8Array(frame.length);
    expect(records.pack(0, again, 0)).toBe(frame.length);
    expect(toHex(again)).toBe(toHex(frame));
  });

  it('RFC 3168, 5: has packets with payload sent ECT, and acknowledgements, requests of READs and CNPs not', async () => {
    const { bench, fromA, fromB } = await roceBench();
    // Software requests DSCP 26 and an ECN of its own.
    const { a, aCq } = connectedPair(bench.a, bench.b, { path: { trafficClass: (26 << 2) | 3 } });
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    const part = [from.part(0, 64)];
    markAll(bench, 1);
    for (let count = 0; count < 2; count++)
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: part, remote: to });
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: part, remote: to });
    await bench.until(() => aCq.takenCount() === 3, 1000);
    const classes = [...fromA, ...fromB].map((seen) => [
      seen.packet.bth.opcode,
      seen.packet.ipv4!.differentiatedServices,
      ecnOf(seen),
    ]);
    const kinds = new Map(classes.map((row) => [row.join(), row]));
    expect([...kinds.values()]).toEqual([
      [Opcode.RC_RDMA_WRITE_ONLY, 26, 3],
      [Opcode.RC_RDMA_WRITE_ONLY, 26, 2],
      [Opcode.RC_RDMA_READ_REQUEST, 26, 0],
      [Opcode.CNP, 48, 0],
      [Opcode.RC_ACKNOWLEDGE, 26, 0],
      [Opcode.RC_RDMA_READ_RESPONSE_ONLY, 26, 2],
    ]);
  });

  it('DCQCN: sends one CNP to a QP per minTimeBetweenCnps, and to others of their own', async () => {
    // With an alpha of almost 0 the rates stay as they are.
    const gentle = { ...dcqcn, initialAlphaPer1024: 0, gainPer1024: 1 };
    const congestion = { algorithm: 'dcqcn', minTimeBetweenCnpsUs: 50, dcqcn: gentle } as const;
    const { bench, fromB } = await roceBench({ congestion });
    const pairs = [1, 2].map(() => connectedPair(bench.a, bench.b));
    const [from, to] = [new Region(bench.a, 262_144), new Region(bench.b, 262_144)];
    await bench.run(5);
    markAll(bench);
    for (const { a } of pairs)
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 262_144)], remote: to });
    await bench.until(() => pairs.every(({ aCq }) => aCq.takenCount() === 1), 20_000);
    for (const { a } of pairs) {
      const atPs = fromB.filter((seen) => isCnp(seen) && seen.packet.bth.destinationQp === a.qpn);
      const distances = atPs.slice(1).map((seen, index) => seen.atPs - atPs[index]!.atPs);
      expect(distances.length).toBeGreaterThan(5);
      // A packet may come up to its distance after that time; CNPs leave at once, but for a frame before them.
      expect(Math.min(...distances)).toBeGreaterThan(50e6 - 1.2e6);
    }
    const [marked, sent] = countsOf(bench.b) as [number, number];
    expect([sent, marked > 10 * sent]).toEqual([countsOf(bench.a)[2], true]);
    bench.checkBalances();
  });

  it('leaves datagrams as they are, and counts their marks', async () => {
    const { bench, fromA, fromB } = await roceBench();
    const { qp, cq } = datagramQp(bench.a);
    const target = datagramQp(bench.b);
    const [from, into] = [new Region(bench.a, 64), new Region(bench.b, 256)];
    target.qp.receive([into.part(0, 256)]);
    await bench.run(5);
    const vector = {
      sourceGidIndex: GID_INDEX,
      hopLimit: 9,
      destinationGid: gidOfNode(v4, 2),
      trafficClass: 2,
    };
    const datagram = { ...datagramTo(target.qp.qpn, 0, vector), destinationMac: macBytes(macOfNode(2)) };
    markAll(bench);
    qp.send({ opcode: WqeOpcode.SEND, segments: [from.part(0, 64)], datagram });
    await bench.until(() => cq.takenCount() === 1, 1000);
    await bench.run(50);
    expect([fromA.map(ecnOf), fromB.length, countsOf(bench.b)]).toEqual([[3], 0, [1, 0, 0, 0]]);
  });

  it('answers an unreliable connection, too', async () => {
    const { bench, fromB } = await roceBench();
    const service = { fields: { serviceType: ServiceType.UC } };
    const { a, b, aCq } = connectedPair(bench.a, bench.b, { a: service, b: service });
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    markAll(bench);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    await bench.run(20);
    expect(fromB.map(({ packet }) => [packet.bth.opcode, packet.bth.destinationQp])).toEqual([[0x81, a.qpn]]);
    expect([countsOf(bench.a)[2], b.qpn > 0]).toEqual([1, true]);
  });

  it('is off by default: a mark is not answered, and a CNP is not known', async () => {
    const { bench, fromA, fromB } = await roceBench({ congestion: {} });
    const { a, aCq } = connectedPair(bench.a, bench.b, { path: { trafficClass: 2 } });
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    markAll(bench);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    expect([fromA.map(ecnOf), fromB.map(ecnOf), fromB.some(isCnp)]).toEqual([[3], [2], false]);
    expect(countsOf(bench.b)).toEqual([0, 0, 0, 0]);
  });
});

/** Bytes of a packet with this payload as the reaction point counts them: LRH to VCRC with a GRH, preamble and gap. */
const countedBytes = (payload: number, headers = 0): number =>
  8 + 40 + 12 + headers + payload + 4 + 2 + 8 + 12;

/** Distances of the frames of these opcodes. */
const distancesOf = (frames: readonly Seen[], opcodes: readonly number[]): number[] => {
  const times = frames.filter(({ packet }) => opcodes.includes(packet.bth.opcode)).map(({ atPs }) => atPs);
  return times.slice(1).map((atPs, index) => atPs - times[index]!);
};

/** The middle one: a translation that is not on chip delays single packets. */
const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[values.length >> 1]!;

describe('the reaction point', () => {
  const middle = [Opcode.RC_RDMA_WRITE_MIDDLE];

  it('DCQCN: sends the packets of a QP at half the line rate after a CNP, and those of others at line rate', async () => {
    const { bench, fromA } = await roceBench();
    const pairs = [1, 2].map(() => connectedPair(bench.a, bench.b));
    const [from, to] = [new Region(bench.a, 262_144), new Region(bench.b, 262_144)];
    await bench.run(5);
    const [slow, fast] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
    markAll(bench, 1);
    slow.a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => slow.aCq.takenCount() === 1, 1000);
    const message = { opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 262_144)], remote: to };
    fromA.length = 0;
    slow.a.send(message);
    await bench.until(() => slow.aCq.takenCount() === 2, 20_000);
    // 5 Gb/s: a byte takes 1.6 ns.
    const distances = distancesOf(fromA, middle);
    expect(distances).toHaveLength(253);
    expect(median(distances) / (countedBytes(1024) * 1600)).toBeCloseTo(1, 3);
    const { stallReasons, stalledCycles } = bench.a.dataPath.blocks.requester.account.closedAt(
      bench.a.domain.cycle,
    );
    // It waits for all of the time but the six cycles of each of 257 packets and what the first of them takes.
    expect(stalledCycles[stallReasons.indexOf('rateLimit')]).toBeGreaterThan(250 * (758 - 6));
    fromA.length = 0;
    fast.a.send(message);
    slow.a.send(message);
    await bench.until(() => fast.aCq.takenCount() === 1, 20_000);
    const ends = fromA.findLastIndex(({ packet }) => packet.bth.destinationQp === fast.b.qpn);
    const until = fromA.slice(0, ends);
    const share = until.filter(({ packet }) => packet.bth.destinationQp === slow.b.qpn).length / until.length;
    // The slow QP has half of the line, to which it is limited, and the fast one the rest.
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.51);
    bench.checkBalances();
  });

  it('sends READ responses at the rate of their QP', async () => {
    const { bench, fromB } = await roceBench();
    const { a, b, aCq, bCq } = connectedPair(bench.a, bench.b);
    const [from, to] = [new Region(bench.a, 262_144), new Region(bench.b, 262_144)];
    await bench.run(5);
    bench.b.ethernet!.port.faults.addRule({ kind: 'congested' }, { shots: 1 }, { fired: () => undefined });
    b.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [to.part(0, 64)], remote: from });
    await bench.until(() => bCq.takenCount() === 1, 1000);
    expect(countsOf(bench.b)[2]).toBe(1);
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [from.part(0, 262_144)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 20_000);
    const distances = distancesOf(fromB, [Opcode.RC_RDMA_READ_RESPONSE_MIDDLE]);
    expect(median(distances) / (countedBytes(1024) * 1600)).toBeCloseTo(1, 3);
  });

  it('ignores CNPs with TIMELY, and slows down when round trips get longer', async () => {
    const { bench, fromA } = await roceBench({ congestion: { algorithm: 'timely' } });
    const { a, aCq } = connectedPair(bench.a, bench.b);
    const [from, to] = [new Region(bench.a, 262_144), new Region(bench.b, 262_144)];
    await bench.run(5);
    const write = (count: number) => {
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 4096)], remote: to });
      return bench.until(() => aCq.takenCount() === count, 20_000);
    };
    const { reactionPoint } = bench.a.dataPath.blocks;
    const rate = () => reactionPoint.rateMbps(bench.a.dataPath.parts.qps.rows[a.slot]!, bench.a.domain.cycle);
    await write(1);
    expect([rate(), fromA.map(ecnOf)]).toEqual([10_000, [0, 0, 0, 0]]);
    bench.b.ethernet!.port.faults.addRule(
      { kind: 'late', delayPs: 900_000_000 },
      { shots: 1 },
      { fired: () => undefined },
    );
    await write(2);
    // A round trip of some 900 us: 10,000 × (1 - 0.8 × (1 - 500/900)).
    expect(rate()).toBeLessThan(10_000 * (1 - 0.8 * (1 - 500 / 890)));
    expect(rate()).toBeGreaterThan(10_000 * (1 - 0.8 * (1 - 500 / 910)));
    reactionPoint.notified(bench.a.dataPath.parts.qps.rows[a.slot]!, bench.a.domain.cycle);
    expect(countsOf(bench.a)).toEqual([0, 0, 0, 1]);
  });

  it('IBTA 9.6.1.1: drops CNPs for no QP, another partition or an unconnected QP, and ignores those for datagrams', async () => {
    const { bench, fromB } = await roceBench();
    const { a, aCq } = connectedPair(bench.a, bench.b);
    const waiting = new Qp(bench.a, { sendCq: new Cq(bench.a) });
    const { qp } = datagramQp(bench.a);
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    await bench.run(5);
    markAll(bench);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    const cnp = fromB.find(isCnp)!.packet;
    const { port } = bench.b.ethernet!;
    for (const bth of [
      { destinationQp: 0xabcdef },
      { destinationQp: waiting.qpn },
      { destinationQp: qp.qpn },
      { partitionKey: 0x8001 },
      { becn: 0 },
    ]) {
      const frame = encodePacket({ ...cnp, bth: { ...cnp.bth, ...bth } });
      port.send(frame, 0, frame.length);
      await bench.run(10);
    }
    expect(bench.a.dataPath.parts.violations.report()).toEqual({
      packetUnknownQp: 1,
      packetForeignGid: 1,
      packetPkey: 1,
    });
    expect(countsOf(bench.a)).toEqual([0, 0, 2, 1]);
  });

  it('forgets the rate of a QP with the QP', async () => {
    const { bench } = await roceBench();
    const { a } = connectedPair(bench.a, bench.b);
    await bench.run(5);
    const { reactionPoint } = bench.a.dataPath.blocks;
    const pair = bench.a.dataPath.parts.qps.rows[a.slot]!;
    bench.a.act(() => reactionPoint.notified(pair, bench.a.domain.cycle));
    await bench.run(5);
    const rate = () => reactionPoint.rateMbps(pair, bench.a.domain.cycle);
    expect(rate()).toBe(5000);
    a.toError();
    await bench.run(5);
    bench.a.act(() => bench.a.dataPath.control.qpDestroyed(a.slot));
    await bench.run(5);
    expect(rate()).toBe(10_000);
  });
});
