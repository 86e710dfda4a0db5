/**
 * Time for which a packet occupies the receiver: at least 12 cycles in a ConnectX-3 (measurements.csv, C-063 to C-073),
 * else the time of its bytes.
 */
import { expect, it } from 'vitest';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { scene, syndromesOf } from '../../testing/scenario.ts';

const hca = { receivePacketCycles: 12, receiveHeadCycles: 4, receiveBytesPerCycle: 16 };

// 4 cycles of headers, then 128 bits per cycle; a packet without payload, such as an ACK, takes the minimum.
it.each([
  [0, 12],
  [1, 12],
  [128, 12],
  [129, 13],
  [256, 20],
  [1024, 68],
])('is, of %i bytes of payload, %i cycles', async (bytes, cycles) => {
  const { bench, a, aCq, local, target } = await scene({ hca });
  const [sender, receiver] = [bench.a, bench.b].map(({ dataPath }) => dataPath.blocks.receiver.account);
  const before = [sender!.busyCycles, receiver!.busyCycles];
  a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, bytes)], remote: target });
  await bench.run(20);
  expect(syndromesOf(aCq.drain())).toEqual([0]);
  expect([sender!.busyCycles - before[0]!, receiver!.busyCycles - before[1]!]).toEqual([12, cycles]);
});
