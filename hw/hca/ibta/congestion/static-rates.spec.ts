/**
 * Static rates of paths on InfiniBand with a line of 32 Gb/s. Expected distances of packets are computed from IBTA vol 1, 5.2.1
 * (headers) and 15.2.5.16 (codes of rates), and 8b/10b: a path of 10 Gb/s carries 8 bits a nanosecond.
 */
import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { type BenchOptions, type DataPathBench, dataPathBench } from '../../testing/data-path-bench.ts';
import { connectedPair, Region, type SendRequest } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramTo } from '../../testing/datagrams.ts';

const MTU = 1024;
/** Fields of paths: the code of the IB rate plus 5 (Linux include/linux/mlx4/qp.h, MLX4_STAT_RATE_OFFSET). */
const fields = { '2.5': 2 + 5, '10': 3 + 5, '20': 6 + 5, '40': 7 + 5, '120': 10 + 5 } as const;
/** LRH, BTH, payload, ICRC and VCRC of a middle packet, and the symbols that frame it. */
const middleBytes = (framingBytes: number): number => 8 + 12 + MTU + 4 + 2 + framingBytes;

/** Distances of the packets that a node sends, from first byte to first byte. */
function distancesOf({ wire }: DataPathBench['a']): () => readonly number[] {
  const startPs: number[] = [];
  wire.tap = {
    packetPassed: (direction, atPs) => {
      if (direction === 'outbound') startPs.push(atPs);
    },
  };
  return () => startPs.slice(1).map((ps, index) => ps - startPs[index]!);
}

/** Distances of the six packets of a WRITE by `a`, or of a READ's responses by `b`. */
async function distances(
  opcode: WqeOpcode,
  rate: keyof typeof fields,
  options: BenchOptions = { keepsStaticRates: true },
): Promise<readonly number[]> {
  const bench = await dataPathBench(options);
  const { a, aCq } = connectedPair(bench.a, bench.b, { path: { staticRate: fields[rate] } });
  const isRead = opcode === WqeOpcode.RDMA_READ;
  const [from, to] = [new Region(bench.a, 6 * MTU), new Region(bench.b, 6 * MTU)];
  await bench.run(5);
  const between = distancesOf(isRead ? bench.b : bench.a);
  a.send({ opcode, segments: [from.part(0, 6 * MTU)], remote: to });
  await bench.until(() => aCq.takenCount() === 1, 1000);
  return between();
}

describe('a static rate', () => {
  it.each([
    ['WRITE', WqeOpcode.RDMA_WRITE, '2.5', 2],
    ['WRITE', WqeOpcode.RDMA_WRITE, '10', 8],
    ['WRITE', WqeOpcode.RDMA_WRITE, '20', 16],
    ['READ', WqeOpcode.RDMA_READ, '10', 8],
  ] as const)(
    'IBTA 9.11: keeps the packets of a %s (opcode %i) on a path of %s Gb/s as far apart as they take there',
    async (_, opcode, rate, bitsPerNs) => {
      const bench = await dataPathBench();
      const expectedPs = (middleBytes(bench.a.wire.config.framingBytes) * 8 * 1000) / bitsPerNs;
      const middle = (await distances(opcode, rate)).slice(1, 4);
      // Packets leave at edges of the core clock, and do not get slower by it.
      for (const ps of middle) expect(Math.abs(ps - expectedPs)).toBeLessThan(bench.a.domain.clock.edgePs(2));
      expect(middle.reduce((sum, ps) => sum + ps, 0) / 3).toBeCloseTo(expectedPs, -4);
    },
  );

  it('that the line does not exceed delays nothing, and neither does one that the card does not keep', async () => {
    const { RDMA_WRITE } = WqeOpcode;
    const free = await distances(RDMA_WRITE, '40', {});
    expect(await distances(RDMA_WRITE, '40')).toEqual(free);
    expect(await distances(RDMA_WRITE, '120')).toEqual(free);
    expect(await distances(RDMA_WRITE, '2.5', {})).toEqual(free);
  });

  it.each([
    ['without a GRH', {}, 0],
    ['with a GRH', { grhPresent: 1, destinationGid: new Uint8Array(16).fill(7) }, 40],
  ] as const)('of an address vector holds for its datagrams alone, %s', async (_, grh, grhBytes) => {
    const bench = await dataPathBench({ keepsStaticRates: true });
    const [a, b] = [datagramQp(bench.a), datagramQp(bench.b)];
    const from = new Region(bench.a, 4096);
    await bench.run(3);
    const between = distancesOf(bench.a);
    const post = (staticRate: number): void => {
      const datagram = datagramTo(b.qp.qpn, bench.b.address.lid, { staticRate, ...grh });
      const request: SendRequest = { opcode: WqeOpcode.SEND, segments: [from.part(0, MTU)], datagram };
      a.qp.post(request);
    };
    for (const rate of [fields['2.5'], 0, 0]) post(rate);
    a.qp.ring();
    await bench.until(() => a.cq.takenCount() === 3, 1000);
    // With a DETH of 8 bytes. The first datagram keeps the second one back, the second nothing.
    const bytes = middleBytes(bench.a.wire.config.framingBytes) + 8 + grhBytes;
    const [first, second] = between();
    expect(Math.abs(first! - (bytes * 8 * 1000) / 2)).toBeLessThan(bench.a.domain.clock.edgePs(2));
    expect(second!).toBeLessThan(first! / 4);
  });
});
