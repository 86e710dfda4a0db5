/** Latency, buffers, forwarding and marks of congestion of the switches of a fabric. */
import { type ConfigOf, choice, number } from '../../base/index.ts';

export const switchParameters = {
  latencyNs: number(
    120,
    'ns',
    [1, 100_000],
    'fabric-measurements.csv X-250: SX6036, 200 ns from port to port, less the two ports (wire.portLatencyNs)',
    'From the first byte of a packet within the switch until the first byte leaves it, where nothing is in the way.',
  ),
  forwarding: choice(
    'cut-through',
    ['cut-through', 'store-and-forward'],
    'IBTA vol 1, 18.2.4; SwitchX forwards by cut-through',
    'Whether a packet may leave before its last byte has arrived. One that leaves faster than it arrives waits long enough.',
  ),
  managementLatencyNs: number(
    10_000,
    'ns',
    [100, 10_000_000],
    'estimate: firmware answers management packets',
    'From the last byte of a management packet until the response of the switch, or the packet on its directed route, may leave.',
  ),
  waitTickMHz: number(
    250,
    'MHz',
    [1, 4000],
    'estimate',
    'Frequency of the ticks in which a port of the switch counts PortXmitWait.',
  ),
  inputBufferBytes: number(
    32_768,
    'bytes',
    [8448, 131_072],
    'estimate: no figure of SwitchX is published',
    'Receive buffer of each port of an InfiniBand switch up to 4X QDR, promised as credits; as much more as a link is faster.',
  ),
  hoqLife: number(
    18,
    'code',
    [0, 31],
    'opensm 3.3.23: HOQLife 0x12 between switches, 0x10 towards hosts',
    'A packet that is the first of its queue for longer than 4.096 us x 2^code is dropped; above 19, never (PortInfo.HOQLife).',
  ),
  vlStallCount: number(
    0,
    'packets',
    [0, 7],
    'choice: no lane stalls unless a subnet manager requests it; opensm 3.3.23 sets 7',
    'HOQLife drops in sequence after which an output drops all packets of a lane for 8 x HOQLife; 0: never (PortInfo.VLStallCount).',
  ),
  lifetimeValue: number(
    20,
    'code',
    [0, 31],
    'choice: no limit unless a subnet manager sets one; opensm 3.3.23 sets 0x12',
    'A packet that is in the switch for longer than 4.096 us x 2^code is dropped; above 19, never (SwitchInfo.LifeTimeValue).',
  ),
} as const;

/** SwitchCongestionSetting of an InfiniBand switch: see fecn-marker.ts. */
export const switchCongestionParameters = {
  threshold: number(
    0,
    'level',
    [0, 15],
    'choice: no marks unless a subnet manager requests them; opensm include/iba/ib_types.h, A10.4.3.6',
    'How early an output of an InfiniBand switch marks packets with FECN: 0 never, 1 with almost a full buffer waiting, 15 with a 16th of one (Threshold).',
  ),
  packetSize: number(
    8,
    '64 bytes',
    [0, 255],
    'estimate: acknowledgements and small messages cause no congestion',
    'Smaller packets are not marked (Packet_Size).',
  ),
  markingRate: number(
    1,
    'packets',
    [0, 65_535],
    'estimate: every second packet of a congested lane',
    'Packets between two marked ones of a congested lane (Marking_Rate).',
  ),
  victims: choice(
    'hosts',
    ['none', 'hosts', 'all'],
    'estimate: beyond the port of a host nothing else can be congested',
    'Ports that mark packets although they have no credits, and so are not the root of the congestion (Victim_Mask).',
  ),
} as const;

export type SwitchCongestionConfig = ConfigOf<typeof switchCongestionParameters>;
export type SwitchConfig = ConfigOf<typeof switchParameters>;
