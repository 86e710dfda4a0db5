/** RoCE under the stock mlx4_ib in this process, with the packets of each opcode that its programs must cause. */
import { expect } from 'vitest';
import { packetCounts, testInsideScenario } from './inside-suite.ts';

/** Messages of each kind and direction: 50 of a ping-pong, 10 rounds of rping. */
const [pingPong, rounds] = [50, 10];

await testInsideScenario('roce-peer', ({ report }) => {
  // Ping-pongs, either side as the client: 10,000 bytes from each of four GIDs, and 4096, 64 and 1 bytes from one. The path MTU is
  // 1024 bytes, so the long ones take ten packets and four (IBTA vol 1, 9.2.1: first, middle, last, only).
  const long = 2 * 4 * pingPong;
  const [ofFour, ofOne] = [2 * pingPong, 2 * 2 * pingPong];
  // Six rpings. Each side sends two messages in a round, and the server reads once and writes once: the guest is it in two of them.
  const sends = {
    RC_SEND_FIRST: long + ofFour,
    RC_SEND_MIDDLE: 8 * long + 2 * ofFour,
    RC_SEND_LAST: long + ofFour,
    RC_SEND_ONLY: ofOne + 6 * 2 * rounds,
  };
  const servedBy = (rpings: number) => ({
    RC_RDMA_READ_REQUEST: rpings * rounds,
    RC_RDMA_WRITE_ONLY: rpings * rounds,
  });
  expect(packetCounts(report, 0)).toMatchObject({
    ...sends,
    ...servedBy(2),
    RC_RDMA_READ_RESPONSE_ONLY: 4 * rounds,
  });
  expect(packetCounts(report, 1)).toMatchObject({
    ...sends,
    ...servedBy(4),
    RC_RDMA_READ_RESPONSE_ONLY: 2 * rounds,
  });
  expect(report.wire.map(({ retransmitted }) => retransmitted)).toEqual([{}, {}]);
});
