/** Files and disks over RDMA between two guests in this process. */
import { expect } from 'vitest';
import { commandCounts, packetCounts, testInsideScenario } from './inside-suite.ts';

await testInsideScenario('nfs', ({ report }) => {
  // A call and its answer are a SEND each, some with an invalidation of the client's key (RFC 8166, 3.3 and 4.1); none is repeated.
  const [calls, answers] = [packetCounts(report, 0), packetCounts(report, 1)];
  expect((answers['RC_SEND_ONLY'] ?? 0) + (answers['RC_SEND_ONLY_WITH_INVALIDATE'] ?? 0)).toBe(
    calls['RC_SEND_ONLY'],
  );
  expect(answers['RC_RDMA_READ_REQUEST']).toBe(
    (calls['RC_RDMA_READ_RESPONSE_FIRST'] ?? 0) + (calls['RC_RDMA_READ_RESPONSE_ONLY'] ?? 0),
  );
});
await testInsideScenario('nfs-roce');
await testInsideScenario('srp-unbind', ({ report }) => {
  // The initiator's driver is bound once and three times again, the target's once; each binding ends.
  for (const [node, bindings] of [4, 1].entries()) {
    expect(commandCounts(report, ['RUN_FW', 'INIT_HCA', 'CLOSE_HCA'], node)).toEqual([
      bindings,
      bindings,
      bindings,
    ]);
    // The drivers take back all that they gave the device.
    const given = commandCounts(report, ['SW2HW_MPT', 'SW2HW_CQ', 'SW2HW_EQ', 'MAP_ICM', 'MAP_FA'], node);
    const taken = commandCounts(report, ['HW2SW_MPT', 'HW2SW_CQ', 'HW2SW_EQ', 'UNMAP_ICM', 'UNMAP_FA'], node);
    expect(taken).toEqual(given);
  }
});
