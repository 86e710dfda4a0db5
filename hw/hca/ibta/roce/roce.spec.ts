/**
 * Connections, datagrams and frames over ports of Ethernet with RoCE: everything that the InfiniBand data path does,
 * next to rings.
 */
import { describe, expect, it } from 'vitest';
import { roceUdCqe } from '../../../../abi/cqe.ts';
import { PathMtu, QpState, ServiceType } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Random } from '../../../../sim/index.ts';
import {
  DamagePlace,
  decodeEthernet,
  encodePacket,
  Opcode,
  type PacketEffect,
  type WirePacket,
} from '../../../../wire/index.ts';
import {
  type DataPathBench,
  type DataPathNode,
  dataPathBench,
  oneLineCaches,
  tightest,
} from '../../testing/data-path-bench.ts';
import { Cq, connectedPair, encodeWqe, pattern, Qp, Region } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramTo } from '../../testing/datagrams.ts';
import { runMixedTraffic } from '../../testing/mixed-traffic.ts';
import { frameCompletions, frameOf, Ring, steer } from '../../testing/rings.ts';
import {
  GID_INDEX,
  gidOfNode,
  MAC_INDEX,
  macBytes,
  macOfNode,
  type RoceForm,
  SOURCE_PORT,
} from '../../testing/roce-ends.ts';

const forms: readonly RoceForm[] = ['v1', 'v2 over IPv4', 'v2 over IPv6'];
const fast = { gigabitsPerSecond: 40, mtuBytes: 4200, receiveFifoFrames: 64 };
/** Local ACK timeout code 2: 16 us. */
const ackTimeout = 2;
/** 262 us. */
const slowAckTimeout = 6;

/** The frames that a node sends from now on. */
function framesOf({ a }: DataPathBench): Uint8Array[] {
  const frames: Uint8Array[] = [];
  const { port } = a.ethernet!;
  const { send } = port;
  port.send = (bytes, at, length, fromPs) => {
    frames.push(bytes.slice(at, at + length));
    send.call(port, bytes, at, length, fromPs);
  };
  return frames;
}

const packetOf = (frame: Uint8Array): WirePacket => {
  const packet = decodeEthernet(frame);
  if (packet.kind !== 'packet') return expect.fail(packet.kind);
  return packet;
};

const QKEY = 0x8001_0000;
const BASE = 0x200;

/** QP1 of a node's port. */
function managementQp(node: DataPathNode): { readonly qp: Qp; readonly cq: Cq } {
  const cq = new Cq(node);
  node.specialQpBase = BASE;
  const qp = new Qp(node, {
    sendCq: cq,
    qpn: BASE + 2,
    sqLogStride16: 5,
    fields: { serviceType: ServiceType.MLX, pathMtu: PathMtu.MTU_4096, logMaxMessage: 11, qkey: QKEY },
  });
  qp.connect(0, 0, 0);
  return { qp, cq };
}

