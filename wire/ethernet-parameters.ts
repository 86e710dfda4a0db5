/** Rate, length and frame sizes of an Ethernet port and its cable. */
import { type ConfigOf, choice, number } from '../base/index.ts';
import { FEC_SOURCE, fecCodes } from './forward-error-correction.ts';

const CLAUSE_4 = 'IEEE 802.3-2018, 4.4.2';

export const ethernetParameters = {
  gigabitsPerSecond: number(10, 'Gb/s', [1, 800], 'IEEE 802.3ae: 10GBASE-R', 'Data rate of the MAC.'),
  portLatencyNs: number(
    150,
    'ns',
    [1, 100_000],
    'estimate: PCS and PMA of 10GBASE-R with a direct attach cable',
    'Latency of one port, in each direction; a frame passes two.',
  ),
  cableMetres: number(2, 'm', [0, 100_000], 'estimate: a copper cable within a rack', 'Length of the cable.'),
  cablePsPerMetre: number(
    4800,
    'ps',
    [3336, 10_000],
    'estimate: 0.7 of the speed of light',
    'Propagation delay of the cable.',
  ),
  fec: choice(
    'none',
    fecCodes,
    FEC_SOURCE,
    'Forward error correction of the link, which delays each frame by one word of the code and its decoding. 10 and 40 Gb/s need none; 25 to 100 Gb/s use rs-528, 50 Gb/s a lane and more rs-544.',
  ),
  preambleBytes: number(
    8,
    'bytes',
    [0, 64],
    'IEEE 802.3-2018, 3.2.1 and 3.2.2',
    'Preamble and start of frame.',
  ),
  interFrameGapBytes: number(
    12,
    'bytes',
    [0, 1024],
    `${CLAUSE_4}: interPacketGap 96 bits`,
    'Least distance of two frames.',
  ),
  mtuBytes: number(
    1500,
    'bytes',
    [46, 9000],
    `${CLAUSE_4}: maxBasicFrameSize 1518; 9000 is the usual jumbo frame`,
    'Longest payload of a frame: a frame has 14 bytes of header before it and 4 of FCS behind.',
  ),
  transmitAheadBytes: number(
    128,
    'bytes',
    [0, 65_536],
    'estimate: hides the clock edges of the MAC between two frames',
    'A port takes another frame when no more than this waits for the link.',
  ),
  receiveFifoFrames: number(
    86,
    'frames',
    [1, 1024],
    'estimate: 128 KiB of whole frames, the receive FIFO that Solarflare tells of for its adapters of 10 and 40 Gb/s',
    'Frames a port holds for a MAC that is busy; beyond it they are dropped.',
  ),
  pauseXoffPercent: number(
    75,
    '%',
    [1, 100],
    'estimate: nothing is published of the card',
    'Of receiveFifoFrames: held frames at which a port with flow control asks the other end to stop.',
  ),
  pauseXonPercent: number(
    50,
    '%',
    [0, 99],
    'estimate: nothing is published of the card',
    'Of those: held frames at which it lets the other end go on.',
  ),
  pauseQuanta: number(
    65_535,
    'quanta',
    [512, 65_535],
    'estimate: the longest of IEEE 802.3-2018, 31B.3, as Linux’s drivers have other cards ask',
    'Pause of 512 bit times each that a port asks for; it asks again after half of it.',
  ),
  pauseCableMetres: number(
    7,
    'm',
    [0, 1000],
    'estimate: what Linux takes for the cable of a ConnectX-4 (mlx5 port_buffer.h)',
    'Longest cable for which a port with flow control has room beyond its thresholds: nothing is lost on shorter ones.',
  ),
  lossPerMillion: number(
    0,
    'frames per million',
    [0, 1_000_000],
    'estimate: a good cable',
    'Frames that vanish on the cable.',
  ),
  corruptionPerMillion: number(
    0,
    'frames per million',
    [0, 1_000_000],
    'IEEE 802.3ae, 44.1.2: a bit error ratio of 1e-12 is 12 per 1000 million frames',
    'Frames that arrive with a wrong frame check sequence.',
  ),
  trainingUs: number(
    10,
    'us',
    [0, 10_000_000],
    'estimate: real links take milliseconds to seconds, which nothing here depends on',
    'From both ends having seen each other to the link being up.',
  ),
} as const;

export type EthernetConfig = ConfigOf<typeof ethernetParameters>;
