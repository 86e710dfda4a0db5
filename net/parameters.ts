/**
 * Every number of the traditional path's software: the NIC's driver, the transport, and the cost of each step in cycles of the
 * default 2.5 GHz core. The host's own profile defines the costs of copies, system calls and context switches.
 *
 * The reference measurements (measurements.csv) have no row of TCP, so nothing here is calibrated to one. "Arrakis" is
 * Peter et al., OSDI 2014, table 1 (UDP echo over 10 GbE on Linux: stack in 1.26 µs, out 1.05 µs, scheduler 0.17 to
 * 2.40 µs), quoted from memory; the split into steps is an estimate.
 */
import { type ConfigOf, flag, number, powerOfTwo } from '../base/index.ts';

const linux = (what: string): string => `Linux: ${what}`;
const arrakisIn = 'estimate: part of the 1.26 us of receiving (Arrakis, table 1)';
const arrakisOut = 'estimate: part of the 1.05 us of sending (Arrakis, table 1)';

/** The NIC's driver. */
export const netDriverParameters = {
  mtu: number(1500, 'bytes', [576, 9000], 'IEEE 802.3: 1500', 'Longest network-layer packet.'),
  transmitRing: powerOfTwo(256, 'entries', [8, 4096], linux('e1000e 256'), 'Transmit descriptors.'),
  receiveRing: powerOfTwo(512, 'entries', [8, 4096], linux('ixgbe 512'), 'Receive descriptors.'),
  buffersMax: number(
    8192,
    'buffers',
    [16, 65_536],
    'estimate',
    'Packet buffers of the kernel in all; they are taken from memory as they are needed.',
  ),
  pollWeight: number(64, 'frames', [1, 1024], linux('NAPI_POLL_WEIGHT'), 'Frames of one poll.'),
  softirqBudget: number(
    300,
    'frames',
    [1, 10_000],
    linux('net.core.netdev_budget'),
    'Frames handled in interrupt context before a kernel thread continues.',
  ),
  softirqTimeUs: number(
    2000,
    'µs',
    [10, 100_000],
    linux('net.core.netdev_budget_usecs'),
    'Time in interrupt context beyond the fair share before a kernel thread continues.',
  ),
  softirqSharePercent: number(
    50,
    '%',
    [5, 95],
    linux('ksoftirqd has the weight of an ordinary thread'),
    'Share of a core that polling takes while a program wants the core.',
  ),
  interruptOverheadNs: number(
    900,
    'ns',
    [0, 100_000],
    'estimate: that of host.interrupt, entry and exit at 2.5 GHz',
    'What one interrupt costs around its handler; counted against the share.',
  ),
  interruptIntervalNs: number(
    10_000,
    'ns',
    [0, 16_000_000],
    linux('ixgbe, 100,000 interrupts/s for low latency'),
    'Least distance of two interrupts of the data vector (EITR). 0: no moderation.',
  ),
  interruptCount: number(
    0,
    'causes',
    [0, 65_535],
    'estimate',
    'Causes that end a running interval early (EICT). 0: never.',
  ),
  refillBatch: number(16, 'buffers', [1, 512], linux('igb 16'), 'Receive buffers given per doorbell.'),
  checksumOffload: flag(true, linux('on for every NIC of the last 20 years'), 'The NIC computes checksums.'),
  resetLimitUs: number(100_000, 'µs', [1, 10_000_000], 'estimate', 'A reset must end within this time.'),
  linkLimitUs: number(
    10_000,
    'µs',
    [0, 10_000_000],
    'estimate',
    'How long probe waits for the link; afterwards it continues without.',
  ),
  watchdogIntervalUs: number(
    10_000,
    'µs',
    [10, 10_000_000],
    'estimate; Linux checks every 2 s (ixgbe service task)',
    'Interval of the watchdog, which checks the rings for lost interrupts and for frames that do not leave.',
  ),
  watchdogIdleTicks: number(
    500,
    'checks',
    [1, 1_000_000],
    'choice: Linux never stops',
    'The watchdog stops after this many checks without a finding, until the device is used again.',
  ),
  transmitHangTicks: number(
    5,
    'checks',
    [1, 10_000],
    'estimate; Linux: 5 s (watchdog_timeo)',
    'A transmit ring that does not advance for this many checks is hung: the adapter is reset.',
  ),
} as const;

const linuxTcp = (what: string): string => `Linux tcp: ${what}`;

