/** Sizes and costs of the TCP engine and of the RDMA side, and the limits of its connections. Each has its source or the word "estimate". */
import { type ConfigOf, ConfigurationError, flag, number, powerOfTwo } from '../../../base/index.ts';

const linuxTcp = (name: string): string => `Linux 6.1 include/net/tcp.h: ${name}`;

export const iwarpParameters = {
  contextEntries: powerOfTwo(256, 'entries', [1, 65_536], 'estimate: as of QPs', 'TCP contexts on chip.'),
  contextWays: powerOfTwo(8, 'ways', [1, 64], 'estimate: as of QPs', 'Associativity of their cache.'),
  receiveCycles: number(
    16,
    'cycles',
    [1, 10_000],
    'estimate',
    'Cycles the engine is occupied by the state of a received segment.',
  ),
  sendCycles: number(
    12,
    'cycles',
    [1, 10_000],
    'estimate',
    'Cycles the engine is occupied by a segment that it sends, in addition.',
  ),
  bytesPerCycle: number(
    32,
    'bytes',
    [1, 1024],
    'estimate: 256-bit datapath, as the receiver of packets has it',
    'Width of the path on which a received segment passes its checksum.',
  ),
  transmitFrames: number(
    16,
    'frames',
    [2, 1024],
    'estimate',
    'Frames formed, or being formed, that wait for the port.',
  ),
  placementSegments: number(
    64,
    'segments',
    [1, 4096],
    'estimate',
    'Received DDP segments that wait for their placement before TCP stalls, beyond those that it may hand over at once.',
  ),
  crcBytesPerCycle: number(
    32,
    'bytes',
    [1, 1024],
    'estimate: as wide as the receive datapath',
    'Bytes of an FPDU whose CRC32c is computed in a cycle, before it is sent or placed.',
  ),
  markerCycles: number(
    1,
    'cycles',
    [0, 1000],
    'estimate',
    'Cycles that a marker of MPA takes, written or removed.',
  ),
  retransmissionBytes: number(
    524_288,
    'bytes',
    [4096, 2 ** 28],
    'estimate: ten times what 40 Gb/s send in 10 µs',
    'Memory for segments that are not acknowledged, of all connections together.',
  ),
  connectionBytes: number(
    65_536,
    'bytes',
    [2048, 2 ** 28],
    'estimate',
    'Bytes of it that one connection may use: its send buffer.',
  ),
  reorderBytes: number(
    131_072,
    'bytes',
    [2048, 2 ** 28],
    'estimate',
    'Memory for segments that arrive after a gap and cannot be placed yet.',
  ),
  packsFpdus: flag(
    false,
    'estimate: no source tells it of a card; in captures of Linux’s siw no segment has two FPDUs (reference/wire)',
    'FPDUs join the last segment of their connection that has not left, if they fit (RFC 5044, 4.5 allows it).',
  ),
  earlySegments: number(
    0,
    'segments',
    [0, 1024],
    'Linux 6.1 qed_iwarp.c and irdma/puda.c (irdma_ieq_process_fpdus): kept until the gap is closed',
    'WRITE and READ response segments of a stream that are placed before the gap in front of them is closed; needs markers.',
  ),
  streamBytes: number(
    4096,
    'bytes',
    [2048, 65_535],
    'estimate: several requests of MPA, of which one has at most 532',
    'Received bytes that wait for software, of one connection; at least two segments.',
  ),
  initialWindowSegments: number(10, 'segments', [1, 100], 'RFC 6928, 2', 'Initial congestion window.'),
  retransmitInitialUs: number(
    1_000_000,
    'µs',
    [100, 60_000_000],
    'RFC 6298, 2.1',
    'Time-out before a measurement.',
  ),
  retransmitMinUs: number(
    200_000,
    'µs',
    [100, 60_000_000],
    linuxTcp('TCP_RTO_MIN; RFC 6298, 2.4 has 1 s'),
    'Least time-out.',
  ),
  retransmitMaxUs: number(
    120_000_000,
    'µs',
    [1000, 600_000_000],
    linuxTcp('TCP_RTO_MAX'),
    'Longest time-out.',
  ),
  delayedAckUs: number(
    40_000,
    'µs',
    [0, 500_000],
    linuxTcp('TCP_DELACK_MIN'),
    'An acknowledgement waits no longer for data to travel with. 0: each segment is acknowledged.',
  ),
  finTimeoutUs: number(
    60_000_000,
    'µs',
    [1000, 600_000_000],
    linuxTcp('TCP_FIN_TIMEOUT (tcp_fin_timeout)'),
    'FIN_WAIT_2: time of the peer for its FIN.',
  ),
  timeWaitUs: number(60_000_000, 'µs', [0, 600_000_000], linuxTcp('TCP_TIMEWAIT_LEN'), 'TIME_WAIT.'),
  keepaliveIntervalUs: number(
    75_000_000,
    'µs',
    [1000, 600_000_000],
    linuxTcp('TCP_KEEPALIVE_INTVL'),
    'Between probes.',
  ),
  keepaliveProbes: number(
    9,
    'probes',
    [1, 100],
    linuxTcp('TCP_KEEPALIVE_PROBES'),
    'Unanswered probes that end it.',
  ),
  firstSequence: number(
    0,
    'bytes',
    [0, 0xffff_ffff],
    'RFC 9293, 3.4.1: a clock that ticks every 4 µs; from where it starts is free',
    'Initial sequence number of a connection opened at power-on.',
  ),
} as const;

export type IwarpConfig = ConfigOf<typeof iwarpParameters>;

/**
 * Conditions on several parameters together.
 * @param hasMarkers FPDUs that arrive have markers
 * @throws ConfigurationError for a time-out above the longest one, and for early placement without the markers that it needs
 */
export function checkIwarp(iwarp: IwarpConfig, hasMarkers: boolean): void {
  const { retransmitMaxUs, earlySegments } = iwarp;
  if (earlySegments > 0 && !hasMarkers)
    throw new ConfigurationError(
      'hca.iwarp.earlySegments',
      earlySegments,
      '0, or driver.mpaMarkers=true: markers alone locate the FPDUs of a segment after a gap',
    );
  for (const name of ['retransmitMinUs', 'retransmitInitialUs'] as const)
    if (iwarp[name] > retransmitMaxUs)
      throw new ConfigurationError(
        `hca.iwarp.${name}`,
        iwarp[name],
        `at most hca.iwarp.retransmitMaxUs (${retransmitMaxUs})`,
      );
}
