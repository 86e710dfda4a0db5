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

/** Messages of 64 KiB of a rate test, in packets of 1024 bytes and of 4096. */
const [rate, inSmall, inLarge] = [100, 64 - 2, 16 - 2];
/** Messages of a ping-pong of 4096 bytes in packets of 1024. */
const [pings, inPing] = [100, 4 - 2];

await testInsideScenario('roce', ({ report }) => {
  // Connected ping-pongs by v2 from both families, and half as long a one after the drivers are loaded again; ib_send_bw; two rpings of
  // 20 rounds, whose server is guest 1; ucmatose, which sends ten messages either way.
  const connected = 2 * pings + pingPong;
  const alone = 2 * 20 * 2 + 10;
  const unconnected = { UC_SEND_FIRST: pings, UC_SEND_MIDDLE: inPing * pings, UC_SEND_LAST: pings };
  expect(packetCounts(report, 0)).toMatchObject({
    RC_SEND_FIRST: connected + rate,
    RC_SEND_MIDDLE: inPing * connected + inSmall * rate,
    RC_SEND_LAST: connected + rate,
    RC_SEND_ONLY: alone,
    // ib_write_bw by v2, by v1, and by v1 with jumbo frames.
    RC_RDMA_WRITE_FIRST: 3 * rate,
    RC_RDMA_WRITE_MIDDLE: 2 * inSmall * rate + inLarge * rate,
    RC_RDMA_WRITE_LAST: 3 * rate,
    RC_RDMA_READ_REQUEST: rate,
    RC_FETCH_ADD: rate,
    ...unconnected,
  });
  expect(packetCounts(report, 1)).toMatchObject({
    RC_SEND_FIRST: connected,
    RC_SEND_MIDDLE: inPing * connected,
    RC_SEND_ONLY: alone,
    RC_RDMA_READ_RESPONSE_FIRST: rate,
    RC_RDMA_READ_RESPONSE_MIDDLE: inSmall * rate,
    RC_RDMA_READ_RESPONSE_LAST: rate,
    RC_RDMA_READ_REQUEST: 2 * 20,
    RC_RDMA_WRITE_ONLY: 2 * 20,
    RC_ATOMIC_ACKNOWLEDGE: rate,
    ...unconnected,
  });
  expect(report.wire.map(({ retransmitted }) => retransmitted)).toEqual([{}, {}]);
});

await testInsideScenario('roce-v1', ({ report }) => {
  // Ping-pongs from both families, ib_send_bw, and ib_write_bw twice, by packets of 2048 bytes: the MTU has jumbo frames, and perftest
  // chooses no more for this card.
  const inRate = 32 - 2;
  expect(packetCounts(report, 0)).toMatchObject({
    RC_SEND_FIRST: 2 * pings + rate,
    RC_SEND_MIDDLE: inPing * 2 * pings + inRate * rate,
    RC_RDMA_WRITE_FIRST: rate + 2 * rate,
    RC_RDMA_WRITE_MIDDLE: inRate * 3 * rate,
    RC_RDMA_READ_REQUEST: rate,
    RC_FETCH_ADD: rate,
  });
  expect(packetCounts(report, 1)).toMatchObject({
    RC_SEND_FIRST: 2 * pings,
    RC_RDMA_READ_RESPONSE_MIDDLE: inRate * rate,
    RC_ATOMIC_ACKNOWLEDGE: rate,
  });
});
