/** Every kind of traffic of an adapter that talks to itself, in a guest in this process. */
import { expect } from 'vitest';
import { testInsideScenario } from './inside-suite.ts';

await testInsideScenario('loopback', ({ report }) => {
  const { transmitted } = report.nodes[0]!.hca.loopback!;
  const packets = Object.fromEntries(Object.entries(transmitted).map(([name, each]) => [name, each.packets]));
  expect(packets).toMatchObject({
    RC_COMPARE_SWAP: 50,
    RC_FETCH_ADD: 200,
    // ib_read_lat twice, ib_read_bw, the same over four QPs and of 2 MiB, and rping.
    RC_RDMA_READ_REQUEST: 50 + 50 + 200 + 4 * 50 + 5 + 10,
    // 64 KiB in packets of 2048 bytes.
    UC_RDMA_WRITE_FIRST: 200,
    UC_RDMA_WRITE_MIDDLE: 200 * (32 - 2),
    UC_RDMA_WRITE_LAST: 200,
    XRC_RDMA_WRITE_MIDDLE: 2 * 50 * (32 - 2),
    XRC_RDMA_READ_REQUEST: 50,
    XRC_FETCH_ADD: 50,
  });
});
