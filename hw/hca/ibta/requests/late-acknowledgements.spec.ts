import { describe, expect, it } from 'vitest';
import { PathMtu } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { pattern, Region } from '../../testing/data-path-verbs.ts';
import { type Scene, scene, syndromesOf } from '../../testing/scenario.ts';

/** Code 4 of the local ACK timeout: 65.5 us (IBTA vol 1, 9.7.6.1.3: 4.096 us * 2^code). */
const ACK_TIMEOUT = 4;

/**
 * WRITE A loses its last acknowledgement, so that its packets are gathered and sent again; the peer repeats the
 * acknowledgement for the first of them, and A completes while others are still in the making. WRITE B follows.
 */
describe('IBTA 9.7.6.1.3: a request that completes while its packets are sent again', () => {
  const cases = [
    [PathMtu.MTU_256, 256, 16_384],
    [PathMtu.MTU_1024, 1024, 65_536],
    [PathMtu.MTU_4096, 4096, 131_072],
  ] as const;
  for (const [pathMtu, mtu, bytes] of cases)
    for (const excess of [0, 1, 100])
      it(`leaves nothing of itself to the next one: ${bytes + excess} bytes at an MTU of ${mtu}`, async () => {
        const fields = { pathMtu };
        const size = bytes + excess;
        const given = await scene({ a: { fields }, b: { fields }, ackTimeout: ACK_TIMEOUT });
        const { bench } = given;
        // Every acknowledgement of the first round is lost.
        const startPs = bench.a.lp.nowPs;
        bench.a.port.drops = ({ opcode, timePs }) =>
          opcode === Opcode.RC_ACKNOWLEDGE && timePs < startPs + 60_000_000;
        await writeTwice(given, size);
      });

  it('leaves nothing of itself without any loss, when acknowledgements are later than the timeout', async () => {
    // 8.2 us (code 1) do not suffice with two tags and one line of the MTT; only last packets request an
    // acknowledgement.
    const hca = { mttCacheLines: 1, mttCacheWays: 1 };
    const side = { fields: { ackRequestFrequency: 7 } };
    for (const size of [20_000, 24_000, 32_768, 32_769]) {
      const { bench, a, aCq } = await scene({ hca, dma: { tagCount: 2 }, a: side, b: side, ackTimeout: 1 });
      const from = Array.from({ length: 6 }, () => new Region(bench.a, size));
      const to = from.map(() => new Region(bench.b, size));
      for (const [index, region] of from.entries()) region.write(pattern(40 * index, size));
      let posted = 0;
      const syndromes: number[] = [];
      await bench.until(() => {
        syndromes.push(...syndromesOf(aCq.drain()));
        for (; posted < Math.min(from.length, syndromes.length + 2); posted++) {
          const { address, key } = to[posted]!;
          const segments = [from[posted]!.part()];
          a.send({ opcode: WqeOpcode.RDMA_WRITE, segments, remote: { address, key } });
        }
        return syndromes.length === from.length;
      });
      expect(bench.a.dataPath.blocks.timers.timeoutCount).toBeGreaterThan(0);
      expect(syndromes).toEqual(from.map(() => 0));
      expect(to.map((region, index) => Buffer.compare(region.read(), from[index]!.read()))).toEqual(
        from.map(() => 0),
      );
    }
  });
});

/** WRITE A, and when it has completed WRITE B: both end in success, with their own bytes. */
async function writeTwice({ bench, a, aCq }: Scene, size: number): Promise<void> {
  const [fromA, fromB] = [new Region(bench.a, size), new Region(bench.a, size)];
  const [toA, toB] = [new Region(bench.b, size), new Region(bench.b, size)];
  fromA.write(pattern(3, size));
  fromB.write(pattern(160, size));
  const syndromes: number[] = [];
  for (const [from, to] of [
    [fromA, toA],
    [fromB, toB],
  ] as const) {
    const remote = { address: to.address, key: to.key };
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part()], remote });
    const before = syndromes.length;
    await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) > before);
  }
  expect(syndromes).toEqual([0, 0]);
  expect(Buffer.compare(toA.read(), fromA.read())).toBe(0);
  expect(Buffer.compare(toB.read(), fromB.read())).toBe(0);
  await bench.until(() => !bench.a.dataPath.control.qpIsBusy(a.slot), 10);
}
