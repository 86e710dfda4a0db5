import { describe, expect, it, vi } from 'vitest';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { descriptorOf } from '../../../pcie/tlp/tlp.ts';
import type { HcaConfig } from '../../parameters.ts';
import { dataPathBench, tightest } from '../../testing/data-path-bench.ts';
import { Cq, psnA, Qp, Region } from '../../testing/data-path-verbs.ts';
import { repeatsIn } from '../../testing/repeated-packets.ts';
import { scene, syndromesOf } from '../../testing/scenario.ts';

describe('the transmitter', () => {
  it('IBTA 9.7.3: sends the packets of a QP in the order of their PSNs, however late the payload of one comes', async () => {
    const { bench, a, aCq, local, target } = await scene();
    // The first WRITE gathers from many places, the following ones from one, or have no payload.
    a.post({ opcode: WqeOpcode.RDMA_WRITE, remote: target, segments: [local.part(0, 4000)] });
    a.post({ opcode: WqeOpcode.RDMA_WRITE, remote: target });
    a.post({ opcode: WqeOpcode.RDMA_WRITE, remote: target, inline: Uint8Array.of(1) });
    a.ring();
    await bench.run(20);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 4, 5].map(psnA));
    expect(syndromesOf(aCq.drain())).toEqual([0, 0, 0]);
  });

  it('seldom offers a packet to a busy cable, and accounts as stalled on the wire for the time that the port counts as waiting', async () => {
    const { bench, a, aCq, local, target } = await scene();
    const { port, wire, dataPath } = bench.a;
    const sendPacket = vi.spyOn(port, 'sendPacket');
    for (let message = 0; message < 6; message++)
      a.post({ opcode: WqeOpcode.RDMA_WRITE, remote: target, segments: [local.part(0, 16_000)] });
    a.ring();
    await bench.until(() => aCq.takenCount() === 6, 200);
    const outcomes = sendPacket.mock.results.map(({ value }) => value as number);
    const packetCount = outcomes.filter((offset) => offset >= 0).length;
    expect(packetCount).toBe(wire.transmitted.packetCount);
    // Attempts that were refused because payload came late, or flow control went first.
    expect(outcomes.length - packetCount).toBeLessThan(packetCount / 10);
    const waitPs = wire.transmitted.serializerWaitPs;
    const stalledCycles = dataPath.blocks.transmitter.account.stalledCycles[1]!;
    expect(stalledCycles).toBeGreaterThan(0);
    // Each wait is from one edge to another, whose instants are whole picoseconds.
    expect(Math.abs(waitPs - (stalledCycles * 1e6) / bench.a.domain.clock.frequencyMHz)).toBeLessThan(
      packetCount,
    );
  });

  it('allows nothing to be placed early in its slots any more once they are for other packets: a device closed with reads in flight', async () => {
    const { bench, a, local, target } = await scene();
    const { reads, dataPath } = bench.a;
    const tags = Array.from({ length: 32 }, (_, tag) => tag);
    const inFlight = () => tags.filter((tag) => reads.earlyPlaces!.placeOf(descriptorOf(0, tag, 0), 1) >= 0);
    for (let round = 0; round < 4; round++)
      a.post({ opcode: WqeOpcode.RDMA_WRITE, remote: target, segments: [local.part(0, 16_000)] });
    a.ring();
    await bench.until(() => inFlight().length > 0, 20);
    dataPath.control.resetAll();
    expect(inFlight()).toEqual([]);
  });

  it('never has two sides that both send and answer wait for each other', async () => {
    for (const hca of [{}, tightest]) {
      const { bench, a, b, aCq, bCq, local, remote, target } = await scene({ hca });
      const back = { address: local.address, key: local.key };
      const [sink, source] = [new Region(bench.b, 16_384), new Region(bench.a, 16_384)];
      for (let round = 0; round < 12; round++) {
        a.post({ opcode: WqeOpcode.RDMA_READ, remote: target, segments: [source.part(0, 8000)] });
        b.post({ opcode: WqeOpcode.RDMA_READ, remote: back, segments: [sink.part(0, 8000)] });
        a.post({
          opcode: WqeOpcode.RDMA_WRITE,
          remote: { ...target, address: target.address + 8000 },
          segments: [local.part(8000, 8000)],
        });
        b.post({
          opcode: WqeOpcode.RDMA_WRITE,
          remote: { ...back, address: back.address + 8000 },
          segments: [remote.part(8000, 8000)],
        });
      }
      a.ring();
      b.ring();
      await bench.until(() => aCq.takenCount() === 24 && bCq.takenCount() === 24, 3000);
      expect(source.read(0, 8000)).toEqual(remote.read(0, 8000));
      expect(sink.read(0, 8000)).toEqual(local.read(0, 8000));
    }
  });

  /** READs of 264 bytes on 32 QPs of each side, 24 in flight on each; one side begins 20 us before the other. */
  const readsOfBothSides = async (hca: Partial<HcaConfig>): Promise<{ a: number; b: number }> => {
    const bench = await dataPathBench({ hca });
    const cqs = { a: new Cq(bench.a, 10), b: new Cq(bench.b, 10) };
    const regions = { a: new Region(bench.a, 4096), b: new Region(bench.b, 4096) };
    const sides = { a: new Map<number, Qp>(), b: new Map<number, Qp>() };
    for (let pair = 0; pair < 32; pair++) {
      const a = new Qp(bench.a, { sendCq: cqs.a });
      const b = new Qp(bench.b, { sendCq: cqs.b });
      a.connect(b.qpn, 0, 0);
      b.connect(a.qpn, 0, 0);
      sides.a.set(a.qpn, a);
      sides.b.set(b.qpn, b);
    }
    await bench.run(20);
    const post = (side: 'a' | 'b', qp: Qp, count: number): void => {
      const remote = regions[side === 'a' ? 'b' : 'a'];
      const target = { address: remote.address, key: remote.key };
      const segments = [regions[side].part(0, 264)];
      for (; count > 0; count--) qp.post({ opcode: WqeOpcode.RDMA_READ, segments, remote: target });
      qp.ring();
    };
    const done = { a: 0, b: 0 };
    const goOn = (side: 'a' | 'b'): void => {
      const completed = new Map<Qp, number>();
      for (const { qpn } of cqs[side].drain()) {
        const qp = sides[side].get(qpn)!;
        completed.set(qp, (completed.get(qp) ?? 0) + 1);
        done[side]++;
      }
      for (const [qp, count] of completed) post(side, qp, count);
    };
    for (const qp of sides.a.values()) post('a', qp, 24);
    for (let us = 0; us < 20; us++) {
      await bench.run(1);
      goOn('a');
    }
    for (const qp of sides.b.values()) post('b', qp, 24);
    for (let us = 0; us < 20; us++) {
      await bench.run(1);
      for (const side of ['a', 'b'] as const) goOn(side);
    }
    const before = { ...done };
    for (let us = 0; us < 100; us++) {
      await bench.run(1);
      for (const side of ['a', 'b'] as const) goOn(side);
    }
    return { a: done.a - before.a, b: done.b - before.b };
  };

  it('lets requests through between responses, so that READs of both sides go on', async () => {
    const { a, b } = await readsOfBothSides({});
    expect(Math.min(a, b)).toBeGreaterThan(1000);
    expect(Math.min(a, b)).toBeGreaterThan(0.8 * Math.max(a, b));
  });

  it('lets as many responses go first as the profile says', async () => {
    const { a, b } = await readsOfBothSides({ responseBurstPackets: 1024 });
    expect(Math.min(a, b)).toBeLessThan(0.5 * Math.max(a, b));
  });

  it('drops what was queued for a QP that went back, and counts what is sent again', async () => {
    const { bench, a, b, aCq, local, remote } = await scene();
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(0, 10_000)] });
    await bench.run(14);
    b.receive([remote.part(0, 10_000)]);
    await bench.until(() => aCq.takenCount() === 1, 60);
    const { transmitter } = bench.a.dataPath.blocks;
    // Ten packets; the receiver was not ready for the first one once or twice, and then all were sent again.
    expect(transmitter.repeatedPacketCount).toBeGreaterThanOrEqual(10);
    const sent = bench.b.port.packets.filter(({ opcode }) => opcode <= Opcode.RC_SEND_LAST);
    expect(sent.length - transmitter.repeatedPacketCount).toBe(10);
    expect(sent.filter(({ flags }) => (flags & 8) !== 0)).toHaveLength(transmitter.repeatedPacketCount);
    expect(remote.read(0, 10_000)).toEqual(local.read(0, 10_000));
  });

  it('counts a packet as sent again if its PSN has left before, not if it was queued and dropped', async () => {
    const { bench, a, b, aCq, local, remote } = await scene({
      a: { sqLogCount: 6 },
      b: { rqLogCount: 6, fields: { ric: 1 } },
    });
    // 40 SENDs of ten packets each, without credits; their receives are posted one by one, so queued packets are
    // dropped many times.
    for (let message = 0; message < 40; message++)
      a.post({ opcode: WqeOpcode.SEND, segments: [local.part(0, 10_000)] });
    a.ring();
    for (let message = 0; message < 40; message++) {
      await bench.run(20);
      b.receive([remote.part(0, 10_000)]);
    }
    await bench.until(() => aCq.takenCount() === 40, 2000);
    const { wire, dataPath } = bench.a;
    const { marked, again, wrong } = repeatsIn(bench.b.port.packets, 1024);
    expect(wrong).toEqual([]);
    expect(again).toBeGreaterThan(100);
    expect(marked).toBe(again);
    expect(dataPath.blocks.transmitter.repeatedPacketCount).toBe(again);
    // Each of the 400 packets is first sent once.
    expect(wire.transmitted.first.packetTotal).toBe(400);
    expect(wire.transmitted.retransmitted.packetTotal).toBe(again);
  });
});
