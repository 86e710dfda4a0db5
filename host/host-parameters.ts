/**
 * Parameters of the host: its memory, its cores, and the cost of each software action in core cycles.
 *
 * Times that the sources give in microseconds are turned into cycles of the default 2.5 GHz core. `F-…`, `C-…` and `D-…` are
 * rows of measurements.csv. A cost is what the core itself spends; time added by the device, the bus or a full store buffer is
 * simulated separately.
 */
import { type ConfigOf, choice, number, powerOfTwo } from '../base/index.ts';
import { type MmConfig, mmParameters } from './mm/index.ts';

const lite = 'measurements.csv';
const intelOptimization = 'Intel 64 and IA-32 Optimization Reference Manual';
const intelSdm = 'Intel SDM vol. 3A 11.3.1 (Buffering of Write Combining Memory Locations)';

/** Physical memory and the limits of processes. */
const memoryParameters = {
  sizeMib: number(512, 'MiB', [64, 4096], 'estimate', 'Physical memory of the host.'),
  reservedKib: number(
    1024,
    'KiB',
    [8, 65_536],
    'choice: the first MiB, as on a PC',
    'Low memory never handed out; so no valid frame has address 0. Its last frame is the zero page.',
  ),
  framePlacement: choice(
    'contiguous',
    ['contiguous', 'scattered'],
    'estimate',
    'How single frames are chosen: next fit, as on a fresh machine, or at random, as on one that ran for months.',
  ),
  memlockLimitKib: number(
    0,
    'KiB',
    [0, 4_194_304],
    'Open MPI FAQ and MLNX_OFED manual: memlock unlimited on RDMA hosts; Linux itself gives 8192 (5.16) or 64 (before)',
    'RLIMIT_MEMLOCK of a process: memory it may have pinned. 0 means unlimited.',
  ),
} as const;

/** The cores and their connections to memory and the bus. */
const coreParameters = {
  count: number(4, 'count', [1, 64], 'estimate', 'Cores of the host.'),
  clockMHz: number(2500, 'MHz', [100, 10_000], 'choice: a server core of the time', 'Core clock.'),
  storeBufferEntries: number(
    56,
    'entries',
    [1, 1024],
    `${intelOptimization}: 56 from Skylake on, 42 in Haswell`,
    'Stores of up to 8 bytes that may wait for memory or the bus before the core stalls.',
  ),
  storeSpaceKib: powerOfTwo(
    16_384,
    'KiB',
    [64, 262_144],
    'simulator limit, no hardware',
    'Bytes that a program may store before it waits for simulated time.',
  ),
  writeCombiningBuffers: number(
    10,
    'entries',
    [1, 64],
    `${intelOptimization}: 10 line fill buffers (Sandy Bridge to Broadwell)`,
    '64-byte write-combining buffers of a core.',
  ),
  writeCombiningChunkBytes: powerOfTwo(
    8,
    'bytes',
    [4, 64],
    intelSdm,
    'A buffer that is not full leaves in pieces that do not cross a multiple of this.',
  ),
} as const;

/** Interrupt delivery. */
const interruptParameters = {
  vectorCount: number(32, 'count', [1, 192], 'estimate', 'MSI-X messages the platform gives to the device.'),
  deliveryNs: number(
    200,
    'ns',
    [1, 100_000],
    'estimate',
    'From the message write at the root complex to the core: local APIC, arbitration.',
  ),
  entryCycles: number(
    1500,
    'cycles',
    [0, 1_000_000],
    'estimate: exception entry, register save, irq_enter, dispatch: 0.6 us',
    'Before the handler runs.',
  ),
  exitCycles: number(
    750,
    'cycles',
    [0, 1_000_000],
    'estimate: end of interrupt, register restore, iret: 0.3 us',
    'After the handler has returned.',
  ),
} as const;

const cycles = (value: number, source: string, doc: string) =>
  number(value, 'cycles', [0, 100_000_000], source, doc);

