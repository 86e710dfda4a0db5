/** Rate, length and buffers of a wire port and its cable. */
import { type ConfigOf, choice, number } from '../base/index.ts';
import { FEC_SOURCE, fecCodes } from './forward-error-correction.ts';

const laneSpeeds = ['SDR', 'DDR', 'QDR', 'FDR10', 'FDR', 'EDR', 'HDR', 'NDR'] as const;
export type LaneSpeed = (typeof laneSpeeds)[number];
const laneCounts = ['1', '2', '4', '8', '12'] as const;
export type LaneCount = (typeof laneCounts)[number];

export const wireParameters = {
  speed: choice('QDR', laneSpeeds, 'measurements.md, group A: IB 4X QDR', 'Signalling rate of a lane.'),
  lanes: choice('4', laneCounts, 'IBTA vol 2, 5.4', 'Link width.'),
  portLatencyNs: number(
    40,
    'ns',
    [1, 100_000],
    'estimate: SerDes and link layer',
    'Latency of one port, in each direction; a packet passes two.',
  ),
  cableMetres: number(2, 'm', [0, 10_000], 'estimate: a copper cable within a rack', 'Length of the cable.'),
  switchLatencyNs: number(
    0,
    'ns',
    [0, 100_000],
    'choice: none',
    'Latency that switches between both ends add. They carry as much as the cables and drop nothing.',
  ),
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
    'Forward error correction of the link, which delays each packet by one word of the code and its decoding. FDR and slower links of these cards have none; HDR and NDR always have rs-544.',
  ),
  framingBytes: number(
    2,
    'bytes',
    [0, 64],
    'IBTA vol 2, 5.3: start and end delimiter, one symbol each',
    'Link bytes around every packet.',
  ),
  transmitAheadBytes: number(
    2560,
    'bytes',
    [0, 65536],
    'estimate',
    'A port takes another packet when no more than this waits for the link, or what leaves while the packet is formed.',
  ),
  receiveBufferBytes: number(
    16_384,
    'bytes',
    [8448, 131_072],
    'estimate',
    'Receive buffer of all data lanes up to 4X QDR, promised as credits of 64 bytes; as much more as a link is faster.',
  ),
  dataVls: choice(
    '1',
    ['1', '2', '4', '8'],
    'IBTA vol 1, 7.6.2: VL 0, or 2, 4 or 8 data lanes; ConnectX-3 has 8',
    'Data lanes (VLs) of InfiniBand ports. They share the receive buffer in equal parts, and each has credits of its own.',
  ),
  creditReturnBytes: number(
    2048,
    'bytes',
    [64, 65_536],
    'estimate',
    'Freed buffer after which a flow control packet is sent.',
  ),
  managementBufferPackets: number(
    8,
    'packets',
    [1, 1024],
    'estimate',
    'Receive buffer of virtual lane 15; beyond it packets are dropped.',
  ),
  trainingUs: number(
    10,
    'us',
    [0, 10_000_000],
    'estimate: real links take milliseconds, which nothing here depends on',
    'From both ends having seen each other to the link being up.',
  ),
  packetForm: choice(
    'fields',
    ['fields', 'bytes'],
    'estimate: no quantity of a card. Both forms give the same figures',
    "What travels the cable: a packet's fields, its CRCs known as good; or its bytes, made by the sender, and checked and read by the receiver, as frames of Ethernet always are.",
  ),
} as const;

export type WireConfig = ConfigOf<typeof wireParameters>;