describe.each(forms)('RoCE %s', (roce) => {
  it.each([
    ['', {}, ackTimeout],
    [' at the smallest sizes', tightest, ackTimeout],
    // Slower than the cable: packets wait in the port, which drops some, for longer than the other scenes allow.
    [' with one context on chip', oneLineCaches, slowAckTimeout],
  ])('carries the mixture of all operations%s', async (_what, hca, timeout) => {
    const bench = await dataPathBench({ roce, ethernet: fast, hca });
    await runMixedTraffic(bench, 3, 30, 5, timeout);
    for (const { dataPath } of bench.nodes) expect(dataPath.parts.violations.report()).toEqual({});
  });

  it('goes round by the loopback to the port itself', async () => {
    const bench = await dataPathBench({ roce, ethernet: fast });
    const path = { remoteGid: gidOfNode(roce, 1) };
    await runMixedTraffic(bench, 2, 20, 6, ackTimeout, { a: bench.a, b: bench.a }, path);
    expect(bench.a.ethernet!.port.transmitted.frames).toBe(0);
  });

  it('IBTA 9.7: moves every byte once while frames are lost and damaged, and a full port drops them', async () => {
    const lossy = { ...fast, lossPerMillion: 50_000, corruptionPerMillion: 20_000, receiveFifoFrames: 2 };
    const bench = await dataPathBench({ roce, ethernet: lossy });
    await runMixedTraffic(bench, 2, 30, 7, ackTimeout);
    const { received } = bench.b.ethernet!.port;
    expect(Math.min(received.corruptedFrames, bench.a.ethernet!.port.transmitted.lostFrames)).toBeGreaterThan(
      2,
    );
    expect(received.fifoDrops + bench.a.ethernet!.port.received.fifoDrops).toBeGreaterThan(0);
  });

  it('IEEE 802.3-2018, 31B: a full port with flow control drops nothing; what waits at the other is stalled for the pause', async () => {
    const slow = { receiveBytesPerCycle: 2 };
    const ethernet = { ...fast, receiveFifoFrames: 2 };
    const bench = await dataPathBench({ roce, ethernet, hca: slow, hasFlowControl: true });
    await runMixedTraffic(bench, 2, 30, 7, 8);
    const pausedOf = ({ dataPath }: DataPathNode): number => {
      const { account } = dataPath.blocks.transmitter;
      return account.stalledCycles[account.stallReasons.indexOf('pause')]!;
    };
    for (const node of bench.nodes) {
      const { received, flowControl } = node.ethernet!.port;
      const { pauseWaitPs, pausedPs, sentFrames } = flowControl.totals();
      expect(received.fifoDrops).toBe(0);
      expect(Math.min(pauseWaitPs, pausedPs, sentFrames, pausedOf(node))).toBeGreaterThan(0);
      expect(node.dataPath.blocks.transmitter.repeatedPacketCount).toBe(0);
      // The stage tries again at an edge of 2.34 ns after the pause ends, once for each pause.
      const edgesPs = 2342 * flowControl.totals().receivedTransitions;
      expect(Math.abs(pausedOf(node) * 2341.92 - pauseWaitPs)).toBeLessThan(edgesPs);
    }
    bench.checkBalances();
  });

  it('IBTA 9.7: moves every byte once while packets are lost, damaged in a switch, doubled and out of order', async () => {
    const bench = await dataPathBench({ roce, ethernet: fast });
    const effects: PacketEffect[] = [
      { kind: 'lost' },
      { kind: 'corrupted', place: DamagePlace.PAYLOAD, isInside: true },
      { kind: 'corrupted', place: DamagePlace.HEADER, isInside: true },
      { kind: 'duplicated', passes: 1, delayPs: 3_000_000 },
      { kind: 'reordered', passes: 2, delayPs: 5_000_000 },
    ];
    const fired = effects.map(() => 0);
    for (const [index, effect] of effects.entries())
      for (const node of bench.nodes) {
        const random = new Random(index, 'roce rules');
        const chance = { probability: 0.02, random };
        const count = (): void => {
          fired[index]!++;
        };
        node.ethernet!.port.faults.addRule(effect, { chance }, { fired: count });
      }
    await runMixedTraffic(bench, 2, 60, 8, ackTimeout);
    expect(Math.min(...fired)).toBeGreaterThan(0);
  });

  it('RFC 3168, annex A17: of version 2 shows a mark of congestion to the other end, and is answered as without', async () => {
    const bench = await dataPathBench({ roce, ethernet: {} });
    const arrived: Uint8Array[] = [];
    bench.b.ethernet!.port.tap = {
      packetPassed: (direction, _atPs, bytes, at, lengthBytes) => {
        if (direction === 'inbound') arrived.push(bytes.slice(at, at + lengthBytes));
      },
    };
    const { a, aCq } = connectedPair(bench.a, bench.b, { path: { trafficClass: 0x6a } });
    const [from, to] = [new Region(bench.a, 64), new Region(bench.b, 64)];
    from.fill(9);
    await bench.run(5);
    let fired = 0;
    const observer = { fired: () => fired++ };
    bench.a.ethernet!.port.faults.addRule({ kind: 'congested' }, { only: 'requests' }, observer);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    const { ipv4, ipv6, grh, isIcrcRight } = packetOf(arrived[0]!);
    const isMarked = roce !== 'v1';
    expect([fired, ipv4?.ecn ?? ipv6?.ecn ?? grh!.trafficClass]).toEqual(isMarked ? [1, 3] : [0, 0x6a]);
    expect([arrived.length, isIcrcRight]).toEqual([1, true]);
    expect(to.read(0, 64)).toEqual(from.read(0, 64));
  });

  it('faults by rule find PSN, QP and opcode of a packet in its frame', async () => {
    const bench = await dataPathBench({ roce, ethernet: {} });
    const frames = framesOf(bench);
    const { a, b, aCq } = connectedPair(bench.a, bench.b, { ackTimeout });
    const [from, to] = [new Region(bench.a, 16_384), new Region(bench.b, 16_384)];
    from.fill(9);
    await bench.run(5);
    let fired = 0;
    const third = { first: 2, last: 2, isRelative: true };
    const selection = { destinationQpn: b.qpn, psns: third, opcode: Opcode.RC_RDMA_WRITE_MIDDLE, shots: 1 };
    const { faults, transmitted } = bench.a.ethernet!.port;
    faults.addRule({ kind: 'lost' }, { ...selection, destinationQpn: b.qpn + 1 }, { fired: () => fired++ });
    faults.addRule({ kind: 'lost' }, selection, { fired: () => fired++ });
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 16_384)], remote: to });
    await bench.until(() => aCq.takenCount() === 1, 1000);
    expect([fired, transmitted.lostFrames]).toEqual([1, 1]);
    const psns = frames.map((frame) => packetOf(frame).bth.psn);
    // The lost packet is retransmitted.
    const [lost] = psns.filter((psn, at) => psns.indexOf(psn) !== at);
    // PSNs are counted from the first packet with that opcode, which is the second.
    expect((lost! - psns[0]!) & 0xff_ffff).toBe(3);
    expect(to.read(0, 16_384)).toEqual(from.read(0, 16_384));
  });

  it('sheet 7.5: has the addresses of its path in its frames, and the version of its context', async () => {
    const bench = await dataPathBench({ roce, ethernet: {} });
    const frames = framesOf(bench);
    bench.a.ethernet!.side.steering.vlans[5] = 7;
    const path = { forceVlan: 1, vlanIndex: 5, scheduleQueue: 0x83 | (3 << 3), trafficClass: 0x6a };
    const { a } = connectedPair(bench.a, bench.b, { path });
    const [from, to] = [new Region(bench.a, 4096), new Region(bench.b, 4096)];
    from.fill(9);
    await bench.run(5);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 501)], remote: to });
    await bench.until(() => frames.length > 0, 100);
    const { ethernet, vlan, grh, ipv4, ipv6, udp, isIcrcRight, bth, payload } = packetOf(frames[0]!);
    expect(ethernet).toEqual({
      destination: macBytes(macOfNode(2)),
      source: macBytes(macOfNode(1)),
      type: 0x8100,
    });
    expect([vlan!.vlan, vlan!.priority, isIcrcRight, bth.padCount]).toEqual([7, 3, true, 3]);
    expect(payload).toEqual(from.read(0, 501));
    const gids = { sourceGid: gidOfNode(roce, 1), destinationGid: gidOfNode(roce, 2) };
    // BTH 12, RETH 16, payload 504, ICRC 4.
    if (roce === 'v1')
      expect(grh).toMatchObject({ ...gids, hopLimit: 64, payloadLength: 536, trafficClass: 0x6a });
    else expect(udp).toEqual({ sourcePort: SOURCE_PORT, destinationPort: 4791, length: 544, checksum: 0 });
    if (roce === 'v2 over IPv4')
      expect(ipv4).toMatchObject({
        source: 0x0a02_0001,
        destination: 0x0a02_0002,
        timeToLive: 64,
        totalLength: 564,
        differentiatedServices: 0x1a,
        ecn: 2,
      });
    if (roce === 'v2 over IPv6')
      expect(ipv6).toMatchObject({
        source: gids.sourceGid,
        destination: gids.destinationGid,
        payloadLength: 544,
      });
  });

  it('sheet 3.19: counts the frames of its QPs by the flow counter of their contexts, both ways, whole', async () => {
    const bench = await dataPathBench({ roce, ethernet: {}, offloads: { flowCounterCount: 4 } });
    const [counted, other] = [1, 0xff].map((counterIndex) =>
      connectedPair(bench.a, bench.b, { path: { counterIndex } }),
    );
    const [from, to] = [new Region(bench.a, 4096), new Region(bench.b, 4096)];
    await bench.run(5);
    const remote = { address: to.address, key: to.key };
    for (const { a, aCq } of [counted!, other!, counted!]) {
      const taken = aCq.takenCount();
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 64)], remote });
      await bench.until(() => aCq.takenCount() > taken, 100);
    }
    const network = { v1: 40, 'v2 over IPv4': 28, 'v2 over IPv6': 48 }[roce];
    // Destination, source, type 14; BTH 12; RETH 16 and payload, or AETH 4; ICRC 4; FCS 4.
    const write = 14 + network + 12 + 16 + 64 + 4 + 4;
    const acknowledgement = 14 + network + 12 + 4 + 4 + 4;
    const countersOf = ({ ethernet }: DataPathNode) =>
      [0, 1, 2, 3].map((index) => {
        const { rxFrames, rxBytes, txFrames, txBytes } = ethernet!.side.flowCounters!.totals(index);
        return [txFrames, txBytes, rxFrames, rxBytes];
      });
    const none = [0, 0, 0, 0];
    // The last is the sink.
    expect(countersOf(bench.a)).toEqual([
      none,
      [2, 2 * write, 2, 2 * acknowledgement],
      none,
      [1, write, 1, acknowledgement],
    ]);
    expect(countersOf(bench.b)[1]).toEqual([2, 2 * acknowledgement, 2, 2 * write]);
    bench.a.ethernet!.side.flowCounters!.clear(1);
    expect(countersOf(bench.a)[1]).toEqual(none);
  });

  it.each([
    ['0xffff, as Linux writes it', { vlan: 0xffff, insertTag: 0 }, undefined],
    ['what was in memory, as libmlx4 leaves it', { vlan: 0x10, insertTag: 0 }, undefined],
    ['0 with the bit that says so', { vlan: 0, insertTag: 1 }, 0],
    ['VLAN 5 with that bit', { vlan: 5, insertTag: 1 }, 5],
  ])('sends datagrams with the tag of their segment: %s', async (_, { vlan, insertTag }, expected) => {
    const bench = await dataPathBench({ roce, ethernet: {} });
    const [a, b] = [datagramQp(bench.a), datagramQp(bench.b)];
    const from = new Region(bench.a, 4096);
    await bench.run(5);
    const vector = { sourceGidIndex: GID_INDEX, hopLimit: 9, destinationGid: gidOfNode(roce, 2), insertTag };
    const datagram = { ...datagramTo(b.qp.qpn, 0, vector), vlan, destinationMac: macBytes(macOfNode(2)) };
    a.qp.send({ opcode: WqeOpcode.SEND, datagram, segments: [from.part(0, 30)] });
    const { port } = bench.b.ethernet!;
    await bench.until(() => port.received.deliveredFrames === 1, 100);
    const view = new DataView(
      port.rxBytes.buffer,
      port.rxBytes.byteOffset + port.frameStart(port.config.receiveFifoFrames - 1),
    );
    const type = view.getUint16(12);
    expect(type === 0x8100 ? view.getUint16(14) : undefined).toBe(expected);
  });

  it('sheet 6.6: brings datagrams behind their network header, with MAC and tag of their sender in the CQE', async () => {
    const bench = await dataPathBench({ roce, ethernet: {} });
    const [a, b] = [datagramQp(bench.a), datagramQp(bench.b)];
    const [from, to] = [new Region(bench.a, 4096), new Region(bench.b, 4096)];
    from.fill(7);
    to.fill(0xee);
    await bench.run(5);
    const vector = {
      ...{ sourceGidIndex: GID_INDEX, hopLimit: 9, destinationGid: gidOfNode(roce, 2) },
      insertTag: 1,
    };
    const datagram = {
      ...datagramTo(b.qp.qpn, 0, vector),
      vlan: 0x6007,
      destinationMac: macBytes(macOfNode(2)),
    };
    b.qp.receive([to.part(0, 2000)]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram, segments: [from.part(0, 300)] });
    await bench.until(() => bench.b.ethernet!.port.received.deliveredFrames === 1, 100);
    await bench.run(5);
    const cqeAt = b.cq.bufferAddress;
    expect(b.cq.poll()).toMatchObject({ qpn: b.qp.qpn, byteCount: 340, syndrome: 0 });
    const got = roceUdCqe.decode(bench.b.memory.bytes, cqeAt);
    expect(got).toMatchObject({
      sourceMac: macBytes(macOfNode(1)),
      cVlanPresent: 1,
      vlanId: 7,
      vlanPriority: 3,
      sourceQpn: a.qp.qpn,
      grhPresent: 1,
    });
    expect(to.read(40, 300)).toEqual(from.read(0, 300));
    const header = to.read(0, 40);
    if (roce === 'v2 over IPv4') {
      expect(header.subarray(0, 20)).toEqual(new Uint8Array(20));
      expect([...header.subarray(32)]).toEqual([10, 2, 0, 1, 10, 2, 0, 2]);
      expect([header[20], header[28]]).toEqual([0x45, 9]);
    } else {
      expect(header.subarray(8, 24)).toEqual(gidOfNode(roce, 1));
      expect(header.subarray(24)).toEqual(gidOfNode(roce, 2));
      expect([header[0], header[6], header[7]]).toEqual([0x60, roce === 'v1' ? 0x1b : 17, 9]);
    }
  });

  it('sheet 6.3: sends the packets of QP1 by the headers that software wrote, also with a tag', async () => {
    const bench = await dataPathBench({ roce, ethernet: {}, offloads: { flowCounterCount: 2 } });
    const frames = framesOf(bench);
    let bytes = 0;
    const [a, b] = [managementQp(bench.a), managementQp(bench.b)];
    const to = new Region(bench.b, 4096);
    await bench.run(5);
    const type = { v1: 0x8915, 'v2 over IPv4': 0x0800, 'v2 over IPv6': 0x86dd }[roce];
    const gids = { sourceGid: gidOfNode(roce, 1), destinationGid: gidOfNode(roce, 2) };
    const [source, destination] = [0x0a02_0001, 0x0a02_0002];
    const network = {
      v1: { grh: { ipVersion: 6, nextHeader: 0x1b, hopLimit: 3, ...gids } },
      'v2 over IPv4': {
        ipv4: { versionAndLength: 0x45, fragment: 0x4000, timeToLive: 3, protocol: 17, source, destination },
        udp: { sourcePort: 0xc000, destinationPort: 4791 },
      },
      'v2 over IPv6': {
        ipv6: {
          version: 6,
          nextHeader: 17,
          hopLimit: 3,
          source: gids.sourceGid,
          destination: gids.destinationGid,
        },
        udp: { sourcePort: 0xc000, destinationPort: 4791 },
      },
    }[roce];
    for (const hasTag of [false, true]) {
      frames.length = 0;
      const macs = { destination: macBytes(macOfNode(2)), source: macBytes(macOfNode(1)) };
      const payload = pattern(4, 256);
      const wanted = encodePacket({
        ethernet: { ...macs, type: hasTag ? 0x8100 : type },
        ...(hasTag ? { vlan: { priority: 2, vlan: 7, type } } : {}),
        ...network,
        bth: { opcode: 0x64, partitionKey: 0xffff, destinationQp: 1, psn: 77, solicitedEvent: 1 },
        headers: { DETH: { queueKey: QKEY, sourceQp: 1 } },
        payload,
      });
      b.qp.receive([to.part(0, 296)]);
      // Headers, MAD and the bytes that the ICRC replaces; the dword of flags also has bytes of the destination MAC.
      const wqe = encodeWqe({ opcode: WqeOpcode.SEND, inline: wanted }, 0);
      wqe.set(macBytes(macOfNode(2)).subarray(0, 2), 8);
      a.qp.sendBytes(wqe);
      await bench.until(() => bench.b.ethernet!.port.received.deliveredFrames === (hasTag ? 2 : 1), 100);
      await bench.run(5);
      expect(frames).toEqual([wanted]);
      expect(a.cq.drain().map(({ syndrome }) => syndrome)).toEqual([0]);
      expect(b.cq.drain()).toMatchObject([{ qpn: b.qp.qpn, byteCount: 296, syndrome: 0 }]);
      expect(to.read(40, 256)).toEqual(payload);
      bytes += wanted.length + 4;
    }
    // Sheet 3.19: QP1 counts under its context's counter, as others do; whole, with FCS.
    const [sent, received] = [bench.a, bench.b].map(({ ethernet }) => ethernet!.side.flowCounters!.totals(0));
    expect([sent!.txFrames, sent!.txBytes]).toEqual([2, bytes]);
    expect([received!.rxFrames, received!.rxBytes]).toEqual([2, bytes]);
  });

  it('sends and receives beside rings, in turns', async () => {
    const bench = await dataPathBench({ roce, ethernet: { ...fast, gigabitsPerSecond: 10 } });
    const frames = framesOf(bench);
    const ring = { fields: { pathMtu: PathMtu.RAW } };
    const [a, b] = [new Ring(bench.a, ring), new Ring(bench.b, ring)];
    const [from, to] = [new Region(bench.a, 8192), new Region(bench.b, 65_536)];
    const macs: number[] = [];
    macs[MAC_INDEX] = macOfNode(2);
    steer(
      bench.b,
      Array.from(macs, (mac) => mac ?? -1),
      { baseQpn: b.qp.qpn - MAC_INDEX },
    );
    const { a: qp, aCq } = connectedPair(bench.a, bench.b, { ackTimeout: 5 });
    const target = new Region(bench.b, 65_536);
    from.fill(3);
    await bench.run(5);
    const frame = frameOf(macOfNode(2), pattern(1, 1000));
    from.write(frame, 0);
    for (let index = 0; index < 12; index++) b.qp.receive([to.part(index * 2048, 1536)]);
    for (let index = 0; index < 12; index++) {
      a.send({ segments: [from.part(0, frame.length)] });
      qp.send({
        opcode: WqeOpcode.RDMA_WRITE,
        segments: [from.part(0, 4000)],
        remote: { address: target.address + index * 4096, key: target.key },
      });
    }
    await bench.until(() => b.cq.takenCount() === 12 && aCq.takenCount() === 12, 500);
    await bench.run(5);
    for (let index = 0; index < 12; index++) {
      expect(to.read(index * 2048, frame.length)).toEqual(frame);
      expect(target.read(index * 4096, 4000)).toEqual(from.read(0, 4000));
    }
    expect(frameCompletions(bench.a, a.cq)).toHaveLength(12);
    // Neither waits for all of the other's packets.
    const kinds = frames.map((sent) => (decodeEthernet(sent).kind === 'packet' ? 'P' : 'F')).join('');
    expect(kinds.indexOf('F')).toBeLessThan(kinds.length / 2);
    expect(kinds.lastIndexOf('F')).toBeGreaterThan(kinds.length / 2);
  });
});

