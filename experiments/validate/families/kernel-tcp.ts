/** Rows of the kernel's TCP over IPoIB: simulated hosts have sockets over Ethernet only. */
import type { Family } from '../family.ts';

const ipoib = (name: string, group: string, workload: RegExp): Family => ({
  name,
  of: { group, workload },
  workload: 'TCP of the kernel over IPoIB',
  notRun: { kind: 'workload', why: "the simulated kernel's sockets use Ethernet; it has no IPoIB" },
});

export const kernelTcpFamilies: readonly Family[] = [
  ipoib('qperf over IPoIB', 'B', /^TCP over IPoIB/),
  ipoib('LITE: TCP over IPoIB', 'F', /^TCP\b.*IPoIB/),
  ipoib('MPI over IPoIB', 'L', /over kernel TCP/),
];
