/** Faults of the adapter under stock drivers in this process, and how far the drivers come at each attempt. */
import { expect } from 'vitest';
import { commandCounts, testInsideScenario } from './inside-suite.ts';

await testInsideScenario('faults-probe', ({ report }) => {
  // Seven attempts to load: QUERY_DEV_CAP fails in the first; the second finds the owner register taken and sends no command; the
  // third fails at its second event queue; the fourth works, and so does the fifth, after the semaphore; the sixth fails in its
  // reset, before any command; the seventh works. Each uses two event queues; those that work test their interrupts by NOP.
  expect(commandCounts(report, ['QUERY_DEV_CAP', 'RUN_FW', 'INIT_HCA', 'SW2HW_EQ', 'NOP'])).toEqual([
    5,
    5,
    4,
    4 * 2,
    3,
  ]);
  expect(commandCounts(report, ['HW2SW_EQ', 'CLOSE_HCA'])).toEqual([1 + 2 + 2, 3]);
  expect(report.faults?.map(({ fired }) => fired)).toEqual([1, 1, 1, 1, 1]);
});

await testInsideScenario('faults-work', ({ report }) => {
  // The driver starts the firmware when it loads, after the fatal error, and after the device was absent. The second and the third
  // shared receive queue are there when the device fails, so only the first is destroyed.
  expect(commandCounts(report, ['RUN_FW', 'NOP', 'SW2HW_SRQ', 'HW2SW_SRQ'])).toEqual([3, 3, 3, 1]);
  // Late are the messages 10 to 20 of the vector.
  expect(report.faults?.map(({ fired }) => fired)).toEqual([1, 1, 1, 1, 11, 1, 1, 1, 1]);
  const { sent, delivered } = report.nodes[0]!.interrupts.find(({ vector }) => vector === 1)!;
  expect(delivered - sent).toBe(1);
});
