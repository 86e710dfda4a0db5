/**
 * Sizes and timings of the DMA engines. MPS, MRRS, the completion timeout and the tag width (5 or 8 bits) are not here:
 * software programs them in the PCIe capability.
 */
import { type ConfigOf, choice, number } from '../../base/index.ts';

export const dmaParameters = {
  tagCount: number(
    32,
    'tags',
    [1, 256],
    'PCIe Base 3.0, 2.2.6.2: 5-bit tags, 8-bit with Extended Tag Field Enable',
    'Memory reads in flight at once.',
  ),
  readIssueCycles: number(
    1,
    'cycles',
    [1, 1000],
    'estimate',
    'Cycles the read engine is occupied by one memory read.',
  ),
  readArbitration: choice(
    'roundRobin',
    ['roundRobin', 'strictPriority', 'weighted', 'wholeRequest'],
    'estimate',
    'Which requester sends the next memory read: in turn, the one added first, in turn by weight, or in turn for a whole request.',
  ),
  writeIssueCycles: number(
    1,
    'cycles',
    [1, 1000],
    'estimate',
    'Least cycles the write engine is occupied by one TLP.',
  ),
  dataPathBytes: number(
    32,
    'bytes',
    [4, 512],
    'estimate: 256 bits at 427 MHz are 13.7 GB/s, above Gen3 x8',
    'Payload bytes moved between link and on-chip memory in one cycle, in each direction.',
  ),
} as const;

export type DmaConfig = ConfigOf<typeof dmaParameters>;
