/** Latency, buffer, marking and paths of the Ethernet switches of a fabric. */
import { type ConfigOf, choice, flag, number } from '../../base/index.ts';

/** Multiples of the free buffer that a queue may take. Hardware has powers of two. */
const alphas = ['1/128', '1/64', '1/32', '1/16', '1/8', '1/4', '1/2', '1', '2', '4', '8'] as const;
export type Alpha = (typeof alphas)[number];

/** The number that an alpha denotes. */
export function ratioOf(alpha: Alpha): number {
  const [numerator, denominator = '1'] = alpha.split('/');
  return Number(numerator) / Number(denominator);
}

const HPCC = 'HPCC switch-mmu.cc';
const DCQCN = 'DCQCN';

export const ethernetSwitchParameters = {
  latencyNs: number(
    300,
    'ns',
    [1, 100_000],
    'estimate: 600 ns from port to port, as a Trident II has, less its two ports (switch.ethernet.portLatencyNs)',
    'From the last byte of a frame within the switch, or from its first if it is cut through, until its first byte may leave.',
  ),
  forwarding: choice(
    'store-and-forward',
    ['cut-through', 'store-and-forward'],
    'choice: as switches of Broadcom are delivered; SwitchX and Spectrum cut through',
    'Whether a frame may leave before its last byte has arrived: if all its outputs are idle and none is faster than its input. Otherwise it is stored.',
  ),
  portLatencyNs: number(
    150,
    'ns',
    [1, 100_000],
    'estimate: as ethernet.portLatencyNs',
    'MAC and PHY of one port of the switch, in each direction. On a cable to a host the other port is ethernet.portLatencyNs.',
  ),
  bufferKib: number(
    12_288,
    'KiB',
    [64, 1_048_576],
    'estimate: a Trident II has 12 MB for all its ports',
    'Buffer for the frames of all ports together.',
  ),
  alpha: choice(
    '1',
    alphas,
    'estimate; Choudhury and Hahne, IEEE/ACM Transactions on Networking 6 (1998)',
    'A queue of an output may be this many times as long as the buffer is free; beyond it, frames of lossy priorities are dropped.',
  ),
  flowControl: choice(
    'pause',
    ['none', 'pause', 'pfc'],
    'choice: RoCE expects a network without loss; IEEE 802.3 annex 31B, IEEE 802.1Q clause 36',
    'How ports stop senders: not at all, by PAUSE of all traffic, or by PFC of losslessPriorities. Hosts: driver.usesPause, driver.pfcPriorities.',
  ),
  pauseAlpha: choice(
    '1/8',
    alphas,
    `${HPCC}: 1/8`,
    'An input may hold this many times as many bytes as the buffer is free before its sender is stopped.',
  ),
  resumeBytes: number(
    3072,
    'bytes',
    [0, 1_048_576],
    `${HPCC}: 3 KiB`,
    'A sender is released when its input holds this much less than the limit.',
  ),
  headroomMetres: number(
    100,
    'm',
    [0, 100_000],
    'SONiC buffer_headroom_barefoot.lua: cables of 5 to 300 m',
    'Cable for whose delay an input has headroom: lossless traffic loses nothing on shorter ones.',
  ),
  pauseWatchdogMs: number(
    200,
    'ms',
    [0, 100_000],
    'estimate: SONiC PFC watchdog, hundreds of milliseconds',
    'A queue that a pause holds for that time without a frame sent is dropped until the pause ends; 0: never.',
  ),
  losslessPriorities: number(
    1,
    'mask of priorities',
    [0, 255],
    'choice: priority 0, which programs have that request none',
    'Priorities that PFC keeps free of loss: bit n is priority n.',
  ),
  trust: choice(
    'dscp',
    ['dscp', 'pcp'],
    'RFC 2474, 4.2.2: class selectors; IEEE 802.1Q, 6.9',
    'Source of a frame’s priority: the upper three bits of the DSCP, and the tag of other frames; or the tag alone. Frames without: 0.',
  ),
  scheduling: choice(
    'strict',
    ['strict', 'round-robin'],
    'IEEE 802.1Q, 8.6.8.1: strict priority is the default',
    'Which priority of an output sends next: the highest, or each in turn.',
  ),
  marksCongestion: flag(
    false,
    'RFC 3168; off in switches as delivered',
    'Whether frames whose sender supports ECN are marked in long queues.',
  ),
  ecnMinBytes: number(
    5_000,
    'bytes',
    [0, 1_073_741_824],
    `${DCQCN}: 5 KB at 40 Gb/s`,
    'Kmin: no frame is marked in a shorter queue of an output.',
  ),
  ecnMaxBytes: number(
    200_000,
    'bytes',
    [1, 1_073_741_824],
    `${DCQCN}: 200 KB at 40 Gb/s`,
    'Kmax: every frame is marked in a longer queue of an output.',
  ),
  ecnProbabilityPercent: number(
    1,
    '%',
    [0, 100],
    `${DCQCN}: 1 %`,
    'Pmax: probability of a mark in a queue of Kmax; it rises in proportion from Kmin.',
  ),
  ageingSeconds: number(
    300,
    's',
    [10, 1_000_000],
    'IEEE 802.1Q, 8.8.3: 300 s, 10 s to 1,000,000 s',
    'A learned station is forgotten when it has sent nothing for that time.',
  ),
  macEntries: number(
    32_768,
    'entries',
    [1, 1_048_576],
    'estimate: a Trident II has 32 Ki or more',
    'Stations that a switch can learn; frames to others are flooded.',
  ),
  multipath: choice(
    'ecmp',
    ['ecmp', 'tree'],
    'RFC 2992; IEEE 802.1Q, 13: a spanning tree leaves one path',
    'Paths of a fabric that has several: all shortest ones, chosen by a hash of each flow; or those of one tree.',
  ),
  hashSeed: number(
    1,
    'seed',
    [0, 2 ** 32 - 1],
    'choice',
    'Seed of that hash; each switch adds its own number.',
  ),
} as const;

export type EthernetSwitchConfig = ConfigOf<typeof ethernetSwitchParameters>;
