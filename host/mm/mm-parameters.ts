/**
 * Parameters of memory management: costs of faults, copies and shootdowns for a core, the swap and file devices, the
 * watermarks, the TLB. Cycles are those of the default 2.5 GHz core.
 */
import { type ConfigOf, number, powerOfTwo } from '../../base/index.ts';

const linuxPages = 'Linux mm/page_alloc.c';
const intelOptimization = 'Intel 64 and IA-32 Optimization Reference Manual';

const cycles = (value: number, source: string, doc: string) =>
  number(value, 'cycles', [0, 10_000_000], source, doc);

/** Costs of the kernel's memory management for a core. */
const pagingParameters = {
  mapCycles: cycles(
    1000,
    'estimate: 0.4 us',
    'One mmap, munmap, mprotect, mremap or madvise, whatever its size, its system call included.',
  ),
  minorFaultCycles: cycles(
    1250,
    'estimate: 0.5 us',
    'A page fault that needs no device: exception, area look-up, page-table entry, return.',
  ),
  majorFaultCycles: cycles(
    5000,
    'estimate: 2 us of block layer and completion',
    'What a fault that waits for the swap or file device costs the core on top.',
  ),
  zeroPageCycles: cycles(400, 'estimate: rep stosb at 10 bytes a cycle', 'Zeroing one 4 KiB page.'),
  copyPageCycles: cycles(1000, 'estimate: 4 KiB at 4 bytes a cycle', 'Copying one 4 KiB page.'),
  unmapPageCycles: cycles(
    60,
    'estimate: zap_pte_range, rmap, free',
    'Clearing one present page-table entry.',
  ),
  forkCycles: cycles(125_000, 'estimate: 50 us', 'Forking, whatever the size of memory.'),
  forkPageCycles: cycles(40, 'estimate: copy_present_pte', 'Copying one page-table entry at fork.'),
  scanPageCycles: cycles(250, 'estimate: 0.1 us: rmap walk, reference bits', 'Scanning one page in reclaim.'),
  reclaimPageCycles: cycles(
    1500,
    'estimate: 0.6 us: unmap, swap entry, request to the block layer',
    'Taking one page from its users and giving it back or writing it out.',
  ),
  minFreeKib: number(
    0,
    'KiB',
    [0, 1_048_576],
    `${linuxPages}, init_per_zone_wmark_min`,
    'Watermark "min": users get no frame below it. 0 computes it as Linux does: 4 * sqrt(memory in KiB).',
  ),
  swappiness: number(
    60,
    'percent',
    [0, 200],
    'Linux vm.swappiness',
    'Share of 200 of the reclaim that goes to anonymous pages while there are file pages, too.',
  ),
  oomReapPageCycles: cycles(100, 'estimate', 'Taking one page from a killed process.'),
} as const;

const ssd = 'estimate: a SATA SSD of the time';

/** Times of a block device. */
const blockDeviceParameters = () =>
  ({
    readLatencyNs: number(90_000, 'ns', [0, 1_000_000_000], ssd, 'From request to data of one read.'),
    writeLatencyNs: number(
      60_000,
      'ns',
      [0, 1_000_000_000],
      ssd,
      'From request to acknowledgement of one write.',
    ),
    megabytesPerSecond: number(
      500,
      'MB/s',
      [1, 100_000],
      'estimate: SATA 3 SSD',
      'Transfer rate, reads and writes together.',
    ),
  }) as const;

/** The device to which pages are written out. */
const swapParameters = {
  sizeMib: number(
    512,
    'MiB',
    [0, 65_536],
    'estimate: as much as memory',
    'Capacity of the swap device; 0 is none.',
  ),
  ...blockDeviceParameters(),
} as const;

/** The device that holds files. */
const fileDeviceParameters = blockDeviceParameters();

/** Translation look-aside buffer of a core, and the cost of emptying another core's. */
const tlbParameters = {
  entries: powerOfTwo(
    1024,
    'entries',
    [16, 65_536],
    `${intelOptimization}: second-level TLB of Haswell`,
    'Entries for 4 KiB and 2 MiB pages together.',
  ),
  ways: powerOfTwo(8, 'ways', [1, 64], `${intelOptimization}: second-level TLB of Haswell`, 'Associativity.'),
  walkCycles: cycles(
    36,
    'estimate: four levels, mostly from the second-level cache',
    'Walking the page table on a miss.',
  ),
  flushPageCycles: cycles(
    200,
    'estimate: invlpg, 80 ns',
    'Invalidating one page in the TLB of the core itself.',
  ),
  flushAllPages: number(
    33,
    'pages',
    [1, 65_536],
    'Linux arch/x86/mm/tlb.c, tlb_single_page_flush_ceiling',
    'A shootdown of more pages empties the process from the TLB instead.',
  ),
  shootdownCycles: cycles(
    2500,
    'estimate: 1 us',
    'What the initiator of a shootdown waits for the other cores.',
  ),
  shootdownHandlerCycles: cycles(
    1000,
    'estimate: 0.4 us: interrupt entry, flush, acknowledgement',
    'What the interrupt costs each other core on which the process has run.',
  ),
} as const;

/** The tables of the memory management by the name of their part. */
export const mmParameters = {
  paging: pagingParameters,
  swap: swapParameters,
  fileDevice: fileDeviceParameters,
  tlb: tlbParameters,
} as const;

type PagingConfig = ConfigOf<typeof pagingParameters>;
export type BlockDeviceConfig = ConfigOf<typeof fileDeviceParameters>;
type SwapConfig = ConfigOf<typeof swapParameters>;
type TlbConfig = ConfigOf<typeof tlbParameters>;

export interface MmConfig {
  readonly paging: PagingConfig;
  readonly swap: SwapConfig;
  readonly fileDevice: BlockDeviceConfig;
  readonly tlb: TlbConfig;
}
