/** The sweep of tests with other machines: twelve points of a third of a second each, and more on a busy machine. */
import { existsSync, readFileSync } from 'node:fs';

export const sweepSpec = `
workload: write-bw,size=64,iters=10000
vary:
  txDepth: [16, 64]
  hca.mttCacheLines: [16, 64]
  pcie.link.generation: [1, 2, 3]
`;

/** Complete rows of a result file, after its header. */
export const rowCountOf = (file: string): number =>
  existsSync(file) ? Math.max(0, readFileSync(file, 'utf8').split('\n').length - 2) : 0;