describe('what comes as RoCE', () => {
  it('and is for another MAC, damaged inside, or no packet is dropped and counted', async () => {
    const bench = await dataPathBench({ roce: 'v2 over IPv4', ethernet: {} });
    const frames = framesOf(bench);
    const { a } = connectedPair(bench.a, bench.b, { ackTimeout: 0 });
    const to = new Region(bench.b, 4096);
    await bench.run(5);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, inline: pattern(1, 32), remote: to });
    await bench.until(() => frames.length > 0, 100);
    const [frame] = frames;
    const { port, side } = bench.b.ethernet!;
    const { send } = bench.a.ethernet!.port;
    const again = (change: (bytes: Uint8Array) => void): void => {
      const bytes = frame!.slice();
      change(bytes);
      bench.a.act(() => send.call(bench.a.ethernet!.port, bytes, 0, bytes.length));
    };
    again((bytes) => (bytes[5]! ^= 1));
    again((bytes) => (bytes[bytes.length - 3]! ^= 1));
    again((bytes) => (bytes[39]! ^= 1));
    await bench.run(20);
    const { foreignMac, packetDamaged, packetMalformed } = side.steering.drops;
    expect([foreignMac, packetDamaged, packetMalformed]).toEqual([1, 1, 1]);
    expect(port.heldFrames).toBe(0);
    expect(a.state).toBe(QpState.RTS);
  });
});