/** The transport. */
export const netStackParameters = {
  receiveBufferKib: number(
    128,
    'KiB',
    [4, 65_536],
    linuxTcp('tcp_rmem 131072'),
    'SO_RCVBUF of a new socket.',
  ),
  sendBufferKib: number(128, 'KiB', [4, 65_536], 'estimate; Linux starts at 16 and tunes', 'SO_SNDBUF.'),
  windowScale: number(7, 'bits', [0, 14], linuxTcp('7 for tcp_rmem of 6 MiB'), 'Window scale we announce.'),
  initialWindowSegments: number(
    10,
    'segments',
    [1, 64],
    'RFC 6928',
    'Congestion window of a new connection.',
  ),
  retransmitMinUs: number(
    200_000,
    'µs',
    [100, 60_000_000],
    linuxTcp('TCP_RTO_MIN'),
    'Least retransmission time.',
  ),
  retransmitInitialUs: number(1_000_000, 'µs', [100, 60_000_000], 'RFC 6298, 2.1', 'Before any measurement.'),
  retransmitMaxUs: number(
    120_000_000,
    'µs',
    [1000, 600_000_000],
    linuxTcp('TCP_RTO_MAX'),
    'Greatest retransmission time.',
  ),
  synRetries: number(6, 'tries', [0, 30], linuxTcp('tcp_syn_retries'), 'Then connect is ETIMEDOUT.'),
  dataRetries: number(15, 'tries', [1, 60], linuxTcp('tcp_retries2'), 'Then the connection is ETIMEDOUT.'),
  delayedAckUs: number(
    40_000,
    'µs',
    [0, 1_000_000],
    linuxTcp('TCP_DELACK_MIN'),
    'A lone segment is held so long.',
  ),
  duplicateAcks: number(3, 'segments', [1, 100], 'RFC 5681, 3.2', 'Duplicates that mean a loss.'),
  outOfOrderMax: number(512, 'segments', [1, 65_536], 'estimate', 'Segments kept behind a gap.'),
  finTimeoutUs: number(
    60_000_000,
    'µs',
    [1, 600_000_000],
    linuxTcp('tcp_fin_timeout'),
    'Orphan in FIN_WAIT_2.',
  ),
  timeWaitUs: number(60_000_000, 'µs', [0, 600_000_000], linuxTcp('TCP_TIMEWAIT_LEN'), 'TIME_WAIT.'),
  timeWaitMax: number(4096, 'connections', [1, 262_144], linuxTcp('tcp_max_tw_buckets'), 'In TIME_WAIT.'),
  backlogMax: number(4096, 'connections', [1, 65_536], linux('net.core.somaxconn'), 'Bound of listen().'),
  socketsMax: number(1024, 'sockets', [1, 65_536], linux('RLIMIT_NOFILE'), 'Sockets of one process.'),
  memoryWaitUs: number(2000, 'µs', [1, 1_000_000], linux('sk_stream_wait_memory: 2 ms at least'), 'Pause.'),
  memoryTries: number(5, 'tries', [1, 1000], 'estimate', 'Pauses without packet buffers before ENOBUFS.'),
  ipv6: flag(true, linux('on'), 'IPv6 on every interface, with a link-local and a configured address.'),
  vlanId: number(
    0,
    'id',
    [0, 4094],
    'choice: none',
    'VLAN (IEEE 802.1Q) of a second interface, eth0.<id>, in addition to the untagged one; 0: no VLAN.',
  ),
  vlanPriority: number(
    0,
    'priority',
    [0, 7],
    linux('egress-qos-map of a new interface'),
    'Priority in the tags that it sends.',
  ),
  isDelayed: flag(
    true,
    'RFC 896 with the change of Minshall, as Linux',
    'Nagle; TCP_NODELAY switches it off.',
  ),
} as const;

const cycles = (value: number, source: string, doc: string) =>
  number(value, 'cycles', [0, 1_000_000], source, doc);

/** Costs of the path, in cycles. */
const netCostParameters = {
  socketCall: cycles(400, 'estimate: file table, lock_sock, release: 0.16 us', 'Socket layer of one call.'),
  bufferAllocate: cycles(250, arrakisIn, 'Taking and initialising one packet buffer (skb).'),
  bufferFree: cycles(150, 'estimate: 60 ns', 'Giving one packet buffer back.'),
  protocolReceive: cycles(1800, arrakisIn, 'Link, network and transport layer of one received segment.'),
  protocolTransmit: cycles(1700, arrakisOut, 'Transport, network and link layer of one segment sent.'),
  vlan: cycles(
    100,
    'estimate: 40 ns: the interface of a VLAN in front of its adapter',
    'One frame of a VLAN, sent or received.',
  ),
  protocolTimer: cycles(500, 'estimate', 'One expired timer of a connection.'),
  driverTransmit: cycles(350, arrakisOut, 'Mapping a frame and writing its descriptor.'),
  driverComplete: cycles(150, 'estimate', 'Unmapping a frame that was sent.'),
  driverReceive: cycles(350, arrakisIn, 'Taking one frame off the ring, and refilling it.'),
  interruptHandler: cycles(250, 'estimate: schedule the poll: 0.1 us', "The handler's own part."),
  softirqEntry: cycles(300, 'estimate: 0.12 us', 'Entering NET_RX.'),
  pollFixed: cycles(200, 'estimate', 'One poll of the rings, whatever it finds.'),
  wakeUp: cycles(
    1250,
    'estimate: try_to_wake_up 0.5 us; part of the scheduler 0.17 to 2.40 us (Arrakis)',
    'Waking.',
  ),
  checksumBytesPerCycle: number(
    4,
    'bytes/cycle',
    [1, 64],
    'estimate: as fast as a copy',
    'Checksums computed by the CPU.',
  ),
} as const;

/** All tables by the name of their part. */
export const netParameters = {
  driver: netDriverParameters,
  stack: netStackParameters,
  cost: netCostParameters,
} as const;

export type NetDriverConfig = ConfigOf<typeof netDriverParameters>;
export type NetStackConfig = ConfigOf<typeof netStackParameters>;
export type NetCostConfig = ConfigOf<typeof netCostParameters>;

export interface NetConfig {
  readonly driver: NetDriverConfig;
  readonly stack: NetStackConfig;
  readonly cost: NetCostConfig;
}
