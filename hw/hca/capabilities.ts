/**
 * Sizes and abilities of the device that its host interface reports to software. The device is made for them, and its commands hold
 * software to them. Defaults are those of public ConnectX-3 captures. Source: interface sheet 3.5, 3.7, 3.13.
 */
import { type ConfigOf, choice, flag, number } from '../../base/index.ts';

const SHEET = 'interface sheet 3.7';
const CAPTURE = 'interface sheet 3.7, public captures';
const INVENTED = 'estimate';
const HELD = 'choice; the interface has 24 bits (interface sheet 3.7), a context takes 2 KiB of this process';

export const capabilityParameters = {
  linkLayer: choice(
    'infiniband',
    ['infiniband', 'ethernet'],
    'interface sheet 3.13: single-type ports are the simplest',
    'What all ports are. On Ethernet simulated hosts use RoCE (roce) or iWARP (transport); other frames are for guests.',
  ),
  roce: choice(
    'none',
    ['none', 'v1', 'v2'],
    'interface sheet 3.7: flag 30 of a ConnectX-3, memory-management flag 19 of a ConnectX-3 Pro',
    'RDMA over ports of Ethernet: v1 in frames of its own, v2 beside it by IP and UDP. Ports of InfiniBand have none.',
  ),
  transport: choice(
    'ibta',
    ['ibta', 'iwarp'],
    'choice: a ConnectX-3 has IBTA alone (reference/iwarp-interface.md)',
    'How connected QPs exchange messages: IBTA, over InfiniBand or as RoCE, or iWARP over TCP connections of the card, on ports of Ethernet.',
  ),
  iwarpExtensions: flag(
    false,
    'RFC 7306: optional',
    'With iWARP: atomics, and WRITE with immediate data. Both ends need it.',
  ),
  logMaxTcpConnections: number(
    12,
    'log2',
    [4, 16],
    'estimate',
    'With iWARP: TCP connections and listeners of the device.',
  ),
  staticRates: flag(
    false,
    'IBTA vol 1, 9.11; interface sheet 3.7: a bit of QUERY_DEV_CAP for each rate. Off: no figure of a card in a capture',
    'Whether QPs and datagrams are sent no faster than the static rate of their path. Off: reported as not supported, and ignored.',
  ),
  logMaxLsoBytes: number(
    0,
    'log2',
    [0, 20],
    'interface sheet 3.7: 0 is none; Linux has use for 16',
    'Most payload of one segmentation (LSO) on a port of Ethernet; 0: the card segments nothing.',
  ),
  receiveChecksums: choice(
    'none',
    ['none', 'verified', 'complete'],
    'interface sheet 6.6, 3.19 (CONFIG_DEV, RX checksum mode 1)',
    'Of frames received on a port of Ethernet: that TCP and UDP are right, and with complete the sum of every IP packet.',
  ),
  flowCounters: number(
    0,
    'counters',
    [0, 255],
    'interface sheet 3.7: flag 48; at most 256 sensible',
    'Flow counters of ports of Ethernet, the last of which is the sink; Linux has use for 4 and more. 0: none, and its sysfs counters of RoCE stay 0.',
  ),
  portCount: number(1, 'ports', [1, 2], SHEET, 'Ports.'),
  firmwarePages: number(64, 'pages', [1, 65535], 'interface sheet 3.5', '4 KiB pages the firmware asks for.'),
  logMaxSrqWqes: number(
    14,
    'log2',
    [1, 15],
    CAPTURE,
    'Largest SRQ, one place of which software leaves free.',
  ),
  logMaxQpWqes: number(
    14,
    'log2',
    [6, 15],
    CAPTURE,
    'Largest send or receive queue: software leaves 33 places free.',
  ),
  logReservedQps: number(6, 'log2', [0, 15], CAPTURE, 'QPNs below belong to the firmware.'),
  logMaxQps: number(20, 'log2', [10, 24], HELD, 'QPs that can be live at once, less the reserved.'),
  logReservedSrqs: number(6, 'log2', [0, 15], CAPTURE, 'SRQNs below belong to the firmware.'),
  logMaxSrqs: number(20, 'log2', [7, 24], HELD, 'SRQs that can be live at once, less the reserved.'),
  logMaxCqEntries: number(
    22,
    'log2',
    [1, 22],
    CAPTURE,
    'Largest CQ, one entry of which software leaves free.',
  ),
  logReservedCqs: number(7, 'log2', [0, 15], CAPTURE, 'CQNs below belong to the firmware.'),
  logMaxCqs: number(20, 'log2', [8, 24], HELD, 'CQs that can be live at once, less the reserved.'),
  logMaxEqEntries: number(22, 'log2', [0, 22], SHEET, 'Largest EQ.'),
  logReservedEqs: number(2, 'log2', [0, 6], SHEET, 'EQNs below belong to the firmware.'),
  logMaxEqs: number(
    7,
    'log2',
    [3, 9],
    'interface sheet 1.3: MSI-X vectors of the function',
    'EQs that can be live at once, less the reserved.',
  ),
  logMaxMpts: number(20, 'log2', [8, 24], SHEET, 'Memory regions.'),
  logReservedMpts: number(8, 'log2', [0, 15], CAPTURE, 'MPT entries below belong to the firmware.'),
  logMaxMtts: number(31, 'log2', [8, 31], SHEET, 'Translation entries.'),
  logReservedMtts: number(4, 'log2', [0, 15], SHEET, 'MTT entries below belong to the firmware.'),
  logMaxRegionBytes: number(40, 'log2', [12, 63], SHEET, 'Largest memory region.'),
  logMaxRequesterReads: number(
    7,
    'log2',
    [0, 7],
    CAPTURE,
    'Outstanding reads and atomics of a QP as requester.',
  ),
  logMaxResponderReads: number(
    7,
    'log2',
    [0, 7],
    CAPTURE,
    'Outstanding reads and atomics of a QP as responder.',
  ),
  logMaxResponderResources: number(22, 'log2', [0, 31], SHEET, 'Responder resources of the device.'),
  localCaAckDelay: number(
    15,
    'code',
    [0, 31],
    CAPTURE,
    '4.096 µs × 2^n that an acknowledgement may take here.',
  ),
  logMaxMessageBytes: number(30, 'log2', [12, 31], CAPTURE, 'Largest message.'),
  reservedUars: number(1, 'pages', [0, 15], SHEET, 'UAR pages of the firmware.'),
  logUarAreaMib: number(
    2,
    'log2 MiB',
    [0, 6],
    SHEET,
    'UAR pages; as much of BAR2 behind them is BlueFlame, of which a card has none where BAR2 ends there.',
  ),
  logMinPageBytes: number(9, 'log2', [9, 12], CAPTURE, 'Smallest page of a buffer.'),
  logBlueFlameRegisterBytes: number(
    9,
    'log2',
    [7, 12],
    SHEET,
    'One BlueFlame register; half of it takes one post. All of a page fit into its 4 KiB.',
  ),
  logBlueFlameRegistersPerPage: number(3, 'log2', [0, 5], SHEET, 'BlueFlame registers in a page.'),
  maxSendScatterGather: number(62, 'segments', [1, 62], SHEET, 'Gather list of a send WQE.'),
  maxSendDescriptorBytes: number(1008, 'bytes', [64, 1008], SHEET, 'Largest send WQE.'),
  maxReceiveScatterGather: number(32, 'segments', [1, 32], CAPTURE, 'Scatter list of a receive WQE.'),
  maxReceiveDescriptorBytes: number(512, 'bytes', [16, 512], SHEET, 'Largest receive WQE.'),
  logMaxGroups: number(
    13,
    'log2',
    [4, 24],
    SHEET,
    'Multicast groups: half of them by hash, the others chained to these.',
  ),
  reservedPds: number(4, 'PDs', [0, 15], CAPTURE, 'Protection domains of the firmware.'),
  logMaxPds: number(24, 'log2', [1, 24], SHEET, 'Protection domains.'),
  logMaxIcmBytes: number(40, 'log2', [33, 52], SHEET, 'Context memory the profile may use.'),
  logGids: number(7, 'log2', [0, 15], 'interface sheet 3.13, public captures', 'GID table of a port.'),
  logPkeys: number(7, 'log2', [0, 15], 'interface sheet 3.13, public captures', 'P_Key table of a port.'),
  maxVls: number(8, 'VLs', [1, 15], 'interface sheet 3.13', 'Data VLs of a port.'),
  logAuxPageRatio: number(
    21,
    'log2',
    [18, 40],
    'interface sheet 3.6',
    'Bytes of ICM that one auxiliary page serves.',
  ),
  firmwareMajor: number(2, '', [0, 65535], INVENTED, 'Firmware version.'),
  firmwareMinor: number(42, '', [0, 65535], INVENTED, 'Firmware version.'),
  firmwareSubminor: number(5000, '', [0, 65535], INVENTED, 'Firmware version.'),
} as const;

/** Capabilities with a consequence of the slot: whether BlueFlame is left out because BAR2 has no room for it. */
export type CapabilityConfig = ConfigOf<typeof capabilityParameters> & { readonly lacksBlueFlame?: true };
