/**
 * Parameters of the driver: table sizes, event queue sizes, limits of time. Defaults are Linux' where a table costs nothing
 * until it is used (ICM is virtual), and smaller where Linux donates megabytes that a simulated host cannot spare.
 */
import { type ConfigOf, flag, number, powerOfTwo } from '../base/index.ts';

const linux = (what: string): string => `Linux 6.1 mlx4_core: ${what}`;

export const driverParameters = {
  resetWaitUs: number(
    1_000,
    'µs',
    [0, 10_000_000],
    'interface sheet 2.3; Linux sleeps 1 s',
    'Time the device is left alone after a reset. The model resets within one clock cycle, so the default is a thousandth of what real firmware needs; 1000000 gives the real wait.',
  ),
  resetVendorLimitUs: number(
    2_000_000,
    'µs',
    [1, 100_000_000],
    'interface sheet 2.3',
    'After a reset the vendor id must be readable within this time.',
  ),
  semaphoreLimitUs: number(
    10_000_000,
    'µs',
    [1, 100_000_000],
    'interface sheet 2.3',
    'How long to wait for the hardware semaphore.',
  ),
  ownerReleaseWaitUs: number(
    1_000,
    'µs',
    [0, 10_000_000],
    'interface sheet 2.5; Linux sleeps 1 s',
    'Wait after giving up the owner register, scaled like resetWaitUs.',
  ),
  commandLimitUs: number(
    60_000_000,
    'µs',
    [1, 600_000_000],
    'interface sheet 3.3',
    'A command not answered within this time has failed, and the device with it.',
  ),
  commandGoLimitUs: number(
    10_000_000,
    'µs',
    [1, 600_000_000],
    'interface sheet 2.2',
    'How long to wait for GO to clear before posting a command in event mode.',
  ),
  commandPollIntervalNs: number(
    1_000,
    'ns',
    [1, 10_000_000],
    'estimate',
    'Pause between two reads of the command register while polling.',
  ),
  commandsInFlightMax: number(
    16,
    'commands',
    [1, 64],
    linux('16 command contexts'),
    'Commands in flight in event mode, if the firmware allows as many.',
  ),
  portActiveLimitUs: number(
    100_000,
    'µs',
    [0, 100_000_000],
    'estimate',
    'How long probe waits for its ports to become active; afterwards it continues with the port as it is, as Linux does.',
  ),
  eventPollUs: number(
    100_000,
    'µs',
    [1, 100_000_000],
    'estimate; Linux does so for newer adapters (mlx5)',
    'When the event of a command is late by this time, the driver polls the asynchronous event queue itself: the interrupt may be lost.',
  ),
  healthIntervalUs: number(
    1_000_000,
    'µs',
    [10, 100_000_000],
    'interface sheet 2.6: Linux looks every 5 s',
    'Interval of the health timer, which reads the catastrophic error buffer and checks the event queues.',
  ),
  healthIdleTicks: number(
    30,
    'checks',
    [1, 1_000_000],
    'choice: Linux never stops',
    'The health timer stops after this many checks without a finding or a use of the driver, until the driver is used again.',
  ),
  logQps: number(18, 'log2 entries', [10, 22], linux('default profile'), 'QP table.'),
  logRdmarcPerQp: number(
    4,
    'log2 entries',
    [0, 7],
    linux('default profile'),
    'Responder resources (reads and atomics) per QP.',
  ),
  logSrqs: number(16, 'log2 entries', [7, 22], linux('default profile'), 'SRQ table.'),
  logCqs: number(16, 'log2 entries', [8, 22], linux('default profile'), 'CQ table.'),
  logMpts: number(19, 'log2 entries', [9, 24], linux('default profile'), 'Memory region table.'),
  logMtts: number(
    20,
    'log2 entries',
    [14, 26],
    linux('at least 2^20'),
    'Translation entries; raised to twice the pages of the host memory if that is more.',
  ),
  logMcgs: number(
    8,
    'log2 entries',
    [4, 17],
    'estimate; Linux 13',
    'Multicast groups. The whole table is donated at probe: 2^13 entries would cost 8 MiB.',
  ),
  completionEqEntries: powerOfTwo(
    4096,
    'entries',
    [128, 2 ** 21],
    'estimate; Linux 65536',
    'Each completion event queue. Linux sizes it for all 65536 CQs at once (2 MiB a queue); 4096 holds one event of as many CQs.',
  ),
  asyncEqEntries: powerOfTwo(
    512,
    'entries',
    [128, 2 ** 21],
    linux('256 + 128, rounded up'),
    'The asynchronous event queue.',
  ),
  completionVectorsMax: number(
    8,
    'vectors',
    [1, 127],
    'estimate; Linux one per CPU',
    'Completion event queues, one interrupt vector each; fewer if the platform or the device has fewer.',
  ),
  eqUpdateInterval: number(
    128,
    'entries',
    [1, 4096],
    'interface sheet 6.10',
    'While an event queue is drained, its consumer counter is written to the device every this many entries.',
  ),
  interruptTestLimitUs: number(
    10_000,
    'µs',
    [1, 100_000_000],
    'estimate',
    'The NOP of the interrupt test must be answered by an interrupt within this time, else the driver falls back to the legacy pin.',
  ),
  onDemandPagesMax: number(
    0,
    'pages',
    [0, 2 ** 24],
    'choice; Linux has no limit',
    'Pages that the device may reach through on-demand regions at a time; the oldest go first. 0: a quarter of the host memory.',
  ),
  pageRequestPagesMax: number(
    64,
    'pages',
    [1, 4096],
    'estimate; mlx5 takes the whole operation',
    'Pages that are made present for one page request, at most; of the first one on, as far as the operation reaches.',
  ),
  useMsix: flag(
    true,
    'interface sheet 8.1',
    'Whether to use MSI-X where the device and the platform have it.',
  ),
  usesPause: flag(
    true,
    'Linux 6.1 mlx4_en: pause both ways unless told otherwise (ethtool -A)',
    'Whether a port of Ethernet sends PAUSE frames and heeds those that come.',
  ),
} as const;

export type DriverConfig = ConfigOf<typeof driverParameters>;
