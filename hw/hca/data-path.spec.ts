import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { Random } from '../../sim/index.ts';
import { type BenchOptions, dataPathBench, oneLineCaches, tightest } from './testing/data-path-bench.ts';
import { countersOf, runMixedTraffic } from './testing/mixed-traffic.ts';
import { repeatsIn } from './testing/repeated-packets.ts';
import { scene, summaryOf } from './testing/scenario.ts';

const stallers: Record<string, BenchOptions> = {
  'the default sizes': {},
  'the smallest sizes of everything': { hca: tightest },
  'one DMA read at a time': { dma: { tagCount: 1 } },
  'slow DMA engines and a narrow data path': {
    dma: { readIssueCycles: 40, writeIssueCycles: 40, dataPathBytes: 4 },
  },
  'two packets of transmit and response buffer': {
    hca: { transmitBufferPackets: 2, responseBufferPackets: 2 },
  },
  'two places for completions': { hca: { completionFifoDepth: 2 } },
  'four records': { hca: { outstandingWqes: 4 } },
  'one work request per QP': { hca: { outstandingWqesPerQp: 1 } },
  'caches of one line': { hca: oneLineCaches },
  'caches of one line and no miss penalty': { hca: { ...oneLineCaches, cacheMissCycles: 0 } },
  'caches of one line and a long miss penalty': { hca: { ...oneLineCaches, cacheMissCycles: 300 } },
  'random replacement': { hca: { ...tightest, cacheReplacement: 'random' } },
  'first-in first-out replacement': { hca: { ...tightest, cacheReplacement: 'fifo' } },
  'two lines of send and receive WQEs': { hca: { wqeLineCount: 2, receiveQueueLineCount: 2 } },
  'a slow receiver': { hca: { receivePacketCycles: 400, receiveBytesPerCycle: 1 } },
  'late acknowledgements': { hca: { ackDelayCycles: 3000 } },
};

describe('the data path under mixed traffic', () => {
  for (const [name, options] of Object.entries(stallers)) {
    it(`moves every byte and completes every work request once, with ${name}`, async () => {
      const bench = await dataPathBench(options);
      await runMixedTraffic(bench, 4, 40);
      for (const { dataPath, events } of bench.nodes) {
        expect(events.lines).toEqual([]);
        expect(dataPath.parts.violations.report()).toEqual({});
        expect(dataPath.blocks.transmitter.repeatedPacketCount).toBe(0);
        expect(dataPath.blocks.transmitter.droppedPacketCount).toBe(0);
      }
    });
  }

  it('moves every byte for other seeds, at the smallest sizes', async () => {
    for (const seed of [100, 200, 300, 400]) {
      const bench = await dataPathBench({ hca: tightest });
      await runMixedTraffic(bench, 3, 30, seed);
    }
  });

  it('IBTA 9.7: moves every byte once over a cable that loses one packet in fifty, and executes each atomic once', async () => {
    for (const seed of [11, 12, 21, 28, 35, 39]) {
      const bench = await dataPathBench({ hca: seed % 2 === 0 ? tightest : {} });
      const random = new Random(seed);
      for (const { port } of bench.nodes) port.drops = () => random.chance(0.02);
      // Local ACK timeout code 2: 16 us.
      await runMixedTraffic(bench, 3, 40, seed, 2);
      expect(bench.nodes.map(({ events }) => events.lines)).toEqual([[], []]);
      expect(bench.a.dataPath.blocks.transmitter.repeatedPacketCount).toBeGreaterThan(0);
      for (const [node, { port }] of bench.nodes.entries()) {
        const { wrong, again } = repeatsIn(port.packets, 1024);
        expect(wrong).toEqual([]);
        expect(bench.nodes[1 - node]!.dataPath.blocks.transmitter.repeatedPacketCount).toBe(again);
      }
    }
  });

  it('fails in the same way whatever the order of what happens at one instant', async () => {
    const seen: string[] = [];
    for (const shuffleSeed of [undefined, 1, 2, 3]) {
      const { bench, a, b, aCq, bCq, local, remote, target } = await scene({
        hca: tightest,
        ...(shuffleSeed === undefined ? {} : { shuffleSeed }),
      });
      for (let index = 0; index < 5; index++) b.receive([remote.part(0, 2000)]);
      const part = { segments: [local.part(0, 3000)], remote: target };
      a.post({ ...part, opcode: WqeOpcode.RDMA_READ });
      a.post({ ...part, opcode: WqeOpcode.SEND, segments: [local.part(0, 1500)] });
      a.post({ ...part, opcode: WqeOpcode.RDMA_WRITE_IMM, remote: { ...target, key: 0xf_ff00 } });
      a.post({ ...part, opcode: WqeOpcode.RDMA_WRITE });
      a.ring();
      await bench.run(100);
      const results = [aCq.drain(), bCq.drain()].map(summaryOf);
      expect(results).toEqual([
        ['send 0: 0x0', 'send 1: 0x0', 'send 2: 0x13', 'send 3: 0x5'],
        ['receive 0: 0x0', 'receive 1: 0x5', 'receive 2: 0x5', 'receive 3: 0x5', 'receive 4: 0x5'],
      ]);
      seen.push(
        JSON.stringify(
          [bench.nodes.map(countersOf), bench.nodes.map(({ events }) => events.cycles)],
          null,
          1,
        ),
      );
    }
    // Numbers of QPs and CQs go up from one machine to the next, and appear in no counter.
    for (const other of seen.slice(1)) expect(other).toBe(seen[0]);
  });

  it('counts the same whatever the order of what happens at one instant', async () => {
    const seen: string[] = [];
    for (const shuffleSeed of [undefined, 1, 2, 3]) {
      const bench = await dataPathBench({
        hca: tightest,
        ...(shuffleSeed === undefined ? {} : { shuffleSeed }),
      });
      await runMixedTraffic(bench, 3, 24);
      seen.push(JSON.stringify(bench.nodes.map(countersOf), null, 1));
    }
    for (const other of seen.slice(1)) expect(other).toBe(seen[0]);
  });

  it('leaves nothing behind when all work is done', async () => {
    const bench = await dataPathBench();
    await runMixedTraffic(bench, 2, 20);
    await bench.run(50);
    for (const { dataPath, port, wire, reads, writes } of bench.nodes) {
      const { qps, cqs } = dataPath.parts;
      expect(dataPath.parts.records.freeCount).toBe(dataPath.parts.records.capacity);
      expect([
        dataPath.blocks.transmitter.requests.isEmpty,
        dataPath.blocks.transmitter.responses.isEmpty,
      ]).toEqual([true, true]);
      for (const qp of qps.liveSlots()) {
        expect(qps.rows[qp]!.inPipelineCount).toBe(0);
        expect(dataPath.control.qpIsBusy(qp)).toBe(false);
      }
      for (const cq of cqs.liveSlots()) expect(dataPath.control.cqIsBusy(cq)).toBe(false);
      expect(wire.receiveBufferedBytes).toBe(0);
      expect([reads.isIdle, writes.isIdle]).toEqual([true, true]);
      expect(port.packets.length).toBeGreaterThan(0);
    }
  });
});