/** Costs of software. */
export const costParameters = {
  systemCallEntry: cycles(
    212,
    `${lite} F-084: two crossings 0.17 us, half of them`,
    'User to kernel crossing.',
  ),
  systemCallExit: cycles(
    213,
    `${lite} F-084: two crossings 0.17 us, half of them`,
    'Kernel to user crossing.',
  ),
  contextSwitch: cycles(
    3000,
    'estimate: 1.2 us, lmbench lat_ctx on a Xeon of the time',
    'Switching another thread in.',
  ),
  pinPerPage: cycles(
    500,
    `estimate: 0.2 us of the 1.2 us a page of ${lite} F-001…F-006`,
    'Finding and referencing one 4 KiB page.',
  ),
  unpinPerPage: cycles(100, `${lite} F-007…F-012: 0.077 us a page, half of it`, 'Dropping one 4 KiB page.'),
  copyFixed: cycles(50, 'estimate: call and loop set-up of a memcpy', 'Starting a copy.'),
  copyBytesPerCycle: number(
    4,
    'bytes/cycle',
    [1, 64],
    'estimate: 10 GB/s of one core',
    'Copying between buffers in memory.',
  ),
  mmioStore: cycles(60, `estimate, within the 150 ns of ${lite} C-161`, 'Issuing one store to device space.'),
  mmioLoad: cycles(
    40,
    'estimate',
    'Issuing one load from device space; the wait for its completion is simulated.',
  ),
  configAccess: cycles(100, 'estimate', 'Issuing one configuration access; the wait is simulated.'),
  postSend: cycles(240, `${lite} C-161: post_send 150 ns in all`, 'Building and posting one send.'),
  postSendPerSegment: cycles(15, `estimate, within ${lite} C-161`, 'Each data segment.'),
  postSendPerInlineByte64: cycles(
    16,
    'estimate: 64 bytes at 4 bytes a cycle',
    'Each 64 bytes of inline data.',
  ),
  postSection: cycles(
    0,
    'estimate: none; fitted where published measurements show it',
    'Time from one post of a process to its next, by any of its threads: a lock and registers that they share.',
  ),
  postSectionPerThread: cycles(
    0,
    'estimate: none; fitted where published measurements show it',
    'The same for each thread of the process.',
  ),
  postRecv: cycles(100, 'estimate', 'Building and posting one receive.'),
  pollEmpty: number(
    50,
    'cycles',
    [1, 100_000_000],
    'estimate: call, lock, one load that hits, unlock: 20 ns',
    'Polling an empty CQ once.',
  ),
  pollCompletion: cycles(125, 'estimate: 50 ns', 'Taking one completion.'),
  readDmaLine: cycles(
    60,
    `estimate: a load served by the last-level cache, into which DMA writes (${intelOptimization}: 26 to 31 core cycles unloaded, plus the snoop)`,
    'First read of a line that the device wrote.',
  ),
  commandPost: cycles(1500, 'estimate: mailbox, semaphore, locks: 0.6 us', 'Preparing one device command.'),
  commandComplete: cycles(1000, 'estimate: 0.4 us', 'Finishing one device command.'),
  registerRegionFixed: cycles(
    19_700,
    `${lite} F-001…F-006: 30 us in all, less system call, object and the command, which is simulated (21.4 us)`,
    'Registering a region, whatever its size.',
  ),
  registerRegionPerPage: cycles(
    2475,
    `${lite} F-001…F-006: 1.2 us a page, less the pin`,
    'Each 4 KiB page of a region.',
  ),
  deregisterRegionFixed: cycles(
    44_100,
    `${lite} F-007: 39.12 us in all, less system call, object and the command, which is simulated (21.4 us)`,
    'Deregistering a region, whatever its size.',
  ),
  deregisterRegionPerPage: cycles(
    94,
    `${lite} F-007…F-012: 0.077 us a page, less the unpin`,
    'Each 4 KiB page of a region.',
  ),
  createObject: cycles(10_000, 'estimate: 4 us', 'Allocating and naming one PD, CQ, QP or SRQ.'),
  interruptHandler: cycles(500, 'estimate: 0.2 us', "The driver's part of one interrupt."),
  eventDispatch: cycles(250, 'estimate: 0.1 us', 'Dispatching one event to its CQ, QP, SRQ or command.'),
} as const;

/** All tables of the host by the name of their part. */
export const hostParameters = {
  memory: memoryParameters,
  core: coreParameters,
  interrupt: interruptParameters,
  cost: costParameters,
  ...mmParameters,
} as const;

type MemoryConfig = ConfigOf<typeof memoryParameters>;
type CoreConfig = ConfigOf<typeof coreParameters>;
export type InterruptConfig = ConfigOf<typeof interruptParameters>;
export type CostConfig = ConfigOf<typeof costParameters>;

export interface HostConfig extends MmConfig {
  readonly memory: MemoryConfig;
  readonly core: CoreConfig;
  readonly interrupt: InterruptConfig;
  readonly cost: CostConfig;
}
