/** Parameters of the IOMMU. Off by default: then no part of it is built. */
import { type ConfigOf, flag, number, powerOfTwo } from '../../base/index.ts';

const vtd = 'Intel VT-d architecture specification';

export const iommuParameters = {
  isEnabled: flag(
    false,
    'choice: RDMA hosts run with it off or in pass-through',
    'Device addresses are translated and checked by an IOMMU.',
  ),
  iotlbEntries: powerOfTwo(
    64,
    'entries',
    [1, 65_536],
    'estimate',
    'Translations that the IOTLB holds, of 4 KiB pages.',
  ),
  iotlbWays: powerOfTwo(4, 'ways', [1, 64], 'estimate', 'Associativity of the IOTLB.'),
  walkLevelNs: number(
    50,
    'ns',
    [0, 100_000],
    'estimate: a read of memory by the root complex, partly from its own cache; pcie-bench measures 227 to 280 ns for four',
    'Reading one entry of the page table: a miss in the IOTLB takes four.',
  ),
  walksInFlight: number(
    4,
    'walks',
    [1, 64],
    'measurements.csv I-267: 19 million reads a second, each of which misses',
    'Walks at a time: a later miss in the IOTLB waits for one of them to end.',
  ),
  invalidationNs: number(
    1000,
    'ns',
    [0, 1_000_000],
    'estimate: queued invalidation and its wait descriptor',
    'From queueing an invalidation until the processor sees that it is done (strict mode).',
  ),
  mapPageCycles: number(
    300,
    'cycles',
    [0, 1_000_000],
    'estimate',
    'Entering one page into the page table, for the processor.',
  ),
  unmapPageCycles: number(
    150,
    'cycles',
    [0, 1_000_000],
    'estimate',
    'Taking one page out, the invalidation apart.',
  ),
  faultLogEntries: number(
    16,
    'entries',
    [1, 256],
    `${vtd} 10.4: fault recording registers`,
    'Faults that are kept until the processor has read them; more are lost and counted.',
  ),
} as const;

export type IommuConfig = ConfigOf<typeof iommuParameters>;
